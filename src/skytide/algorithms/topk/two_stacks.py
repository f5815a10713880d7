"""Two stacks: the textbook sliding aggregation, with the k best rows for the aggregate.

A queue of slides is kept as two stacks.  The *back* takes in new slides: of each its k best rows are
kept, and one list, *total*, of the k best of them all.  The *front* holds for each of its slides the k
best rows from that slide on to the youngest of the front; when its oldest slide ends, the list is
dropped.  When the front is empty all slides of the back go over to it, from the youngest to the oldest,
each list merged from the one before and the slide.  So every slide is merged twice in its life, and the
answer is the best of three sorted lists: the front's, the total and the slide that is still open.

O(1 + min(1, k / s) log k) a row and O(k) a slide, whatever the scores are; but n k / s cells, which
for s = 1 is n lists of k.  A slide here is the rows that *end* together: where s does not divide n
those of one arrival are two.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from skytide.algorithms.sliding.kept import enlarged
from skytide.algorithms.sliding.protocol import Floats, Ints
from skytide.algorithms.topk.ranking import NEVER, ROW, TURN, Ranking, bytes_of, start_of
from skytide.algorithms.topk.slides import end
from skytide.kernel import kernel, part

# What ``sizes`` holds: how much of each stack is used, and the end of the open slide.
FRONT, BACK, BACK_ROWS, FRONT_ROWS, OPEN_END = 0, 1, 2, 3, 4
BUFFER, OPEN, TOTAL, SPARE = 0, 1, 2, 3  # the lists, by name
NEED_BACK, NEED_BACK_ROWS, NEED_FRONT, NEED_FRONT_ROWS = 1, 2, 3, 4


class Stack(NamedTuple):
    """Lists of rows, one after the other; the last one is the top."""

    scores: Floats
    positions: Ints
    ends: Ints  # (lists,): the clock at which the rows of the slide count no more
    stops: Ints  # (lists,): where each list ends


class Lists(NamedTuple):
    """The lists that are at work, each sorted from best to worst."""

    scores: Floats  # (4, k)
    positions: Ints  # (4, k)
    lengths: Ints  # (4,)


class Stacks(NamedTuple):
    """All of it."""

    front: Stack
    back: Stack
    lists: Lists
    sizes: Ints
    asked: Ints  # k, the length of the window or 0, the slide


def _stack(lists: int, rows: int) -> Stack:
    return Stack(
        np.zeros(rows),
        np.zeros(rows, np.int64),
        np.zeros(lists, np.int64),
        np.zeros(lists, np.int64),
    )


class TwoStacks(Ranking):
    """The suffix lists of the window's slides.

    >>> recent = TwoStacks(dims=1, k=2, newest=True, length=4)
    >>> recent.advance(5)
    >>> recent.push(np.array([[1.0], [5.0], [2.0], [3.0], [4.0]]), *2 * [np.arange(1, 6)])
    array([1, 2, 3, 4])
    >>> recent.answer(4)
    array([3, 4])
    """

    any_length: ClassVar[bool] = False
    _state: Stacks

    def __len__(self) -> int:
        return len(self.kept())

    def kept(self) -> Ints:
        """All rows of all lists."""
        return np.unique(held(self._state))

    def stats(self) -> dict[str, Any]:
        """``cells``: the rows of all lists, most of them there many times."""
        cells = len(held(self._state))
        return {"candidates": len(self), "cells": cells, "bytes": bytes_of(self._state)}

    def _empty(self) -> Stacks:
        lists = Lists(
            np.zeros((4, self._k)), np.zeros((4, self._k), np.int64), np.zeros(4, np.int64)
        )
        asked = np.array([self._k, self._length or 0, self._every])
        sizes = np.array([0, 0, 0, 0, NEVER])
        return Stacks(_stack(8, 64), _stack(8, 64), lists, sizes, asked)

    def _feed(self, *arrays: Any) -> int:
        return feed(self._state, *arrays)

    def _grow(self, need: int) -> None:
        name = "back" if need in (NEED_BACK, NEED_BACK_ROWS) else "front"
        old: Stack = getattr(self._state, name)
        lists, rows = len(old.ends), len(old.scores)
        if need in (NEED_BACK, NEED_FRONT):
            lists = 2 * lists
        else:
            rows = 2 * rows + self._k
        self._state = self._state._replace(**{name: enlarged(old, _stack(lists, rows))})

    def _best(self) -> Ints:
        return best(self._state)


@kernel
def feed(
    stacks: Stacks,
    scores: Floats,
    positions: Ints,
    labels: Ints,
    clocks: Ints,
    told: Ints,
    done: Ints,
) -> int:
    """See ``ranking``."""
    return go_on(stacks, scores, positions, labels, clocks, told, done)


@part
def go_on(
    stacks: Stacks,
    scores: Floats,
    positions: Ints,
    labels: Ints,
    clocks: Ints,
    told: Ints,
    done: Ints,
) -> int:
    """The work of ``feed``: a part, or references to arrays would be counted for each row."""
    length, every = stacks.asked[1], stacks.asked[2]
    for turn in range(done[TURN], clocks.shape[0]):
        done[TURN] = turn
        clock = clocks[turn]
        start = start_of(clock, length)
        need = move(stacks, clock)
        if need:
            return need
        for row in range(done[ROW], scores.shape[0]):
            if labels[row] > clock:
                break
            if labels[row] > start:
                if (
                    labels[row] > stacks.sizes[OPEN_END] - length
                ):  # else it ends with the row before
                    need = close(stacks)
                    if need:
                        return need
                    ends = end(labels[row], length, every) if length > 0 else -NEVER
                    stacks.sizes[OPEN_END] = ends
                take(stacks.lists, scores[row], positions[row])
            done[ROW] = row + 1
        flush(stacks.lists)
        told[turn] = worst(stacks)
    return 0


@part
def move(stacks: Stacks, clock: int) -> int:
    """Drop the slides that have ended; what is lacking, or 0."""
    sizes = stacks.sizes
    while sizes[FRONT] > 0 and stacks.front.ends[sizes[FRONT] - 1] <= clock:
        drop_top(stacks)
    if sizes[FRONT] == 0 and sizes[BACK] > 0 and stacks.back.ends[0] <= clock:
        need = turn_over(stacks, clock)
        if need:
            return need
    if sizes[OPEN_END] <= clock:
        stacks.lists.lengths[OPEN] = 0
        stacks.lists.lengths[BUFFER] = 0
    return 0


@part
def drop_top(stacks: Stacks) -> None:
    """Pop the front's oldest slide."""
    sizes = stacks.sizes
    sizes[FRONT] -= 1
    sizes[FRONT_ROWS] = stacks.front.stops[sizes[FRONT] - 1] if sizes[FRONT] > 0 else 0


