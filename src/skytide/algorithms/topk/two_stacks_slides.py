"""Two stacks with an undo log of slides: ``two_stacks_undo`` for slides of many rows.

Rows that end together need not be undone one by one.  Within a slide rows are taken in whichever order
promises fewer changes: from the end where the better score is, so that rising and falling scores cost a
comparison a row once k rows are in.  A row that drives out another of its own slide takes its place on
the front, and whatever was behind that; so a slide has at most k rows there, and is popped as a whole.

O(min(1, k / s) log k) amortised for a row of scores that rise or fall within a slide, a comparison or
two for a row that makes no difference.  Other than with ``two_stacks_undo``, rows may be dropped that a
window which begins in the middle of a slide would need.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from skytide.algorithms.sliding.protocol import Floats, Ints
from skytide.algorithms.topk.admission import sift_down
from skytide.algorithms.topk.ranking import NEVER, ROW, TURN, Ranking, start_of
from skytide.algorithms.topk.slides import end
from skytide.algorithms.topk.two_stacks_undo import (
    COUNT,
    FIRST,
    FRONT,
    LAST,
    LOG,
    SPARE,
    TwoStacksUndo,
    Undo,
    add,
    answer,
    enter_log,
    move,
    settle_best,
    settle_rest,
    take,
    worst,
)
from skytide.kernel import inlined, kernel, part
from skytide.structures.score_heap import pop, push, replace_top, worse


class TwoStacksSlides(TwoStacksUndo):
    """The k best of the window, and how to undo them slide by slide.

    What ``two_stacks_undo`` calls labels are here the clocks at which rows end.

    >>> recent = TwoStacksSlides(dims=1, k=2, newest=True, length=4, every=2)
    >>> recent.advance(6)
    >>> rows = np.array([[1.0], [5.0], [2.0], [3.0], [4.0], [6.0]])
    >>> recent.push(rows, *2 * [np.arange(1, 7)])
    array([2, 3, 4, 5])
    >>> recent.answer(4)
    array([3, 4])
    """

    any_length: ClassVar[bool] = False

    def answer(self, length: int | None) -> Ints:
        """The k best rows of the window.  O(k log k)."""
        return Ranking.answer(self, length)

    def _best(self) -> Ints:
        return answer(self._state)

    def kept(self) -> Ints:
        """The rows of the front and of the log."""
        return np.sort(super().kept())

    def _feed(self, *arrays: Any) -> int:
        return feed(self._state, self._every, *arrays)


@kernel
def feed(
    undo: Undo,
    every: int,
    scores: Floats,
    positions: Ints,
    labels: Ints,
    clocks: Ints,
    told: Ints,
    done: Ints,
) -> int:
    """See ``ranking``; all it can lack is room in the log."""
    return go_on(undo, every, scores, positions, labels, clocks, told, done)


@part
def go_on(
    undo: Undo,
    every: int,
    scores: Floats,
    positions: Ints,
    labels: Ints,
    clocks: Ints,
    told: Ints,
    done: Ints,
) -> int:
    """The work of ``feed``: a part, or references to arrays would be counted for each row."""
    log, sizes, length = undo.log, undo.sizes, undo.asked[1]
    last = worst(undo)
    for turn in range(done[TURN], clocks.shape[0]):
        start = start_of(clocks[turn], length)
        moved = slide(undo, clocks[turn])
        row = done[ROW]
        while row < scores.shape[0] and labels[row] <= clocks[turn]:
            if labels[row] <= start:
                row += 1
                continue
            if sizes[LOG] == log.scores.shape[0] and not shortened(undo):
                done[ROW], done[TURN] = row, turn
                return 1
            ends = end(labels[row], length, every) if length > 0 else -NEVER
            stop = row
            most = min(scores.shape[0], row + log.scores.shape[0] - sizes[LOG])
            edge = min(clocks[turn], ends - length)  # rows with labels up to it end together
            while stop < most and labels[stop] <= edge:
                enter_log(log, sizes[LOG] + stop - row, scores[stop], positions[stop], ends)
                stop += 1
            sizes[LOG] += stop - row
            moved |= take_all(undo, scores, positions, row, stop)
            row = stop
        done[ROW] = row
        if moved:
            last = worst(undo)
        told[turn] = last
    return 0


@inlined
def take_all(undo: Undo, scores: Floats, positions: Ints, start: int, stop: int) -> bool:
    """Offer rows that end together to the k best of the back; did any of them enter?"""
    back, moved = undo.back, False
    step = -1 if scores[stop - 1] <= scores[start] else 1  # of equal rows the younger first
    row = stop - 1 if step < 0 else start
    for _ in range(stop - start):
        if back.size[0] < undo.asked[0] or (
            scores[row] <= back.scores[0]
            and not worse(scores[row], positions[row], back.scores[0], back.order[0])
        ):
            take(undo, scores[row], positions[row])
            moved = True
        row += step
    return moved


@inlined
def slide(undo: Undo, clock: int) -> bool:
    """Pop the slides that end by this clock; turn the log over when it begins with one.  Any change?"""
    front, sizes = undo.front, undo.sizes
    moved = False
    while sizes[FRONT] > 0 and front.labels[sizes[FRONT] - 1] <= clock:
        undo_slide(undo)
        moved = True
    if sizes[LOG] > 0 and undo.log.labels[0] <= clock:
        turn_over(undo, clock)
        moved = True
    return moved


@part
def shortened(undo: Undo) -> bool:
    """Throw out of the log what k rows beat that end no earlier; False if it should be larger."""
    log, sizes, bar = undo.log, undo.sizes, undo.bar
    stop, filled, left = sizes[LOG], 0, 0
    while stop > 0:
        first = first_of_slide(log.labels, stop)
        step = 1 if log.scores[first] < log.scores[stop - 1] else -1
        row = first if step > 0 else stop - 1
        for _ in range(stop - first):
            score = log.scores[row]
            log.behind[row] = 1
            if filled < bar.shape[0]:
                bar[filled] = score
                filled += 1
                if filled == bar.shape[0]:
                    for i in range(filled // 2 - 1, -1, -1):
                        sift_down(bar, i)
            elif score < bar[0] or (score == bar[0] and step > 0):  # then it is the younger
                bar[0] = score
                sift_down(bar, 0)
            else:
                log.behind[row] = 0
            row += step
        stop = first
    for row in range(sizes[LOG]):
        if log.behind[row]:
            move(log, row, left)
            left += 1
    sizes[LOG] = left
    return SPARE * left <= log.scores.shape[0]


@part
def first_of_slide(ends: Ints, stop: int) -> int:
    """Where the rows begin that end together with the one before ``stop``."""
    first = stop - 1
    while first > 0 and ends[first - 1] == ends[stop - 1]:
        first -= 1
    return first


@part
def undo_slide(undo: Undo) -> None:
    """Pop the front's oldest slide; the rows behind it come back."""
    front, best, sizes = undo.front, undo.best, undo.sizes
    settle_best(undo)
    stop, youngest, inside = sizes[FRONT], NEVER, 0
    first = stop - 1
    ends = front.labels[first]
    while first >= 0 and front.labels[first] == ends:
        youngest = max(youngest, front.positions[first])
        if not worse(front.scores[first], front.positions[first], best.scores[0], best.order[0]):
            inside += 1
        first -= 1
    first += 1
    sizes[FRONT] = first
    sizes[FIRST] = youngest + 1
    sizes[COUNT] -= inside
    for at in range(stop - 1, first - 1, -1):
        behind = front.behind[at]
        if behind >= 0:
            add(undo, front.scores[behind], front.positions[behind])
    while sizes[COUNT] < undo.asked[0] and settle_rest(undo):
        score, position = -undo.rest.scores[0], -undo.rest.order[0]
        pop(undo.rest)
        add(undo, score, position)


