"""A heap of scored rows with the worst on top: greater scores are worse, of equal ones the older row.

``order`` is what ages are told by: positions, or anything else that grows with them.  A heap of negated
scores and positions has the best on top.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skytide.kernel import inlined, part
from skytide.structures.blocks import Floats, Ints


class ScoreHeap(NamedTuple):
    """``scores[0]`` and ``order[0]`` are the top."""

    scores: Floats
    order: Ints
    size: Ints  # (1,)


def empty_heap(room: int) -> ScoreHeap:
    """Room for so many rows.

    >>> empty_heap(3).scores.shape
    (3,)
    """
    return ScoreHeap(np.zeros(room), np.zeros(room, np.int64), np.zeros(1, np.int64))


@inlined
def worse(score: float, order: int, other: float, order_of_other: int) -> bool:
    """Is the first row worse than the second?"""
    return score > other or (score == other and order < order_of_other)


@inlined
def push(heap: ScoreHeap, score: float, order: int) -> None:
    """Add a row.  O(log size)."""
    at = heap.size[0]
    heap.size[0] += 1
    while at > 0:
        parent = (at - 1) // 2
        if not worse(score, order, heap.scores[parent], heap.order[parent]):
            break
        heap.scores[at], heap.order[at] = heap.scores[parent], heap.order[parent]
        at = parent
    heap.scores[at], heap.order[at] = score, order


@inlined
def replace_top(heap: ScoreHeap, score: float, order: int) -> None:
    """Drop the worst row and add another.  O(log size)."""
    sift_down(heap, 0, score, order)


@inlined
def pop(heap: ScoreHeap) -> None:
    """Drop the worst row.  O(log size)."""
    heap.size[0] -= 1
    last = heap.size[0]
    if last > 0:
        sift_down(heap, 0, heap.scores[last], heap.order[last])


@inlined
def sift_down(heap: ScoreHeap, at: int, score: float, order: int) -> None:
    """Let a row sink to where it belongs, from a place that is free."""
    size = heap.size[0]
    child = 2 * at + 1
    while child < size:
        if child + 1 < size and worse(
            heap.scores[child + 1], heap.order[child + 1], heap.scores[child], heap.order[child]
        ):
            child += 1
        if not worse(heap.scores[child], heap.order[child], score, order):
            break
        heap.scores[at], heap.order[at] = heap.scores[child], heap.order[child]
        at, child = child, 2 * child + 1
    heap.scores[at], heap.order[at] = score, order


@part
def heapify(heap: ScoreHeap) -> None:
    """Make a heap of rows in any order.  O(size)."""
    for at in range(heap.size[0] // 2 - 1, -1, -1):
        sift_down(heap, at, heap.scores[at], heap.order[at])


@inlined
def offer(heap: ScoreHeap, score: float, order: int) -> None:
    """Keep a row older than all if it is among the best that the heap has room for."""
    if heap.size[0] < heap.scores.shape[0]:
        push(heap, score, order)
    elif score < heap.scores[0]:
        replace_top(heap, score, order)
