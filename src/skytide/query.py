"""Questions over windows: frozen values that say what is better, which rows count and what to ask.

Nothing here holds a row. A query is built, checked, printed, compared, hashed, pickled and written
as a dict; an engine made from it (`Query.open`) does the work. All checking happens when a value is
built, so a query that exists can be asked, up to the names and types of the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from skytide.checks import one_of, quoted, sequence, text, tidy, whole
from skytide.errors import QueryError, did_you_mean
from skytide.preferences import Preference, high, low
from skytide.windows import (
    Everything,
    LastRows,
    LastTime,
    Latest,
    Lifetime,
    Window,
    everything,
    last,
    latest,
    lifetime,
)

if TYPE_CHECKING:
    from skytide.engine import Engine
    from skytide.keyed import KeyedEngine

__all__ = [
    "Everything",
    "LastRows",
    "LastTime",
    "Latest",
    "Lifetime",
    "Preference",
    "Query",
    "Question",
    "Skyband",
    "Skyline",
    "Top",
    "TopPairs",
    "Window",
    "everything",
    "high",
    "last",
    "latest",
    "lifetime",
    "low",
    "query_from_dict",
    "skyband",
    "skyline",
    "top",
    "top_pairs",
]

Ties: TypeAlias = Literal["all", "newest"]


@dataclass(frozen=True, slots=True, repr=False)
class Question:
    """The base of the four questions; build one with `skyline`, `skyband`, `top` or `top_pairs`.

    >>> isinstance(top(3, low("price")), Question)
    True
    """

    preferences: tuple[Preference, ...]
    k: int = 1
    ties: Ties = "all"

    def __post_init__(self) -> None:
        preferences = tuple(sequence(self.preferences, "preferences"))
        tidy(self, preferences=preferences, k=whole(self.k, "k"))
        one_of(self.ties, ("all", "newest"), "ties")
        _check_preferences(preferences)
        self._check_rows()

    def _check_rows(self) -> None:
        for preference in self.preferences:
            if preference.rows != {""}:
                raise QueryError(
                    f"{preference!r} speaks of the rows a and b, but only top_pairs asks of pairs",
                    f"name the column alone, or, if its name has a dot, in quotes: "
                    f"{preference.direction}('\"{preference.columns[0]}\"')",
                )

    def over(self, window: Window) -> Query:
        """This question over the rows of a window.

        >>> skyline(low("price")).over(last(10))
        skyline(low("price")).over(last(10))
        """
        return Query(self, window)


class Skyline(Question):
    """The rows that no other row beats; see `skyline`.

    >>> Skyline((low("price"), high("volume")))
    skyline(low("price"), high("volume"))
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k != 1:
            raise QueryError(f"a skyline has k = 1, not {self.k}", "ask skyband(k, ...)")

    def __repr__(self) -> str:
        return f"skyline({_arguments(self.preferences, self.ties)})"

    def __str__(self) -> str:
        keeping = ", keeping the newest of equal rows," if self.ties == "newest" else ""
        return f"the skyline of {_spoken(self.preferences)}{keeping}"


class Skyband(Question):
    """The rows that fewer than k other rows beat; see `skyband`.

    >>> Skyband((low("price"), high("volume")), k=3)
    skyband(3, low("price"), high("volume"))
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"skyband({self.k}, {_arguments(self.preferences, self.ties)})"

    def __str__(self) -> str:
        newest = f", keeping the {self.k:,} newest of equal rows,"
        keeping = newest if self.ties == "newest" else ""
        return f"the {self.k:,}-skyband of {_spoken(self.preferences)}{keeping}"


class Top(Question):
    """The k best rows by one preference; see `top`.

    >>> Top((low("price"),), k=3, ties="newest")
    top(3, low("price"))
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_ranking(self, "top")

    def __repr__(self) -> str:
        return f"top({self.k}, {self.preferences[0]!r})"

    def __str__(self) -> str:
        return f"the top {self.k:,} by {self.preferences[0]}"


