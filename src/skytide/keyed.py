"""A query per key: one engine for each; one clock, one schema and one store of rows for all.

A push is read once and sorted by key once; each key's engine is given its part of the arrays, and
numbers for its rows.  The rows themselves stay together (``payload``).  So a key costs some
Python and two calls of kernels for each push in which it occurs, and no table of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.changes import Changes, nothing, table
from skytide.engine import Engine, Stats
from skytide.errors import QueryError, StateError
from skytide.keys import Key, grouped, key_of
from skytide.notebook import engine_html
from skytide.payload import Numbers, Payload, joined_numbers
from skytide.query import LastTime, Query, Top
from skytide.rows import Batch, Reader
from skytide.slides import check_on_time, on_time, ruler_of
from skytide.state import State, pack
from skytide.watches import Watch

Ints = npt.NDArray[np.int64]

_SLACK = 16  # useless numbers that a key may hold


class KeyedEngine:
    """The answers of a query for every key; made by ``query.open()`` of a query with ``.per()``.

    Each key has a window of its own; the clock of a time window is common to all, so that a key from
    which nothing comes any more still loses its rows, and is forgotten when it has none left.

    >>> import skytide as st
    >>> live = st.skyline(st.low("price")).over(st.last(10)).per("symbol").open()
    >>> live.push({"symbol": ["a", "b", "a"], "price": [3, 2, 1]})
    >>> live.answer().to_pylist()
    [{'symbol': 'a', 'price': 1}, {'symbol': 'b', 'price': 2}]
    >>> live.answer(key="b").to_pylist()
    [{'symbol': 'b', 'price': 2}]
    """

    def __init__(self, query: Query, algorithm: str | None = None) -> None:
        self.query = query
        self._each = Query(query.question, query.window)
        self.algorithm = Engine(self._each, algorithm).algorithm
        self._reader = Reader(query)
        self._ruler = ruler_of(query.window)
        self._timed = isinstance(query.window, LastTime)
        self._payload = Payload()
        self._engines: dict[Key, _KeyEngine] = {}
        self._watches: list[KeyedWatch] = []
        self._newest: int | None = None
        self._seen = self._dropped = 0
        self._held = 0  # rows that engines hold numbers of
        self._unswept = 0  # rows since all engines were last brought to the common clock

    # -- rows in ---------------------------------------------------------------------------------

    def push(self, rows: Any) -> None:
        """Add rows of any keys, the oldest first.  All are taken in, or none."""
        batch = self._on_time(rows)
        if not len(batch.values):
            return
        groups = grouped(batch.table, self.query.keys)
        parts = self._numbered(batch, groups.order)
        for key, span in groups.spans():
            with self._counted(self._engine(key)) as engine:
                engine._accept(_part(parts, span))
        self._sweep(len(batch.values))
        self._payload.tidy(self._held, self._wanted)

    def _on_time(self, rows: Any) -> Batch:
        """The rows that are taken in; the clock moves to the last of them."""
        fresh = self._reader.schema is None
        batch = self._reader.read(rows)
        labels = batch.labels
        if not self._timed or labels is None or not len(labels):
            return batch
        if getattr(self.query.window, "late", "raise") == "drop":
            fine = on_time(labels, self._newest)
            self._dropped += int(len(fine) - fine.sum())
            batch = Batch(batch.table.filter(pa.array(fine)), batch.values[fine], labels[fine])
        else:
            try:
                check_on_time(labels, self._newest)
            except ValueError:
                self._reader = Reader(self.query) if fresh else self._reader
                raise
        if len(batch.values):
            self._newest = int(labels.max())
        return batch

    def _numbered(self, batch: Batch, order: Ints) -> Batch:
        """Store the rows; the batch in another order, with the rows' numbers in their place."""
        numbers = np.arange(self._seen, self._seen + len(order))
        self._seen += len(order)
        self._payload.append(numbers, batch.table)
        labels = None if batch.labels is None else batch.labels[order]
        return Batch(Numbers(numbers[order]), batch.values[order], labels)

    def _engine(self, key: Key) -> _KeyEngine:
        if key not in self._engines:
            self._engines[key] = _KeyEngine(self._each, self.algorithm, self._reader, self._rows)
            for watch in self._watches:
                watch.follow(key, self._engines[key])
        return self._engines[key]

    @contextmanager
    def _counted(self, engine: _KeyEngine) -> Iterator[_KeyEngine]:
        """Keep count of the rows held while an engine is told something."""
        before = engine.held
        yield engine
        self._held += engine.held - before

    def _wanted(self) -> Ints:
        """The numbers of all rows that some engine holds."""
        return np.sort(_all(part for engine in self._engines.values() for part in engine.parts()))

    def advance(self, to: Any) -> None:
        """Move the clock of a time window for all keys."""
        self._newest = self._ruler.moment(to, self._newest)
        self._sweep(len(self._engines))

    def _sweep(self, rows: int) -> None:
        """Now and then, at a cost in proportion to the rows, let silent keys lose theirs."""
        self._unswept += rows
        if self._timed and 2 * self._unswept > len(self._engines):
            self._unswept = 0
            for key, engine in list(self._current().items()):
                if engine.idle:
                    self._held -= self._engines.pop(key).held
                    for watch in self._watches:
                        watch.forget(key)

    def _current(self) -> dict[Key, _KeyEngine]:
        """All engines, brought to the common clock."""
        for engine in self._engines.values():
            self._bring(engine)
        return self._engines

    def _bring(self, engine: _KeyEngine) -> None:
        if self._timed and self._newest is not None and engine._newest != self._newest:
            with self._counted(engine):
                engine._advance(self._newest)

    # -- answers out -----------------------------------------------------------------------------

    def answer(
        self, last: Any = None, between: Any = None, k: int | None = None, key: Any = None
    ) -> pa.Table:
        """The answers of all keys, one after the other, or of one ``key`` alone."""
        asked = last, between, k
        if key is not None:
            engine = self._of(key)
            return self._rows(np.zeros(0, np.int64)) if engine is None else engine.answer(*asked)
        Engine(self._each, self.algorithm)._asked(*asked)  # the question must be right
        found = [engine.numbers(engine._asked(*asked)()) for engine in self._current().values()]
        return self._ranked(self._rows(_all(found)), [len(numbers) for numbers in found])

    def _ranked(self, rows: pa.Table, counts: list[int]) -> pa.Table:
        """Of a top k, each key's rows best first; so many rows are each key's."""
        if not isinstance(self.query.question, Top) or not rows.num_rows:
            return rows
        scores = self._reader.read(rows).values[:, 0]
        keys = np.repeat(np.arange(len(counts)), counts)
        return rows.take(np.lexsort((-np.arange(len(scores)), scores, keys)))

    def _rows(self, numbers: Ints) -> pa.Table:
        if len(numbers):
            rows: pa.Table = self._payload.take(numbers)
            return rows
        return (self._reader.schema or pa.schema([])).empty_table()

    def _of(self, key: Any) -> _KeyEngine | None:
        """The engine of a key, at the common clock; None if all that it had may have expired."""
        wanted = key_of(key if isinstance(key, tuple) else (key,))
        if wanted in self._engines:
            self._bring(self._engines[wanted])
            return self._engines[wanted]
        if self._timed and len(wanted) == len(self.query.keys):
            return None
        raise QueryError(
            f"no row of the key {key!r} was pushed",
            f"a key is a value of {', '.join(self.query.keys)}; several go into a tuple",
        )

    def explain(self, row: Any) -> pa.Table:
        """The rows of the answer of the row's own key that beat it."""
        reader = Reader(Query(self.query.question, self.query.window, self.query.keys))
        point = reader.read(row).table
        engine = self._of(*grouped(point.slice(0, 1), self.query.keys).keys)
        return self._rows(np.zeros(0, np.int64)) if engine is None else engine.explain(point)

    def watch(
        self, last: Any = None, between: Any = None, k: int | None = None, snapshot: bool = True
    ) -> KeyedWatch:
        """A standing query on every key, also on those that are yet to come."""
        Engine(self._each, self.algorithm)._asked(last, between, k)  # the question must be right
        watch = KeyedWatch(self, (last, between, k))
        for key, engine in self._current().items():
            watch.follow(key, engine, snapshot)
        self._watches.append(watch)
        return watch

    def _changes(self, parts: Iterable[tuple[_KeyEngine, Changes]]) -> pa.Table:
        """The change table of several engines' changes."""
        told = [(engine.numbers(changes.positions), changes) for engine, changes in parts]
        rows = self._rows(_all(numbers for numbers, _ in told))
        columns = zip(*(changes for _, changes in told), strict=True)
        changes = Changes(*map(np.concatenate, columns)) if told else nothing()
        return table(changes, rows, self._ruler.at_type(self._reader.schema))

    # -- the engine itself -----------------------------------------------------------------------

    def stats(self) -> Stats:
        """The sums over all keys."""
        each = [engine.stats() for engine in self._current().values()]
        sums: dict[str, Any] = {
            f.name: sum(getattr(s, f.name) for s in each) for f in fields(Stats) if f.type == "int"
        }
        sums |= {"seen": self._seen, "dropped": self._dropped}
        sums["bytes"] += self._payload.nbytes
        parts = {part for stats in each for part in stats.seconds}
        seconds = {part: sum(stats.seconds[part] for stats in each) for part in sorted(parts)}
        return Stats(self.algorithm, **sums, seconds=seconds, details={"keys": len(each)})

    def save(self) -> bytes:
        """The state of all keys as bytes, for :func:`skytide.load`."""
        # An engine without rows is as good as a new one.
        engines = [e for e in self._current().values() if len(e._algorithm) or e._waiting]
        kept = [engine._algorithm.kept() for engine in engines]
        seen = [engine._seen for engine in engines]
        facts = {
            "query": self.query.to_dict(),
            "algorithm": self.algorithm,
            "has_schema": self._reader.schema is not None,
            "newest": self._newest,
            "seen": self._seen,
            "dropped": self._dropped,
            "each": {
                "seen": seen,
                "newest": [engine._newest for engine in engines],
                "kept": [len(positions) for positions in kept],
                "waiting": [len(engine.waiting()) for engine in engines],
            },
        }
        # So moved, positions ascend through all keys.
        positions = _all(own + past for own, past in zip(kept, _before(seen), strict=True))
        rows = _all(engine.numbers(own) for engine, own in zip(engines, kept, strict=True))
        waiting = _all(engine.waiting() for engine in engines)
        return pack(State(facts, positions, self._rows(rows), self._rows(waiting)))

    def _restore(self, state: State) -> None:
        facts = state.facts
        self._newest, self._dropped = facts["newest"], int(facts["dropped"])
        if not facts["has_schema"]:
            return
        self._reader = Reader(self.query, schema=state.kept.schema)
        each, rows = facts["each"], pa.concat_tables([state.kept, state.waiting])
        groups = grouped(rows, self.query.keys)
        owners = np.zeros(rows.num_rows, np.int64)
        owners[groups.order] = np.repeat(np.arange(len(groups.keys)), np.diff(groups.starts))
        stored = self._numbered(self._reader.read(rows), np.arange(rows.num_rows))
        kept, waiting = _spans(each["kept"], 0), _spans(each["waiting"], state.kept.num_rows)
        states = zip(
            each["seen"], each["newest"], kept, waiting, _before(each["seen"]), strict=True
        )
        for seen, newest, own, late, past in states:
            owner = np.unique(np.concatenate([owners[own], owners[late]]))
            if len(owner) != 1 or groups.keys[owner[0]] in self._engines:
                raise StateError("the rows of a key are not together")
            parts = _part(stored, own), _part(stored, late)
            with self._counted(self._engine(groups.keys[owner[0]])) as engine:
                engine._resume(seen, newest, state.positions[own] - past, *parts)
        self._seen = max(self._seen, int(facts["seen"]))

    def __repr__(self) -> str:
        return f"<KeyedEngine: {self.query}; {len(self._engines):,} keys>"

    def _repr_html_(self) -> str:
        return engine_html(str(self.query), {"keys": len(self._engines)}, self.answer())


