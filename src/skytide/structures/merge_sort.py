"""Merge sort that makes use of the order there is: rows by score, equal scores in the order given.

Stretches that ascend, or descend strictly, are taken as they are; short ones are made longer by
insertion.  Neighbours are merged until one is left.  So sorted and reversed rows cost O(1) each, and
the worst that there is costs O(log(rows / 16)) each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skytide.kernel import inlined, part
from skytide.structures.blocks import Floats, Ints

LEAST = 16
"""Rows of a stretch to merge."""


class Sorting(NamedTuple):
    """Rows to be sorted, and as much room again; ``starts`` has room for one in LEAST, and two."""

    scores: Floats
    rows: Ints
    other_scores: Floats
    other_rows: Ints
    starts: Ints


def empty_sorting(rows: int) -> Sorting:
    """Room for so many rows.

    >>> len(empty_sorting(32).starts)
    4
    """
    scores, others = np.zeros((2, rows))
    return Sorting(
        scores,
        np.zeros(rows, np.int64),
        others,
        np.zeros(rows, np.int64),
        np.zeros(rows // LEAST + 2, np.int64),
    )


@part
def sort(s: Sorting, size: int) -> None:
    """Sort the first so many rows."""
    runs = _runs(s, size)
    swapped = False
    while runs > 1:
        runs = _merge_pairs(s, runs, swapped)
        swapped = not swapped
    if swapped:
        for i in range(size):
            s.scores[i], s.rows[i] = s.other_scores[i], s.other_rows[i]


@part
def _runs(s: Sorting, size: int) -> int:
    """Find or make sorted stretches; how many.  They begin at ``starts``, and the last ends there."""
    runs, start = 0, 0
    while start < size:
        s.starts[runs] = start
        runs += 1
        end = _ascending(s, start, size)
        if end - start < LEAST:
            end = _insert_up_to(s, start, end, min(size, start + LEAST))
        start = end
    s.starts[runs] = size
    return runs


@inlined
def _ascending(s: Sorting, start: int, size: int) -> int:
    """Where the stretch ends that begins here; one that descends is turned round."""
    end = start + 1
    if end < size and s.scores[end] < s.scores[start]:
        while end < size and s.scores[end] < s.scores[end - 1]:
            end += 1
        i, j = start, end - 1
        while i < j:
            s.scores[i], s.scores[j] = s.scores[j], s.scores[i]
            s.rows[i], s.rows[j] = s.rows[j], s.rows[i]
            i, j = i + 1, j - 1
        return end
    while end < size and s.scores[end] >= s.scores[end - 1]:
        end += 1
    return end


@inlined
def _insert_up_to(s: Sorting, start: int, end: int, stop: int) -> int:
    """Insert the rows from ``end`` on into the stretch before them."""
    for i in range(end, stop):
        score, row, at = s.scores[i], s.rows[i], i
        while at > start and s.scores[at - 1] > score:
            s.scores[at], s.rows[at] = s.scores[at - 1], s.rows[at - 1]
            at -= 1
        s.scores[at], s.rows[at] = score, row
    return stop


@part
def _merge_pairs(s: Sorting, runs: int, swapped: bool) -> int:
    """Merge each stretch with the next one, from one pair of arrays to the other; how many remain."""
    left = 0
    for run in range(0, runs, 2):
        start, end = s.starts[run], s.starts[min(run + 2, runs)]
        middle = s.starts[run + 1]
        if swapped:
            _merge(s.other_scores, s.other_rows, s.scores, s.rows, start, middle, end)
        else:
            _merge(s.scores, s.rows, s.other_scores, s.other_rows, start, middle, end)
        s.starts[left] = start
        left += 1
    s.starts[left] = s.starts[runs]
    return left


@inlined
def _merge(
    scores: Floats, rows: Ints, to_scores: Floats, to_rows: Ints, start: int, middle: int, end: int
) -> None:
    i, j, at = start, middle, start
    while i < middle and j < end:  # without a branch that nobody can foretell: saves half the time
        second = scores[j] < scores[i]
        to_scores[at] = scores[j] if second else scores[i]
        to_rows[at] = rows[j] if second else rows[i]
        i, j, at = i + 1 - second, j + second, at + 1
    while i < middle:
        to_scores[at], to_rows[at] = scores[i], rows[i]
        i, at = i + 1, at + 1
    while j < end:
        to_scores[at], to_rows[at] = scores[j], rows[j]
        j, at = j + 1, at + 1
