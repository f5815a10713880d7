"""Two stacks with a linked front: the log, and how it becomes the front (see ``two_stacks_linked``)."""

from __future__ import annotations

import numpy as np

from skytide.algorithms.topk.admission import kth_best
from skytide.algorithms.topk.linked_state import (
    AGE,
    BACK,
    CHOSEN,
    CURSOR,
    FRONT,
    HALTED,
    LENGTH,
    LOG,
    OUTSIDE,
    K,
    Linked,
    Log,
    take_next_best,
)
from skytide.algorithms.topk.ranking import NEVER
from skytide.kernel import inlined, part
from skytide.structures import sorted_blocks
from skytide.structures.blocks import Floats, Ints
from skytide.structures.merge_sort import sort
from skytide.structures.search import falls, last_under
from skytide.structures.sorted_blocks import ROWS

NEED_LOG, NEED_FRONT = 1, 2
SPARE = 16
"""The log has so many times the room of what is left of it when rows that no longer matter are thrown
out, or it would be looked through too often: with 4 a row costs a half more."""


@inlined
def write_down(
    log: Log, sizes: Ints, scores: Floats, positions: Ints, labels: Ints, row: int, stop: int
) -> None:
    """Append rows to the log."""
    to = sizes[LOG] - row
    sizes[LOG] += stop - row
    if stop - row < 8:
        for i in range(row, stop):
            log.scores[to + i], log.positions[to + i] = scores[i], positions[i]
            log.labels[to + i] = labels[i]
        return
    for i in range(row, stop):
        log.scores[to + i] = scores[i]
    for i in range(row, stop):
        log.positions[to + i] = positions[i]
    for i in range(row, stop):
        log.labels[to + i] = labels[i]


@part
def thinned(s: Linked, start: int) -> bool:
    """Throw out of the log rows with labels up to ``start``, and many that k younger ones beat.

    As in ``admission``: from the youngest to the oldest; whenever there are 2 k of the best so far, the
    k-th of them is the bar for all older ones.  False if the log should be larger.
    """
    log, sizes, best, k = s.log, s.sizes, s.best, s.asked[K]
    low, free, filled, bar, known = 0, sizes[LOG], 0, np.inf, False
    while low < sizes[LOG] and log.labels[low] <= start:
        low += 1
    row = sizes[LOG] - 1
    if falls(log.scores, low, sizes[LOG]):
        row, free = low - 1, low
    while row >= low:
        free -= 1
        best[filled] = log.scores[row]
        filled += 1
        if free != row:
            move(log, row, free)
        if filled == 2 * k:
            bar, filled, known = kth_best(best, filled, k), k, True
        row = last_under(log.scores, low, row, bar) if known else row - 1
    left = sizes[LOG] - free
    if free > 0:
        for i in range(left):
            move(log, free + i, i)
    sizes[LOG] = left
    return SPARE * left <= log.scores.shape[0]


@inlined
def move(log: Log, row: int, to: int) -> None:
    """Copy a row of the log."""
    log.scores[to] = log.scores[row]
    log.positions[to] = log.positions[row]
    log.labels[to] = log.labels[row]


@inlined
def next_to_leave(s: Linked) -> int:
    """The clock at which the next row leaves; far away if none does."""
    length, sizes = s.asked[LENGTH], s.sizes
    if sizes[HALTED] == 1:
        return NEVER
    if length == 0:
        return -NEVER
    if sizes[AGE] < sizes[FRONT]:
        return s.front.labels[sizes[AGE]] + length
    return s.log.labels[0] + length if sizes[LOG] > 0 else -NEVER


@inlined
def slide(s: Linked, start: int) -> int:
    """Drop the rows with labels up to ``start``; what is lacking, or 0."""
    pop_front(s, start)
    if s.sizes[HALTED] == 1 or (s.sizes[LOG] > 0 and s.log.labels[0] <= start):
        return turn_over(s, start)
    return 0


@inlined
def pop_front(s: Linked, start: int) -> None:
    """Unlink the rows of the front with labels up to ``start``, and fill R up again."""
    front, sizes = s.front, s.sizes
    while sizes[AGE] < sizes[FRONT] and front.labels[sizes[AGE]] <= start:
        row = front.by_age[sizes[AGE]]
        better, worse = front.better[row], front.worse[row]
        front.worse[better], front.better[worse] = worse, better
        sizes[AGE] += 1
        if row <= sizes[CURSOR]:
            sizes[CHOSEN] -= 1
            if row == sizes[CURSOR]:
                sizes[CURSOR] = better
    while sizes[CHOSEN] + s.inside.sizes[ROWS] < s.asked[K]:
        if not take_next_best(s):
            break


@part
def turn_over(s: Linked, start: int) -> int:
    """Make the log the front, without the rows with labels up to ``start``; what is lacking, or 0."""
    front, log, sorting, sizes = s.front, s.log, s.sorting, s.sizes
    thinned(s, start)
    rows = sizes[LOG]
    sizes[HALTED] = rows >= front.scores.shape[0]
    if sizes[HALTED] == 1:
        return NEED_FRONT
    for i in range(rows):  # from young to old, for of equal rows the younger is better
        sorting.scores[i], sorting.rows[i] = log.scores[rows - 1 - i], rows - 1 - i
    sort(sorting, rows)
    for i in range(rows):
        age, row = sorting.rows[i], i + 1
        front.scores[row], front.positions[row] = sorting.scores[i], log.positions[age]
        front.better[row], front.worse[row] = i, i + 2
        front.by_age[age] = row
    for i in range(rows):
        front.labels[i] = log.labels[i]
    front.better[0], front.worse[0] = rows, min(1, rows)
    front.worse[rows] = 0
    sizes[FRONT], sizes[AGE], sizes[LOG] = rows, 0, 0
    sizes[CURSOR] = sizes[CHOSEN] = min(rows, s.asked[K])
    sorted_blocks.clear(s.inside)
    sizes[OUTSIDE], s.bars[BACK] = 0, np.inf
    return 0
