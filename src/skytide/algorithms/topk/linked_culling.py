"""Two stacks with a linked front: of rows that end together only the best (``two_stacks_linked``)."""

from __future__ import annotations

import numpy as np

from skytide.algorithms.sliding.protocol import Floats, Ints
from skytide.algorithms.topk.admission import kth_best
from skytide.algorithms.topk.linked_log import write_down
from skytide.algorithms.topk.linked_state import EVERY, LENGTH, LOG, K, Linked, bar_of, offer
from skytide.algorithms.topk.slides import end
from skytide.kernel import inlined
from skytide.structures.search import first_after, first_up_to

MANY = 64
"""Of 64 k rows in random order some 7 k are kept, which costs about what keeping all does."""
PROBES = 16


@inlined
def end_of_slide(s: Linked, labels: Ints, row: int, clock: int) -> int:
    """One past the last row up to the clock that ends together with this one."""
    length = s.asked[LENGTH]
    edge = clock
    if length > 0:
        edge = min(edge, end(labels[row], length, s.asked[EVERY]) - length)
    return first_after(labels, row, edge)


@inlined
def is_culled(s: Linked, scores: Floats, row: int, stop: int) -> bool:
    """Does it pay to look for the k best of rows that end together?

    Of very many always; else if the first and the last k let few others pass, as they do where scores
    rise or fall.
    """
    k, between = s.asked[K], stop - row - 2 * s.asked[K]
    if between < 0 or stop - row >= MANY * k:
        return between >= 0
    bar = early_bar(scores, stop, k, bar_of_ends(scores, row, stop, k))
    passed, step = 0, between // PROBES + 1
    for probe in range(row + k, stop - k, step):
        passed += scores[probe] <= bar
    return 4 * step * passed <= between


@inlined
def take_best(s: Linked, scores: Floats, positions: Ints, labels: Ints, row: int, stop: int) -> int:
    """Take in rows that end together, but forget many that are not among their k best.

    The bar is lowered whenever k more rows have reached it.  Returns up to which row there was room.
    """
    k, last, filled, best = s.asked[K], stop - s.asked[K], 0, s.best
    bar = bar_of_ends(scores, row, stop, k)
    early = early_bar(scores, stop, k, bar)
    while row < stop and s.sizes[LOG] < s.log.scores.shape[0]:
        if row < last:
            row = first_up_to(scores, row, last, early)
        if row >= last:
            row = first_up_to(scores, row, stop, bar)
        if row < stop:
            write_down(s.log, s.sizes, scores, positions, labels, row, row + 1)
            if scores[row] <= bar_of(s):
                offer(s, scores[row], positions[row])
            best[filled] = scores[row]
            filled += 1
            if filled == 2 * k:
                bar, filled = min(bar, kth_best(best, filled, k)), k
                early = min(early, bar)
            row += 1
    return row


@inlined
def bar_of_ends(scores: Floats, row: int, stop: int, k: int) -> float:
    """A score that k of these rows reach: the first k do, or the last."""
    return min(worst_of(scores, row, row + k), worst_of(scores, stop - k, stop))


@inlined
def early_bar(scores: Floats, stop: int, k: int, bar: float) -> float:
    """If all of the last k rows reach the bar, those that are older have to be better."""
    if count_at_most(scores, stop - k, stop, bar) == k:
        return np.nextafter(bar, -np.inf)
    return bar


@inlined
def worst_of(scores: Floats, start: int, stop: int) -> float:
    """The greatest score, four at a time: one after the other they would wait for each other."""
    a = b = c = d = scores[start]
    row = start
    while row + 4 <= stop:
        a, b = max(a, scores[row]), max(b, scores[row + 1])
        c, d = max(c, scores[row + 2]), max(d, scores[row + 3])
        row += 4
    while row < stop:
        a = max(a, scores[row])
        row += 1
    return max(max(a, b), max(c, d))


@inlined
def count_at_most(scores: Floats, start: int, stop: int, bar: float) -> int:
    """How many scores are as good as the bar."""
    found = 0
    for row in range(start, stop):
        found += scores[row] <= bar
    return found
