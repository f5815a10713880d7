"""What every top-k algorithm is tried with; ``test_topk_conformance.py`` says what must hold.

An algorithm is held to all of it by its line in the table of algorithms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from hypothesis import strategies as some

import oracles
from conformance import coordinates, pauses
from skytide.choices import ALGORITHMS

RANKING: list[Any] = [
    made for made in (line.load() for line in ALGORITHMS.values()) if getattr(made, "ranking", 0)
]

LONGEST = 12


@dataclass(frozen=True)
class Ranked:
    """Scores in order of arrival, where the clock stops on the way, and the question."""

    scores: list[float]
    labels: list[int]
    stops: list[tuple[int, int]]  # how many rows have come, and where the clock then stands
    k: int
    length: int | None
    every: int

    def ends(self) -> list[int]:
        """At which clock each row counts no more."""
        assert self.length is not None
        return [-(-(label + self.length) // self.every) * self.every for label in self.labels]

    def window(self, seen: int, clock: int, length: int | None) -> oracles.Window:
        """The rows of the window of this length."""
        if length is None:
            return oracles.everything(seen)
        return oracles.recent(self.labels[:seen], length, clock)

    def answer(self, seen: int, clock: int, length: int | None) -> oracles.Answer:
        """The truth."""
        return oracles.top(self.scores, self.window(seen, clock, length), self.k)

    def worst(self, seen: int, clock: int) -> int:
        """The truth that ``each`` tells."""
        answer = self.answer(seen, clock, self.length)
        return max(answer, key=lambda p: (self.scores[p - 1], -p), default=-1)

    def arrays(self, rows: range) -> tuple[Any, Any, Any]:
        """Values, positions and labels of these rows, as an algorithm takes them."""
        values = np.array([self.scores[i] for i in rows], np.float64).reshape(-1, 1)
        labels = np.array([self.labels[i] for i in rows], np.int64)
        return values, np.array(rows, np.int64) + 1, labels


def opened(algorithm: Any, stream: Ranked) -> Any:
    """The algorithm, ready for the stream."""
    return algorithm(1, stream.k, True, stream.length, stream.every)


def replay(algorithm: Any, stream: Ranked) -> Iterator[tuple[Any, int, int]]:
    """Push up to each stop; then the live algorithm, the rows seen, the clock."""
    live, start = opened(algorithm, stream), 0
    for seen, clock in stream.stops:
        live.advance(clock)
        push(live, stream, range(start, seen))
        start = seen
        yield live, seen, clock


def push(live: Any, stream: Ranked, rows: range) -> set[int]:
    """Push rows, lending the arrays only; the positions that were taken."""
    arrays = stream.arrays(rows)
    taken = set(arrays[1][live.push(*arrays)].tolist())
    for array in arrays:
        array.fill(-99)
    return taken


# --------------------------------------------------------------------------------------
# Streams to try


@some.composite
def ranked(draw: some.DrawFn, timed: bool | None = None, longest: int = LONGEST) -> Ranked:
    """Any stream: rows by position or by time, slides that divide the window or not."""
    timed = draw(some.booleans()) if timed is None else timed
    every = draw(some.integers(1, 5))
    length = draw(some.none() | some.integers(every, max(every, longest)))
    labels = draw(times() if timed else some.integers(0, 40).map(lambda m: [*range(1, m + 1)]))
    values = some.lists(coordinates, min_size=len(labels), max_size=len(labels))
    trend = draw(some.sampled_from([0.0, 0.0, 1.0, -0.5]))  # falling, rising and level scores
    scores = [score + trend * i for i, score in enumerate(draw(values))]
    stops = draw(stops_of(labels, every))
    return Ranked(scores, labels, stops, draw(some.integers(1, 4)), length, every)


@some.composite
def times(draw: some.DrawFn) -> list[int]:
    """Times that tie and leap."""
    start = draw(some.integers(-20, 20))
    return list(accumulate(draw(some.lists(pauses, max_size=40)), initial=start))[1:]


@some.composite
def stops_of(draw: some.DrawFn, labels: list[int], every: int) -> list[tuple[int, int]]:
    """Clocks, multiples of ``every``, and the rows that have come by then.

    Of the rows that bear the clock itself as label some may come in a push of their own.
    """
    first, final = (labels[0], labels[-1]) if labels else (0, 0)
    least, most = first // every, final // every + 3
    clocks = sorted(draw(some.lists(some.integers(least, most), max_size=8)))
    stops: list[tuple[int, int]] = []
    for clock in (every * c for c in clocks):
        due = sum(label <= clock for label in labels)
        split = draw(some.integers(sum(label < clock for label in labels), due))
        seen = max(split, stops[-1][0] if stops else 0)
        stops += [(seen, clock), (due, clock)]
    return stops
