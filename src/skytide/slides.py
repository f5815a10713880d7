"""Windows measured in rows and windows measured in time: one engine with two rulers.

A ruler gives every row its label, says up to which label the answer has moved (with ``every=``, in
slides), and turns what a user asks for (``last=``, ``between=``, ``to=``) into labels.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.checks import whole
from skytide.durations import format_duration, parse_duration
from skytide.errors import LateRows, QueryError
from skytide.query import LastRows, LastTime, Window
from skytide.rows import Batch

Ints = npt.NDArray[np.int64]
Ages: TypeAlias = tuple[int, int]


class Ruler(Protocol):
    """What a window is measured with."""

    length: int | None
    """The longest window, in labels; None: everything."""
    every: int
    """The clock stands at multiples of so many labels only."""

    def labels(self, batch: Batch, positions: Ints) -> Ints:
        """The labels of new rows."""

    def moved_to(self, newest: int) -> int:
        """The label up to which rows count when the newest label is this."""

    def span(self, last: Any) -> int | None:
        """The length that ``last=`` asks for."""

    def ages(self, between: Any) -> Ages:
        """``between=`` as ages: rows with ``ages[0] <= clock - label < ages[1]``."""

    def moment(self, to: Any, newest: int | None) -> int:
        """The label that ``advance(to=)`` means."""

    def at_type(self, schema: pa.Schema | None) -> pa.DataType:
        """The type of ``_change_at``."""


class RowRuler:
    """The last N rows: labels are positions.

    >>> ruler = RowRuler(10, every=4)
    >>> ruler.moved_to(11), ruler.ages((1, 10))
    (8, (0, 10))
    """

    def __init__(self, length: int | None, every: int = 1) -> None:
        self.length, self.every = length, every

    def labels(self, batch: Batch, positions: Ints) -> Ints:
        """Positions label themselves."""
        return positions

    def moved_to(self, newest: int) -> int:
        """The last whole slide."""
        return newest // self.every * self.every

    def span(self, last: Any) -> int | None:
        """``last`` rows, at most N."""
        if last is None:
            return self.length
        return self._rows(last, "last")

    def _rows(self, number: Any, what: str) -> int:
        if isinstance(number, (str, timedelta)):
            raise QueryError(
                f"{what}={number!r} is a length of time, but this window counts rows",
                f"ask for a number of rows: {what}=100",
            )
        rows = whole(number, what)
        if self.length is not None and rows > self.length:
            raise QueryError(
                f"{what}={rows:,} asks for more rows than the window keeps, {self.length:,}",
                f"ask for {self.length:,} at most, or open a query over last({rows})",
            )
        return rows

    def ages(self, between: Any) -> Ages:
        """From the n1th to the n2th most recent row, both included."""
        first, second = _pair(between)
        n1, n2 = self._rows(first, "between"), self._rows(second, "between")
        if n1 > n2:
            raise QueryError(
                f"between=({n1:,}, {n2:,}) ends before it begins",
                f"the more recent end comes first: between=({n2:,}, {n1:,})",
            )
        return n1 - 1, n2

    def moment(self, to: Any, newest: int | None) -> int:
        """There is no clock to move."""
        raise QueryError(
            "this window counts rows and has no clock to advance",
            'push rows, or open a query over a length of time: last("10 minutes")',
        )

    def at_type(self, schema: pa.Schema | None) -> pa.DataType:
        """Positions."""
        return pa.int64()


class TimeRuler:
    """The last length of time: labels are nanoseconds.

    >>> ruler = TimeRuler(LastTime(10, every_ns=4))
    >>> ruler.moved_to(11)
    8
    """

    def __init__(self, window: LastTime) -> None:
        self._window = window
        self.length: int | None = window.length_ns
        self.every = window.every_ns or 1

    def labels(self, batch: Batch, positions: Ints) -> Ints:
        """The time of the row."""
        assert batch.labels is not None
        return batch.labels

    def moved_to(self, newest: int) -> int:
        """Now, or the last multiple of ``every``."""
        return newest // self.every * self.every

    def span(self, last: Any) -> int | None:
        """``last`` as nanoseconds, at most the window's length."""
        if last is None:
            return self.length
        length = self._duration(last, "last")
        if length < 1:
            raise QueryError(f"last={last!r} asks for no time", 'ask for more: last="1 second"')
        return length

    def _duration(self, value: Any, what: str) -> int:
        if not isinstance(value, (str, timedelta)):
            raise QueryError(
                f"{what}={value!r} is no length of time, which this window is measured in",
                f'ask for a length of time: {what}="5 minutes"',
            )
        length = parse_duration(value)
        if length > self._window.length_ns:
            longest = format_duration(self._window.length_ns)
            raise QueryError(
                f"{what}={value!r} asks for more than the window keeps, {longest}",
                f"ask for {longest} at most, or open a query over a longer window",
            )
        return length

    def ages(self, between: Any) -> Ages:
        """Rows at least as old as the first and younger than the second."""
        first, second = _pair(between)
        younger, older = self._duration(first, "between"), self._duration(second, "between")
        if younger >= older:
            raise QueryError(
                f"between=({first!r}, {second!r}) ends before it begins",
                "the more recent end comes first, and the other is longer ago",
            )
        return younger, older

    def moment(self, to: Any, newest: int | None) -> int:
        """``to`` in nanoseconds; not before the newest time."""
        moment = nanoseconds(to)
        if newest is not None and moment < newest:
            raise LateRows(
                f"the clock cannot go back from {_spoken(newest)} to {_spoken(moment)}",
                "advance to a later time",
            )
        return moment

    def at_type(self, schema: pa.Schema | None) -> pa.DataType:
        """Nanoseconds, in the time zone of the data's time column."""
        zones = [f.type.tz for f in schema or () if pa.types.is_timestamp(f.type) and self._is(f)]
        return pa.timestamp("ns", zones[0] if zones else None)

    def _is(self, field: pa.Field) -> bool:
        return self._window.on is None or field.name == self._window.on


