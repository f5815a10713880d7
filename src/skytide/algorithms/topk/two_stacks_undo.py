"""Two stacks with an undo log: sliding aggregation that writes down differences instead of lists.

``two_stacks`` keeps for each slide of its front a list of the k best rows from there on.  Two lists in
a row differ by the rows of one slide, so here there are only the differences.  Going through the rows
of the front from the youngest to the oldest with a heap of the k best, a row that is among them takes
the place of another: it is pushed on the *front* with that other row *behind* it.  Rows that are not
among them are in no answer and are dropped.  Later, when the oldest row ends, it is popped, and the one
behind it is back among the k best of what is left of the front: the k best are undone row by row.

The *back* is a log of the rows since, and a heap of the k best of them; nearly every row is compared
with the worst of that heap and then forgotten.  Whenever the log is full, rows that k younger rows of
it beat are thrown out.  When the oldest row of the back ends, what is in the log becomes the front.
The answer is the k best of the k best of the front and the k best of the back: two heaps, *best* with
the worst row on top and *rest* with the best on top, hold these 2 k rows.  What leaves either heap
otherwise than by its top is left lying; whether a row still counts is told by its score and position.

Front and log hold the k-skybands of their rows, so any shorter window is answered from them as well.

O(log k) amortised for a row of any stream, whatever n and s are; a comparison or two for a row that
makes no difference.  A single slide may cost O(|front| log k), once in n rows.  Kept are some
2 k ln(n / k) rows and what the log holds beyond, unless scores fall: then all are.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from skytide.algorithms.sliding.kept import enlarged
from skytide.algorithms.sliding.protocol import Floats, Ints
from skytide.algorithms.topk.admission import last_under, sift_down
from skytide.algorithms.topk.ranking import NEVER, ROW, TURN, Ranking, bytes_of, start_of
from skytide.kernel import inlined, kernel, part
from skytide.structures.score_heap import (
    ScoreHeap,
    empty_heap,
    heapify,
    offer,
    pop,
    push,
    replace_top,
    worse,
)

# What ``sizes`` holds.
FRONT, LOG = 0, 1  # rows of either
COUNT = 2  # rows of ``best`` that count
FIRST, LAST = 3, 4  # the positions of the oldest and the youngest row of the front
LEAST = 64  # room for rows at first
SPARE = 16
"""The log has so many times the room of what is left of it when rows that no longer matter are thrown
out, or it would be looked through too often: with 2 a row costs 50 ns and not 8."""


class Rows(NamedTuple):
    """Rows; those of the log from old to young, those of the front from young to old."""

    scores: Floats
    positions: Ints
    labels: Ints
    behind: Ints  # of the front: the row that comes back when this one ends, or -1


class Undo(NamedTuple):
    """All of it."""

    front: Rows
    log: Rows
    back: ScoreHeap  # the k best of the log
    best: ScoreHeap  # the answer
    rest: ScoreHeap  # negated: the other rows of the k best of the front and the k best of the log
    bar: Floats  # (k,): scratch
    sizes: Ints
    asked: Ints  # k, and the length of the window or 0


def _rows(room: int) -> Rows:
    return Rows(np.zeros(room), *(np.zeros(room, np.int64) for _ in range(3)))


class TwoStacksUndo(Ranking):
    """The k best of the window, and how to undo them.

    >>> recent = TwoStacksUndo(dims=1, k=2, newest=True, length=4)
    >>> recent.advance(5)
    >>> recent.push(np.array([[1.0], [5.0], [2.0], [3.0], [4.0]]), *2 * [np.arange(1, 6)])
    array([1, 2, 3, 4])
    >>> recent.answer(4)
    array([3, 4])
    """

    any_length: ClassVar[bool] = True
    _state: Undo

    def answer(self, length: int | None) -> Ints:
        """The k best rows with ``label > clock - length``.

        O(k log k) for the whole window, else O(rows kept of the shorter one).
        """
        if length == self._length:
            return np.sort(answer(self._state))
        return np.sort(answer_after(self._state, NEVER if length is None else self._clock - length))

    def __len__(self) -> int:
        return int(self._state.sizes[FRONT] + self._state.sizes[LOG])

    def kept(self) -> Ints:
        """The rows of the front and of the log."""
        front, log, sizes = self._state.front, self._state.log, self._state.sizes
        return np.concatenate([front.positions[: sizes[FRONT]][::-1], log.positions[: sizes[LOG]]])

    def stats(self) -> dict[str, Any]:
        """Candidates, the rows of the front and of the log."""
        return {"candidates": len(self), "bytes": bytes_of(self._state)}

    def _empty(self) -> Undo:
        k, room = self._k, 2 * self._k + LEAST
        return Undo(
            _rows(room),
            _rows(room),
            empty_heap(k),
            empty_heap(2 * k + 2),
            empty_heap(2 * k + 2),
            np.zeros(k),
            np.array([0, 0, 0, NEVER, NEVER]),
            np.array([k, self._length or 0]),
        )

    def _feed(self, *arrays: Any) -> int:
        return feed(self._state, *arrays)

    def _grow(self, need: int) -> None:
        old = self._state
        room = 2 * len(old.log.scores)
        front, log = (enlarged(rows, _rows(room)) for rows in (old.front, old.log))
        self._state = old._replace(front=front, log=log)


@kernel
def feed(
    undo: Undo,
    scores: Floats,
    positions: Ints,
    labels: Ints,
    clocks: Ints,
    told: Ints,
    done: Ints,
) -> int:
    """See ``ranking``; all it can lack is room in the log."""
    return go_on(undo, scores, positions, labels, clocks, told, done)


@part
def go_on(
    undo: Undo,
    scores: Floats,
    positions: Ints,
    labels: Ints,
    clocks: Ints,
    told: Ints,
    done: Ints,
) -> int:
    """The work of ``feed``: a part, or references to arrays would be counted for each row."""
    sizes, log, back, k = undo.sizes, undo.log, undo.back, undo.asked[0]
    last = worst(undo)
    for turn in range(done[TURN], clocks.shape[0]):
        start, moved = start_of(clocks[turn], undo.asked[1]), False
        if ends_by(undo, start):
            slide(undo, start)
            moved = True
        for row in range(done[ROW], scores.shape[0]):
            if labels[row] > clocks[turn]:
                break
            done[ROW] = row + 1
            if labels[row] <= start:
                continue
            if sizes[LOG] == log.scores.shape[0] and not shortened(undo):
                done[ROW], done[TURN] = row, turn
                return 1
            enter_log(log, sizes[LOG], scores[row], positions[row], labels[row])
            sizes[LOG] += 1
            if back.size[0] < k or scores[row] <= back.scores[0]:
                take(undo, scores[row], positions[row])
                moved = True
        if moved:
            last = worst(undo)
        told[turn] = last
    return 0


# --------------------------------------------------------------------------------------
# Rows in, rows out


@inlined
def enter_log(log: Rows, at: int, score: float, position: int, label: int) -> None:
    """Write a row down."""
    log.scores[at] = score
    log.positions[at] = position
    log.labels[at] = label


@inlined
def take(undo: Undo, score: float, position: int) -> None:
    """A row is one of the k best of the back."""
    back = undo.back
    if back.size[0] < undo.asked[0]:
        push(back, score, position)
    else:
        if answers(undo, back.scores[0], back.order[0]):
            undo.sizes[COUNT] -= 1
        replace_top(back, score, position)
    add(undo, score, position)


@inlined
def ends_by(undo: Undo, start: int) -> bool:
    """Has a label up to ``start`` any row of the front, or the oldest of the log?"""
    at = undo.sizes[FRONT]
    if at > 0:
        return undo.front.labels[at - 1] <= start
    return undo.sizes[LOG] > 0 and undo.log.labels[0] <= start


@inlined
def slide(undo: Undo, start: int) -> None:
    """Pop the rows with labels up to ``start``; turn the log over when it begins with one."""
    front, sizes = undo.front, undo.sizes
    while sizes[FRONT] > 0 and front.labels[sizes[FRONT] - 1] <= start:
        undo_oldest(undo)
    if sizes[LOG] > 0 and undo.log.labels[0] <= start:
        turn_over(undo, start)


@inlined
def undo_oldest(undo: Undo) -> None:
    """Pop the front's oldest row; the one behind it comes back."""
    front, sizes = undo.front, undo.sizes
    sizes[FRONT] -= 1
    at = sizes[FRONT]
    if answers(undo, front.scores[at], front.positions[at]):
        sizes[COUNT] -= 1
    sizes[FIRST] = front.positions[at - 1] if at > 0 else sizes[LAST] + 1
    behind = front.behind[at]
    if behind >= 0:
        add(undo, front.scores[behind], front.positions[behind])
    elif sizes[COUNT] < undo.asked[0] and settle_rest(undo):
        score, position = -undo.rest.scores[0], -undo.rest.order[0]
        pop(undo.rest)
        add(undo, score, position)


