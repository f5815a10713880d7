"""The rule of forgetting without an engine: what of a part of the data may still matter.

Whoever spreads a query over many workers prunes each part where it lies and sends on what is left:

    rows ──► Pruner ──► packs, one a key ──► merged ──► engine, or answer

A row that k younger rows of its own key beat is in no answer, now or ever, provided that those k are
*seen together* with it: whenever it counts, so do they.  With a slide the last rows may have to
wait for its end while older ones count already, so

- of the last n rows, every s: the last s - 1 rows of a part are spared, and spare the others;
- of the last length of time, as a stream: rows beat only rows of their own slide, because the
  clock may stop between any two; without slides nothing is pruned.  Over data that stand still the
  clock stops once, at the newest row, so there are two slides only: what its last whole multiple of s
  covers, and the rest.

Where nothing ever expires and the data stand still, older rows beat younger ones, too.

Windows that keep their history need every row.  What a window lets go is one line in
``SEEN_TOGETHER``: there lifetimes (a row beats those that expire no later), moving objects and pairs
(nothing) will have theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skytide.algorithms.static.sfs import skyline_sfs
from skytide.algorithms.topk.admission import admitted
from skytide.choices import default_algorithm
from skytide.dominance import survivors
from skytide.errors import SchemaError, did_you_mean
from skytide.keys import key_codes, key_order, order_of_age, segments, sorted_order
from skytide.packs import PLACE, Pack, merged, split_by_key
from skytide.query import Everything, LastRows, LastTime, Query, Top
from skytide.rows import REASONS, Batch, Reader
from skytide.slides import Ruler, ruler_of

__all__ = [
    "PLACE",
    "REASONS",
    "Key",
    "Pack",
    "Pruner",
    "in_order_of_time",
    "merged",
    "split_by_key",
]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Key = tuple[Any, ...]

PENDING = 1 << 17
"""So many rows are gathered before they are pruned together."""


class Pruner:
    """Rows in, as many batches as there are; out comes a pack for every key.

    ``order_by``: the columns that the order of arrival follows, ascending; of equal ones, and without
    it, the order in which rows are added.  ``still``: the data stand still, so that the clock stops
    once and not anywhere.  Memory: the rows left, and some 100,000 that are being gathered.

    >>> import skytide as st
    >>> pruner = Pruner(st.skyline(st.low("price")).over(st.last(9)).per("symbol"))
    >>> pruner.add({"symbol": ["a", "b", "a"], "price": [3, 2, 1]}).num_rows
    0
    >>> {key: pack.places.tolist() for key, pack in pruner.packs()}
    {('a',): [2], ('b',): [1]}
    """

    def __init__(
        self,
        query: Query,
        schema: pa.Schema | None = None,
        order_by: Sequence[str] = (),
        still: bool = False,
    ) -> None:
        default_algorithm(query)
        self.query, self._still = query, still
        self._order_by = list(order_by)
        self._reader = Reader(query, schema)
        if schema is not None:
            check_order(schema, order_by)
        needless = still and isinstance(query.window, Everything)  # everything, whatever its place
        self._ranked = bool(self._order_by) and not query.timed and not needless
        self._ledger: list[pa.Table] = []
        self._front: Rows | None = None
        self._pending: list[Batch] = []
        self._waiting = 0
        self.newest: int | None = None
        """The newest time, in nanoseconds, of the rows added so far; None without a time window."""

    def add(self, rows: Any) -> pa.Table:
        """Add rows, the oldest first; the bad ones come back, with why in their ``_reasons``.

        >>> import skytide as st
        >>> Pruner(st.skyline(st.low("price")).over(st.last(9))).add({"price": [1.5, None]}).to_pylist()
        [{'price': None, '_reasons': 'price: null'}]
        """
        batch, rejects = self._reader.sift(rows)
        batch, rejects = _without_unordered(batch, rejects, self._order_by)
        if batch.table.num_rows:
            if batch.labels is not None:
                newest = int(batch.labels.max())
                self.newest = newest if self.newest is None else max(self.newest, newest)
            self._pending.append(batch)
            self._waiting += batch.table.num_rows
            if self._waiting >= PENDING:
                self._prune()
        return rejects

    def packs(self) -> Iterator[tuple[Key, Pack]]:
        """What is left, key after key in order of first arrival; the pruner is empty afterwards.

        >>> import skytide as st
        >>> pruner = Pruner(st.top(1, st.low("price")).over(st.last(9)))
        >>> pruner.add({"price": [1.5, 2.5, 3.5]}).num_rows
        0
        >>> [(key, pack.places.tolist()) for key, pack in pruner.packs()]
        [((), [1, 2, 3])]
        """
        front, ledger = self.left()
        if front is None:
            return
        places, orders = front.places, None
        if self._ranked:
            places, orders = self._ranks(front, ledger)
        for start, end in segments(front.codes):
            order = np.argsort(places[start:end], kind="stable") + start
            rows = front.table.take(order)
            key = tuple(rows.column(name)[0].as_py() for name in self.query.keys)
            yield key, Pack(places[order], rows, orders[start] if orders else None)

    def left(self) -> tuple[Rows | None, pa.Table | None]:
        """What is left of all keys; and where the window counts rows in an order of their own, the keys
        and the order of all rows that were added: there, places are row numbers in it.

        >>> import skytide as st
        >>> pruner = Pruner(st.top(1, st.low("price")).over(st.last(9)))
        >>> pruner.add({"price": [2.5, 1.5]}).num_rows
        0
        >>> pruner.left()[0].places.tolist()
        [2]
        """
        self._prune()
        front, self._front = self._front, None
        ledger, self._ledger = self._ledger, []
        return front, pa.concat_tables(ledger).combine_chunks() if ledger else None

    def _prune(self) -> None:
        """Prune what was gathered, together with what was left before."""
        if not self._pending:
            return
        rows = self._gathered()
        self._pending, self._waiting = [], 0
        kept = np.flatnonzero(spared(rows, self.query, self._order_by, self._still))
        self._front = rows.take(kept)

    def _gathered(self) -> Rows:
        """The rows left before and those gathered since, each key's together, in order of arrival."""
        front = [self._front] if self._front else []
        tables = [*(rows.table for rows in front), *(batch.table for batch in self._pending)]
        values = [*(rows.values for rows in front), *(batch.values for batch in self._pending)]
        parts = [*(rows.labels for rows in front), *(batch.labels for batch in self._pending)]
        labels = [part for part in parts if part is not None]
        table = pa.concat_tables(tables)
        places = np.zeros(table.num_rows, np.int64)
        if self._front:
            places[: len(self._front.places)] = self._front.places
        if self._ranked:
            places = self._enter(table, places)
        rows = Rows(
            np.concatenate(values),
            np.concatenate(labels) if labels else None,
            places,
            key_codes(table, self.query.keys),
            table,
        )
        if self.query.keys:
            rows = rows.take(key_order(rows.codes))
        return rows if self._ranked else rows._replace(places=_numbered(rows))

    def _enter(self, table: pa.Table, places: Ints) -> Ints:
        """Enter the order of all new rows into the ledger; their places are their numbers there."""
        before = sum(part.num_rows for part in self._ledger)
        fresh = table.slice(len(places) - self._waiting)
        self._ledger.append(fresh.select(list(dict.fromkeys([*self.query.keys, *self._order_by]))))
        places[len(places) - self._waiting :] = np.arange(before + 1, before + self._waiting + 1)
        return places

    def _ranks(self, front: Rows, ledger: pa.Table) -> tuple[Ints, dict[int, pa.Table]]:
        """The places of the rows left among all of their key in the ledger, sorted by the order."""
        codes = key_codes(ledger, self.query.keys)
        order = sorted_order(ledger.select(self._order_by), codes)
        ranks = np.empty(len(order), np.int64)
        tables, starts = {}, {}
        for start, end in segments(codes[order]):
            ranks[order[start:end]] = np.arange(1, end - start + 1)
            starts[int(codes[order[start]])] = ledger.select(self._order_by).take(order[start:end])
        places = ranks[front.places - 1]
        for start, _ in segments(front.codes):
            tables[start] = starts[int(codes[front.places[start] - 1])]
        return places, tables