def ruler_of(window: Window) -> Ruler:
    """The ruler of a window.

    >>> from skytide import last
    >>> ruler_of(last(5)).length
    5
    """
    if isinstance(window, LastTime):
        return TimeRuler(window)
    if isinstance(window, LastRows):
        return RowRuler(window.n, window.every)
    return RowRuler(None)


def on_time(labels: Ints, newest: int | None) -> npt.NDArray[np.bool_]:
    """Which rows are not older than any row before them.

    >>> on_time(np.array([3, 5, 4, 6]), newest=4)
    array([False,  True, False,  True])
    """
    fine = labels >= np.maximum.accumulate(labels)
    return fine if newest is None else fine & (labels >= newest)


def check_on_time(labels: Ints, newest: int | None) -> None:
    """Raise LateRows if time runs backwards."""
    late = np.flatnonzero(~on_time(labels, newest))
    if len(late):
        before = max(
            [label for label in (newest, *labels[: late[0]].tolist()) if label is not None]
        )
        raise LateRows(
            f"time runs backwards: row {late[0]} of this push is of {_spoken(int(labels[late[0]]))}, "
            f"after {_spoken(before)} ({len(late):,} late in all); nothing of it was taken in",
            'sort the rows by time, or let late rows be dropped and counted: last(..., late="drop")',
        )


def nanoseconds(moment: Any) -> int:
    """A moment as nanoseconds since 1970; without a time zone it is taken for UTC.

    >>> nanoseconds(np.datetime64("1970-01-01T00:00:01"))
    1000000000
    """
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    try:
        if isinstance(moment, int):  # of what unit?
            raise TypeError
        if isinstance(moment, (str, date)) and not isinstance(moment, datetime):
            moment = np.datetime64(moment)
        if isinstance(moment, np.datetime64):
            moment = moment.astype("datetime64[ns]")
        scalar = moment if isinstance(moment, pa.Scalar) else pa.scalar(moment)
        return int(scalar.cast(pa.timestamp("ns", getattr(scalar.type, "tz", None))).value)
    except (pa.ArrowException, ValueError, TypeError, AttributeError):
        raise QueryError(
            f"{moment!r} is no moment",
            "give a datetime, a numpy datetime64, a pandas Timestamp, an Arrow timestamp or ISO text",
        ) from None


def _pair(between: Any) -> tuple[Any, Any]:
    if isinstance(between, str) or not hasattr(between, "__len__") or len(between) != 2:
        raise QueryError(
            f"between={between!r} is no pair",
            "give both ends, the more recent first: between=(1_000, 50_000)",
        )
    return between[0], between[1]


def _spoken(label: int) -> str:
    return str(np.datetime64(label, "ns"))
