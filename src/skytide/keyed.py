"""A query per key: one engine for each, one clock and one schema for all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa

from skytide.engine import Engine, Stats
from skytide.errors import QueryError, StateError
from skytide.notebook import engine_html
from skytide.once import key_groups
from skytide.query import LastTime, Query
from skytide.rows import Reader
from skytide.slides import check_on_time, on_time, ruler_of
from skytide.state import State, pack, unpack

Key = tuple[Any, ...]


class KeyedEngine:
    """The answers of a query for every key; made by ``query.open()`` of a query with ``.per()``.

    Each key has a window of its own; the clock of a time window is common to all, so that a key from
    which nothing comes any more still loses its rows.

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
        self._engines: dict[Key, Engine] = {}
        self._watches: list[KeyedWatch] = []
        self._newest: int | None = None
        self._dropped = 0

    # -- rows in ---------------------------------------------------------------------------------

    def push(self, rows: Any) -> None:
        """Add rows of any keys, the oldest first.  All are taken in, or none."""
        table = self._on_time(rows)
        for chosen in key_groups(table, self.query.keys):
            part = table.take(chosen)
            self._engine(self._key(part)).push(part)

    def _on_time(self, rows: Any) -> pa.Table:
        """The rows that are taken in; the clock moves to the last of them."""
        fresh = self._reader.schema is None
        batch = self._reader.read(rows)
        window, labels = self.query.window, batch.labels
        if not isinstance(window, LastTime) or labels is None or not len(labels):
            return batch.table
        table = batch.table
        if window.late == "drop":
            fine = on_time(labels, self._newest)
            self._dropped += int(len(fine) - fine.sum())
            table, labels = table.filter(pa.array(fine)), labels[fine]
        else:
            try:
                check_on_time(labels, self._newest)
            except ValueError:
                self._reader = Reader(self.query) if fresh else self._reader
                raise
        self._newest = int(labels[-1]) if len(labels) else self._newest
        return table

    def _key(self, rows: pa.Table) -> Key:
        return tuple(rows.column(name)[0].as_py() for name in self.query.keys)

    def _engine(self, key: Key) -> Engine:
        if key not in self._engines:
            self._engines[key] = Engine(self._each, self.algorithm)
            for watch in self._watches:
                watch.follow(key, self._engines[key])
        return self._engines[key]

    def advance(self, to: Any) -> None:
        """Move the clock of a time window for all keys."""
        self._newest = self._ruler.moment(to, self._newest)

    def _current(self) -> dict[Key, Engine]:
        """All engines, brought to the common clock."""
        for engine in self._engines.values():
            self._bring(engine)
        return self._engines

    def _bring(self, engine: Engine) -> None:
        if isinstance(self.query.window, LastTime) and self._newest is not None:
            engine.advance(to=np.datetime64(self._newest, "ns"))

    # -- answers out -----------------------------------------------------------------------------

    def answer(
        self, last: Any = None, between: Any = None, k: int | None = None, key: Any = None
    ) -> pa.Table:
        """The answers of all keys, one after the other, or of one ``key`` alone."""
        asked = last, between, k
        if key is not None:
            return self._of(key).answer(*asked)
        answers = [engine.answer(*asked) for engine in self._current().values()]
        if not answers:
            Engine(self._each, self.algorithm).answer(*asked)  # the question must be right
        return pa.concat_tables([self._empty(), *answers])

    def _of(self, key: Any) -> Engine:
        wanted = key if isinstance(key, tuple) else (key,)
        if wanted not in self._engines:
            raise QueryError(
                f"no row of the key {key!r} was pushed",
                f"a key is a value of {', '.join(self.query.keys)}; several go into a tuple",
            )
        self._bring(self._engines[wanted])
        return self._engines[wanted]

    def _empty(self) -> pa.Table:
        return (self._reader.schema or pa.schema([])).empty_table()

    def explain(self, row: Any) -> pa.Table:
        """The rows of the answer of the row's own key that beat it."""
        point = Reader(Query(self.query.question, self.query.window, self.query.keys))
        table = point.read(row).table
        return self._of(self._key(table)).explain(table)

    def watch(
        self, last: Any = None, between: Any = None, k: int | None = None, snapshot: bool = True
    ) -> KeyedWatch:
        """A standing query on every key, also on those that are yet to come."""
        Engine(self._each, self.algorithm).watch(last, between, k)  # the question must be right
        watch = KeyedWatch(self, (last, between, k))
        for key, engine in self._current().items():
            watch.follow(key, engine, snapshot)
        self._watches.append(watch)
        return watch

    # -- the engine itself -----------------------------------------------------------------------

    def stats(self) -> Stats:
        """The sums over all keys."""
        each = [engine.stats() for engine in self._current().values()]
        sums: dict[str, Any] = {
            f.name: sum(getattr(s, f.name) for s in each) for f in fields(Stats) if f.type == "int"
        }
        sums["dropped"] += self._dropped
        parts = {part for stats in each for part in stats.seconds}
        seconds = {part: sum(stats.seconds[part] for stats in each) for part in sorted(parts)}
        return Stats(self.algorithm, **sums, seconds=seconds, details={"keys": len(each)})

    def save(self) -> bytes:
        """The state of all keys as bytes, for :func:`skytide.load`."""
        # An engine without rows is as good as a new one.
        engines = [e for e in self._current().values() if e.stats().kept or e.stats().waiting]
        blobs = [engine.save() for engine in engines]
        facts = {
            "query": self.query.to_dict(),
            "algorithm": self.algorithm,
            "has_schema": self._reader.schema is not None,
            "newest": self._newest,
            "dropped": self._dropped,
        }
        nested = pa.table({"state": pa.array(blobs, pa.large_binary())})
        return pack(State(facts, np.arange(len(blobs)), nested, self._empty()))

    def _restore(self, state: State) -> None:
        if state.facts["has_schema"]:
            self._reader = Reader(self.query, schema=state.waiting.schema)
        self._newest, self._dropped = state.facts["newest"], int(state.facts["dropped"])
        for blob in state.kept.column("state").to_pylist():
            nested = unpack(blob)
            engine = Engine(self._each, self.algorithm)
            if nested.facts["query"] != self._each.to_dict():
                raise StateError("the state of a key is of another query")
            engine._restore(nested)
            rows = nested.kept if nested.kept.num_rows else nested.waiting
            self._engines[self._key(rows)] = engine

    def __repr__(self) -> str:
        return f"<KeyedEngine: {self.query}; {len(self._engines):,} keys>"

    def _repr_html_(self) -> str:
        return engine_html(str(self.query), {"keys": len(self._engines)}, self.answer())