class TopPairs(Question):
    """The k best pairs of rows by one preference over both; see `top_pairs`.

    >>> TopPairs((low("abs(a.temp - b.temp)"),), k=3, ties="newest")
    top_pairs(3, low("abs(a.temp - b.temp)"))
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_ranking(self, "top_pairs")

    def _check_rows(self) -> None:
        for preference in self.preferences:
            if "" in preference.rows:
                raise QueryError(
                    f"{preference!r} does not say of which row of the pair it speaks",
                    'write a. or b. before every column, as in low("abs(a.temp - b.temp)")',
                )

    def __repr__(self) -> str:
        return f"top_pairs({self.k}, {self.preferences[0]!r})"

    def __str__(self) -> str:
        return f"the top {self.k:,} pair{'s' * (self.k != 1)} by {self.preferences[0]}"


def skyline(*preferences: Preference, ties: Ties = "all") -> Skyline:
    """The rows that no other row beats.

    A row beats another if it is no worse in every preference and better in at least one. With
    `ties="all"` equal rows do not beat each other: all of them are in the skyline. With
    `ties="newest"` the younger of two equal rows beats the older, so one row a value remains.

    >>> skyline(low("price"), high("volume"))
    skyline(low("price"), high("volume"))
    """
    return Skyline(preferences, ties=ties)


def skyband(k: int, *preferences: Preference, ties: Ties = "all") -> Skyband:
    """The rows that fewer than k other rows beat; `skyband(1, ...)` is the skyline.

    With `ties="all"` equal rows do not beat each other; with `ties="newest"` the younger of two
    equal rows beats the older, so at most the k youngest of equal rows remain.

    >>> skyband(2, low("price"), high("volume"), ties="newest")
    skyband(2, low("price"), high("volume"), ties="newest")
    """
    return Skyband(preferences, k, ties)


def top(k: int, preference: Preference) -> Top:
    """The k best rows by one preference; of equal values the younger row is the better one.

    >>> str(top(10, high("price * volume")))
    'the top 10 by high price * volume'
    """
    return Top((preference,), k, "newest")


def top_pairs(k: int, preference: Preference) -> TopPairs:
    """The k best pairs of rows; the preference names the columns of the two rows `a.x` and `b.x`.

    Of equal values the pair with the younger older-member is better, then the one with the younger
    younger-member.

    >>> str(top_pairs(5, low("abs(a.temp - b.temp)")))
    'the top 5 pairs by low abs(a.temp - b.temp)'
    """
    return TopPairs((preference,), k, "newest")


def _check_preferences(preferences: Sequence[Any]) -> None:
    if not preferences:
        raise QueryError(
            "a question needs at least one preference", 'say what is better: low("price")'
        )
    seen = set()
    for preference in preferences:
        if not isinstance(preference, Preference):
            raise QueryError(
                f"{preference!r} is not a preference",
                'say which end is better: low("price") or high("price")',
            )
        key = preference.identity, preference.direction
        if key in seen:
            raise QueryError(f"the preference {preference!r} is given twice", "leave one of them")
        seen.add(key)


def _check_ranking(question: Question, name: str) -> None:
    if len(question.preferences) != 1:
        raise QueryError(
            f"{name} ranks by one preference, not by {len(question.preferences)}",
            "combine them in one expression, or ask for a skyline",
        )
    if question.ties != "newest":
        raise QueryError(f'{name} has ties="newest": of equal values the younger is better')


def _arguments(preferences: tuple[Preference, ...], ties: Ties) -> str:
    return ", ".join(map(repr, preferences)) + (', ties="newest"' if ties == "newest" else "")


def _spoken(preferences: tuple[Preference, ...]) -> str:
    *most, final = map(str, preferences)
    return f"{', '.join(most)} and {final}" if most else final


@dataclass(frozen=True, slots=True, repr=False)
class Query:
    """A question over a window, optionally per key: immutable, hashable, picklable, printable.

    >>> query = skyline(low("price"), high("volume")).over(last(1_000_000)).per("symbol")
    >>> query
    skyline(low("price"), high("volume")).over(last(1000000)).per("symbol")
    >>> print(query)
    the skyline of low price and high volume over the last 1,000,000 rows, per symbol
    """

    question: Question
    window: Window
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if type(self.question) not in _QUESTIONS.values():
            raise QueryError(
                f"{self.question!r} is not a question",
                "start with skyline, skyband, top, top_pairs",
            )
        if not isinstance(self.window, Window):
            raise QueryError(
                f"{self.window!r} is not a window",
                "use last(...), lifetime(...), latest(...) or everything()",
            )
        tidy(self, keys=tuple(sequence(self.keys, "keys")))
        _check_keys(self.keys)

    def per(self, *keys: str) -> Query:
        """The same query asked of each group of rows with equal keys, each with its own window.

        >>> top(3, high("price")).over(last(10)).per("symbol", "venue").keys
        ('symbol', 'venue')
        """
        if not keys:
            raise QueryError("per() names no column", 'name the key: .per("symbol")')
        if self.keys:
            raise QueryError(
                f"the query is already per {', '.join(self.keys)}",
                f"name all keys at once: .per({', '.join(map(quoted, [*self.keys, *keys]))})",
            )
        return Query(self.question, self.window, keys)

    @property
    def preferences(self) -> tuple[Preference, ...]:
        """What is better, in the order it was said.

        >>> skyline(low("price"), high("volume")).over(last(10)).preferences
        (low("price"), high("volume"))
        """
        return self.question.preferences

    @property
    def k(self) -> int:
        """How many: of `skyband`, `top` and `top_pairs`; 1 for a skyline.

        >>> top(3, low("price")).over(last(10)).k
        3
        """
        return self.question.k

    @property
    def ties(self) -> Ties:
        """What becomes of equal rows: "all" or "newest"; always "newest" for rankings.

        >>> top(3, low("price")).over(last(10)).ties
        'newest'
        """
        return self.question.ties

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The distinct columns of the preferences; for pairs without their a. and b.

        >>> top_pairs(3, low("abs(a.temp - b.temp)")).over(last(10)).value_columns
        ('temp',)
        """
        columns = [column for preference in self.preferences for column in preference.columns]
        if isinstance(self.question, TopPairs):
            columns = [column.partition(".")[2] for column in columns]
        return tuple(dict.fromkeys(columns))

    @property
    def timed(self) -> bool:
        """Does a clock move the window, and not the arrival of rows?

        >>> skyline(low("price")).over(last("1 hour")).timed
        True
        """
        return isinstance(self.window, LastTime)

    @property
    def columns(self) -> tuple[str, ...]:
        """The distinct columns it needs: of the preferences, then the window, then the keys.

        >>> skyline(low("price * size"), low("fee")).over(last("1h", on="ts")).per("symbol").columns
        ('price', 'size', 'fee', 'ts', 'symbol')
        """
        return tuple(dict.fromkeys((*self.value_columns, *self.window.columns, *self.keys)))

    def open(self, algorithm: str | None = None) -> Engine | KeyedEngine:
        """A live engine for this query; the best algorithm is chosen unless one is named.

        >>> live = skyline(low("price")).over(last(2)).open()
        >>> live.push({"price": [1.0, 3.0, 2.0]})
        >>> live.answer()["price"].to_pylist()
        [2.0]
        """
        from skytide.opening import open_query

        return open_query(self, algorithm)

    def algorithms(self) -> dict[str, str]:
        """The names that `open(algorithm=...)` takes for this query, the default first, and what
        each does.

        >>> list(skyline(low("price")).over(last(2, history=True)).algorithms())[0]
        'n12-of-n'
        """
        from skytide.choices import algorithms_for

        return algorithms_for(self)

    def answer(self, data: Any, **options: Any) -> Any:
        """The answer over given data: Arrow in, Arrow out; a Spark DataFrame in, one out.

        On Spark nothing runs before the answer is asked for, and there are

        - ``order_by``: the columns that arrival follows; without it, or if they are equal, rows have
          arrived partition after partition;
        - ``rejects``: rows that cannot be ordered, such as those with nulls, are returned as well, with
          why in ``_reasons``; else they are set aside and only counted;
        - ``counts``: a `pyspark.sql.Observation` that is told how many rows there were (``rows``), were
          left of all partitions (``kept``) and set aside (``rejected``), and what crossed the network
          (``bytes``).

        >>> query = skyline(low("price")).over(last(2))
        >>> query.answer({"price": [1.0, 3.0, 2.0]})["price"].to_pylist()
        [2.0]
        """
        from skytide.opening import answer_once

        return answer_once(self, data, **options)

    def changes(self, stream: Any, **options: Any) -> Any:
        """What enters and leaves the answer: an iterator of batches in, one of change tables out.

        A streaming Spark DataFrame in gives a streaming DataFrame of changes.  ``last``, ``between``
        and ``k`` ask as in ``Engine.watch``; ``algorithm`` as in ``open``.  On Spark there are also

        - ``order_by``: the columns that arrival follows within a micro-batch; without it, the source's
          partitions and the order in them;
        - ``watermark``: how far a window of time stays behind the newest row, so that rows may come
          out of order: "10 seconds";
        - ``rejects``: rows that cannot be ordered, and those that come too late, appear as changes of
          the type "reject", with why in ``_reasons``; else they are only counted.

        >>> stream = [{"price": [2.0]}, {"price": [1.0]}]
        >>> changes = skyline(low("price")).over(last(2)).changes(stream)
        >>> [table["_change_type"].to_pylist() for table in changes]
        [['insert'], ['delete', 'insert']]
        """
        from skytide.opening import changes_of

        return changes_of(self, stream, **options)

    def to_dict(self) -> dict[str, Any]:
        """The query as a plain dict that JSON can carry; `query_from_dict` is the way back.

        >>> top(3, low("price")).over(last(10)).to_dict()["window"]
        {'kind': 'last_rows', 'n': 10, 'every': 1, 'history': False}
        """
        question = {
            **_plain(self.question, _QUESTIONS),
            "preferences": list(map(_plain_preference, self.preferences)),
        }
        window = _plain(self.window, _WINDOWS)
        return {"question": question, "window": window, "keys": list(self.keys)}

    def __repr__(self) -> str:
        per = f".per({', '.join(map(quoted, self.keys))})" if self.keys else ""
        return f"{self.question!r}.over({self.window!r}){per}"

    def __str__(self) -> str:
        per = f", per {' and '.join(self.keys)}" if self.keys else ""
        return f"{self.question} over {self.window}{per}"


