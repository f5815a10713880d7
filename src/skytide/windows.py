"""Which rows count: the last so many, the last so long, those alive, the latest of each, all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from skytide.checks import flag, one_of, quoted, text, tidy, whole
from skytide.durations import format_duration, parse_duration
from skytide.errors import QueryError

__all__ = [
    "Everything",
    "LastRows",
    "LastTime",
    "Late",
    "Latest",
    "Lifetime",
    "Window",
    "everything",
    "last",
    "latest",
    "lifetime",
]

Late: TypeAlias = Literal["raise", "drop"]

# Times are int64 nanoseconds, about 292 years.
_LONGEST_NS = 2**63 - 1


@dataclass(frozen=True, slots=True, repr=False)
class LastRows:
    """The last n rows; the answer moves when `every` more rows have arrived; see `last`.

    >>> LastRows(1000, every=10)
    last(1000, every=10)
    """

    n: int
    every: int = 1
    history: bool = False

    def __post_init__(self) -> None:
        n, every = whole(self.n, "the number of rows"), whole(self.every, "every")
        tidy(self, n=n, every=every, history=flag(self.history, "history"))
        if every > n:
            raise QueryError(
                f"last({n}, every={every}) would skip rows", f"choose every between 1 and {n}"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns the window itself needs: none.

        >>> last(1000).columns
        ()
        """
        return ()

    def __repr__(self) -> str:
        every = f", every={self.every}" if self.every > 1 else ""
        return f"last({self.n}{every}{', history=True' * self.history})"

    def __str__(self) -> str:
        rows = f"the last {self.n:,} rows" if self.n > 1 else "the last row"
        every = f", every {self.every:,} rows" if self.every > 1 else ""
        return f"{rows}{every}{_kept(self.history)}"