class KeyedWatch:
    """A standing query on every key; made by :meth:`KeyedEngine.watch`."""

    def __init__(self, engine: KeyedEngine, asked: tuple[Any, Any, int | None]) -> None:
        self._engine, self._asked = engine, asked
        self._each: dict[Key, Any] = {}

    def follow(self, key: Key, engine: Engine, snapshot: bool = True) -> None:
        """Watch one more key."""
        self._each[key] = engine.watch(*self._asked, snapshot)

    def changes(self) -> pa.Table:
        """What entered and left the answers of all keys since last asked, key after key."""
        self._engine._current()
        tables = [table for table in self._tables() if table.num_rows]
        if tables:
            return pa.concat_tables(tables)
        empty = Engine(self._engine._each, self._engine.algorithm)
        empty._reader = self._engine._reader
        return empty.watch().changes()

    def _tables(self) -> Iterator[pa.Table]:
        return (watch.changes() for watch in self._each.values())

    def answer(self) -> pa.Table:
        """The watched answers as they are now."""
        return self._engine.answer(*self._asked)

    def close(self) -> None:
        """Stop watching."""
        for watch in self._each.values():
            watch.close()
        self._each.clear()
        if self in self._engine._watches:
            self._engine._watches.remove(self)

    def __enter__(self) -> KeyedWatch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
