"""The lazy heap: what a Python programmer writes today, two ``heapq`` heaps with lazy deletion.

One heap holds the answer with its worst row on top, the other all other rows with the best on top.  A
row that has left the window is left lying until it comes to the top, or until heaps are mostly litter.
No kernels, and every row is kept: a yardstick.  O(log n) a row.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Any

import numpy as np

from skytide.algorithms.sliding.protocol import Ints
from skytide.algorithms.topk.ranking import NEVER, Ranking

_ROW_BYTES = 250
"""About what Python spends on a row: three tuples, a float, two ints, places in heaps and sets."""


class LazyHeap(Ranking):
    """The window, as Python objects.

    >>> recent = LazyHeap(dims=1, k=2, newest=True, length=4)
    >>> recent.advance(5)
    >>> recent.push(np.array([[1.0], [5.0], [2.0], [3.0], [4.0]]), *2 * [np.arange(1, 6)])
    array([1, 2, 3, 4])
    >>> recent.answer(4)
    array([3, 4])
    """

    def _empty(self) -> None:
        self._rows: deque[tuple[int, int]] = deque()  # label, position
        self._inside: set[int] = set()  # positions of the rows of the answer
        self._answer: list[tuple[float, int, int]] = []
        self._rest: list[tuple[float, int, int]] = []

    def _slide(self, clock: int) -> None:
        start = NEVER if self._length is None else clock - self._length
        while self._rows and self._rows[0][0] <= start:
            self._inside.discard(self._rows.popleft()[1])
        while len(self._inside) < self._k and self._rest:
            score, position, label = heapq.heappop(self._rest)
            if label > start:
                self._enter(score, -position, label)
        for heap in (self._answer, self._rest):
            if len(heap) > 2 * len(self._rows) + 64:
                heap[:] = [row for row in heap if row[2] > start]
                heapq.heapify(heap)

    def _enter(self, score: float, position: int, label: int) -> None:
        heapq.heappush(self._answer, (-score, position, label))
        self._inside.add(position)
        while len(self._inside) > self._k:
            score, position, label = heapq.heappop(self._answer)
            if position in self._inside:
                self._inside.remove(position)
                heapq.heappush(self._rest, (-score, -position, label))

    def _worst(self) -> int:
        while self._answer and self._answer[0][1] not in self._inside:
            heapq.heappop(self._answer)
        return self._answer[0][1] if self._answer else -1

    def _feed(self, *arrays: Any) -> int:
        scores, positions, labels, clocks, told, _ = arrays
        rows = list(zip(scores.tolist(), positions.tolist(), labels.tolist(), strict=True))
        row = 0
        for turn, clock in enumerate(clocks.tolist()):
            self._slide(clock)
            while row < len(rows) and rows[row][2] <= clock:
                score, position, label = rows[row]
                if self._length is None or label > clock - self._length:
                    self._rows.append((label, position))
                    self._enter(score, position, label)
                row += 1
            told[turn] = self._worst()
        return 0

    def _best(self) -> Ints:
        return np.array(list(self._inside), np.int64)

    def __len__(self) -> int:
        return len(self._rows)

    def kept(self) -> Ints:
        """The window."""
        return np.array([position for _, position in self._rows], np.int64)

    def stats(self) -> dict[str, Any]:
        """Candidates: the whole window.  Its memory is an estimate."""
        return {"candidates": len(self._rows), "bytes": _ROW_BYTES * len(self._rows)}