@part
def turn_over(stacks: Stacks, clock: int) -> int:
    """Move the back's slides over to the front, the youngest first; what is lacking, or 0."""
    sizes, front, back = stacks.sizes, stacks.front, stacks.back
    for i in range(sizes[BACK] - 1, -1, -1):
        if back.ends[i] <= clock:
            break
        first = back.stops[i - 1] if i > 0 else 0
        if sizes[FRONT] == front.ends.shape[0]:
            return undone(stacks, NEED_FRONT)
        if sizes[FRONT_ROWS] + stacks.asked[0] > front.scores.shape[0]:
            return undone(stacks, NEED_FRONT_ROWS)
        stack_up(stacks, first, back.stops[i])
        front.ends[sizes[FRONT]] = back.ends[i]
        front.stops[sizes[FRONT]] = sizes[FRONT_ROWS]
        sizes[FRONT] += 1
    sizes[BACK] = 0
    sizes[BACK_ROWS] = 0
    stacks.lists.lengths[TOTAL] = 0
    return 0


@part
def undone(stacks: Stacks, need: int) -> int:
    """Take a move that lacks room back."""
    stacks.sizes[FRONT] = 0
    stacks.sizes[FRONT_ROWS] = 0
    return need


@part
def stack_up(stacks: Stacks, first: int, stop: int) -> None:
    """Merge a slide of the back with the top of the front, onto the front.

    Of equal scores the top's are the younger, and better.
    """
    sizes, front, back = stacks.sizes, stacks.front, stacks.back
    at, top = sizes[FRONT_ROWS], sizes[FRONT_ROWS]
    i = 0
    if sizes[FRONT] > 1:
        i = front.stops[sizes[FRONT] - 2]
    for _ in range(stacks.asked[0]):
        if i < top and (first == stop or front.scores[i] <= back.scores[first]):
            front.scores[at], front.positions[at] = front.scores[i], front.positions[i]
            i += 1
        elif first < stop:
            front.scores[at], front.positions[at] = back.scores[first], back.positions[first]
            first += 1
        else:
            break
        at += 1
    sizes[FRONT_ROWS] = at


@part
def close(stacks: Stacks) -> int:
    """Add the open slide to the back; what is lacking, or 0."""
    sizes, back, lists = stacks.sizes, stacks.back, stacks.lists
    flush(lists)
    count = lists.lengths[OPEN]
    if count == 0:
        return 0
    if sizes[BACK] == back.ends.shape[0]:
        return NEED_BACK
    if sizes[BACK_ROWS] + count > back.scores.shape[0]:
        return NEED_BACK_ROWS
    for i in range(count):
        back.scores[sizes[BACK_ROWS] + i] = lists.scores[OPEN, i]
        back.positions[sizes[BACK_ROWS] + i] = lists.positions[OPEN, i]
    sizes[BACK_ROWS] += count
    back.ends[sizes[BACK]] = sizes[OPEN_END]
    back.stops[sizes[BACK]] = sizes[BACK_ROWS]
    sizes[BACK] += 1
    merge(lists, OPEN, TOTAL)
    return 0


