"""Two stacks without lists: sliding aggregation on a linked list that rows leave, and a sorted set.

``two_stacks`` keeps for each slide of its front a list of the k best rows from there on.  Here the
front is *one* list of all its rows from best to worst, linked both ways.  Rows of the front only ever
leave it, the oldest first, and a row that ends is unlinked in O(1); the k best of what is left are the
first k links.  So nothing is kept for a slide.

The *back* is a log of the rows since, and about the k best of them.  Nearly every row is compared with
a *bar* that k rows of the back reach, 16 rows at a time, and written down.  Whenever the log is full,
rows that k younger rows of it beat are thrown out.  When the oldest row of the back ends, the front is
empty, and what the log then holds is sorted and becomes the front.

The answer R is the k best of both: the first links of the front, down to a *cursor*, and the best rows
of the back, which are a sorted set of their own, *inside*.  The other rows of the back that may be
among its k best wait *outside*, a heap with the best on top; when it is full all but those are let go.

Front and log hold the k-skybands of their rows, so any shorter window is answered from them as well.

O(log k) for a row that is one of the k best since the front was made, O(1) if scores rise or fall; for
any other a comparison or two, and its share of O(log k) for those that are still there when the log
becomes the front.  A single slide may cost O(rows of the log), once in n rows.  Kept are some
2 k ln(n / k) rows and what the log holds beyond, unless scores fall: then all are.

**Slides** (``two-stacks-culled``).  Of rows that end together only the k best matter.  Where these are
few, a row is written down only if it is as good as the first k rows are, and as the last k: so scores
that rise or fall leave k rows of a slide.  Of a very long slide the k best so far tell more.  Rows may
be dropped that a window which begins in the middle of a slide would need.

    linked_state    what there is; the answer
    linked_log      the log, and how it becomes the front
    linked_culling  of rows that end together only the best
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from skytide.algorithms.sliding.kept import enlarged
from skytide.algorithms.sliding.protocol import Floats, Ints
from skytide.algorithms.topk.linked_culling import bars_of_slide, end_of_slide, take_all, take_best
from skytide.algorithms.topk.linked_log import NEED_LOG, next_to_leave, slide, thinned, write_down
from skytide.algorithms.topk.linked_state import (
    AGE,
    CULLS,
    FRONT,
    LENGTH,
    LOG,
    SIZES,
    Front,
    Linked,
    Log,
    answer,
    answer_after,
    bar_of,
    worst,
)
from skytide.algorithms.topk.ranking import NEVER, ROW, TURN, Ranking, bytes_of, start_of
from skytide.kernel import inlined, kernel, part
from skytide.structures.merge_sort import empty_sorting
from skytide.structures.scored import Scored
from skytide.structures.search import first_after, first_up_to
from skytide.structures.sorted_blocks import empty_blocks


def _log(room: int) -> Log:
    return Log(np.zeros(room), np.zeros(room, np.int64), np.zeros(room, np.int64))


def _front(room: int) -> Front:
    return Front(np.zeros(room), *(np.zeros(room, np.int64) for _ in range(5)))


class TwoStacksLinked(Ranking):
    """The rows of the front in a linked list, and the best of the others.

    >>> recent = TwoStacksLinked(dims=1, k=2, newest=True, length=4)
    >>> recent.advance(5)
    >>> recent.push(np.array([[1.0], [5.0], [2.0], [3.0], [4.0]]), *2 * [np.arange(1, 6)])
    array([1, 2, 3, 4])
    >>> recent.answer(4), recent.answer(2)
    (array([3, 4]), array([4, 5]))
    """

    any_length: ClassVar[bool] = True
    _culls: ClassVar[bool] = False
    _state: Linked

    def answer(self, length: int | None) -> Ints:
        """The k best rows with ``label > clock - length``.

        O(k) for the whole window, else O(rows kept of the shorter one).
        """
        if length == self._length:
            return np.sort(self._best())
        return np.sort(answer_after(self._state, NEVER if length is None else self._clock - length))

    def _best(self) -> Ints:
        return answer(self._state)

    def __len__(self) -> int:
        sizes = self._state.sizes
        return int(sizes[FRONT] - sizes[AGE] + sizes[LOG])

    def kept(self) -> Ints:
        """The rows of the front and of the log."""
        front, log, sizes = self._state.front, self._state.log, self._state.sizes
        rows = front.by_age[sizes[AGE] : sizes[FRONT]]
        return np.concatenate([front.positions[rows], log.positions[: sizes[LOG]]])

    def stats(self) -> dict[str, Any]:
        """Candidates, the rows of the front and of the log."""
        return {"candidates": len(self), "bytes": bytes_of(self._state)}

    def _empty(self) -> Linked:
        k = self._k
        asked = [k, self._length or 0, self._every, self._culls]
        return Linked(
            _log(2 * k + 32),
            _front(16),
            empty_blocks(k + 1),
            Scored(np.zeros(2 * k + 1), np.zeros(2 * k + 1, np.int64)),
            np.full(2, np.inf),
            empty_sorting(16),
            np.zeros(2 * k),
            np.zeros(SIZES, np.int64),
            np.array(asked),
        )

    def _feed(self, *arrays: Any) -> int:
        return feed(self._state, *arrays)

    def _grow(self, need: int) -> None:
        old = self._state
        if need == NEED_LOG:
            self._state = old._replace(log=enlarged(old.log, _log(2 * len(old.log.scores))))
            return
        room = 2 * int(old.sizes[LOG]) + 1
        self._state = old._replace(front=_front(room), sorting=empty_sorting(room))


class TwoStacksCulled(TwoStacksLinked):
    """The same for slides of many rows, of which only the k best are kept.

    >>> recent = TwoStacksCulled(dims=1, k=2, newest=True, length=4, every=2)
    >>> recent.advance(6)
    >>> rows = np.array([[1.0], [5.0], [2.0], [3.0], [4.0], [6.0]])
    >>> recent.push(rows, *2 * [np.arange(1, 7)])
    array([2, 3, 4, 5])
    >>> recent.answer(4)
    array([3, 4])
    """

    any_length: ClassVar[bool] = False
    _culls: ClassVar[bool] = True

    def answer(self, length: int | None) -> Ints:
        """The k best rows of the window.  O(k log k)."""
        return Ranking.answer(self, length)


@kernel
def feed(
    s: Linked, scores: Floats, positions: Ints, labels: Ints, clocks: Ints, told: Ints, done: Ints
) -> int:
    """See ``ranking``."""
    if s.asked[CULLS] == 1:
        return go_by_slides(s, scores, positions, labels, clocks, told, done)
    return go_on(s, scores, positions, labels, clocks, told, done)


@part
def go_on(
    s: Linked, scores: Floats, positions: Ints, labels: Ints, clocks: Ints, told: Ints, done: Ints
) -> int:
    """The work of ``feed``: a part, or references to arrays would be counted for each row.

    Between two clocks at which a row leaves or enters R nothing has to be found out: the rows are
    written down together, and the answer is told again.
    """
    row, turn, rows, turns = done[ROW], done[TURN], scores.shape[0], clocks.shape[0]
    length, bar, leaves, last = s.asked[LENGTH], bar_of(s), next_to_leave(s), worst(s)
    need, hit = 0, 0  # no row before ``hit`` reaches the bar, or there is no room for it
    while turn < turns:
        clock, moved = clocks[turn], False
        if clock >= leaves:
            need = slide(s, start_of(clock, length))
            bar, leaves, moved = bar_of(s), next_to_leave(s), True
            hit = hit if bar < np.inf else 0
        row = after_gap(labels, row, clock, length)
        while row < rows and labels[row] <= clock and need == 0:
            room = s.log.scores.shape[0] - s.sizes[LOG]
            if room == 0:
                need = 0 if thinned(s, NEVER) else NEED_LOG
                continue
            if scores[row] <= bar:
                hit = row
            elif hit <= row:
                hit = first_up_to(scores, row + 1, min(rows, row + room), bar)
            if hit == rows or labels[hit] > clock:
                break
            stop = hit + 1
            if stop < rows and labels[stop] <= clock:
                stop = first_after(labels, stop, clock)
            stop = min(stop, row + room)
            moved |= take_all(s, scores, positions, labels, row, stop, hit)
            bar, row = bar_of(s), stop
            if leaves == -NEVER:
                leaves = next_to_leave(s)
        if need != 0:
            break
        last = worst(s) if moved else last
        until = min(leaves, labels[max(hit, row)]) if max(hit, row) < rows else leaves
        turn = tell(clocks, told, turn, until, last)
        if hit > row:
            stop = min(hit, first_after(labels, row, clocks[turn - 1]))
            write_down(s.log, s.sizes, scores, positions, labels, row, stop)
            row = stop
    done[ROW], done[TURN] = row, turn
    return need


@part
def go_by_slides(
    s: Linked, scores: Floats, positions: Ints, labels: Ints, clocks: Ints, told: Ints, done: Ints
) -> int:
    """The same for slides of many rows."""
    row, turn, length, need = done[ROW], done[TURN], s.asked[LENGTH], 0
    waits = 0  # slides to come before it is tried again to cull one
    while turn < clocks.shape[0]:
        clock = clocks[turn]
        if clock >= next_to_leave(s):
            need = slide(s, start_of(clock, length))
        row = after_gap(labels, row, clock, length)
        while row < scores.shape[0] and labels[row] <= clock and need == 0:
            room = s.log.scores.shape[0] - s.sizes[LOG]
            if room == 0:
                need = 0 if thinned(s, NEVER) else NEED_LOG
                continue
            stop, bar, early = end_of_slide(s, labels, row, clock), np.inf, np.inf
            if waits == 0:
                bar, early = bars_of_slide(s, scores, row, stop)
            if bar == np.inf:
                waits = 7 if waits == 0 else waits - 1
            row = take_best(s, scores, positions, labels, row, stop, bar, early)
        if need != 0:
            break
        told[turn] = worst(s)
        turn += 1
    done[ROW], done[TURN] = row, turn
    return need


@inlined
def tell(clocks: Ints, told: Ints, turn: int, until: int, last: int) -> int:
    """The answer is the same at this clock and at all others before ``until``; which that is."""
    told[turn] = last
    turn += 1
    while turn < clocks.shape[0] and clocks[turn] < until:
        told[turn] = last
        turn += 1
    return turn


@inlined
def after_gap(labels: Ints, row: int, clock: int, length: int) -> int:
    """The next row that the clock has not passed already."""
    if length > 0 and row < labels.shape[0] and labels[row] <= clock - length:
        return first_after(labels, row, clock - length)
    return row
