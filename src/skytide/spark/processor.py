"""Stage three: Spark calls the engine of a key with its packs, and keeps its state.

The state of a key is two values: the engine and the rows that wait, and apart from them a small
note with a random token, the state's name.  A worker remembers the engines it had, each with the
token under which it was stored.  Only if Spark shows it that very token the engine is taken from
memory; after a retry, in another worker, after a restart, the token is another and the state is
loaded.  So what is remembered is never wrong, only sometimes useless.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import skytide as st
from skytide.pruning import REASONS, Pack
from skytide.spark.keeper import Asked, Keeper
from skytide.spark.packing import KIND, PACK, PART, REJECTS, SURVIVORS

TYPE, AT = "_change_type", "_change_at"
LATE, REJECT = "late", "reject"

FORMAT = 1
REMEMBERED = 256 << 20
"""So many bytes of state a worker process remembers as engines, the latest used ones."""


class Memory:
    """The engines that this process had last, by stream and key.

    >>> memory = Memory(limit=10)
    >>> memory.put("a", b"token", "engine", size=8)
    >>> memory.take("a", b"token"), memory.take("a", b"token")
    ('engine', None)
    """

    def __init__(self, limit: int = REMEMBERED) -> None:
        self._limit, self._size = limit, 0
        self._known: OrderedDict[Any, tuple[bytes, Any, int]] = OrderedDict()

    def take(self, name: Any, token: bytes) -> Any:
        """What was put under this name and token, or None; it is forgotten here, whoever takes it
        will change it."""
        known = self._known.pop(name, None)
        if known is None:
            return None
        self._size -= known[2]
        return known[1] if known[0] == token else None

    def put(self, name: Any, token: bytes, thing: Any, size: int) -> None:
        """Remember a thing, and forget the oldest ones if that is too much."""
        self.take(name, b"")
        self._known[name] = token, thing, size
        self._size += size
        while self._size > self._limit and len(self._known) > 1:
            _, (_, _, oldest) = self._known.popitem(last=False)
            self._size -= oldest


MEMORY = Memory()


class Processor(StatefulProcessor):
    """What ``transformWithState`` calls for every key that has packs, or a timer that is due."""

    def __init__(self, asked: Asked, stream: str) -> None:
        self._asked, self._stream = asked, stream

    def init(self, handle: Any) -> None:
        """Name the two values of state."""
        self._handle = handle
        self._note = handle.getValueState("note", "note STRING")
        self._state = handle.getValueState("state", "engine BINARY, waiting BINARY")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Take in the packs of a micro-batch."""
        rejects: list[pa.Table] = []
        packs: list[tuple[int, Pack]] = []
        for row in rows:
            if row[KIND] == SURVIVORS:
                packs.append((row[PART], Pack.from_bytes(row[PACK])))
            elif row[KIND] == REJECTS and row[PACK] is not None:
                rejects.append(Pack.from_bytes(row[PACK]).rows)
        for table in rejects:
            yield from _told(table, REJECT)
        if packs:
            packs.sort(key=lambda pack: pack[0])
            yield from self._take(key, [pack for _, pack in packs], timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """The watermark has reached a time at which something changes."""
        yield from self._take(key, [], timerValues)

    def close(self) -> None:
        """Nothing is held open."""

    def _take(self, key: Any, packs: list[Pack], times: Any) -> Iterator[Row]:
        watermark = times.getCurrentWatermarkInMs() if self._asked.timed else None
        note = self._note.get()
        facts = json.loads(note[0]) if note else {}
        keeper = self._keeper(key, facts)
        outcome = keeper.take(packs, watermark)
        yield from _told(outcome.changes)
        if outcome.late is not None:
            yield from _told(_with_reason(outcome.late, watermark), LATE)
        self._store(key, keeper, facts, watermark)

    def _keeper(self, key: Any, facts: dict[str, Any]) -> Keeper:
        """The engine of a key: remembered, loaded, or new."""
        if not facts:
            return Keeper(self._asked)
        _check(facts, self._asked)
        known = MEMORY.take((self._stream, key), bytes.fromhex(facts["token"]))
        if known is not None:
            return known  # type: ignore[no-any-return]
        engine, waiting = self._state.get()
        return Keeper.load(self._asked, bytes(engine), None if waiting is None else bytes(waiting))

    def _store(
        self, key: Any, keeper: Keeper, facts: dict[str, Any], watermark: int | None
    ) -> None:
        if keeper.idle:
            self._note.clear()
            self._state.clear()
            return
        engine, waiting = keeper.save()
        token = os.urandom(8)
        due = self._alarm(keeper, facts.get("due"), watermark)
        note = {"format": FORMAT, "token": token.hex(), "asked": self._asked.told, "due": due}
        self._note.update((json.dumps(note),))
        self._state.update((engine, waiting))
        MEMORY.put((self._stream, key), token, keeper, len(engine) + len(waiting or b""))

    def _alarm(self, keeper: Keeper, known: int | None, watermark: int | None) -> int | None:
        """See to it that a timer goes off when something is due, at the latest."""
        due = keeper.due if watermark is not None else None
        if due is None or watermark is None:
            return known
        if known is not None and watermark < known <= due:
            return known
        self._handle.registerTimer(due)
        return due


def _check(facts: dict[str, Any], asked: Asked) -> None:
    if facts["format"] != FORMAT:
        raise st.StateError(
            f"the checkpoint has state of format {facts['format']}; this skytide reads {FORMAT}",
            "go on with the skytide that wrote it, or start with a new checkpointLocation",
        )
    if facts["asked"] != asked.told:
        raise st.StateError(
            f"the checkpoint is of another question: {facts['asked']}; now asked: {asked.told}",
            "ask the same as before, or start with a new checkpointLocation",
        )


def _with_reason(late: pa.Table, watermark: int | None) -> pa.Table:
    why = f"late: the watermark was at {watermark} ms"
    return late.append_column(REASONS, pa.array([why] * late.num_rows))


def _told(table: pa.Table, kind: str | None = None) -> Iterator[Row]:
    """The rows of a table as Spark wants them, which is one by one; there are few."""
    for values in table.to_pylist():
        if kind is not None:
            values = {TYPE: kind, AT: None, **values}
        else:
            values[REASONS] = None
        yield Row(**values)
