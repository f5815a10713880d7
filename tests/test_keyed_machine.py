"""A query per key, asked in any order, against the oracles of each key alone."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import oracles
import skytide as st

LONGEST = 6
START = 1_000_003
KEYS: list[Any] = ["a", "b", None, ""]
NUMBERS: list[Any] = [0.0, -0.0, math.nan, None, 7.0]

rows = some.lists(
    some.tuples(
        some.sampled_from(range(4)),
        some.sampled_from(range(5)),
        some.integers(0, 3),
        some.integers(0, 3),
    ),
    max_size=20,
)


def same_key(key: tuple[Any, Any]) -> tuple[Any, Any]:
    """A key as the oracle counts it: NaN by name, one zero."""
    name, number = key
    if number is None or not math.isnan(number):
        return name, None if number is None else number + 0.0
    return name, "NaN"


class Machine(RuleBasedStateMachine):
    """A skyband or a ranking, over the last rows or the last seconds of each key."""

    timed: ClassVar[bool]

    @initialize(
        k=some.integers(1, 3),
        ranked=some.booleans(),
        length=some.integers(1, LONGEST),
        every=some.integers(1, LONGEST),
        history=some.booleans(),
        encoded=some.booleans(),
    )
    def open(
        self, k: int, ranked: bool, length: int, every: int, history: bool, encoded: bool
    ) -> None:
        """Open the engine."""
        self.k, self.ranked, self.length = k, ranked, length
        self.every, self.encoded = min(every, length), encoded
        question = st.top(k, st.low("x")) if ranked else st.skyband(k, st.low("x"), st.low("y"))
        span = f"{length} seconds" if self.timed else length
        slide = f"{self.every} seconds" if self.timed else self.every
        window = st.last(span, every=slide, history=history)
        self.query = question.over(window).per("name", "number")
        self.live: Any = self.query.open()
        self.points: list[tuple[int, int]] = []
        self.times: list[int] = []
        self.owners: dict[Any, list[int]] = {}
        self.now = START
        self.watch: Any = None
        self.told: list[int] = []

    @rule(some_rows=rows, pause=some.sampled_from([0, 0, 1, 2, 9]))
    def push(self, some_rows: list[tuple[int, int, int, int]], pause: int) -> None:
        """Rows of any keys."""
        self.now += pause if self.timed and some_rows else 0
        first = len(self.points) + 1
        keys = [(KEYS[i], NUMBERS[j]) for i, j, _, _ in some_rows]
        for place, (key, (_, _, x, y)) in enumerate(zip(keys, some_rows, strict=True), first):
            self.owners.setdefault(same_key(key), []).append(place)
            self.points.append((x, y))
            self.times.append(self.now)
        names = pa.array([name for name, _ in keys], pa.string())
        table = {
            "id": pa.array(range(first, len(self.points) + 1), pa.int64()),
            "name": names.dictionary_encode() if self.encoded else names,
            "number": pa.array([number for _, number in keys], pa.float64(), from_pandas=False),
            "x": pa.array([x for _, _, x, _ in some_rows], pa.int64()),
            "y": pa.array([y for _, _, _, y in some_rows], pa.int64()),
            "ts": pa.array([self.now] * len(keys), pa.timestamp("s")),
        }
        self.live.push(pa.table(table))

    @precondition(lambda self: self.timed and self.times)
    @rule(seconds=some.sampled_from([0, 1, 2, 9]))
    def advance(self, seconds: int) -> None:
        """Time goes on for all keys."""
        self.now += seconds
        self.live.advance(to=datetime.fromtimestamp(self.now, UTC).replace(tzinfo=None))

    def window(self, own: list[int]) -> list[int]:
        """The rows of a key that count."""
        if self.timed:
            clock = oracles.slide(self.now, self.every)
            return [p for p in own if clock - self.length < self.times[p - 1] <= clock]
        return [own[p - 1] for p in oracles.last(self.length, oracles.slide(len(own), self.every))]

    def answer_of(self, own: list[int]) -> list[int]:
        """The truth for one key, in the order of the answer."""
        window = self.window(own)
        if not self.ranked:
            return oracles.skyband(self.points, window, self.k) if window else []
        best = oracles.top([x for x, _ in self.points], window, self.k)
        return sorted(best, key=lambda p: (self.points[p - 1][0], -p))

    @invariant()
    def answers(self) -> None:
        """Each key's rows stand together, in their order."""
        found = self.live.answer()
        ids = found["id"].to_pylist() if found.num_columns else []
        expected = [self.answer_of(own) for own in self.owners.values()]
        assert sorted(ids) == sorted(p for answer in expected for p in answer)
        for answer in expected:
            start = ids.index(answer[0]) if answer else 0
            assert ids[start : start + len(answer)] == answer

    @rule(name=some.integers(0, 3), number=some.integers(0, 4))
    def answer_of_one_key(self, name: int, number: int) -> None:
        """A key that never was is refused, or has no rows if it might have had some."""
        key = KEYS[name], NUMBERS[number]
        own = self.owners.get(same_key(key))
        if own is None and not self.timed:
            with pytest.raises(st.QueryError, match="no row of the key"):
                self.live.answer(key=key)
        elif self.points:
            found = self.live.answer(key=key)
            assert found["id"].to_pylist() == self.answer_of(own or [])

    @rule()
    def changes(self) -> None:
        """What a watch tells adds up to the answers."""
        if self.watch is None:
            self.watch, self.told = self.live.watch(), []
        told = self.watch.changes()
        if told.num_rows:
            for kind, place in zip(
                told["_change_type"].to_pylist(), told["id"].to_pylist(), strict=True
            ):
                assert (place in self.told) == (kind == "delete")
                (self.told.remove if kind == "delete" else self.told.append)(place)
        expected = [p for own in self.owners.values() for p in self.answer_of(own)]
        assert sorted(self.told) == sorted(expected)

    @rule()
    def save_and_load(self) -> None:
        """Go on with a copy."""
        blob = self.live.save()
        self.live = st.load(blob)
        assert sorted(map(str, self.live.answer().to_pylist())) == sorted(
            map(str, st.load(blob).answer().to_pylist())
        )
        self.watch = None

    @invariant()
    def rows_are_few(self) -> None:
        """No more are stored than twice those that some key holds, and a little."""
        assert len(self.live._payload) <= 2 * self.live._held + 1024 + 20
        engines = self.live._engines.values()
        assert self.live._held == sum(engine.held for engine in engines)


class Rows(Machine):
    """The last rows of each key."""

    timed = False


class Times(Machine):
    """The last seconds, by one clock."""

    timed = True


TestRows, TestTimes = Rows.TestCase, Times.TestCase
TestRows.settings = TestTimes.settings = settings(
    max_examples=60, stateful_step_count=20, deadline=None
)
