"""Two stacks with a linked front: of rows that end together only the best (``two_stacks_linked``)."""

from __future__ import annotations

import numpy as np

from skytide.algorithms.sliding.protocol import Floats, Ints
from skytide.algorithms.topk.admission import kth_best
from skytide.algorithms.topk.linked_log import write_down
from skytide.algorithms.topk.linked_state import (
    EVERY,
    GUESS,
    LENGTH,
    LOG,
    K,
    Linked,
    bar_of,
    is_all_of_r,
    offer,
)
from skytide.algorithms.topk.slides import end
from skytide.kernel import inlined
from skytide.structures.search import (
    count_up_to,
    end_of_rise,
    first_after,
    first_over,
    first_up_to,
    greatest,
)
from skytide.structures.sorted_blocks import best_score, replace_by_better

FEW, SOME, MANY = 512, 4096, 8
"""Of rows that end together it pays to look for the k best whatever the scores do, if they are MANY
times k and SOME at least, or FEW at least and four times as many times k."""
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
def bars_of_slide(s: Linked, scores: Floats, row: int, stop: int) -> tuple[float, float]:
    """Scores that k of these rows reach, and the same for all but the last k; infinite if it does not
    pay to cull them.

    What the first and the last k reach lets few others pass where scores rise or fall.  Of very many
    rows the guess that comes from the slide before tells more, if k rows turn out to reach it.
    """
    k, between = s.asked[K], stop - row - 2 * s.asked[K]
    if between < 0:
        return np.inf, np.inf
    bar = bar_of_ends(scores, row, stop, k)
    early, guess = early_bar(scores, stop, k, bar), s.bars[GUESS]
    if stop - row >= max(FEW, MANY * k, min(4 * MANY * k, SOME)):
        if guess < early and count_up_to(scores, row, stop, guess) >= k:
            return guess, guess
        return bar, early
    passed, step = 0, between // PROBES + 1
    for probe in range(row + k, stop - k, step):
        passed += scores[probe] <= early
    return (bar, early) if 4 * step * passed <= between else (np.inf, np.inf)


@inlined
def take_best(
    s: Linked,
    scores: Floats,
    positions: Ints,
    labels: Ints,
    row: int,
    stop: int,
    bar: float,
    early: float,
) -> int:
    """Take in rows that end together, but forget many that are not among their k best.

    The bar is lowered whenever k more rows have reached it.  Returns up to which row there was room.
    """
    k, last, filled, best, former = s.asked[K], stop - s.asked[K], 0, s.best, bar
    while row < stop and s.sizes[LOG] < s.log.scores.shape[0]:
        limit, reach = (last, early) if row < last else (stop, bar)
        row = first_up_to(scores, row, limit, reach)
        room = s.log.scores.shape[0] - s.sizes[LOG]
        end = first_over(scores, row, min(limit, row + room), reach)
        take_all(s, scores, positions, labels, row, end, row)
        while row < end and bar < np.inf:
            best[filled] = scores[row]
            filled, row = filled + 1, row + 1
            if filled == 2 * k:
                former, bar, filled = bar, min(bar, kth_best(best, filled, k)), k
                early = min(early, bar)
        row = end
    if bar < np.inf:
        s.bars[GUESS] = bar if 4 * filled >= 5 * k else former  # so many rows reach the bar
    return row


@inlined
def take_all(
    s: Linked, scores: Floats, positions: Ints, labels: Ints, row: int, stop: int, hit: int
) -> bool:
    """Write rows down, and offer to the back, from ``hit`` on, what reaches its bar; does R change?"""
    write_down(s.log, s.sizes, scores, positions, labels, row, stop)
    moved = False
    while hit < stop:
        bar = bar_of(s)
        if scores[hit] > bar:
            hit = first_up_to(scores, hit, stop, bar)
        elif is_all_of_r(s) and scores[hit] <= best_score(s.inside):
            end = end_of_rise(scores, hit, stop)
            replace_by_better(s.inside, scores, positions, hit, end)
            moved, hit = True, end
        else:
            moved |= offer(s, scores[hit], positions[hit])
            hit += 1
    return moved


@inlined
def bar_of_ends(scores: Floats, row: int, stop: int, k: int) -> float:
    """A score that k of these rows reach: the first k do, or the last."""
    return min(greatest(scores, row, row + k), greatest(scores, stop - k, stop))


@inlined
def early_bar(scores: Floats, stop: int, k: int, bar: float) -> float:
    """If all of the last k rows reach the bar, those that are older have to be better."""
    if count_up_to(scores, stop - k, stop, bar) == k:
        return np.nextafter(bar, -np.inf)
    return bar