class Rows(NamedTuple):
    """Rows being pruned, all parallel; those of one key together, in order of arrival."""

    values: npt.NDArray[np.float64]
    labels: Ints | None
    places: Ints
    codes: Ints
    table: pa.Table

    def take(self, chosen: Ints) -> Rows:
        labels = None if self.labels is None else self.labels[chosen]
        return Rows(
            np.ascontiguousarray(self.values[chosen]),
            labels,
            self.places[chosen],
            self.codes[chosen],
            self.table.take(chosen),
        )


def check_order(schema: pa.Schema, order_by: Sequence[str]) -> None:
    """Refuse to order by columns there are not.

    >>> check_order(pa.schema({"ts": pa.int64()}), ["t"])
    Traceback (most recent call last):
    skytide.errors.SchemaError: order_by names the column "t", which the data lacks. Did you mean "ts"?
    Hint: its columns are ts
    """
    for name in order_by:
        if name not in schema.names:
            raise SchemaError(
                f'order_by names the column "{name}", which the data lacks.'
                f"{did_you_mean(name, schema.names)}",
                f"its columns are {', '.join(schema.names)}",
            )


def _without_unordered(
    batch: Batch, rejects: pa.Table, order_by: Sequence[str]
) -> tuple[Batch, pa.Table]:
    """A row whose place in the order is unknown is a bad row too."""
    for name in order_by:
        column = batch.table.column(name)
        if not (column.null_count or pa.types.is_floating(column.type)):
            continue
        bad = pc.is_null(column, nan_is_null=True).to_numpy().astype(bool)
        if bad.any():
            why = pa.array([f"{name}: null or NaN, which has no place in the order"] * bad.sum())
            aside = batch.table.filter(pa.array(bad)).append_column(REASONS, why)
            rejects = pa.concat_tables([rejects, aside])
            labels = None if batch.labels is None else batch.labels[~bad]
            batch = Batch(batch.table.filter(pa.array(~bad)), batch.values[~bad], labels)
    return batch, rejects