class _KeyEngine(Engine):
    """The engine of one key: it holds numbers of rows that are stored with those of all keys."""

    def __init__(
        self, query: Query, algorithm: str, reader: Reader, stored: Callable[[Ints], pa.Table]
    ) -> None:
        super().__init__(query, algorithm)
        self._reader, self._stored = reader, stored
        self._payload = Payload(joined_numbers, _SLACK)

    def _rows_at(self, positions: Ints) -> pa.Table:
        return self._stored(self.numbers(positions))

    def numbers(self, positions: Ints) -> Ints:
        """The numbers of rows that it holds."""
        numbers: Ints = self._payload.take(positions).of if len(positions) else positions
        return numbers

    def waiting(self) -> Ints:
        """The numbers of the rows that wait for the next slide."""
        return _all(rows.table.of for rows in self._waiting)

    def parts(self) -> Iterator[Ints]:
        """The numbers of all rows that it holds."""
        yield from (numbers.of for numbers in self._payload.chunks())
        yield from (rows.table.of for rows in self._waiting)

    @property
    def held(self) -> int:
        """How many those are."""
        return len(self._payload) + sum(len(rows.positions) for rows in self._waiting)

    @property
    def idle(self) -> bool:
        """Has it no rows, and nothing to tell?"""
        return not (len(self._algorithm) or self._waiting) and self._ledger.is_quiet()