@part
def turn_over(undo: Undo, start: int) -> None:
    """Make the log the front, without the rows with labels up to ``start``.

    ``back`` serves as the heap of the k best so far; in it ages are told by place in the front.
    """
    front, log, back, sizes = undo.front, undo.log, undo.back, undo.sizes
    back.size[0] = 0
    sizes[FRONT] = 0
    sizes[LAST] = log.positions[sizes[LOG] - 1]
    for row in range(sizes[LOG] - 1, -1, -1):
        if log.labels[row] <= start:
            break
        score, at = log.scores[row], sizes[FRONT]
        if back.size[0] < undo.asked[0]:
            push(back, score, -at)
            front.behind[at] = -1
        elif score < back.scores[0]:
            front.behind[at] = -back.order[0]
            replace_top(back, score, -at)
        else:
            continue
        front.scores[at] = score
        front.positions[at] = log.positions[row]
        front.labels[at] = log.labels[row]
        sizes[FRONT] += 1
    sizes[LOG] = 0
    sizes[FIRST] = front.positions[sizes[FRONT] - 1] if sizes[FRONT] > 0 else sizes[LAST] + 1
    answer_with_back(undo)


@part
def answer_with_back(undo: Undo) -> None:
    """The k best of the new front, which are in ``back``, are the answer; the back is empty."""
    front, back, best, sizes = undo.front, undo.back, undo.best, undo.sizes
    for i in range(back.size[0]):
        best.scores[i] = back.scores[i]
        best.order[i] = front.positions[-back.order[i]]
    best.size[0] = back.size[0]
    sizes[COUNT] = back.size[0]
    undo.rest.size[0] = 0
    back.size[0] = 0


