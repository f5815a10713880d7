"""Pairs of score and row in two arrays: a heap with the best on top, selection and sorting.

Smaller scores are better, and of equal scores the greater row: rows are numbered by arrival, so that
no two pairs are equal.  A heap with the *worst* on top holds ``-score`` and ``-row``.
"""

from __future__ import annotations

from typing import NamedTuple

from skytide.kernel import inlined, kernel, part
from skytide.structures.blocks import Floats, Ints


class Scored(NamedTuple):
    """The caller counts how many pairs are in use."""

    scores: Floats
    rows: Ints


@inlined
def better(score: float, row: int, other: float, other_row: int) -> bool:
    """Is the first pair the better one?"""
    return score < other or (score == other and row > other_row)


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
        if child + 1 < size and better(
            scores[child + 1], rows[child + 1], scores[child], rows[child]
        ):
            child += 1
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
def sort(pairs: Scored, size: int) -> None:
    """Order the pairs best first.  O(size log size), by a heap; O(size) if they come in order."""
    scores, rows = pairs
    rising = 0
    for i in range(1, size):
        rising += better(scores[i - 1], rows[i - 1], scores[i], rows[i])
    if rising == size - 1:
        return
    if rising == 0:
        for at in range(size // 2):
            swap(pairs, at, size - 1 - at)
        return
    make_heap(pairs, size)
    for last in range(size - 1, 0, -1):
        score, row = scores[last], rows[last]
        scores[last], rows[last] = scores[0], rows[0]
        sink(pairs, last, 0, score, row)
    for at in range(size // 2):
        swap(pairs, at, size - 1 - at)


@part
def select(pairs: Scored, size: int, wanted: int) -> None:
    """Bring the ``wanted`` best to the front, the worst of them last of all.  O(size) expected.

    The paper's *median search*; the pivot is the middle one, so runs that come sorted cost no more.
    """
    scores, rows = pairs
    low, high = 0, size - 1
    while low < high:
        middle = (low + high) // 2
        score, row = scores[middle], rows[middle]
        i, j = low, high
        while i <= j:
            while better(scores[i], rows[i], score, row):
                i += 1
            while better(score, row, scores[j], rows[j]):
                j -= 1
            if i <= j:
                swap(pairs, i, j)
                i += 1
                j -= 1
        if wanted - 1 <= j:
            high = j
        elif wanted - 1 >= i:
            low = i
        else:
            return