def in_order_of_time(
    query: Query, rows: pa.Table, order_by: Sequence[str] = ()
) -> tuple[pa.Table, Ints]:
    """Rows of a time window, the oldest first, and their times in nanoseconds; of equal times as in
    ``order_by``, then as they came.

    >>> import skytide as st
    >>> query = st.skyline(st.low("price")).over(st.last("1 hour"))
    >>> ts = pa.array([2, 1], pa.timestamp("ns"))
    >>> rows, times = in_order_of_time(query, pa.table({"ts": ts, "price": [7, 8]}))
    >>> rows["price"].to_pylist(), times.tolist()
    ([8, 7], [1, 2])
    """
    times = Reader(query).read(rows).labels
    assert times is not None, "a window of time labels its rows"
    one_key = np.zeros(len(times), np.int64)
    order = ages(Rows(np.empty((0, 0)), times, times, one_key, rows), order_by)
    assert order is not None
    return rows.take(order), times[order]


def _numbered(rows: Rows) -> Ints:
    """Places for the rows that have none yet (0): they go on from the last of their key."""
    fresh = rows.places == 0
    starts = np.array([start for start, _ in segments(rows.codes)], np.int64)
    lengths = np.diff(starts, append=len(rows.codes))
    base = np.repeat(np.maximum.reduceat(rows.places, starts), lengths)
    count = np.cumsum(fresh)
    before = np.repeat(count[starts] - fresh[starts], lengths)
    return np.where(fresh, base + count - before, rows.places)


# -- who is spared -------------------------------------------------------------------------------


def spared(rows: Rows, query: Query, order_by: Sequence[str] = (), still: bool = False) -> Flags:
    """Which rows may still matter: those that fewer than k younger ones seen together with them beat,
    and the last of each key."""
    if _travels_whole(query, still):
        return np.ones(len(rows.codes), np.bool_)
    order = ages(rows, order_by)
    if order is None:
        return _left(rows, query, still)
    kept = np.empty(len(order), np.bool_)
    labels = None if rows.labels is None else rows.labels[order]
    aged = rows._replace(values=rows.values[order], labels=labels, codes=rows.codes[order])
    kept[order] = _left(aged, query, still)
    kept[[end - 1 for _, end in segments(rows.codes)]] = True
    return kept


def ages(rows: Rows, order_by: Sequence[str]) -> Ints | None:
    """The order of age, key after key: by time, then ``order_by``, then arrival; None: as they are."""
    if rows.labels is None and not order_by:
        return None
    return order_of_age(rows.codes, rows.labels, rows.table.select(list(order_by)))


def _left(rows: Rows, query: Query, still: bool) -> Flags:
    """The same of rows in the order of age."""
    kept = np.ones(len(rows.codes), np.bool_)
    together, ruler = SEEN_TOGETHER[type(query.window)], ruler_of(query.window)
    for start, end in segments(rows.codes):
        labels = None if rows.labels is None else rows.labels[start:end]
        for first, stop in together(ruler, end - start, labels, still):
            values = rows.values[start + first : start + stop]
            left = np.zeros(stop - first, np.bool_)
            left[_survivors(query, values, still)] = True
            kept[start + first : start + stop] = left
    return kept


def _survivors(query: Query, values: npt.NDArray[np.float64], still: bool) -> Ints:
    if isinstance(query.question, Top):
        return admitted(np.ascontiguousarray(values[:, 0]), query.k)
    newest = query.ties == "newest"
    left = survivors(values, query.k, newest)
    if still and isinstance(query.window, Everything):  # nothing expires: older rows beat as well
        left = left[skyline_sfs(values[left], query.k, newest)]
    return left


Runs = Iterable[tuple[int, int]]


def _by_count(ruler: Ruler, count: int, labels: Ints | None, still: bool) -> Runs:
    """All but those that may have to wait for the end of their slide."""
    return [(0, count - ruler.every + 1)] if count >= ruler.every else []


def _by_time(ruler: Ruler, count: int, labels: Ints | None, still: bool) -> Runs:
    """The rows of each slide; of data that stand still those of all past slides, and the rest."""
    assert labels is not None
    if not still:
        return segments(-(-labels // ruler.every))
    split = int(np.searchsorted(labels, ruler.moved_to(int(labels[-1])), "right"))
    return [run for run in ((0, split), (split, count)) if run[0] < run[1]]


SEEN_TOGETHER = {LastRows: _by_count, Everything: _by_count, LastTime: _by_time}
"""For each window the runs of rows, in the order of age, that are seen together: how a window joins the
pipeline.  One that is not here sends on every row."""


def _travels_whole(query: Query, still: bool) -> bool:
    """Is no row to be dropped?  History needs all; and without slides every row of a stream has a time
    of its own, but for a few that are not worth the search."""
    if getattr(query.window, "history", False) or type(query.window) not in SEEN_TOGETHER:
        return True
    return query.timed and not still and ruler_of(query.window).every == 1
