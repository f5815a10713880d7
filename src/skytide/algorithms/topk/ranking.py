"""What the top-k algorithms that are fed row by row have in common; the work is done by their kernels.

A *feed* kernel goes through clocks and rows together: to each clock it moves, takes in the rows with
labels up to it, and tells the worst row of the answer.  That is ``each``; ``push`` and ``advance`` are
the same with one clock.  A kernel that lacks room says so, is given more, and goes on where it was.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from skytide.algorithms.sliding.protocol import Floats, Ints
from skytide.algorithms.topk.slides import refuse_other_lengths, refuse_other_questions
from skytide.kernel import part

ROW, TURN = 0, 1  # what ``done`` holds: the next row, the next clock

NEVER = -(2**62)
"""The clock before it was first moved, and where a window without end starts; half of what int64 holds,
so that adding a length to it does no harm."""


@part
def start_of(clock: int, length: int) -> int:
    """The greatest label that counts no more; ``length`` 0 means that all rows count."""
    return clock - length if length > 0 else NEVER


class Ranking:
    """A top-k algorithm: state, and kernels that feed and ask it."""

    any_length: ClassVar[bool] = False
    any_k: ClassVar[bool] = True
    history: ClassVar[bool] = False
    ranking: ClassVar[bool] = True

    def __init__(self, dims: int, k: int, newest: bool, length: int | None, every: int = 1) -> None:
        refuse_other_questions(type(self).__name__, dims, newest)
        self._k, self._length, self._every = k, length, every
        self._clock = NEVER
        self._state = self._empty()

    def advance(self, clock: int) -> None:
        """Move the clock; see the protocol."""
        none = np.zeros(0, np.int64)
        self._run(np.zeros((0, 1)), none, none, np.array([clock]))

    def push(self, values: Floats, positions: Ints, labels: Ints) -> Ints:
        """Add rows; see the protocol."""
        self._run(values, positions, labels, np.array([self._clock]))
        return np.flatnonzero(labels > self._start())

    def each(self, values: Floats, positions: Ints, labels: Ints, clocks: Ints) -> Ints:
        """Go through slides one by one; see the protocol."""
        return self._run(values, positions, labels, clocks)

    def _run(self, values: Floats, positions: Ints, labels: Ints, clocks: Ints) -> Ints:
        told, done = np.full(len(clocks), -1), np.zeros(2, np.int64)
        scores = values.reshape(-1)
        while need := self._feed(scores, positions, labels, clocks, told, done):
            self._grow(need)
        if len(clocks):
            self._clock = int(clocks[-1])
        return told

    def _start(self) -> int:
        return NEVER if self._length is None else self._clock - self._length

    def answer(self, length: int | None) -> Ints:
        """The positions, ascending, of the k best rows of the window."""
        refuse_other_lengths(type(self).__name__, self._length, length)
        return np.sort(self._best())

    # -- what an algorithm says for itself ---------------------------------------------------------

    def _empty(self) -> Any:
        """The state before the first row."""
        raise NotImplementedError

    def _feed(self, *arrays: Any) -> int:
        """Call the feed kernel; what it lacks, or 0."""
        raise NotImplementedError

    def _grow(self, need: int) -> None:
        """Give it what it lacks."""
        raise NotImplementedError

    def _best(self) -> Ints:
        """The positions of the answer, in any order."""
        raise NotImplementedError


def bytes_of(state: Any) -> int:
    """The memory of all arrays of a state."""
    if isinstance(state, tuple):
        return sum(bytes_of(one) for one in state)
    return int(state.nbytes)