def _check_keys(keys: Sequence[Any]) -> None:
    for key in keys:
        text(key, "a key")
    if len(set(keys)) < len(keys):
        raise QueryError(f"a key is named twice in per({', '.join(map(quoted, keys))})")


_QUESTIONS: dict[str, type[Question]] = {
    "skyline": Skyline,
    "skyband": Skyband,
    "top": Top,
    "top_pairs": TopPairs,
}

_WINDOWS: dict[str, type[Any]] = {
    "last_rows": LastRows,
    "last_time": LastTime,
    "lifetime": Lifetime,
    "latest": Latest,
    "everything": Everything,
}


def query_from_dict(plain: Mapping[str, Any]) -> Query:
    """The query that `Query.to_dict` wrote; anything else is refused with what is wrong in it.

    >>> query = skyline(low("price")).over(last("1 hour", on="ts")).per("symbol")
    >>> query_from_dict(query.to_dict()) == query
    True
    """
    _check_fields(plain, {"question", "window", "keys"}, "a query")
    question = _built(plain["question"], _QUESTIONS, "question")
    window = _built(plain["window"], _WINDOWS, "window")
    return Query(question, window, tuple(sequence(plain["keys"], "keys")))


def _plain(value: Any, kinds: Mapping[str, type[Any]]) -> dict[str, Any]:
    kind = next(name for name, cls in kinds.items() if cls is type(value))
    return {"kind": kind, **{field.name: getattr(value, field.name) for field in fields(value)}}