@part
def shortened(undo: Undo) -> bool:
    """Throw rows out of the log that k younger ones beat; False if it should be larger.

    As in ``admission``: from the youngest to the oldest, with the k best so far for a bar.
    """
    log, sizes, bar = undo.log, undo.sizes, undo.bar
    free = sizes[LOG] - bar.shape[0]  # the first of the places behind which rows are kept
    for i in range(bar.shape[0]):
        bar[i] = log.scores[free + i]
    for i in range(bar.shape[0] // 2 - 1, -1, -1):
        sift_down(bar, i)
    row = last_under(log.scores, free, bar[0], 1.0)
    while row >= 0:
        bar[0] = log.scores[row]
        sift_down(bar, 0)
        free -= 1
        move(log, row, free)
        row = last_under(log.scores, row, bar[0], 1.0)
    sizes[LOG] -= free
    for i in range(sizes[LOG]):
        move(log, free + i, i)
    return SPARE * sizes[LOG] <= log.scores.shape[0]


@part
def move(rows: Rows, row: int, to: int) -> None:
    """Copy a row of the log."""
    rows.scores[to] = rows.scores[row]
    rows.positions[to] = rows.positions[row]
    rows.labels[to] = rows.labels[row]


# --------------------------------------------------------------------------------------
# The answer


@inlined
def add(undo: Undo, score: float, position: int) -> None:
    """One more row is among the k best of the front or of the back."""
    best, rest = undo.best, undo.rest
    if undo.sizes[COUNT] == undo.asked[0]:
        settle_best(undo)
        if not worse(score, position, best.scores[0], best.order[0]):
            out, older = best.scores[0], best.order[0]
            replace_top(best, score, position)
            score, position = out, older
        push_rest(undo, score, position)
        return
    if settle_rest(undo) and worse(score, position, -rest.scores[0], -rest.order[0]):
        better, younger = -rest.scores[0], -rest.order[0]
        replace_top(rest, -score, -position)
        score, position = better, younger
    push_best(undo, score, position)
    undo.sizes[COUNT] += 1


@inlined
def counts(undo: Undo, score: float, position: int) -> bool:
    """Is a row that was among the k best of the front or of the back still among them?"""
    if position <= undo.sizes[LAST]:
        return position >= undo.sizes[FIRST]
    back = undo.back
    return back.size[0] < undo.asked[0] or not worse(score, position, back.scores[0], back.order[0])


@inlined
def answers(undo: Undo, score: float, position: int) -> bool:
    """Is a row that counts in the answer?"""
    settle_best(undo)
    best = undo.best
    return best.size[0] > 0 and not worse(score, position, best.scores[0], best.order[0])


@inlined
def settle_best(undo: Undo) -> None:
    """Make the top of ``best`` a row that counts."""
    best = undo.best
    while best.size[0] > 0 and not counts(undo, best.scores[0], best.order[0]):
        pop(best)


@inlined
def settle_rest(undo: Undo) -> bool:
    """Make the top of ``rest`` a row that counts; is there one?"""
    rest = undo.rest
    while rest.size[0] > 0 and not counts(undo, -rest.scores[0], -rest.order[0]):
        pop(rest)
    return rest.size[0] > 0


@part
def push_best(undo: Undo, score: float, position: int) -> None:
    """Add a row to ``best``; at most k of it count, so that half of a full heap does not."""
    best = undo.best
    if best.size[0] == best.scores.shape[0]:
        left = 0
        for i in range(best.size[0]):
            if counts(undo, best.scores[i], best.order[i]):
                best.scores[left], best.order[left] = best.scores[i], best.order[i]
                left += 1
        best.size[0] = left
        heapify(best)
    push(best, score, position)


@part
def push_rest(undo: Undo, score: float, position: int) -> None:
    """Add a row to ``rest``, likewise."""
    rest = undo.rest
    if rest.size[0] == rest.scores.shape[0]:
        left = 0
        for i in range(rest.size[0]):
            if counts(undo, -rest.scores[i], -rest.order[i]):
                rest.scores[left], rest.order[left] = rest.scores[i], rest.order[i]
                left += 1
        rest.size[0] = left
        heapify(rest)
    push(rest, -score, -position)


@inlined
def worst(undo: Undo) -> int:
    """The position of the worst row of the answer; -1 if there is none."""
    settle_best(undo)
    return undo.best.order[0] if undo.best.size[0] > 0 else -1


@kernel
def answer(undo: Undo) -> Ints:
    """The positions of the answer, in any order."""
    best = undo.best
    out = np.empty(best.size[0], np.int64)
    found = 0
    for i in range(best.size[0]):
        if counts(undo, best.scores[i], best.order[i]):
            out[found] = best.order[i]
            found += 1
    return out[:found].copy()


@kernel
def answer_after(undo: Undo, start: int) -> Ints:
    """The positions of the k best rows with labels above ``start``: from the youngest to the oldest."""
    k = undo.asked[0]
    heap = ScoreHeap(np.empty(k), np.empty(k, np.int64), np.zeros(1, np.int64))
    for row in range(undo.sizes[LOG] - 1, -1, -1):
        if undo.log.labels[row] <= start:
            break
        offer(heap, undo.log.scores[row], undo.log.positions[row])
    for row in range(undo.sizes[FRONT]):
        if undo.front.labels[row] <= start:
            break
        offer(heap, undo.front.scores[row], undo.front.positions[row])
    return heap.order[: heap.size[0]].copy()