@part
def take(lists: Lists, score: float, position: int) -> None:
    """Add a row to the open slide, if it is one of its k best so far.

    Such rows wait in a buffer that is sorted and merged when it is full: O(log k) each.
    """
    k = lists.scores.shape[1]
    if lists.lengths[OPEN] == k and score > lists.scores[OPEN, k - 1]:
        return
    at = lists.lengths[BUFFER]
    lists.scores[BUFFER, at] = score
    lists.positions[BUFFER, at] = position
    lists.lengths[BUFFER] += 1
    if lists.lengths[BUFFER] == k:
        flush(lists)


@part
def flush(lists: Lists) -> None:
    """Merge the buffer into the open slide."""
    if lists.lengths[BUFFER] > 0:
        sort_buffer(lists)
        merge(lists, BUFFER, OPEN)


@part
def merge(lists: Lists, young: int, old: int) -> None:
    """Merge a list into an older one, of which the k best remain; it is empty then."""
    k, i, j, at = lists.scores.shape[1], 0, 0, 0
    scores, positions, lengths = lists
    while at < k and (i < lengths[young] or j < lengths[old]):
        if j == lengths[old] or (i < lengths[young] and scores[young, i] <= scores[old, j]):
            scores[SPARE, at], positions[SPARE, at] = scores[young, i], positions[young, i]
            i += 1
        else:
            scores[SPARE, at], positions[SPARE, at] = scores[old, j], positions[old, j]
            j += 1
        at += 1
    for i in range(at):
        scores[old, i], positions[old, i] = scores[SPARE, i], positions[SPARE, i]
    lengths[old], lengths[young] = at, 0


@part
def sort_buffer(lists: Lists) -> None:
    """Sort the buffer, of equal scores the younger first: merge sort from below, by way of SPARE."""
    count, width = lists.lengths[BUFFER], 1
    scores, positions = lists.scores, lists.positions
    while width < count:
        for first in range(0, count, 2 * width):
            middle, stop = min(first + width, count), min(first + 2 * width, count)
            i, j = first, middle
            for at in range(first, stop):
                if i == middle or (j < stop and scores[BUFFER, j] <= scores[BUFFER, i]):
                    scores[SPARE, at], positions[SPARE, at] = (
                        scores[BUFFER, j],
                        positions[BUFFER, j],
                    )
                    j += 1
                else:
                    scores[SPARE, at], positions[SPARE, at] = (
                        scores[BUFFER, i],
                        positions[BUFFER, i],
                    )
                    i += 1
        for at in range(count):
            scores[BUFFER, at], positions[BUFFER, at] = scores[SPARE, at], positions[SPARE, at]
        width *= 2


@part
def worst(stacks: Stacks) -> int:
    """The position of the k-th best of the three lists, or of the last; -1 if they are empty."""
    front, lists, sizes = stacks.front, stacks.lists, stacks.sizes
    at, stop = top_of(stacks), sizes[FRONT_ROWS]
    i = j = 0
    found = -1
    for _ in range(lists.scores.shape[1]):
        score = np.inf
        which = 0
        if at < stop:
            score, which = front.scores[at], 1
        if j < lists.lengths[TOTAL] and (which == 0 or lists.scores[TOTAL, j] <= score):
            score, which = lists.scores[TOTAL, j], 2
        if i < lists.lengths[OPEN] and (which == 0 or lists.scores[OPEN, i] <= score):
            which = 3
        if which == 0:
            break
        if which == 1:
            found = front.positions[at]
            at += 1
        elif which == 2:
            found = lists.positions[TOTAL, j]
            j += 1
        else:
            found = lists.positions[OPEN, i]
            i += 1
    return found


@part
def top_of(stacks: Stacks) -> int:
    """Where the front's top list begins."""
    if stacks.sizes[FRONT] < 2:
        return 0
    return stacks.front.stops[stacks.sizes[FRONT] - 2]


@kernel
def best(stacks: Stacks) -> Ints:
    """The positions of the answer: the k best of the three lists, found by sorting."""
    front, lists = stacks.front, stacks.lists
    at, stop = top_of(stacks), stacks.sizes[FRONT_ROWS]
    total, opened = lists.lengths[TOTAL], lists.lengths[OPEN]
    scores = np.concatenate(
        (front.scores[at:stop], lists.scores[TOTAL, :total], lists.scores[OPEN, :opened])
    )
    positions = np.concatenate(
        (front.positions[at:stop], lists.positions[TOTAL, :total], lists.positions[OPEN, :opened])
    )
    young = np.argsort(-positions)
    order = np.argsort(scores[young], kind="mergesort")
    return positions[young[order[: stacks.asked[0]]]]


@kernel
def held(stacks: Stacks) -> Ints:
    """The positions in all lists, again and again."""
    sizes, lists = stacks.sizes, stacks.lists
    return np.concatenate(
        (
            stacks.front.positions[: sizes[FRONT_ROWS]],
            stacks.back.positions[: sizes[BACK_ROWS]],
            lists.positions[OPEN, : lists.lengths[OPEN]],
        )
    )
