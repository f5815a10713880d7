"""Two stacks with a linked front: what it holds, and the answer R (see ``two_stacks_linked``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skytide.kernel import inlined, kernel, part
from skytide.structures import scored
from skytide.structures.blocks import Floats, Ints
from skytide.structures.merge_sort import Sorting
from skytide.structures.scored import Scored
from skytide.structures.sorted_blocks import (
    BEGIN,
    END,
    HIGH,
    LOW,
    ROWS,
    SortedBlocks,
    insert,
    pop_worst,
    push_worst,
    worst_position,
    worst_score,
)

# What ``sizes`` holds.
LOG, FRONT, AGE = 0, 1, 2  # rows of the log and of the front, and how many of these have left
CURSOR, CHOSEN = 3, 4  # the worst row of the front in R, and how many are in R
OUTSIDE = 5  # rows of the heap
HALTED = 6  # 1 if the log could not become the front for want of room
SIZES = 7
K, LENGTH, EVERY, CULLS = 0, 1, 2, 3  # what ``asked`` holds
BACK, GUESS = 0, 1
"""What ``bars`` holds: the score that a row has to reach to be one of the k best of the back; one that
the k best of a slide may reach."""


class Log(NamedTuple):
    """Rows, from old to young."""

    scores: Floats
    positions: Ints
    labels: Ints


class Front(NamedTuple):
    """Rows 1, 2, ... from best to worst; 0 is the end of the list and its beginning."""

    scores: Floats
    positions: Ints
    better: Ints  # the neighbours in the list
    worse: Ints
    by_age: Ints  # rows from old to young, from 0 on
    labels: Ints  # of the same, in the same order


class Linked(NamedTuple):
    """All of it."""

    log: Log
    front: Front
    inside: SortedBlocks
    outside: Scored
    bars: Floats
    sorting: Sorting
    best: Floats  # (2 k,): scratch
    sizes: Ints
    asked: Ints


# --------------------------------------------------------------------------------------
# Rows of the back


@inlined
def bar_of(s: Linked) -> float:
    """The score that a row has to reach to be one of the k best of the back."""
    return worst_score(s.inside) if is_all_of_r(s) else s.bars[BACK]


@inlined
def is_all_of_r(s: Linked) -> bool:
    """Are all rows of R inside?  Then no other row of now will ever be in it."""
    return s.inside.sizes[ROWS] == s.asked[K]


@inlined
def offer(s: Linked, score: float, position: int) -> bool:
    """A row is one of the k best of the back; does R change?"""
    inside, sizes, k = s.inside, s.sizes, s.asked[K]
    if inside.sizes[ROWS] > 0 and score <= worst_score(inside):
        insert(inside, score, position)
    elif sizes[CHOSEN] + inside.sizes[ROWS] < k or (
        sizes[CHOSEN] > 0 and score <= s.front.scores[sizes[CURSOR]]
    ):
        push_worst(inside, score, position)
    else:
        put_outside(s, score, position)
        return False
    if sizes[CHOSEN] + inside.sizes[ROWS] > k:
        leave_out_worst(s)
    return True


@inlined
def put_outside(s: Linked, score: float, position: int) -> None:
    """A row of the back is not in R, but may be later."""
    heap, sizes = s.outside, s.sizes
    sizes[OUTSIDE] = scored.push(heap, sizes[OUTSIDE], score, position)
    if sizes[OUTSIDE] == heap.scores.shape[0]:
        cut_outside(s)


@part
def cut_outside(s: Linked) -> None:
    """Let all rows go but so many that with those inside they are k; k rows reach the bar then.

    O(k), once in k rows or more.
    """
    heap, keep = s.outside, s.asked[K] - s.inside.sizes[ROWS]
    scored.select(heap, s.sizes[OUTSIDE], keep)
    s.bars[BACK] = heap.scores[keep - 1]
    scored.make_heap(heap, keep)
    s.sizes[OUTSIDE] = keep


# --------------------------------------------------------------------------------------
# R


@inlined
def front_is_worst(s: Linked) -> bool:
    """Is the worst row of R of the front?  Of equal scores the older row is worse."""
    if s.sizes[CHOSEN] == 0 or s.inside.sizes[ROWS] == 0:
        return s.sizes[CHOSEN] > 0
    return s.front.scores[s.sizes[CURSOR]] >= worst_score(s.inside)


@inlined
def leave_out_worst(s: Linked) -> None:
    """Take the worst row out of R."""
    sizes, inside = s.sizes, s.inside
    if sizes[CHOSEN] == 0:  # no row that is outside will ever be in R
        pop_worst(inside)
        sizes[OUTSIDE] = 0
    elif front_is_worst(s):
        sizes[CURSOR] = s.front.better[sizes[CURSOR]]
        sizes[CHOSEN] -= 1
    else:
        score, position = worst_score(inside), worst_position(inside)
        pop_worst(inside)
        put_outside(s, score, position)


@inlined
def take_next_best(s: Linked) -> bool:
    """Take the best row into R that is not in it; is there one?"""
    sizes, front, heap = s.sizes, s.front, s.outside
    following = front.worse[sizes[CURSOR]]
    if sizes[OUTSIDE] > 0 and (following == 0 or heap.scores[0] <= front.scores[following]):
        push_worst(s.inside, heap.scores[0], heap.rows[0])
        sizes[OUTSIDE] = scored.pop(heap, sizes[OUTSIDE])
        return True
    if following == 0:
        return False
    sizes[CURSOR] = following
    sizes[CHOSEN] += 1
    return True


@inlined
def worst(s: Linked) -> int:
    """The position of the worst row of R; -1 if there is none."""
    if front_is_worst(s):
        return s.front.positions[s.sizes[CURSOR]]
    return worst_position(s.inside) if s.inside.sizes[ROWS] > 0 else -1


@kernel
def answer(s: Linked) -> Ints:
    """The positions of R, in any order."""
    inside, sizes = s.inside, s.sizes
    out = np.empty(sizes[CHOSEN] + inside.sizes[ROWS], np.int64)
    row, found = sizes[CURSOR], 0
    while row > 0:
        out[found] = s.front.positions[row]
        found, row = found + 1, s.front.better[row]
    for at in range(inside.sizes[LOW], inside.sizes[HIGH]):
        block = inside.order[at]
        for i in range(inside.spans[block, BEGIN], inside.spans[block, END]):
            out[found] = inside.positions[block, i]
            found += 1
    return out


@kernel
def answer_after(s: Linked, start: int) -> Ints:
    """The positions of the k best rows with labels above ``start``.  O(rows of these)."""
    log, front, sizes = s.log, s.front, s.sizes
    rows, found = sizes[LOG] + sizes[FRONT] - sizes[AGE], 0
    some = Scored(np.empty(rows), np.empty(rows, np.int64))
    for i in range(sizes[LOG] - 1, -1, -1):
        if log.labels[i] <= start:
            break
        some.scores[found], some.rows[found] = log.scores[i], log.positions[i]
        found += 1
    for i in range(sizes[FRONT] - 1, sizes[AGE] - 1, -1):
        if front.labels[i] <= start:
            break
        row = front.by_age[i]
        some.scores[found], some.rows[found] = front.scores[row], front.positions[row]
        found += 1
    k = min(found, s.asked[K])
    if k < found:
        scored.select(some, found, k)
    return some.rows[:k].copy()
