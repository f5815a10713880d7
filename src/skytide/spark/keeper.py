"""One key's engine from micro-batch to micro-batch: packs in, changes out, nothing of Spark.

A window of time moves with the watermark: rows wait until it has reached their time, and rows that
come when it has already passed them are late.  So changes do not depend on how rows were cut
into micro-batches or in which order they came, but for those that come too late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import skytide as st
from skytide.pruning import Pack, in_order_of_time, merged

MILLISECOND = 1_000_000  # nanoseconds


@dataclass(frozen=True)
class Asked:
    """What is asked of the stream, besides the query: see `Query.changes`.

    >>> Asked(st.top(3, st.low("price")).over(st.last(9)), last=5).last
    5
    """

    query: st.Query
    order_by: tuple[str, ...] = ()
    last: Any = None
    between: Any = None
    k: int | None = None
    algorithm: str | None = None

    @property
    def timed(self) -> bool:
        """Does a clock move the window?

        >>> Asked(st.top(3, st.low("price")).over(st.last("1 hour"))).timed
        True
        """
        return self.query.timed

    @property
    def told(self) -> str:
        """All that the state depends on, in words: a checkpoint goes on with the same only.

        >>> Asked(st.skyline(st.low("price")).over(st.last(9)), last=5).told
        'skyline(low("price")).over(last(9)), last=5'
        """
        rest = {"order_by": self.order_by, "last": self.last, "between": self.between, "k": self.k}
        asked = [f"{name}={value!r}" for name, value in rest.items() if value not in (None, ())]
        return ", ".join([repr(self.query), *asked])

    @property
    def each(self) -> st.Query:
        """The query of one key.

        >>> Asked(st.skyline(st.low("price")).over(st.last(9)).per("symbol")).each
        skyline(low("price")).over(last(9))
        """
        return st.Query(self.query.question, self.query.window)

    def open(self) -> Any:
        """A new engine for one key, which is known to be able to tell what is asked.

        >>> Asked(st.skyline(st.low("price")).over(st.last(9))).open()
        <Engine: the skyline of low price over the last 9 rows; 0 rows seen, 0 kept>
        """
        return self.each.open(self.algorithm)

    def watch(self, live: Any) -> Any:
        """The standing query on an engine whose answer has been told before."""
        return live.watch(self.last, self.between, self.k, snapshot=False)


class Outcome(NamedTuple):
    """What a key says after a micro-batch."""

    changes: pa.Table
    late: pa.Table | None


class Keeper:
    """The engine of one key, and of a time window the rows that wait for the watermark.

    >>> query = st.skyline(st.low("price")).over(st.last(9))
    >>> keeper = Keeper(Asked(query))
    >>> keeper.take([Pack.of(pa.table({"price": [2, 1]}))]).changes.to_pylist()
    [{'_change_type': 'insert', '_change_at': 2, 'price': 1}]
    >>> again = Keeper.load(Asked(query), *keeper.save())
    >>> again.take([Pack.of(pa.table({"price": [0]}))]).changes["_change_type"].to_pylist()
    ['delete', 'insert']
    """

    def __init__(self, asked: Asked, live: Any = None, waiting: pa.Table | None = None) -> None:
        self._asked = asked
        self._live = asked.open() if live is None else live
        self._watch = asked.watch(self._live)
        self._waiting = waiting

    @classmethod
    def load(cls, asked: Asked, state: bytes, waiting: bytes | None) -> Keeper:
        """The keeper that :meth:`save` wrote; refused if it was of another query."""
        live = st.load(state, asked.each)
        return cls(asked, live, None if waiting is None else Pack.from_bytes(waiting).rows)

    def save(self) -> tuple[bytes, bytes | None]:
        """The state of the engine, and the rows that wait."""
        waiting = None if self._waiting is None else Pack.of(self._waiting).to_bytes()
        return self._live.save(), waiting

    def take(self, packs: Sequence[Pack], watermark: int | None = None) -> Outcome:
        """Take in the packs of a micro-batch, the first part first, and tell what changed.

        ``watermark``: in milliseconds, of a time window.
        """
        if watermark is None:
            if packs:
                self._live.push_pack(merged(packs))
            return Outcome(self._watch.changes(), None)
        late = self._wait(packs, watermark)
        self._move(watermark)
        return Outcome(self._watch.changes(), late)

    def _wait(self, packs: Sequence[Pack], watermark: int) -> pa.Table | None:
        """Let new rows wait; those that are late come back."""
        if not packs:
            return None
        rows = pa.concat_tables([pack.rows for pack in packs])
        rows, times = in_order_of_time(self._asked.each, rows, self._asked.order_by)
        late = int(np.searchsorted(times, watermark * MILLISECOND))
        parts = [rows.slice(late)] if self._waiting is None else [self._waiting, rows.slice(late)]
        self._waiting = pa.concat_tables(parts)
        return rows.slice(0, late) if late else None

    def _move(self, watermark: int) -> None:
        """Let in the rows whose time the watermark has reached, and move the window."""
        now = watermark * MILLISECOND
        if self._waiting is not None:
            rows, times = in_order_of_time(self._asked.each, self._waiting, self._asked.order_by)
            due = int(np.searchsorted(times, now, "right"))
            if due:
                self._live.push(rows.slice(0, due))
            self._waiting = rows.slice(due).combine_chunks() if due < len(times) else None
        self._live.advance(to=np.datetime64(now, "ns"))

    @property
    def idle(self) -> bool:
        """Is nothing held, so that a new keeper would do as well?"""
        return self._asked.timed and self.due is None

    @property
    def due(self) -> int | None:
        """The watermark, in milliseconds, that next changes something even if no row comes."""
        due = self._live.due()
        times = [] if due is None else [due.astype(np.int64)]
        if self._waiting is not None:
            _, waiting = in_order_of_time(self._asked.each, self._waiting)
            times.append(waiting[0])
        return -(-int(min(times)) // MILLISECOND) if times else None
