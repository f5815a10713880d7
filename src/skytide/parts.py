"""Parts of data that stand still: pruned where they lie, merged, answered from in the end.

    partition ──► Pruner ──► part ─┐
    partition ──► Pruner ──► part ─┴─► merged, pruned again ──► ... ──► answer

A part is what is left of the rows of *all* keys of some neighbouring partitions.  Merging is
associative, so any tree of merges leads to the answer over all rows: what was dropped is beaten by
rows that outlive it, or has left the window for good, whatever rows are still to be merged.

The window is the one thing that only all parts together know.  If it counts rows, the last row of
every key stays, so that its place tells how many there were.  If besides the rows have an order of
their own, a part has a *ledger* of that order: of all rows at first, and only as far back as the
window reaches once it was merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.keys import key_codes, key_order, order_of_age, segments, sorted_order
from skytide.once import answer_rows
from skytide.packs import Pack
from skytide.pruning import PENDING, Pruner, Rows, spared
from skytide.query import LastRows, LastTime, Query
from skytide.rows import Reader
from skytide.slides import ruler_of

Ints = npt.NDArray[np.int64]


class Part(NamedTuple):
    """What is left of some of the data.

    ``places``: arrival numbers, of each key ascending; with a ledger, row numbers in it, from 1.
    ``newest``: the newest time there was, in nanoseconds.

    >>> part = Part(pa.table({"price": [1, 2]}), np.array([2, 5]))
    >>> Part.from_bytes(part.to_bytes()).places.tolist()
    [2, 5]
    """

    rows: pa.Table
    places: Ints
    ledger: pa.Table | None = None
    newest: int | None = None

    @staticmethod
    def nothing(newest: int | None = None) -> Part:
        """No rows, of which the newest was of this time.

        >>> Part.nothing(5).rows.num_rows
        0
        """
        return Part(pa.table({}), np.zeros(0, np.int64), None, newest)

    def to_bytes(self) -> bytes:
        """The part without its newest time, as one binary value.

        >>> len(Part(pa.table({"price": [1]}), np.array([2])).to_bytes()) > 0
        True
        """
        return Pack(self.places, self.rows, self.ledger).to_bytes()

    @staticmethod
    def from_bytes(blob: bytes, newest: int | None = None) -> Part:
        """The part that :meth:`to_bytes` wrote.

        >>> blob = Part(pa.table({"price": [1]}), np.array([2])).to_bytes()
        >>> Part.from_bytes(blob).rows.to_pydict()
        {'price': [1]}
        """
        places, rows, ledger = Pack.from_bytes(blob)
        return Part(rows, places, ledger, newest)


def standing(query: Query) -> Query:
    """The query without what matters only while rows come: the history that its window keeps.

    >>> import skytide as st
    >>> standing(st.skyline(st.low("price")).over(st.last(9, history=True)))
    skyline(low("price")).over(last(9))
    """
    window = query.window
    if isinstance(window, LastRows | LastTime) and window.history:
        return Query(query.question, replace(window, history=False), query.keys)
    return query


class Merger:
    """Parts in, in their order; out comes one part, or the answer.

    Memory: what is left, and as many rows again that are being gathered.

    >>> import skytide as st
    >>> query = st.skyline(st.low("price")).over(st.last(3))
    >>> merger = Merger(query)
    >>> for prices in [4, 1], [3, 2]:
    ...     pruner = Pruner(query, still=True)
    ...     _ = pruner.add({"price": prices})
    ...     merger.add(merger.left_by(pruner))
    >>> merger.answer().to_pydict()
    {'price': [1]}
    """

    def __init__(self, query: Query, order_by: Sequence[str] = ()) -> None:
        self.query = standing(query)
        self._order_by = list(order_by)
        self._reader = Reader(self.query)
        self._parts: list[Part] = []
        self._waiting = 0
        self.newest: int | None = None
        """The newest time of all parts, in nanoseconds; may be set if it is known better."""

    def pruner(self) -> Pruner:
        """What makes the first parts, of rows.

        >>> import skytide as st
        >>> Merger(st.skyline(st.low("price")).over(st.last(3))).pruner().newest is None
        True
        """
        return Pruner(self.query, order_by=self._order_by, still=True)

    def left_by(self, pruner: Pruner) -> Part:
        """What is left of the rows that a pruner was given, as a part; the pruner is then empty."""
        rows, ledger = pruner.left()
        if rows is None:
            return Part.nothing()
        return self._in_reach(rows, ledger, pruner.newest)

    def add(self, part: Part) -> None:
        """Add the part that comes next."""
        times = [time for time in (self.newest, part.newest) if time is not None]
        self.newest = max(times, default=None)
        if not part.rows.num_rows:
            return
        self._parts.append(part)
        self._waiting += part.rows.num_rows
        if len(self._parts) > 1 and self._waiting > max(PENDING, 2 * self._parts[0].rows.num_rows):
            self._merge()

    def part(self) -> Part:
        """All parts merged into one; the merger is empty afterwards."""
        self._merge()
        part = self._parts.pop() if self._parts else Part.nothing()
        self._waiting = 0
        return part

    def answer(self) -> pa.Table:
        """The answer over all parts; the merger is empty afterwards."""
        newest, part = self.newest, self.part()
        if not part.rows.num_rows:
            return part.rows
        rows = self._read(part)
        if part.ledger is not None:
            labels = self._ranks(part.ledger)[0][rows.places - 1]
            ages = order_of_age(rows.codes, labels)
        else:
            labels = rows.places if rows.labels is None else rows.labels
            ages = order_of_age(rows.codes, rows.labels, part.rows.select(self._order_by))
        return rows.table.take(
            answer_rows(self.query, rows.values, labels, rows.codes, ages, newest)
        )

    # -- merging ---------------------------------------------------------------------------------

    def _merge(self) -> None:
        if len(self._parts) < 2:
            return
        parts, self._parts = self._parts, []
        tables = [part.ledger for part in parts if part.ledger is not None]
        ledger = pa.concat_tables(tables).combine_chunks() if tables else None
        sizes = [part.rows.num_rows for part in parts]
        origin = np.repeat(np.arange(len(parts)), sizes)
        places = np.concatenate([part.places for part in parts])
        if ledger is not None:
            before = np.cumsum([0, *(table.num_rows for table in tables[:-1])])
            places += before[origin]
        rows = self._read(Part(pa.concat_tables([part.rows for part in parts]), places))
        if self.query.keys:
            order = key_order(rows.codes)
            rows, origin = rows.take(order), origin[order]
        if ledger is None:
            rows = rows._replace(places=_continued(rows.places, rows.codes, origin))
        kept = np.flatnonzero(spared(rows, self.query, self._order_by, still=True))
        merged = self._in_reach(rows.take(kept), ledger, self.newest)
        self._parts, self._waiting = [merged], merged.rows.num_rows

    def _read(self, part: Part) -> Rows:
        batch = self._reader.read(part.rows)
        codes = key_codes(batch.table, self.query.keys)
        return Rows(batch.values, batch.labels, part.places, codes, batch.table)

    # -- how far the window reaches ---------------------------------------------------------------

    def _in_reach(self, rows: Rows, ledger: pa.Table | None, newest: int | None) -> Part:
        """The rows that the window may hold whatever is still to come."""
        ruler = ruler_of(self.query.window)
        if ruler.length is None:
            return Part(rows.table, rows.places, ledger, newest)
        if ledger is not None:
            return self._in_ledger(rows, ledger, ruler.length, ruler.every)
        if rows.labels is not None:
            assert newest is not None
            inside = rows.labels > ruler.moved_to(newest) - ruler.length
        else:
            inside = rows.places > _last_of_each(rows) - (ruler.length + ruler.every - 1)
        if inside.all():
            return Part(rows.table, rows.places, None, newest)
        return Part(rows.table.filter(pa.array(inside)), rows.places[inside], None, newest)

    def _in_ledger(self, rows: Rows, ledger: pa.Table, length: int, every: int) -> Part:
        """The same of an order of its own; what is cut off are whole slides, so that the rest may
        be counted as if there had never been more."""
        ranks, counts = self._ranks(ledger)
        beyond = np.maximum(counts - (length + every - 1), 0) // every * every
        inside = ranks > beyond
        chosen = inside[rows.places - 1]
        places: Ints = np.cumsum(inside, dtype=np.int64)[rows.places[chosen] - 1]
        return Part(rows.table.filter(pa.array(chosen)), places, ledger.filter(pa.array(inside)))

    def _ranks(self, ledger: pa.Table) -> tuple[Ints, Ints]:
        """Of each row of the ledger, its rank among those of its key, and how many they are."""
        codes = key_codes(ledger, self.query.keys)
        order = sorted_order(ledger.select(self._order_by), codes)
        ranks, counts = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
        for start, end in segments(codes[order]):
            ranks[order[start:end]] = np.arange(1, end - start + 1)
            counts[order[start:end]] = end - start
        return ranks, counts


def _last_of_each(rows: Rows) -> Ints:
    """For each row, the place of the last row of its key."""
    ends = np.array([end for _, end in segments(rows.codes)])
    last: Ints = np.repeat(rows.places[ends - 1], np.diff(ends, prepend=0))
    return last


def _continued(places: Ints, codes: Ints, origin: Ints) -> Ints:
    """Places that go on from part to part; the rows of each key together, those of a part as well.

    >>> _continued(np.array([1, 3, 2, 1]), np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])).tolist()
    [1, 3, 5, 1]
    """
    new_key = np.diff(codes, prepend=codes[0] - 1) != 0
    starts = np.flatnonzero(new_key | (np.diff(origin, prepend=-1) != 0))
    ends = np.append(starts[1:], len(places))
    seen = places[ends - 1]
    before = np.cumsum(seen) - seen
    first_of_key = np.maximum.accumulate(np.where(new_key[starts], np.arange(len(starts)), 0))
    continued: Ints = places + np.repeat(before - before[first_of_key], ends - starts)
    return continued


def split(part: Part, column: str) -> Iterator[tuple[int, Part]]:
    """A part whose keys begin with this column, as one part for each of its values.

    >>> part = Part(pa.table({"b": [4, 4, 7], "price": [1, 2, 3]}), np.array([1, 2, 1]))
    >>> [(value, piece.places.tolist()) for value, piece in split(part, "b")]
    [(4, [1, 2]), (7, [1])]
    """
    if not part.rows.num_rows:
        return
    values = part.rows.column(column).to_numpy()
    numbers = None if part.ledger is None else part.ledger.column(column).to_numpy()
    order = None if numbers is None else np.argsort(numbers, kind="stable")
    for start, end in segments(values):
        rows, places, ledger = part.rows.slice(start, end - start), part.places[start:end], None
        if order is not None:
            assert part.ledger is not None
            own = np.sort(order[slice(*_equal(numbers, order, values[start]))])
            places, ledger = np.searchsorted(own, places - 1) + 1, part.ledger.take(own)
        yield int(values[start]), Part(rows, places, ledger, part.newest)


def _equal(numbers: Any, order: Ints, value: int) -> tuple[int, int]:
    """Where in an order of numbers a value begins and ends."""
    first = np.searchsorted(numbers, value, "left", sorter=order)
    return int(first), int(np.searchsorted(numbers, value, "right", sorter=order))


__all__ = ["Merger", "Part", "split", "standing"]
