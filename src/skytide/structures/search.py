"""Search in plain arrays: among ascending labels by galloping, among scores 16 at a time."""

from __future__ import annotations

from skytide.kernel import inlined
from skytide.structures.blocks import Floats, Ints


@inlined
def first_after(labels: Ints, start: int, label: int) -> int:
    """The first place from ``start`` on with a greater label: O(log of how far that is)."""
    low, step, rows = start, 1, labels.shape[0]
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

    The loop of 16 steps is unrolled and becomes SIMD; see ``admission.last_under``.
    """
    row = start
    while row + 16 <= stop:
        found = False
        for i in range(16):
            found |= scores[row + i] <= bar
        if found:
            break
        row += 16
    while row < stop and scores[row] > bar:
        row += 1
    return row


@inlined
def last_under(scores: Floats, start: int, stop: int, bar: float) -> int:
    """The last place in a stretch with a score less than the bar, or ``start - 1``."""
    row = stop - 1
    while row >= start + 15:
        found = False
        for i in range(16):
            found |= scores[row - i] < bar
        if found:
            break
        row -= 16
    while row >= start and scores[row] >= bar:
        row -= 1
    return row
