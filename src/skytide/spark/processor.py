"""Stage three: Spark calls the engine of a key with its packs, and keeps its state.

The state of a key is the engine and the rows that wait; of a large one also a log of the packs that
came since it was written; and apart from them a small note with a random token, the state's name.

A worker remembers the engines it had, each with the token under which it was stored.  Only if Spark
shows it that very token the engine is taken from memory; after a retry, in another worker, after a
restart, the token is another and the state is loaded.  So what is remembered is never wrong, only
sometimes useless.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
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

LOG_FROM, LOG_SHARE = 1 << 20, 0.4
"""A state of more than so many bytes is not written whole each time: the packs that came since are
logged, up to such a share of it.  States are that large where windows keep their history."""


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
        """Name the values of state."""
        self._handle = handle
        self._note = handle.getValueState("note", "note STRING")
        self._state = handle.getValueState("state", "engine BINARY, waiting BINARY")
        self._log = handle.getListState("log", "watermark LONG, packs ARRAY<BINARY>")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Take in the packs of a micro-batch."""
        packs: list[tuple[int, bytes]] = []
        for row in rows:
            if row[KIND] == SURVIVORS:
                packs.append((row[PART], bytes(row[PACK])))
            elif row[KIND] == REJECTS and row[PACK] is not None:
                yield from _told(Pack.from_bytes(row[PACK]).rows, REJECT)
        if packs:
            yield from self._take(key, [pack for _, pack in sorted(packs)], timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """The watermark has reached a time at which something changes."""
        yield from self._take(key, [], timerValues)

    def close(self) -> None:
        """Nothing is held open."""

    def _take(self, key: Any, packs: list[bytes], times: Any) -> Iterator[Row]:
        watermark = times.getCurrentWatermarkInMs() if self._asked.timed else None
        note = self._note.get()
        facts = json.loads(note[0]) if note else {}
        keeper = self._keeper(key, facts)
        outcome = keeper.take(_unpacked(packs), watermark)
        yield from _told(outcome.changes)
        if outcome.late is not None:
            yield from _told(_with_reason(outcome.late, watermark), LATE)
        self._store(key, keeper, facts, watermark, packs)

    def _keeper(self, key: Any, facts: dict[str, Any]) -> Keeper:
        """The engine of a key: remembered, loaded, or new."""
        if not facts:
            return Keeper(self._asked)
        _check(facts, self._asked)
        known = MEMORY.take((self._stream, key), bytes.fromhex(facts["token"]))
        return self._loaded(facts) if known is None else known

    def _loaded(self, facts: dict[str, Any]) -> Keeper:
        """The engine as it was stored whole, and what was logged since."""
        engine, waiting = self._state.get()
        waiting = None if waiting is None else bytes(waiting)
        keeper = Keeper.load(self._asked, bytes(engine), waiting)
        if facts["logged"]:
            for watermark, packs in self._log.get():
                keeper.take(_unpacked(packs), watermark)
        return keeper

    def _store(
        self,
        key: Any,
        keeper: Keeper,
        facts: dict[str, Any],
        watermark: int | None,
        packs: list[bytes],
    ) -> None:
        if keeper.idle:
            self._forget(facts)
            return
        whole, logged = facts.get("whole", 0), facts.get("logged", 0) + sum(map(len, packs)) + 8
        if logged < LOG_SHARE * whole and whole > LOG_FROM:
            self._log.appendValue((watermark, packs))
        else:
            if facts.get("logged"):
                self._log.clear()
            engine, waiting = keeper.save()
            self._state.update((engine, waiting))
            whole, logged = len(engine) + len(waiting or b""), 0
        token = os.urandom(8)
        note = {
            "format": FORMAT,
            "token": token.hex(),
            "asked": self._asked.told,
            "due": self._alarm(keeper, facts.get("due"), watermark),
            "whole": whole,
            "logged": logged,
        }
        self._note.update((json.dumps(note),))
        MEMORY.put((self._stream, key), token, keeper, whole + logged)

    def _forget(self, facts: dict[str, Any]) -> None:
        if facts:
            self._note.clear()
            self._state.clear()
            self._log.clear()

    def _alarm(self, keeper: Keeper, known: int | None, watermark: int | None) -> int | None:
        """See to it that a timer goes off when something is due, at the latest."""
        due = keeper.due if watermark is not None else None
        if due is None or watermark is None:
            return known
        if known is not None and watermark < known <= due:
            return known
        self._handle.registerTimer(due)
        return due


def _unpacked(packs: Sequence[bytes]) -> list[Pack]:
    return [Pack.from_bytes(bytes(pack)) for pack in packs]


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