def _built(plain: Any, kinds: Mapping[str, type[Any]], what: str) -> Any:
    kind = plain.get("kind") if isinstance(plain, Mapping) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise QueryError(
            f"a {what} of the unknown kind {kind!r}.{did_you_mean(str(kind), kinds)}",
            f"the kinds are {', '.join(kinds)}",
        )
    cls = kinds[kind]
    _check_fields(plain, {"kind", *(field.name for field in fields(cls))}, f"a {kind}")
    values = {name: value for name, value in plain.items() if name != "kind"}
    if "preferences" in values:
        listed = sequence(values["preferences"], "preferences")
        values["preferences"] = tuple(map(_preference, listed))
    return cls(**values)


def _plain_preference(one: Preference) -> dict[str, Any]:
    if one.score is None:
        return {"direction": one.direction, "expression": one.expression}
    # Enough to recognise it by, not to call it: a function does not travel as data.
    columns = list(one.score.columns)
    return {"direction": one.direction, "function": one.score.source, "columns": columns}


def _preference(plain: Any) -> Preference:
    if isinstance(plain, Mapping) and "function" in plain:
        raise QueryError(
            f"the preference scores by the Python function {plain['function']}, "
            "which data cannot carry",
            "build the query in Python",
        )
    _check_fields(plain, {"direction", "expression"}, "a preference")
    return Preference(plain["expression"], plain["direction"])


def _check_fields(plain: Any, names: set[str], what: str) -> None:
    if not isinstance(plain, Mapping):
        raise QueryError(f"{what} is written as a dict, not as {plain!r}")
    missing = sorted(names - set(plain))
    unknown = sorted(map(str, set(plain) - names))
    if missing or unknown:
        raise QueryError(
            f"the dict of {what} lacks {missing} and has the unknown {unknown}",
            f"its entries are {', '.join(sorted(names))}",
        )
