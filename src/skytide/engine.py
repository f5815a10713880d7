"""The live thing: an engine holds a query's rows and keeps its answer right.

Data walks one way: rows -> matrix of preferences -> algorithm -> positions -> rows.  The algorithm
sees arrays only; which rows are waiting for the next slide, what a row looked like, who watches, is
known here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.algorithms.static.sfs import skyline_sfs
from skytide.algorithms.topk.admission import admitted
from skytide.changes import AT, TYPE, Changes, between, nothing, table
from skytide.checks import whole
from skytide.choices import any_length_algorithm, default_algorithm, made, ranks
from skytide.errors import QueryError, SchemaError
from skytide.notebook import engine_html
from skytide.payload import Payload
from skytide.query import Everything, LastTime, Query, Top
from skytide.rows import Batch, Reader
from skytide.shortlist import shortlist
from skytide.slides import check_on_time, on_time, ruler_of
from skytide.state import State, pack
from skytide.watches import Ledger, Watch, Watchers

if TYPE_CHECKING:
    from skytide.pruning import Pack

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Stats:
    """What an engine holds and where its time went.

    >>> Stats("n-of-n", seen=10, kept=3).kept
    3
    """

    algorithm: str
    seen: int = 0
    kept: int = 0
    waiting: int = 0
    dropped: int = 0
    answer: int = 0
    watches: int = 0
    bytes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


class _Rows(NamedTuple):
    """Rows on their way: all parallel."""

    values: npt.NDArray[np.float64]
    positions: Ints
    labels: Ints
    table: pa.Table

    def part(self, rows: slice) -> _Rows:
        start, stop, _ = rows.indices(len(self.positions))
        cut = self.table.slice(start, stop - start)
        return _Rows(self.values[rows], self.positions[rows], self.labels[rows], cut)


class Engine:
    """A query's rows and its answer, live; made by ``query.open()``.

    An engine is used by one thread at a time.  A push, an ``advance`` or a question that is refused
    leaves it as it was.

    >>> import skytide as st
    >>> live = st.skyline(st.low("price"), st.high("volume")).over(st.last(2)).open()
    >>> live.push({"price": [9, 7, 8], "volume": [1, 5, 6]})
    >>> live.answer().to_pylist()
    [{'price': 7, 'volume': 5}, {'price': 8, 'volume': 6}]
    >>> live.answer(last=1).to_pylist()
    [{'price': 8, 'volume': 6}]
    """

    def __init__(self, query: Query, algorithm: str | None = None) -> None:
        self.query = query
        self.algorithm = algorithm or default_algorithm(query)
        self._reader = Reader(query)
        self._ruler = ruler_of(query.window)
        self._algorithm = made(query, self.algorithm, self._ruler)
        self._watchers = Watchers(self._algorithm)
        self._payload = Payload()
        self._waiting: list[_Rows] = []
        self._ledger = Ledger()
        self._seen = self._dropped = 0
        self._newest: int | None = None
        self._seconds = {"read": 0.0, "algorithm": 0.0, "rows": 0.0, "watches": 0.0}

    # -- rows in ---------------------------------------------------------------------------------

    def push(self, rows: Any) -> None:
        """Add rows, the oldest first: anything Arrow can read, a dict of arrays, a 2-d array.

        Raises BadRows, SchemaError or LateRows, and then nothing of it was taken in.
        """
        with self._timed("read"):
            batch, places, count = self._shortlist(rows) or self._all(rows)
        self._enter(batch, places, count)

    def _accept(self, batch: Batch) -> None:
        """Take in rows that were read."""
        count = len(batch.values)
        self._enter(batch, np.arange(1, count + 1), count)

    def push_pack(self, pack: Pack) -> None:
        """Add what a :class:`skytide.pruning.Pruner` left of a part of the rows.

        The rows it dropped count as seen, and for the positions of the others.  Of a time window the
        rows must be in order of time.

        >>> import skytide as st
        >>> from skytide.pruning import Pruner
        >>> query = st.skyline(st.low("price")).over(st.last(3))
        >>> pruner, live = Pruner(query), query.open()
        >>> _ = pruner.add({"price": [5.0, 4.0, 3.0, 9.0]})
        >>> [live.push_pack(pack) for _, pack in pruner.packs()]
        [None]
        >>> live.stats().seen, live.answer().to_pylist()
        (4, [{'price': 3.0}])
        """
        with self._timed("read"):
            batch = self._read(pack.rows)
        places = pack.places
        if isinstance(self.query.window, LastTime):  # where positions tell rows apart, no more
            places = np.arange(1, batch.table.num_rows + 1)
        self._enter(batch, places, pack.seen)

    def _enter(self, batch: Batch, places: Ints, count: int) -> None:
        """Take in rows that have these places among so many that have come."""
        if not len(batch.values):
            return
        positions = self._seen + places
        labels = self._ruler.labels(batch, positions)
        self._seen += count
        self._newest = int(labels[-1])
        self._waiting.append(_Rows(batch.values, positions, labels, batch.table))
        self._move()

    def _all(self, rows: Any) -> tuple[Batch, Ints, int]:
        """The rows that are taken in, their places among them, and how many they are."""
        batch = self._read(rows)
        count = batch.table.num_rows
        return batch, np.arange(1, count + 1), count

    def _shortlist(self, rows: Any) -> tuple[Batch, Ints, int] | None:
        """Likewise of a large batch for a top k, without those that the scores alone rule out."""
        if not ranks(self._algorithm) or isinstance(self.query.window, LastTime):
            return None
        return shortlist(self._reader, rows, self._ruler, self._seen, self.query.k)

    def _read(self, rows: Any) -> Batch:
        """The rows that are taken in."""
        fresh = self._reader.schema is None
        batch = self._reader.read(rows)
        window = self.query.window
        if not isinstance(window, LastTime) or not batch.table.num_rows:
            return batch
        assert batch.labels is not None
        if window.late == "drop":
            return self._without_late(batch)
        try:
            check_on_time(batch.labels, self._newest)
        except ValueError:
            if fresh:
                self._reader = Reader(self.query)
            raise
        return batch

    def _without_late(self, batch: Batch) -> Batch:
        assert batch.labels is not None
        fine = on_time(batch.labels, self._newest)
        if fine.all():
            return batch
        self._dropped += int(len(fine) - fine.sum())
        return Batch(batch.table.filter(pa.array(fine)), batch.values[fine], batch.labels[fine])

    def advance(self, to: Any) -> None:
        """Move the clock of a time window to a moment, without rows."""
        self._advance(self._ruler.moment(to, self._newest))

    def _advance(self, newest: int) -> None:
        self._newest = newest
        self._move()

    def due(self) -> np.datetime64 | None:
        """When a time window next changes although no row comes, if it does: then ``advance``.

        At that time a row gets too old, or the slide that rows wait for ends; the answer may change,
        and does not before.

        >>> import skytide as st
        >>> live = st.skyline(st.low("price")).over(st.last("2 seconds")).open()
        >>> live.push({"ts": np.array(["2024-01-01T00:00:00"], "M8[s]"), "price": [1.0]})
        >>> str(live.due())[:19]
        '2024-01-01T00:00:02'
        """
        if not isinstance(self.query.window, LastTime):
            return None
        times = [int(rows.labels[0]) for rows in self._waiting[:1]]
        kept = self._algorithm.kept()[:1]
        if len(kept):
            labels = self._reader.read(self._rows_at(kept)).labels
            assert labels is not None
            times.append(int(labels[0]) + self.query.window.length_ns)
        if not times:
            return None
        every = self._ruler.every
        return np.datetime64(-(-min(times) // every) * every, "ns")

    def _move(self) -> None:
        """Bring the algorithm to where the answer now stands."""
        assert self._newest is not None
        clock = self._ruler.moved_to(self._newest)
        ready = self._ready(clock)
        with self._timed("algorithm"):
            self._algorithm.advance(clock)
            taken = [self._take_in(rows) for rows in ready]
        with self._timed("rows"):
            for rows, chosen in zip(ready, taken, strict=True):
                self._keep(rows, chosen)
        with self._timed("watches"):  # which may ask for rows just kept, and for some about to go
            if len(self._ledger):
                self._ledger.book(self._watchers.events(), clock)
        with self._timed("rows"):
            self._payload.tidy(len(self._algorithm), self._wanted)

    def _ready(self, clock: int) -> list[_Rows]:
        """Take the waiting rows that count by now."""
        ready = []
        while self._waiting and self._waiting[0].labels[0] <= clock:
            rows = self._waiting.pop(0)
            split = int(np.searchsorted(rows.labels, clock, "right"))
            if split < len(rows.labels):
                self._waiting.insert(0, rows.part(slice(split, None)))
                rows = rows.part(slice(split))
            ready.append(rows)
        return ready

    def _take_in(self, rows: _Rows) -> Ints:
        """Give rows to the algorithm; the indices of those that may ever be in an answer."""
        values, positions, labels, _ = rows
        taken: Ints
        if not ranks(self._algorithm):
            taken = self._algorithm.push(values, positions, labels)
            return taken
        if positions[-1] - positions[0] >= len(positions):  # rows were left out by admission before
            taken = self._algorithm.push(values, positions, labels)
            return taken
        chosen = admitted(values[:, 0], self.query.k)
        taken = self._algorithm.push(values[chosen], positions[chosen], labels[chosen])
        return chosen[taken]

    def _keep(self, rows: _Rows, chosen: Ints) -> None:
        if len(chosen) == len(rows.positions):
            self._payload.append(rows.positions, rows.table)
        else:
            self._payload.append(rows.positions[chosen], rows.table.take(chosen))

    def _wanted(self) -> Ints:
        """The positions whose rows an answer or a change may still speak of."""
        kept = self._algorithm.kept()
        return np.union1d(kept, self._ledger.positions()) if len(self._ledger) else kept

    # -- answers out -----------------------------------------------------------------------------

    def answer(self, last: Any = None, between: Any = None, k: int | None = None) -> pa.Table:
        """The rows that are the answer now, in order of arrival (of a top k: best first).

        ``last``: over the last n <= N rows, or the last part of a window of time, only.
        ``between=(n1, n2)``: over the rows from the n1th to the n2th most recent, or as long ago as
        the first but not as the second length of time; the window must keep its ``history``.
        ``k``: the same question for a smaller k.
        """
        return self._ranked(self._rows_at(self._asked(last, between, k)()))

    def _asked(self, last: Any, between: Any, k: int | None) -> Callable[[], Ints]:
        """What answers such a question, again and again, with positions; refused if it is wrong."""
        if between is not None:
            _refuse_both(last)
            ages = self._ages(between)

            def ask() -> Ints:
                return self._between(ages)
        else:
            length = self._length(last)

            def ask() -> Ints:
                positions: Ints = self._algorithm.answer(length)
                return positions

        if k is None:
            return ask
        fewer = self._fewer(k)
        return lambda: self._best(ask(), fewer)

    def _fewer(self, k: int) -> int:
        fewer = whole(k, "k")
        if fewer > self.query.k:
            raise QueryError(
                f"k={fewer:,} asks for more than this query keeps rows for, k={self.query.k:,}",
                f"ask for {self.query.k:,} at most, or open a query with a greater k",
            )
        return fewer

    def _best(self, positions: Ints, k: int) -> Ints:
        """Those of an answer, given as positions, that are the answer for a smaller k too.

        Whatever beats a row of the answer is in the answer: fewer rows beat it.
        """
        if not len(positions):
            return positions
        values = self._reader.read(self._rows_at(positions)).values
        return positions[skyline_sfs(values, k, self.query.ties == "newest")]

    def _length(self, last: Any) -> int | None:
        length = self._ruler.span(last)
        if length != self._ruler.length and not self._algorithm.any_length:
            able = any_length_algorithm(self.query)
            raise QueryError(
                f"the algorithm {self.algorithm} answers for the whole window only",
                f'open the query with algorithm="{able}", which answers for any part of it',
            )
        return length

    def _ages(self, between: Any) -> tuple[int, int]:
        ages = self._ruler.ages(between)
        if not self._algorithm.history:
            raise QueryError(
                "between= needs rows that this query forgets",
                "let the window keep them: last(..., history=True)",
            )
        return ages

    def _between(self, ages: tuple[int, int]) -> Ints:
        clock = self._clock()
        result: Ints = self._algorithm.answer_between(clock - ages[1], clock - ages[0])
        return result

    def _clock(self) -> int:
        return 0 if self._newest is None else self._ruler.moved_to(self._newest)

    def _rows_at(self, positions: Ints) -> pa.Table:
        if len(positions):
            return self._payload.take(positions)
        return self._schema().empty_table()

    def _schema(self) -> pa.Schema:
        return self._reader.schema or pa.schema([])

    def _ranked(self, rows: pa.Table) -> pa.Table:
        """A top k in order of rank; of equal scores the younger is better."""
        if not isinstance(self.query.question, Top) or not rows.num_rows:
            return rows
        scores = self._reader.read(rows).values[:, 0]
        return rows.take(np.lexsort((-np.arange(len(scores)), scores)))

    def explain(self, row: Any) -> pa.Table:
        """Why a row is not in the answer: the rows of the answer that beat it.

        ``row``: the preference columns of one row, such as a dict.  Fewer than k rows (for a skyline:
        none) means that it is in the answer, or would be if it arrived now.
        """
        point = Reader(Query(self.query.question, Everything())).read(row).values
        if len(point) != 1:
            raise SchemaError(
                f"explain() takes one row, not {len(point)}", "pass a dict of scalars"
            )
        answer = self.answer()
        if not answer.num_rows:
            return answer
        values = self._reader.read(answer).values
        beaten = (values <= point).all(axis=1) & (values < point).any(axis=1)
        return answer.filter(pa.array(beaten))

    # -- watches ---------------------------------------------------------------------------------

    def watch(
        self, last: Any = None, between: Any = None, k: int | None = None, snapshot: bool = True
    ) -> Watch:
        """A standing query on this engine, of its own ``last``, ``between`` and ``k`` as in ``answer``.

        With ``snapshot`` its first changes insert the answer as it is now; without, only what
        changes from now on is told.
        """
        ask = self._asked(last, between, k)
        if k is not None:
            name = self._watchers.watch_answer(ask)
        elif between is not None:
            name = self._watchers.watch_between(self._ages(between), ask)
        else:
            name = self._watchers.watch(self._length(last))
        self._ledger.open(name, self._all_new(ask()) if snapshot else nothing())
        return Watch(self, name, lambda: self.answer(last, between, k))

    def _all_new(self, positions: Ints) -> Any:
        return between(np.zeros(0, np.int64), positions, self._clock())

    def _unread(self, name: int) -> Changes:
        if name not in self._ledger:
            raise QueryError("this watch is closed", "open another: live.watch()")
        return self._ledger.read(name)

    def _changes_of(self, name: int) -> pa.Table:
        changes = self._unread(name)
        rows = self._rows_at(changes.positions)
        return table(changes, rows, self._ruler.at_type(self._reader.schema))

    def _close_watch(self, name: int) -> None:
        if name in self._ledger:
            self._watchers.unwatch(name)
            self._ledger.close(name)

    # -- the engine itself -----------------------------------------------------------------------

    def stats(self) -> Stats:
        """Rows seen and kept, size of the answer, memory, seconds spent in each part."""
        details = self._algorithm.stats()
        return Stats(
            self.algorithm,
            seen=self._seen,
            kept=len(self._algorithm),
            waiting=sum(len(rows.positions) for rows in self._waiting),
            dropped=self._dropped,
            answer=len(self._algorithm.answer(self._ruler.length)),
            watches=len(self._ledger),
            bytes=details.pop("bytes", 0) + self._payload.nbytes,
            seconds=dict(self._seconds),
            details=details,
        )

    def save(self) -> bytes:
        """The state as bytes, for :func:`skytide.load`: the kept rows and the clock, no watches."""
        kept = self._algorithm.kept()
        empty = self._schema().empty_table()
        facts = {
            "query": self.query.to_dict(),
            "algorithm": self.algorithm,
            "has_schema": self._reader.schema is not None,
            "seen": self._seen,
            "dropped": self._dropped,
            "newest": self._newest,
        }
        waiting = pa.concat_tables([empty, *(rows.table for rows in self._waiting)])
        return pack(State(facts, kept, self._rows_at(kept), waiting))

    def _restore(self, state: State) -> None:
        """Take over a state; the kept rows are pushed again, which brings everything back."""
        facts = state.facts
        if facts["has_schema"]:
            self._reader = Reader(self.query, schema=state.kept.schema)
        self._dropped = int(facts["dropped"])
        kept, waiting = self._reader.read(state.kept), self._reader.read(state.waiting)
        self._resume(facts["seen"], facts["newest"], state.positions, kept, waiting)

    def _resume(
        self, seen: int, newest: int | None, positions: Ints, kept: Batch, waiting: Batch
    ) -> None:
        """Go on where another engine was."""
        if newest is None:
            return
        first = seen - len(waiting.values) + 1
        if len(positions) and positions[-1] >= first:
            raise ValueError("there are rows beyond the last one seen")
        for places, batch in ((positions, kept), (np.arange(first, seen + 1), waiting)):
            if len(places) != len(batch.values) or (np.diff(places, prepend=0) < 1).any():
                raise ValueError("rows and positions do not match")
            labels = self._ruler.labels(batch, places)
            if len(places):
                self._waiting.append(_Rows(batch.values, places, labels, batch.table))
        self._seen = int(seen)
        self._advance(newest)

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._seconds[part] += time.perf_counter() - start

    def __repr__(self) -> str:
        kept = len(self._algorithm)
        return f"<Engine: {self.query}; {self._seen:,} rows seen, {kept:,} kept>"

    def _repr_html_(self) -> str:
        figures = {"rows seen": self._seen, "kept": len(self._algorithm)}
        return engine_html(str(self.query), figures, self.answer())


def _refuse_both(last: Any) -> None:
    if last is not None:
        raise QueryError("last= and between= ask for two different windows", "give one of them")


__all__ = ["AT", "TYPE", "Engine", "Stats"]
