"""Which rows of a batch may ever be in a top k: one comparison for nearly every row.

A row that k younger rows of its own batch beat is in no answer, now or ever.  Going from the youngest
row to the oldest, the k-th best score so far is a bar that only falls: a row as high as the bar has k
younger rows that beat it (an equal one does, being younger), a row under it is admitted and may lower
it.  Of m rows in random order about k ln(m / k) are admitted, so nearly all are compared with a
constant, ``STRIDE`` at a time, and nothing else.
"""

from __future__ import annotations

import numpy as np

from skytide.kernel import kernel, part
from skytide.structures.blocks import Floats, Ints

STRIDE = 256
"""Scores compared at one go.  From 64 to 1024 it makes no difference that could be measured."""


def admitted(scores: Floats, k: int) -> Ints:
    """The indices, ascending, of the scores that fewer than k later ones beat.

    Smaller is better, and of equal scores the later.  O(m + a log k) for m scores of which a are
    admitted.

    >>> admitted(np.array([1.0, 3.0, 2.0, 2.0]), k=1)
    array([0, 3])
    """
    if k >= len(scores):
        return np.arange(len(scores))
    return admit(scores, np.empty(k))


@kernel
def admit(scores: Floats, best: Floats) -> Ints:
    """``admitted``; ``best`` is room for the k best, kept as a heap with the worst on top."""
    k, rows = best.shape[0], scores.shape[0]
    out = np.empty(rows, np.int64)
    at = rows - k
    for i in range(k):
        out[at + i] = at + i
        best[i] = scores[at + i]
    for i in range(k // 2 - 1, -1, -1):
        sift_down(best, i)
    free = at
    end = at
    while end > 0:
        start = max(0, end - STRIDE)
        if any_under(scores, start, end, best[0]):
            for row in range(end - 1, start - 1, -1):
                if scores[row] < best[0]:
                    best[0] = scores[row]
                    sift_down(best, 0)
                    free -= 1
                    out[free] = row
        end = start
    return out[free:].copy()


@part
def any_under(scores: Floats, start: int, end: int, bar: float) -> bool:
    """Is any of these scores under the bar?  Counted without branches, so that it becomes SIMD."""
    found = 0
    for row in range(start, end):
        found += scores[row] < bar
    return found > 0


@part
def sift_down(heap: Floats, at: int) -> None:
    """Let a score that may be too small for its place sink."""
    value, size = heap[at], heap.shape[0]
    child = 2 * at + 1
    while child < size:
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= value:
            break
        heap[at] = heap[child]
        at, child = child, 2 * child + 1
    heap[at] = value
