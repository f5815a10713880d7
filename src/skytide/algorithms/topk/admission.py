"""Which rows of a batch may ever be in a top k: one comparison for nearly every row.

A row that k younger rows of its own batch beat is in no answer, now or ever.  Going from the youngest
row to the oldest, the k-th best score so far is a bar that only falls: a row as high as the bar has k
younger rows that beat it (an equal one does, being younger), a row under it is admitted and may lower
it.  Of m rows in random order about k ln(m / k) are admitted, so nearly all are compared with a
constant, 16 at a time, and nothing else: 0.3 ns a row, as fast as memory gives them.
"""

from __future__ import annotations

import numpy as np

from skytide.kernel import inlined, kernel, part
from skytide.structures.blocks import Floats, Ints


def admitted(scores: Floats, k: int, sign: int = 1) -> Ints:
    """The indices, ascending, of the scores that fewer than k later ones beat.

    Smaller is better, with ``sign`` -1 greater, and of equal scores the later.  Nothing at all is
    admitted if any score is NaN.  O(m + a log k) for m scores of which a are admitted.

    >>> admitted(np.array([1.0, 3.0, 2.0, 2.0]), k=1)
    array([0, 3])
    """
    if k >= len(scores):
        return np.arange(0 if np.isnan(scores).any() else len(scores))
    return admit(scores, float(sign), np.empty(k))


@kernel
def admit(scores: Floats, sign: float, best: Floats) -> Ints:
    """``admitted``; ``best`` is room for the k best, kept as a heap with the worst on top."""
    k, rows = best.shape[0], scores.shape[0]
    out = np.empty(rows, np.int64)
    free = rows - k
    for i in range(k):
        out[free + i] = free + i
        best[i] = sign * scores[free + i]
        if np.isnan(best[i]):
            return out[:0].copy()
    for i in range(k // 2 - 1, -1, -1):
        sift_down(best, i)
    row = last_under(scores, free, best[0], sign)
    while row >= 0:
        best[0] = sign * scores[row]
        if np.isnan(best[0]):
            return out[:0].copy()
        sift_down(best, 0)
        free -= 1
        out[free] = row
        row = last_under(scores, row, best[0], sign)
    return out[free:].copy()


@inlined
def last_under(scores: Floats, stop: int, bar: float, sign: float) -> int:
    """The last place before ``stop`` with a score under the bar, or with NaN; -1 if there is none.

    The loop of 16 steps is unrolled and becomes SIMD; counting in a loop of 256 took 12 times as long.
    """
    row = stop - 1
    while row >= 15:
        found = False
        for i in range(16):
            found |= not sign * scores[row - i] >= bar
        if found:
            break
        row -= 16
    while row >= 0 and sign * scores[row] >= bar:
        row -= 1
    return row


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
