"""Pairs of score and row in two arrays: a heap with the best on top, selection and sorting.

Smaller scores are better, and of equal scores the greater row: rows are numbered by arrival, so that
no two pairs are equal.  A heap with the *worst* on top holds ``-score`` and ``-row``.
"""

from __future__ import annotations

from typing import NamedTuple

from skytide.kernel import inlined, kernel, part
from skytide.structures.blocks import Floats, Ints

FEW = 12
"""So many pairs are sorted by insertion."""


class Scored(NamedTuple):
    """The caller counts how many pairs are in use."""

    scores: Floats
    rows: Ints


@inlined
def better(score: float, row: int, other: float, other_row: int) -> bool:
    """Is the first pair the better one?  Without a branch, which would often be guessed wrong."""
    return (score < other) | ((score == other) & (row > other_row))


@kernel
def push(heap: Scored, size: int, score: float, row: int) -> int:
    """Add a pair to a heap with the best on top; the new size.  O(log size).

    >>> import numpy as np
    >>> heap = Scored(np.zeros(4), np.zeros(4, np.int64))
    >>> size = push(heap, push(heap, 0, 0.5, 1), 0.5, 2)
    >>> int(heap.rows[0]), pop(heap, size), int(heap.rows[0])
    (2, 1, 1)
    """
    scores, rows = heap
    at = size
    while at > 0:
        above = (at - 1) // 2
        if not better(score, row, scores[above], rows[above]):
            break
        scores[at], rows[at] = scores[above], rows[above]
        at = above
    scores[at], rows[at] = score, row
    return size + 1


@kernel
def pop(heap: Scored, size: int) -> int:
    """Drop the best pair of a heap; the new size.  O(log size)."""
    size -= 1
    sink(heap, size, 0, heap.scores[size], heap.rows[size])
    return size


@part
def sink(heap: Scored, size: int, at: int, score: float, row: int) -> None:
    """Put a pair at this place of a heap, or as far below it as it belongs."""
    scores, rows = heap
    child = 2 * at + 1
    while child < size:
        if child + 1 < size:
            child += better(scores[child + 1], rows[child + 1], scores[child], rows[child])
        if not better(scores[child], rows[child], score, row):
            break
        scores[at], rows[at] = scores[child], rows[child]
        at, child = child, 2 * child + 1
    scores[at], rows[at] = score, row


@part
def make_heap(heap: Scored, size: int) -> None:
    """Order any pairs as a heap with the best on top.  O(size)."""
    for at in range(size // 2 - 1, -1, -1):
        sink(heap, size, at, heap.scores[at], heap.rows[at])


@inlined
def swap(pairs: Scored, i: int, j: int) -> None:
    """Exchange two pairs."""
    scores, rows = pairs
    scores[i], scores[j] = scores[j], scores[i]
    rows[i], rows[j] = rows[j], rows[i]


@part
def sort(pairs: Scored, size: int, wanted: int) -> None:
    """Bring the ``wanted`` best to the front, the best first.  O(size + wanted log wanted) expected.

    Quicksort; where parts end is noted behind the pairs, so there must be twice as much room.  What
    comes in order, or the other way round, is told at once.
    """
    if _in_order(pairs, size):
        return
    low, top = 0, size
    pairs.rows[top] = size
    while top >= size and low < wanted:
        high = pairs.rows[top]
        if high - low <= FEW:
            _insert(pairs, low, high)
            low = high + 1
            top -= 1
        else:
            top += 1
            pairs.rows[top] = _split(pairs, low, high)


@inlined
def _in_order(pairs: Scored, size: int) -> bool:
    """Are they the best first?  The worst first they are turned round."""
    scores, rows = pairs
    rising = 0
    for i in range(1, size):
        rising += better(scores[i - 1], rows[i - 1], scores[i], rows[i])
    if rising == 0:
        for at in range(size // 2):
            swap(pairs, at, size - 1 - at)
    return rising == 0 or rising == size - 1


@inlined
def _insert(pairs: Scored, low: int, high: int) -> None:
    """Order a few pairs by insertion."""
    scores, rows = pairs
    for i in range(low + 1, high):
        score, row, at = scores[i], rows[i], i
        while at > low and better(score, row, scores[at - 1], rows[at - 1]):
            scores[at], rows[at] = scores[at - 1], rows[at - 1]
            at -= 1
        scores[at], rows[at] = score, row


@inlined
def _split(pairs: Scored, low: int, high: int) -> int:
    """Part them by the middle one, better ones first; where it is then.

    Each pair is moved whether it is better or not: a branch would be guessed wrong every other time,
    and sorting by a heap took twice as long.
    """
    scores, rows = pairs
    middle, last = (low + high) // 2, high - 1
    score, row = scores[middle], rows[middle]
    scores[middle], rows[middle] = scores[last], rows[last]
    at = low
    for i in range(low, last):
        one, its_row = scores[i], rows[i]
        scores[i], rows[i] = scores[at], rows[at]
        scores[at], rows[at] = one, its_row
        at += better(one, its_row, score, row)
    scores[last], rows[last] = scores[at], rows[at]
    scores[at], rows[at] = score, row
    return at


@part
def select(pairs: Scored, size: int, wanted: int) -> None:
    """Bring the ``wanted`` best to the front, the worst of them last of all.  O(size) expected.

    The paper's *median search*; the pivot is the middle one, so runs that come sorted cost no more.
    """
    low, high = 0, size
    while True:
        at = _split(pairs, low, high)
        if at == wanted - 1:
            return
        if at < wanted:
            low = at + 1
        else:
            high = at
