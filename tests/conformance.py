"""What every sliding-window algorithm is tried with; ``test_conformance.py`` says what must hold.

An algorithm is held to all of it by its line in the table of algorithms.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from hypothesis import strategies as some
from numba.core import config

import oracles
from skytide.choices import ALGORITHMS

SLIDING: list[Any] = [
    made
    for made in (line.load() for line in ALGORITHMS.values())
    if not getattr(made, "ranking", 0)
]

JIT = not config.DISABLE_JIT
EXAMPLES = 100 if JIT else 10
"""How many streams are drawn for each test of each algorithm."""

LONGEST = 12
"""Windows are this long at most, so that rows expire all the time."""

Row = tuple[float, ...]


@dataclass(frozen=True)
class Batch:
    """Rows that are pushed together once the clock stands at ``clock``."""

    rows: list[Row]
    labels: list[int]
    clock: int


@dataclass(frozen=True)
class Stream:
    """Batches, and the question asked of them."""

    batches: list[Batch]
    dims: int
    k: int
    newest: bool
    length: int | None


@dataclass(frozen=True)
class Moment:
    """All that has been pushed so far: what the oracles need to know."""

    rows: list[Row]
    labels: list[int]
    clock: int
    taken: set[int]  # the positions of the rows that the algorithm said it may need

    def window(self, length: int | None) -> oracles.Window:
        """The rows of the window of this length."""
        if length is None:
            return oracles.everything(len(self.rows))
        return oracles.recent(self.labels, length, self.clock)

    def window_between(self, younger: int, older: int) -> oracles.Window:
        """The rows whose label lies so far behind the clock, ``older`` itself not included."""
        return oracles.recent_between(self.labels, younger, older, self.clock)

    def answer(self, stream: Stream, window: oracles.Window) -> oracles.Answer:
        """The truth."""
        return oracles.skyband(self.rows, window, stream.k, stream.newest)


def replay(
    algorithm: Any, stream: Stream, each: bool = False, pickled: bool = False
) -> Iterator[tuple[Any, Moment]]:
    """Push batch by batch; after each, the live algorithm and what it has been told.

    With ``each`` the clock goes through all labels instead of leaping to the end of the batch; with
    ``pickled`` what goes on is a copy that has been saved and loaded.
    """
    live = algorithm(stream.dims, stream.k, stream.newest, stream.length)
    rows: list[Row] = []
    labels: list[int] = []
    taken: set[int] = set()
    for batch in stream.batches:
        arrays = as_arrays(batch, stream.dims, first=len(rows) + 1)
        if each:
            live.push_each(*arrays)
            live.advance(batch.clock)
            taken.update(arrays[1].tolist())
        else:
            live.advance(batch.clock)
            taken.update(arrays[1][live.push(*arrays)].tolist())
        for array in arrays:  # they were only lent
            array.fill(-99)
        if pickled:
            live = pickle.loads(pickle.dumps(live))
        rows, labels = rows + batch.rows, labels + batch.labels
        yield live, Moment(rows, labels, batch.clock, taken)


def as_arrays(batch: Batch, dims: int, first: int) -> tuple[Any, Any, Any]:
    """Values, positions and labels as an algorithm takes them."""
    values = np.array(batch.rows, np.float64).reshape(-1, dims)
    return values, np.arange(first, first + len(values)), np.array(batch.labels, np.int64)


def says(positions: Any) -> oracles.Answer:
    """An algorithm's answer as the oracles give theirs."""
    assert positions.dtype == np.int64
    return positions.tolist()  # type: ignore[no-any-return]


# --------------------------------------------------------------------------------------
# Streams to try

# Few values, so that ties are common; 0.0 and -0.0 are the same.
coordinates = some.integers(0, 3).map(float) | some.sampled_from([-np.inf, -0.0, np.inf])

# Mostly no time passes or a little; now and then so much that all rows expire.
pauses = some.sampled_from([0, 0, 0, 0, 1, 1, 1, 2, 3, 7, 30])


def rows_of(dims: int) -> some.SearchStrategy[Row]:
    """One row."""
    return some.tuples(*[coordinates] * dims)


@some.composite
def counted(draw: some.DrawFn, dims: int) -> list[Batch]:
    """Batches whose labels are positions: the window is the last N rows."""
    sizes = draw(some.lists(some.integers(0, 1) | some.integers(0, 20), max_size=20))
    ends = list(accumulate(sizes))
    rows = draw(some.lists(rows_of(dims), min_size=sum(sizes), max_size=sum(sizes)))
    return [
        Batch(rows[end - size : end], list(range(end - size + 1, end + 1)), end)
        for size, end in zip(sizes, ends, strict=True)
    ]


@some.composite
def timed(draw: some.DrawFn, dims: int) -> list[Batch]:
    """Batches labelled by times that tie and leap; the clock may be past the last of them."""
    arrivals = some.lists(some.tuples(pauses, rows_of(dims)), max_size=12)
    now = draw(some.integers(-20, 20))
    batches = []
    for rows, wait in draw(some.lists(some.tuples(arrivals, pauses), max_size=10)):
        labels = list(accumulate((pause for pause, _ in rows), initial=now))[1:]
        now = max([now, *labels]) + wait
        batches.append(Batch([row for _, row in rows], labels, now))
    return batches


@some.composite
def streams(draw: some.DrawFn, algorithm: Any) -> Stream:
    """Any stream that the algorithm can be asked to follow."""
    dims = draw(some.integers(1, 4))
    return Stream(
        draw(counted(dims) | timed(dims)),
        dims,
        k=draw(some.integers(1, 3)) if algorithm.any_k else 1,
        newest=draw(some.booleans()),
        length=draw(some.none() | some.integers(1, LONGEST)),
    )


def long_stream(values: Any, length: int, k: int, newest: bool, timed: bool, seed: int) -> Stream:
    """Many rows in batches of all sizes, labelled by position or by times that tie and leap."""
    random = np.random.default_rng(seed)
    total, dims = values.shape
    labels = np.arange(1, total + 1)
    if timed:
        labels = np.cumsum(random.choice([0, 1, 2, length // 3], total, p=[0.5, 0.3, 0.195, 0.005]))
    batches, start = [], 0
    while start < total:
        end = min(total, start + int(random.choice([1, 2, 17, 64, 300])))
        rows = [tuple(row) for row in values[start:end].tolist()]
        batches.append(Batch(rows, labels[start:end].tolist(), int(labels[end - 1])))
        start = end
    return Stream(batches, dims, k, newest, length)
