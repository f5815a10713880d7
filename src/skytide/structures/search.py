"""Search in plain arrays: among ascending labels by galloping, among scores 16 at a time.

The loops of 16 steps are unrolled and become SIMD; counting in a loop of 256 took 12 times as long.
Places are made unsigned where they are used: with places that could be negative, for all that the
compiler knows, each look takes twice as long.
"""

from __future__ import annotations

import numpy as np

from skytide.kernel import inlined, part
from skytide.structures.blocks import Floats, Ints


@inlined
def first_after(labels: Ints, start: int, label: int) -> int:
    """The first place from ``start`` on with a greater label: O(log of how far that is).

    Where labels go up by one it is found at once.
    """
    low, step, rows = start, 1, labels.shape[0]
    if start < rows:
        there = start + max(0, min(label - labels[start] + 1, rows - start))
        if (there == rows or labels[there] > label) and (
            there == start or labels[there - 1] <= label
        ):
            return there
    while low + step <= rows and labels[low + step - 1] <= label:
        low += step
        step *= 2
    high = min(low + step, rows + 1) - 1
    while low < high:
        middle = (low + high) // 2
        if labels[middle] <= label:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def first_up_to(scores: Floats, start: int, stop: int, bar: float) -> int:
    """The first place in a stretch with a score no greater than the bar, or ``stop``.

    The first is tried alone, for the sake of rising scores, all of which are as good.
    """
    row = start
    if row < stop and scores[row] <= bar:
        return row
    while row + 16 <= stop:
        found = False
        for i in range(16):
            found |= scores[np.uint64(row) + np.uint64(i)] <= bar
        if found:
            break
        row += 16
    while row < stop and scores[row] > bar:
        row += 1
    return row


@inlined
def first_over(scores: Floats, start: int, stop: int, bar: float) -> int:
    """The first place in a stretch with a score greater than the bar, or ``stop``."""
    row = start
    if row < stop and scores[row] > bar:
        return row
    while row + 16 <= stop:
        found = False
        for i in range(16):
            found |= scores[np.uint64(row) + np.uint64(i)] > bar
        if found:
            break
        row += 16
    while row < stop and scores[row] <= bar:
        row += 1
    return row


@inlined
def last_under(scores: Floats, start: int, stop: int, bar: float) -> int:
    """The last place in a stretch with a score less than the bar, or ``start - 1``."""
    row = stop - 1
    while row >= start + 15:
        found = False
        for i in range(16):
            found |= scores[np.uint64(row) - np.uint64(i)] < bar
        if found:
            break
        row -= 16
    while row >= start and scores[row] >= bar:
        row -= 1
    return row


@part
def count_up_to(scores: Floats, start: int, stop: int, bar: float) -> int:
    """How many scores of a stretch are no greater than the bar."""
    found = 0
    for i in range(stop - start):
        found += scores[np.uint64(start) + np.uint64(i)] <= bar
    return found


@inlined
def greatest(scores: Floats, start: int, stop: int) -> float:
    """The greatest score of a stretch; four at a time, or one would wait for the other."""
    a = b = c = d = scores[start]
    row = start
    while row + 4 <= stop:
        at = np.uint64(row)
        a, b = max(a, scores[at]), max(b, scores[at + np.uint64(1)])
        c, d = max(c, scores[at + np.uint64(2)]), max(d, scores[at + np.uint64(3)])
        row += 4
    while row < stop:
        a = max(a, scores[row])
        row += 1
    return max(max(a, b), max(c, d))


@inlined
def end_of_rise(scores: Floats, start: int, stop: int) -> int:
    """One past the stretch from ``start`` on in which each score is as good as the one before it."""
    row = start + 1
    if row < stop and scores[row] > scores[start]:
        return row
    while row + 16 <= stop:
        found, at = False, np.uint64(row)
        for i in range(16):
            found |= scores[at + np.uint64(i)] > scores[at - np.uint64(1) + np.uint64(i)]
        if found:
            break
        row += 16
    while row < stop and scores[row] <= scores[row - 1]:
        row += 1
    return min(row, stop)


@inlined
def falls(scores: Floats, start: int, stop: int) -> bool:
    """Is each score of a stretch worse than the one before it?"""
    row = start + 1
    while row < stop:
        found, end, at = 0, min(row + 256, stop), np.uint64(row)
        for i in range(end - row):
            found += scores[at + np.uint64(i)] <= scores[at - np.uint64(1) + np.uint64(i)]
        if found > 0:
            return False
        row = end
    return True
