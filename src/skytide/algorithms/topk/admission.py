"""Which rows of a batch may ever be in a top k: one comparison for nearly every row.

A row that k younger rows of its own batch beat is in no answer, now or ever.  Going from the youngest
row to the oldest, the k-th best score so far is a bar that only falls: a row as high as the bar has k
younger rows that beat it (an equal one does, being younger), a row under it is admitted and may lower
it.  Of m rows in random order about k ln(m / k) are admitted, so nearly all are compared with a
constant, 16 at a time, and nothing else: 0.3 ns a row, as fast as memory gives them.

To know the k-th best exactly after each admitted row takes a heap, 50 ns a row for k = 1,000.  Here the
bar is lowered only when k / 4 more have been admitted, by selection, for a tenth more rows.
"""

from __future__ import annotations

import numpy as np

from skytide.kernel import inlined, kernel, part
from skytide.structures.blocks import Floats, Ints


def admitted(scores: Floats, k: int, sign: int = 1) -> Ints:
    """The indices, ascending, of all scores that fewer than k later ones beat, and of some others.

    Smaller is better, with ``sign`` -1 greater, and of equal scores the later.  Nothing at all is
    admitted if any score is NaN.  O(m + a) expected for m scores of which a are admitted.

    >>> admitted(np.array([1.0, 3.0, 2.0, 2.0]), k=1)
    array([0, 3])
    """
    if k >= len(scores):
        return np.arange(0 if np.isnan(scores).any() else len(scores))
    return admit(scores, float(sign), np.empty(k + max(k // 2, 32)), k)


@kernel
def admit(scores: Floats, sign: float, best: Floats, k: int) -> Ints:
    """``admitted``; ``best`` has room for more than k scores, and gives the bar whenever it is full.

    The first bar comes from the first k.
    """
    size, free, filled = k, scores.shape[0], 0
    out = np.empty(free, np.int64)
    row, bar, known = free - 1, np.inf, False
    while row >= 0:
        score = sign * scores[row]
        if np.isnan(score):
            return out[:0].copy()
        free -= 1
        out[free] = row
        best[filled] = score
        filled += 1
        if filled == size:
            bar, filled, known = kth_best(best, filled, k), k, True
            size = best.shape[0]
        row = last_under(scores, row, 0, bar, sign) if known else row - 1
    return out[free:].copy()


@inlined
def last_under(scores: Floats, stop: int, start: int, bar: float, sign: float) -> int:
    """The last place from ``start`` to ``stop`` with a score under the bar, or NaN; else ``start - 1``.

    The loop of 16 steps is unrolled and becomes SIMD; counting in a loop of 256 took 12 times as long.
    """
    row = stop - 1
    while row >= start + 15:
        found = False
        for i in range(16):
            found |= not sign * scores[row - i] >= bar
        if found:
            break
        row -= 16
    while row >= start and sign * scores[row] >= bar:
        row -= 1
    return row


@part
def kth_best(scores: Floats, size: int, k: int) -> float:
    """The k-th best of some scores, which change places.  O(size) expected.

    Quickselect; the partition has no branch that nobody can foretell, which takes a third of the time.
    """
    low, high = 0, size
    while True:
        pivot = scores[(low + high) // 2]
        middle = low
        for i in range(low, high):
            score = scores[i]
            scores[i], scores[middle] = scores[middle], score
            middle += score < pivot
        if k <= middle:
            high = middle
            continue
        low = middle
        for i in range(low, high):
            score = scores[i]
            scores[i], scores[middle] = scores[middle], score
            middle += score == pivot
        if k <= middle:
            return pivot
        low = middle
