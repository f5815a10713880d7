"""The public face, asked in any order: hypothesis pushes, asks, watches, saves, and compares.

Two machines, one for windows that count rows and one for windows of time.  Both carry the whole
history of rows beside the engine and ask the oracles what it must say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import oracles
import skytide as st
from skytide.choices import ALGORITHMS

Point = tuple[float, int]

LONGEST = 12
START = 1_000_003  # seconds since 1970; no multiple of a slide

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("x", pa.float64()),
        ("y", pa.int32()),
        ("name", pa.string()),
        ("ts", pa.timestamp("ns")),
    ]
)

# Few values, so that ties are common; 0.0 and -0.0 are the same.
lengths = some.integers(0, 3).map(float) | some.sampled_from([-np.inf, -0.0, np.inf])
coordinates = some.tuples(lengths, some.integers(0, 3))
pauses = some.sampled_from([0, 0, 0, 1, 1, 2, 3, 30])


@dataclass(frozen=True)
class Asked:
    """A question, for the engine and for the oracles."""

    kind: str
    k: int
    newest: bool

    def question(self) -> Any:
        """Low x and high y; a ranking by x alone."""
        preferences, ties = (st.low("x"), st.high("y")), "newest" if self.newest else "all"
        if self.kind == "top":
            return st.top(self.k, st.low("x"))
        if self.kind == "skyband":
            return st.skyband(self.k, *preferences, ties=ties)
        return st.skyline(*preferences, ties=ties)

    def answer(
        self, points: list[Point], window: oracles.Window, fewer: int | None = None
    ) -> oracles.Answer:
        """The truth, for a smaller k if one is given."""
        k = fewer or (1 if self.kind == "skyline" else self.k)
        if self.kind == "top":
            return oracles.top([x for x, _ in points], window, k)
        return oracles.skyband([(x, -y) for x, y in points], window, k, self.newest)


questions = some.builds(
    Asked, some.sampled_from(["skyline", "skyband", "top"]), some.integers(1, 4), some.booleans()
)


@dataclass
class Watched:
    """A watch, how it was asked for, and what it has told so far."""

    watch: Any
    how: dict[str, Any]
    told: list[int] = field(default_factory=list)


def table(ids: Sequence[int], points: list[Point], times: list[int]) -> pa.Table:
    """Rows as they are pushed, and as they must come back."""
    return pa.table(
        {
            "id": ids,
            "x": [x for x, _ in points],
            "y": [y for _, y in points],
            "name": [f"row {p}" for p in ids],
            "ts": np.array(times, "datetime64[s]").astype("datetime64[ns]"),
        },
        schema=SCHEMA,
    )


class Machine(RuleBasedStateMachine):
    """What does not depend on what the window is measured in."""

    late: ClassVar[str] = "raise"

    def start(
        self,
        asked: Asked,
        window: Any,
        length: int,
        every: int,
        history: bool,
        nosy: bool,
        data: some.DataObject,
    ) -> None:
        """Open the engine with any of the algorithms that can do what is asked."""
        self.asked, self.length, self.every, self.history = asked, length, every, history
        query = asked.question().over(window)
        algorithm = data.draw(some.sampled_from(list(query.algorithms())), label="algorithm")
        self.any_length = ALGORITHMS[algorithm].load().any_length
        self.live = query.open(algorithm)
        self.points: list[Point] = []
        self.times: list[int] = []
        self.now = START
        self.nosy = nosy
        self.watched: list[Watched] = []

    def push_rows(self, points: list[Point], times: list[int]) -> None:
        """Push rows that are not late."""
        first = len(self.points) + 1
        self.points, self.times = self.points + points, self.times + times
        self.live.push(table(range(first, len(self.points) + 1), points, times))

    def window(self, how: dict[str, Any]) -> oracles.Window:
        """The positions that ``answer(**how)`` speaks of."""
        raise NotImplementedError

    def spoken(self, how: dict[str, Any]) -> dict[str, Any]:
        """``how`` in the words of the engine."""
        return how

    def expected(self, how: dict[str, Any]) -> oracles.Answer:
        """The truth."""
        return self.asked.answer(self.points, self.window(how), how.get("k"))

    def draw_window(self, data: some.DataObject) -> dict[str, Any]:
        """Some window the engine can be asked for."""
        kinds = ["all"] + ["last"] * self.any_length + ["between"] * self.history
        kind, n = data.draw(some.sampled_from(kinds)), data.draw(some.integers(1, self.length))
        k = data.draw(some.none() | some.integers(1, self.live.query.k))
        how: dict[str, Any] = {} if k is None else {"k": k}
        if kind == "last":
            how["last"] = n
        if kind == "between":
            how["between"] = data.draw(some.integers(*self.youngest(n))), n
        return how

    def youngest(self, older: int) -> tuple[int, int]:
        """The least and the greatest near end of ``between`` for this far end."""
        raise NotImplementedError

    @rule(data=some.data())
    def answer(self, data: some.DataObject) -> None:
        """Any window may be asked for at any time."""
        self.compare(self.draw_window(data))

    @invariant()
    def answer_at_every_step(self) -> None:
        """Some machines are asked after every step; to others it may come as a surprise."""
        if self.nosy:
            self.compare({})

    def compare(self, how: dict[str, Any]) -> None:
        """Whole rows, in arrival order or in that of the ranking."""
        answer, positions = self.live.answer(**self.spoken(how)), self.expected(how)
        assert answer.num_rows == len(positions), how
        if self.asked.kind == "top":  # best first
            positions.sort(key=lambda p: (self.points[p - 1][0], -p))
        if self.points:  # before, the engine cannot know the columns
            points = [self.points[p - 1] for p in positions]
            times = [self.times[p - 1] for p in positions]
            assert answer.equals(table(positions, points, times)), how

    @rule(data=some.data())
    def watch(self, data: some.DataObject) -> None:
        """Stand watch from now on."""
        how = self.draw_window(data)
        self.watched.append(Watched(self.live.watch(**self.spoken(how)), how))

    @rule()
    def changes(self) -> None:
        """Every watch tells the net difference since last asked."""
        for one in self.watched:
            now = self.expected(one.how)
            changes = one.watch.changes()
            assert changes.column_names[:2] == ["_change_type", "_change_at"]
            told: dict[str, list[int]] = {"insert": [], "delete": []}
            for row in changes.to_pylist():
                told[row["_change_type"]].append(row["id"])
                assert row["name"] == f"row {row['id']}"
            inserted, deleted = oracles.changes(one.told, now)
            assert sorted(told["insert"]) == inserted, one.how
            assert sorted(told["delete"]) == deleted, one.how
            one.told = now

    @rule(which=some.integers(0, 5))
    def close(self, which: int) -> None:
        """One watch less, if there are so many."""
        for one in self.watched[which : which + 1]:
            one.watch.close()
            self.watched.remove(one)

    @rule()
    def save_and_load(self) -> None:
        """Go on with a copy; watches stay behind."""
        self.live = st.load(self.live.save())
        self.watched.clear()


class Rows(Machine):
    """last(N), slides of s rows."""

    @initialize(
        asked=questions,
        length=some.integers(1, LONGEST),
        every=some.integers(1, LONGEST),
        history=some.booleans(),
        nosy=some.booleans(),
        data=some.data(),
    )
    def open(
        self,
        asked: Asked,
        length: int,
        every: int,
        history: bool,
        nosy: bool,
        data: some.DataObject,
    ) -> None:
        """Open the engine."""
        every = min(every, length)
        window = st.last(length, every=every, history=history)
        self.start(asked, window, length, every, history, nosy, data)

    def window(self, how: dict[str, Any]) -> oracles.Window:
        """The positions that ``answer(**how)`` speaks of."""
        seen = oracles.slide(len(self.points), self.every)
        if "between" in how:
            return oracles.between(*how["between"], seen)
        return oracles.last(how.get("last", self.length), seen)

    def youngest(self, older: int) -> tuple[int, int]:
        """The newest row is the first, and one row is a window."""
        return 1, older

    @rule(points=some.lists(coordinates, max_size=3) | some.lists(coordinates, max_size=30))
    def push(self, points: list[Point]) -> None:
        """Add rows, often few, sometimes more than a window."""
        self.push_rows(points, [START] * len(points))


class Times(Machine):
    """last("N seconds"), slides of s seconds, late rows."""

    @initialize(
        asked=questions,
        length=some.integers(1, LONGEST),
        every=some.integers(0, LONGEST),
        history=some.booleans(),
        nosy=some.booleans(),
        late=some.sampled_from(["raise", "drop"]),
        data=some.data(),
    )
    def open(
        self,
        asked: Asked,
        length: int,
        every: int,
        history: bool,
        nosy: bool,
        late: str,
        data: some.DataObject,
    ) -> None:
        """Open the engine; every = 0: no slides."""
        every, self.late = min(every, length), late
        window = st.last(
            f"{length} seconds",
            every=f"{every} seconds" if every else None,
            on="ts",
            late=late,
            history=history,
        )
        self.start(asked, window, length, every, history, nosy, data)

    def window(self, how: dict[str, Any]) -> oracles.Window:
        """The positions that ``answer(**how)`` speaks of."""
        now = oracles.slide(self.now, self.every) if self.every else self.now
        if "between" in how:
            return oracles.recent_between(self.times, *how["between"], now)
        return oracles.recent(self.times, how.get("last", self.length), now)

    def youngest(self, older: int) -> tuple[int, int]:
        """Ages start at nothing; a window has some length."""
        return 0, older - 1

    def spoken(self, how: dict[str, Any]) -> dict[str, Any]:
        """Numbers are seconds, but for k."""
        return {
            name: tuple(f"{n} seconds" for n in value)
            if isinstance(value, tuple)
            else f"{value} seconds"
            if name == "last"
            else value
            for name, value in how.items()
        }

    @rule(rows=some.lists(some.tuples(pauses, coordinates), max_size=8))
    def push(self, rows: list[tuple[int, Point]]) -> None:
        """Add rows, often many of one instant."""
        times = (self.now + np.cumsum([pause for pause, _ in rows], dtype=int)).tolist()
        self.push_rows([point for _, point in rows], times)
        self.now = max([self.now, *times])

    @precondition(lambda self: self.times)
    @rule(point=coordinates, seconds=some.integers(1, 20))
    def push_late(self, point: Point, seconds: int) -> None:
        """A late row is dropped, or refused together with the row that came with it."""
        times = [self.now - seconds, self.now]
        late_and_not = table([0, len(self.points) + 1], [point, point], times)
        if self.late == "raise":
            with pytest.raises(st.LateRows):
                self.live.push(late_and_not)
            return
        self.live.push(late_and_not)
        self.points.append(point)
        self.times.append(self.now)

    @precondition(lambda self: self.times)
    @rule(seconds=pauses, form=some.sampled_from(["datetime", "numpy", "arrow"]))
    def advance(self, seconds: int, form: str) -> None:
        """Time goes on without rows."""
        self.now += seconds
        to: Any = datetime.fromtimestamp(self.now, UTC).replace(tzinfo=None)
        if form != "datetime":
            to = np.datetime64(to, "ns") if form == "numpy" else pa.scalar(to, pa.timestamp("ns"))
        self.live.advance(to=to)

    @precondition(lambda self: self.times)
    @rule(seconds=some.integers(1, 20))
    def advance_back(self, seconds: int) -> None:
        """Time never goes back."""
        with pytest.raises(ValueError, match=r"\d"):
            self.live.advance(to=np.datetime64(self.now - seconds, "s"))


tried = settings(max_examples=150, stateful_step_count=25, deadline=None)

TestRows = Rows.TestCase
TestRows.settings = tried
TestTimes = Times.TestCase
TestTimes.settings = tried
