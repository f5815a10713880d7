"""What is better: a low or a high value of a column, or of an expression over columns."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from skytide.checks import one_of, quoted, text, tidy
from skytide.errors import QueryError

if TYPE_CHECKING:
    from skytide.expressions import Expression

__all__ = ["Direction", "Preference", "Score", "high", "low", "plain_column", "sql_name"]

Direction: TypeAlias = Literal["low", "high"]

# a.name or b.name (the rows of a pair), an identifier, or anything in double quotes.
_PLAIN_COLUMN = re.compile(r'(?:([abAB])\.)?(?:([^\W\d]\w*)|"((?:[^"]|"")+)")')


def plain_column(expression: str) -> tuple[str, str] | None:
    """The row ("a", "b" or "") and the name of a plain column, or None if it is an expression.

    >>> plain_column("price"), plain_column('a."unit price"'), plain_column("price * 2")
    (('', 'price'), ('a', 'unit price'), None)
    """
    match = _PLAIN_COLUMN.fullmatch(expression.strip())
    if match is None:
        return None
    row, identifier, quoted = match.groups()
    return (row or "").lower(), identifier or quoted.replace('""', '"')


def sql_name(column: str) -> str:
    """A column name as an expression has to write it: in quotes unless it is an identifier.

    >>> sql_name("price"), sql_name("unit price")
    ('price', '"unit price"')
    """
    if column.isidentifier():
        return column
    return '"' + column.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Score:
    """A Python function of columns: given as many numpy arrays, it returns one number a row.

    >>> print(Score(max, ("bid", "ask")))
    max(bid, ask)
    """

    function: Callable[..., Any]
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise QueryError(
                f"a preference is {self.function!r}, neither text nor a function",
                'name a column, low("price"), or a function of columns, low(cost, "price", "fee")',
            )
        for column in self.columns:
            text(column, f"a column of the score {self.name}")

    @property
    def name(self) -> str:
        """What the function is called.

        >>> Score(max, ("bid",)).name
        'max'
        """
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def source(self) -> str:
        """Where the function is defined, to tell two of one name apart.

        >>> Score(max, ("bid",)).source
        'builtins.max'
        """
        function = self.function
        return f"{function.__module__}.{getattr(function, '__qualname__', self.name)}"

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(sql_name, self.columns))})"


@dataclass(frozen=True, slots=True, repr=False)
class Preference:
    """What is better: a low or a high value of a column, a scalar SQL expression or a score.

    An expression is parsed at once, so that a slip is reported where it was made.

    >>> Preference("price", "low")
    low("price")
    >>> str(high("volume"))
    'high volume'
    """

    expression: str
    direction: Direction
    score: Score | None = None

    def __post_init__(self) -> None:
        tidy(self, expression=text(self.expression, "the expression of a preference"))
        one_of(self.direction, ("low", "high"), "the direction of a preference")
        if not self.columns:
            raise QueryError(
                f"the preference {self!r} mentions no column: all rows would be equal",
                "name at least one column of the data",
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it needs, in order of mention; in a pair preference as `a.name`, `b.name`.

        >>> low("abs(price - cost) / cost").columns
        ('price', 'cost')
        """
        if self.score is not None:
            return self.score.columns
        plain = plain_column(self.expression)
        if plain is None:
            return _parsed(self.expression).columns
        row, name = plain
        return (f"{row}.{name}" if row else name,)

    @property
    def rows(self) -> frozenset[str]:
        """Which rows it looks at: {""} for the row itself, any of {"a", "b"} for a pair.

        >>> sorted(low("abs(a.temp - b.temp)").rows)
        ['a', 'b']
        """
        if self.score is not None:
            return frozenset([""])
        plain = plain_column(self.expression)
        return frozenset([plain[0]]) if plain else _parsed(self.expression).rows

    @property
    def identity(self) -> object:
        """What it looks at, so that the same asked twice is noticed.

        >>> low('"price"').identity == low("price").identity
        True
        """
        return self.score or plain_column(self.expression) or self.expression

    def __repr__(self) -> str:
        if self.score is not None:
            return f"{self.direction}({', '.join([self.score.name, *map(quoted, self.columns)])})"
        return f"{self.direction}({quoted(self.expression)})"

    def __str__(self) -> str:
        return f"{self.direction} {' '.join(self.expression.splitlines())}"


def low(what: str | Callable[..., Any], *columns: str) -> Preference:
    """The lower the better: a column, a scalar SQL expression over columns, or a Python function.

    A function is given the named columns as read-only numpy arrays, and returns an array of as many
    numbers. It must judge each row for itself: a row is scored once, together with whatever rows
    happen to be pushed with it.

    >>> low("price")
    low("price")
    >>> def cost(price, fee):
    ...     return price + fee
    >>> low(cost, "price", "fee")
    low(cost, "price", "fee")
    """
    return _preference(what, columns, "low")


def high(what: str | Callable[..., Any], *columns: str) -> Preference:
    """The higher the better: a column, a scalar SQL expression over columns, or a Python function.

    A function is given the named columns as in `low`.

    >>> high('"traded volume"').columns
    ('traded volume',)
    """
    return _preference(what, columns, "high")


def _preference(what: Any, columns: tuple[str, ...], direction: Direction) -> Preference:
    if not isinstance(what, str):
        score = Score(what, columns)
        return Preference(str(score), direction, score)
    if columns:
        raise QueryError(
            f"{direction}({', '.join(map(repr, (what, *columns)))}) names several columns",
            f"a preference is one value: write an expression, {direction}({quoted('a + b')}), "
            f"or give each column a preference of its own",
        )
    return Preference(what, direction)


def _parsed(expression: str) -> Expression:
    # Late: expressions need pyarrow, and `import skytide` must stay light.
    from skytide.expressions import parse

    return parse(expression)