class KeyedWatch:
    """A standing query on every key; made by :meth:`KeyedEngine.watch`."""

    def __init__(self, engine: KeyedEngine, asked: tuple[Any, Any, int | None]) -> None:
        self._engine, self._asked = engine, asked
        self._each: dict[Key, tuple[_KeyEngine, Watch]] = {}

    def follow(self, key: Key, engine: _KeyEngine, snapshot: bool = True) -> None:
        """Watch one more key."""
        self._each[key] = engine, engine.watch(*self._asked, snapshot)

    def forget(self, key: Key) -> None:
        """Watch one key less."""
        self._each.pop(key, None)

    def changes(self) -> pa.Table:
        """What entered and left the answers of all keys since last asked, key after key."""
        self._engine._current()
        told = ((engine, engine._unread(watch._name)) for engine, watch in self._each.values())
        return self._engine._changes((e, changes) for e, changes in told if len(changes.positions))

    def answer(self) -> pa.Table:
        """The watched answers as they are now."""
        return self._engine.answer(*self._asked)

    def close(self) -> None:
        """Stop watching."""
        for _, watch in self._each.values():
            watch.close()
        self._each.clear()
        if self in self._engine._watches:
            self._engine._watches.remove(self)

    def __enter__(self) -> KeyedWatch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _part(batch: Batch, span: slice) -> Batch:
    """Consecutive rows of a batch of numbers."""
    labels = None if batch.labels is None else batch.labels[span]
    return Batch(Numbers(batch.table.of[span]), batch.values[span], labels)


def _all(parts: Iterable[Ints]) -> Ints:
    """Arrays, one after the other."""
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _before(counts: list[int]) -> list[int]:
    """The sum of all before each."""
    sums: list[int] = np.cumsum([0, *counts[:-1]])[: len(counts)].tolist()
    return sums


def _spans(counts: list[int], first: int) -> list[slice]:
    """So many rows after one another, from one on."""
    ends = (first + np.cumsum([0, *counts])).tolist()
    return list(map(slice, ends[:-1], ends[1:]))