@dataclass(frozen=True, slots=True, repr=False)
class LastTime:
    """The rows younger than a length of time, in nanoseconds; see `last`.

    >>> LastTime(parse_duration("10 minutes"), on="ts")
    last("10 minutes", on="ts")
    """

    length_ns: int
    every_ns: int | None = None
    on: str | None = None
    late: Late = "raise"
    history: bool = False

    def __post_init__(self) -> None:
        tidy(self, length_ns=_nanoseconds(self.length_ns, "the length of the window"))
        tidy(self, history=flag(self.history, "history"))
        one_of(self.late, ("raise", "drop"), "late")
        if self.on is not None:
            text(self.on, "the time column (on)")
        if self.every_ns is not None:
            tidy(self, every_ns=_nanoseconds(self.every_ns, "every"))
            self._check_every(self.every_ns)

    def _check_every(self, every: int) -> None:
        if every > self.length_ns:
            length = format_duration(self.length_ns)
            raise QueryError(
                f'last("{length}", every="{format_duration(every)}") would skip rows',
                f"choose every no longer than {length}",
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns the window itself needs: its time column, if one is named.

        >>> last("1 hour", on="ts").columns
        ('ts',)
        """
        return () if self.on is None else (self.on,)

    def __repr__(self) -> str:
        every = None if self.every_ns is None else format_duration(self.every_ns)
        options = {
            "every": every,
            "on": self.on,
            "late": None if self.late == "raise" else self.late,
        }
        given = [f", {name}={quoted(value)}" for name, value in options.items() if value]
        history = ", history=True" * self.history
        return f"last({quoted(format_duration(self.length_ns))}{''.join(given)}{history})"

    def __str__(self) -> str:
        on = f" by {self.on}" if self.on else ""
        every = f", every {format_duration(self.every_ns)}" if self.every_ns else ""
        late = ", dropping late rows" if self.late == "drop" else ""
        length = format_duration(self.length_ns)
        return f"the last {length}{on}{every}{late}{_kept(self.history)}"


@dataclass(frozen=True, slots=True, repr=False)
class Lifetime:
    """The rows alive now, each from its start until before its end; see `lifetime`.

    >>> Lifetime("from", "until")
    lifetime(start="from", end="until")
    """

    start: str | None
    end: str

    def __post_init__(self) -> None:
        text(self.end, "the end column of a lifetime")
        if self.start is not None and text(self.start, "the start column") == self.end:
            raise QueryError(
                f"a lifetime needs two columns, but {self.end!r} is both its start and its end",
                "leave start out for rows that live from their arrival",
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns the window itself needs: start, if one is named, and end.

        >>> lifetime(start="from", end="until").columns
        ('from', 'until')
        """
        return (self.end,) if self.start is None else (self.start, self.end)

    def __repr__(self) -> str:
        start = f"start={quoted(self.start)}, " if self.start else ""
        return f"lifetime({start}end={quoted(self.end)})"

    def __str__(self) -> str:
        return f"the rows alive from {self.start or 'their arrival'} until {self.end}"


@dataclass(frozen=True, slots=True, repr=False)
class Latest:
    """The latest row of each object; see `latest`.

    >>> Latest("object_id")
    latest("object_id")
    """

    key: str

    def __post_init__(self) -> None:
        text(self.key, "the key of latest()")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns the window itself needs: its key.

        >>> latest("object_id").columns
        ('object_id',)
        """
        return (self.key,)

    def __repr__(self) -> str:
        return f"latest({quoted(self.key)})"

    def __str__(self) -> str:
        return f"the latest row of each {self.key}"


@dataclass(frozen=True, slots=True, repr=False)
class Everything:
    """All rows ever seen; see `everything`.

    >>> Everything()
    everything()
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns the window itself needs: none.

        >>> everything().columns
        ()
        """
        return ()

    def __repr__(self) -> str:
        return "everything()"

    def __str__(self) -> str:
        return "all rows"


Window: TypeAlias = LastRows | LastTime | Lifetime | Latest | Everything


def last(
    rows_or_duration: int | str | timedelta,
    *,
    every: int | str | timedelta | None = None,
    on: str | None = None,
    late: Late = "raise",
    history: bool = False,
) -> LastRows | LastTime:
    """The last n rows, or the rows of the last length of time.

    `every` makes the answer move in slides of so many rows or so much time. For a length of time,
    `on` names the time column (None: the only timestamp of the data), a row counts while now - t <
    length, and a row older than the newest one seen raises, or is counted and dropped with
    `late="drop"`. `history=True` keeps every row of the window, not only those that can still
    matter, so that `answer(between=...)` can be asked.

    >>> last(1_000_000), last("1h 30m", every="1 minute", on="ts")
    (last(1000000), last("1 hour 30 minutes", every="1 minute", on="ts"))
    """
    if isinstance(rows_or_duration, (str, timedelta)):
        length = parse_duration(rows_or_duration)
        step = None if every is None else _slide(every)
        return LastTime(length, step, on, late, history)
    if on is not None or late != "raise":
        raise QueryError(
            f"last({rows_or_duration}) counts rows and looks at no clock: on and late do not apply",
            'leave them out, or give a length of time: last("10 minutes", on="ts")',
        )
    step = 1 if every is None else whole(every, "every of a number of rows")
    return LastRows(whole(rows_or_duration, "the number of rows"), step, history)


def lifetime(*, start: str | None = None, end: str) -> Lifetime:
    """The rows alive now: those with start <= now < end, both read from columns of the row.

    Without a start column a row lives from its arrival; so does one whose start is null. A row
    whose end is null lives for ever.

    >>> str(lifetime(start="from", end="until"))
    'the rows alive from from until until'
    """
    return Lifetime(start, end)


def latest(key: str) -> Latest:
    """The latest row of each object: a row replaces the row with the same key.

    >>> str(latest("object_id"))
    'the latest row of each object_id'
    """
    return Latest(key)


def everything() -> Everything:
    """All rows ever seen; none expires.

    >>> str(everything())
    'all rows'
    """
    return Everything()


def _slide(every: int | str | timedelta) -> int:
    if isinstance(every, (str, timedelta)):
        return parse_duration(every)
    raise QueryError(
        f"every={every!r} counts rows, but the window is a length of time",
        'give a length of time: every="1 minute"',
    )


def _nanoseconds(value: Any, what: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value < 1:
        raise QueryError(f"{what} is {value} ns", "give a length of time longer than zero")
    number = whole(value, f"{what} in nanoseconds")
    if number > _LONGEST_NS:
        raise QueryError(f"{what} is {format_duration(number)}", "the longest is 292 years")
    return number


def _kept(history: bool) -> str:
    return ", keeping its history" if history else ""