@part
def turn_over(undo: Undo, clock: int) -> None:
    """Make the log the front, without the rows that end by this clock, the youngest slide first.

    ``back`` serves as the heap of the k best so far, with places in the log for ages; while it does,
    ``behind`` of a row of the log is its place in the front.
    """
    log, back, sizes = undo.log, undo.back, undo.sizes
    back.size[0] = 0
    sizes[FRONT] = 0
    sizes[LAST] = log.positions[sizes[LOG] - 1]
    sizes[FIRST] = sizes[LAST] + 1
    stop = sizes[LOG]
    while stop > 0 and log.labels[stop - 1] > clock:
        first = first_of_slide(log.labels, stop)
        stack_up(undo, first, stop)
        sizes[FIRST] = log.positions[first]
        stop = first
    sizes[LOG] = 0
    best = undo.best
    for i in range(back.size[0]):
        best.scores[i], best.order[i] = back.scores[i], log.positions[back.order[i]]
    best.size[0] = back.size[0]
    sizes[COUNT] = back.size[0]
    undo.rest.size[0] = 0
    back.size[0] = 0


@part
def stack_up(undo: Undo, first: int, stop: int) -> None:
    """Push a slide of the log on the front."""
    log, back, front, sizes = undo.log, undo.back, undo.front, undo.sizes
    step = 1 if log.scores[first] < log.scores[stop - 1] else -1
    row = first if step > 0 else stop - 1
    for _ in range(stop - first):
        score, place = log.scores[row], -1
        if back.size[0] < undo.asked[0]:
            place = sizes[FRONT]
            sizes[FRONT] += 1
            front.behind[place] = -1
            push(back, score, row)
        elif score <= back.scores[0] and not worse(score, row, back.scores[0], back.order[0]):
            out = back.order[0]
            place = log.behind[out]
            if out >= stop:  # of a younger slide: it comes back
                place = sizes[FRONT]
                sizes[FRONT] += 1
                front.behind[place] = log.behind[out]
            replace_top(back, score, row)
        if place >= 0:
            log.behind[row] = place
            front.scores[place] = score
            front.positions[place] = log.positions[row]
            front.labels[place] = log.labels[row]
        row += step
