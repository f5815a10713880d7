"""SAP: what it holds, and how the answer is drawn from it (see ``sap``; Algorithm 1, lines 2-11).

**The answer** R is the k best of C ∪ U ∪ M_0, with U what is collected of the unit that is coming in.
C is one list, the best first, with a gap in it: what is left of the gap is in R, what is right of it
is not.  Of U, the part in R is a heap with the worst on top, the rest a heap with the best on top.
But rows that come into R each better than the one before lie side by side, ``rising``, the worst first,
with a mark before those that are in R: where scores rise nothing is done but to move it.
None of M_0 is in R: a row that comes into R from there becomes a candidate, as the paper has it.  So to
drop the worst of R or to take in the next best costs O(log k), and a slide that changes nothing O(1).

**Expired rows** are dropped from the ends of the gap when they come to stand there.  That they left R
is known at once: all rows that expire are of the front partition, and those of its rows that are
candidates wait in ``leaving``, a heap by label; a candidate is in R if it is no worse than the last
one left of the gap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skytide.algorithms.topk.ranking import NEVER
from skytide.kernel import inlined, part
from skytide.structures import savl, scored
from skytide.structures.blocks import Floats, Ints
from skytide.structures.savl import NONE, Savl
from skytide.structures.scored import Scored, better

STRIDE = 256
"""Scores of a scan compared at one go."""

# What ``asked`` holds.
K, LENGTH, EVERY, KIND, ZETA, LIMIT, DELAY, STACKS, PARTITIONS, CULLS = range(10)
EQUAL, DYNAMIC, ENHANCED = range(3)  # of KIND

# What ``tau`` holds: the score that a row must reach to be collected; that of the unit before; the
# score that it must reach to be stored; one that about ζ rows of a slide reached of late.
TAU, LAST, SIGMA, GUESS = range(4)

# What ``n`` holds: sizes and places; of the unit coming in and the oldest; of the youngest partition
# and the oldest; counts of what was done; of the unit and the slide coming in; how many rows are
# rising, and how many of these are not in R.
ROWS, LEFT, RIGHT, ANSWER, BEST, REST, LEAVING, BAR = range(8)
OPEN, UNIT, OLDEST, UNIT_END, INHERITED, DOWN = range(8, 14)
PART, FRONT, INSTALLED, SPLIT, FORMED = range(14, 19)
SCANNED, BUILDS, MERGES, RESCANS, TOTAL = range(19, 24)
SEEN, LATEST, SPOTTED, CULLED, ARRIVED = range(24, 29)
RISEN, OUT = range(29, 31)
COUNTS = 31

NOWHERE, IN_LEFT, IN_RIGHT, IN_BEST, IN_REST, IN_STACKS, IN_RISING = range(7)
NEED_ROWS, NEED_KEPT, NEED_LEAVING, NEED_UNIT, NEED_UNITS, NEED_NODES, NEED_SLIDE = range(1, 8)
RAW, BUILDING, BUILT, LOADED, NEEDLESS = range(5)  # of a partition's M


class Rows(NamedTuple):
    """Rows in order of arrival; or a heap of them, the least label on top."""

    scores: Floats
    positions: Ints
    labels: Ints


class Candidates(NamedTuple):
    """C, the best first."""

    scores: Floats
    positions: Ints
    labels: Ints
    parts: Ints  # whose candidate it is
    dominators: Ints  # how many candidates of later units beat it: D(o, C, W)


class Units(NamedTuple):
    """A ring: unit u is at ``u % size``; see ``unit_at``."""

    first: Ints  # where its rows are
    end: Ints
    labels: Ints  # (units, 2): of its first row and its last
    part: Ints
    sizes: Ints  # how many rows came, stored or not
    positions: Ints  # (units, 2): of its best row and its k-th best
    scores: Floats  # (units, 2): of the same
    k_unit: Ints  # 1 if it is a k-unit whose rest has not been scanned
    counted: Ints  # 1 if positions and labels go up by one from row to row, and are not stored
    begins: Ints  # the position of its first row


class Parts(NamedTuple):
    """A ring of partitions, likewise."""

    labels: Ints  # (parts, 2)
    units: Ints  # (parts, 2): its first unit, and one past its last
    sizes: Ints
    positions: Ints  # of o^k, its k-th best row
    scores: Floats
    state: Ints
    stacks: Ints  # the chain of stacks that wait


class Sap(NamedTuple):
    """All of it."""

    rows: Rows  # of units that may still have to be scanned, and of the one coming in; ``position_of``
    best: Scored  # heap, negated: rows of the unit coming in that are in R, counted from its first
    rest: Scored  # heap: what else is collected of it
    rising: Scored  # and what is in neither, the worst first
    group: Scored  # scratch
    slide: Scored  # scratch of scans
    spotted: Scored  # the best rows of the slide coming in, for σ
    leaving: Rows
    kept: Candidates
    merged: Candidates  # scratch
    units: Units
    parts: Parts
    stacks: Savl
    jobs: Ints  # (2, fields): scans under way; see ``sap_meaningful``
    thetas: Floats  # (2,): their F_θ
    tau: Floats
    upper: Floats  # T_up for k <= 10, by the number of rows compared with
    asked: Ints
    n: Ints


@inlined
def unit_at(s: Sap, unit: int) -> int:
    """Where a unit is in its ring, of 2^i places, so that there is nothing to divide."""
    return unit & (s.units.first.shape[0] - 1)


@inlined
def part_at(s: Sap, number: int) -> int:
    """Where a partition is in its ring."""
    return number & (s.parts.state.shape[0] - 1)


@inlined
def position_of(s: Sap, at: int, row: int) -> int:
    """The position of a row of the unit that is there."""
    if s.units.counted[at] == 1:
        return s.units.begins[at] + row - s.units.first[at]
    return s.rows.positions[row]


@inlined
def label_of(s: Sap, at: int, row: int) -> int:
    """The label of a row of the unit that is there."""
    if s.units.counted[at] == 1:
        return s.units.labels[at, 0] + row - s.units.first[at]
    return s.rows.labels[row]


# --------------------------------------------------------------------------------------
# Both ends of R


@inlined
def worst(s: Sap) -> int:
    """Where the worst row of R is."""
    n, kept = s.n, s.kept
    where, score = NOWHERE, -np.inf
    if n[BEST] > 0:
        where, score = IN_BEST, -s.best.scores[0]
    if n[OUT] < n[RISEN]:
        at, row = n[OUT], -s.best.rows[0]
        if where == NOWHERE or better(score, row, s.rising.scores[at], s.rising.rows[at]):
            where, score = IN_RISING, s.rising.scores[at]
    while n[LEFT] > 0 and kept.labels[n[LEFT] - 1] <= n[BAR]:
        n[LEFT] -= 1
    # Of equal scores the younger is better, and the unit coming in is youngest.
    if n[LEFT] > 0 and kept.scores[n[LEFT] - 1] >= score:
        where = IN_LEFT
    return where


@inlined
def worst_score(s: Sap, where: int) -> float:
    """Its score; less than any if R is empty."""
    if where == NOWHERE:
        return -np.inf
    if where == IN_LEFT:
        return s.kept.scores[s.n[LEFT] - 1]
    return s.rising.scores[s.n[OUT]] if where == IN_RISING else -s.best.scores[0]


@inlined
def worst_position(s: Sap) -> int:
    """Its position, or -1 if R is empty."""
    where = worst(s)
    if where == NOWHERE:
        return -1
    if where == IN_LEFT:
        return s.kept.positions[s.n[LEFT] - 1]
    row = s.rising.rows[s.n[OUT]] if where == IN_RISING else -s.best.rows[0]
    at = unit_at(s, s.n[UNIT])
    return position_of(s, at, s.units.first[at] + row)


@inlined
def collected(s: Sap) -> int:
    """How many rows of the unit coming in are collected."""
    return s.n[BEST] + s.n[REST] + s.n[RISEN]


@inlined
def next_best(s: Sap) -> int:
    """Where the best row is that is not in R."""
    n, kept, where, score, position = s.n, s.kept, NOWHERE, np.inf, NEVER
    while n[RIGHT] < kept.scores.shape[0] and kept.labels[n[RIGHT]] <= n[BAR]:
        n[RIGHT] += 1
    if n[RIGHT] < kept.scores.shape[0]:
        where, score, position = IN_RIGHT, kept.scores[n[RIGHT]], kept.positions[n[RIGHT]]
    node = savl.best(s.stacks, n[BAR])
    if node != NONE and better(s.stacks.scores[node], s.stacks.positions[node], score, position):
        where, score = IN_STACKS, s.stacks.scores[node]
    row = NEVER  # any of the unit coming in is younger
    if n[REST] > 0 and s.rest.scores[0] <= score:
        where, score, row = IN_REST, s.rest.scores[0], s.rest.rows[0]
    last = n[OUT] - 1
    if n[OUT] > 0 and better(s.rising.scores[last], s.rising.rows[last], score, row):
        where = IN_RISING
    return where


@inlined
def score_at(s: Sap, where: int) -> float:
    """The score of the row that ``next_best`` found."""
    if where == IN_RIGHT:
        return s.kept.scores[s.n[RIGHT]]
    if where == IN_RISING:
        return s.rising.scores[s.n[OUT] - 1]
    return s.rest.scores[0] if where == IN_REST else s.stacks.scores[s.stacks.tops[0]]


@inlined
def leave(s: Sap, where: int) -> None:
    """Drop the worst row of R, which remains a candidate."""
    n = s.n
    if where == IN_LEFT:
        n[LEFT] -= 1
        n[RIGHT] -= 1
        copy(s.kept, n[LEFT], s.kept, n[RIGHT])
    elif where == IN_RISING:
        n[OUT] += 1
    else:
        score, row = -s.best.scores[0], -s.best.rows[0]
        n[BEST] = scored.pop(s.best, n[BEST])
        n[REST] = scored.push(s.rest, n[REST], score, row)


@inlined
def enter(s: Sap, where: int) -> None:
    """Take the next best row into R, as the worst of it."""
    n = s.n
    n[ANSWER] += 1
    if where == IN_RISING:
        n[OUT] -= 1
        return
    if where == IN_REST:
        score, row = s.rest.scores[0], s.rest.rows[0]
        n[REST] = scored.pop(s.rest, n[REST])
        n[BEST] = scored.push(s.best, n[BEST], -score, -row)
        return
    if where == IN_RIGHT:
        copy(s.kept, n[RIGHT], s.kept, n[LEFT])
        n[RIGHT] += 1
    else:
        _promote(s)
    n[LEFT] += 1


@inlined
def _promote(s: Sap) -> None:
    """The best of M_0 becomes a candidate ("update of P_0^k based on S-AVL")."""
    kept, stacks, at, node = s.kept, s.stacks, s.n[LEFT], s.stacks.tops[0]
    kept.scores[at], kept.positions[at] = stacks.scores[node], stacks.positions[node]
    kept.labels[at] = stacks.labels[node]
    kept.parts[at], kept.dominators[at] = s.n[FRONT], 0
    await_expiry(s, at)
    savl.pop(stacks)


@inlined
def copy(source: Candidates, i: int, target: Candidates, j: int) -> None:
    """One candidate."""
    target.scores[j], target.positions[j] = source.scores[i], source.positions[i]
    target.labels[j], target.parts[j] = source.labels[i], source.parts[i]
    target.dominators[j] = source.dominators[i]


# --------------------------------------------------------------------------------------
# Expiry


@inlined
def await_expiry(s: Sap, at: int) -> None:
    """Put a candidate on the heap of those that leave.  O(log)."""
    heap, kept, i = s.leaving, s.kept, s.n[LEAVING]
    s.n[LEAVING] += 1
    while i > 0 and heap.labels[(i - 1) // 2] > kept.labels[at]:
        _copy_row(heap, (i - 1) // 2, i)
        i = (i - 1) // 2
    heap.scores[i], heap.positions[i] = kept.scores[at], kept.positions[at]
    heap.labels[i] = kept.labels[at]


@inlined
def expire(s: Sap, bar: int) -> None:
    """Rows with labels up to the bar are gone; count those that were in R."""
    n, heap, last = s.n, s.leaving, s.n[LEFT] - 1
    while n[LEAVING] > 0 and heap.labels[0] <= bar:
        if last >= 0:
            score, position = s.kept.scores[last], s.kept.positions[last]
            n[ANSWER] -= not better(score, position, heap.scores[0], heap.positions[0])
        _drop_first(s)
    n[BAR] = bar


@inlined
def _drop_first(s: Sap) -> None:
    heap = s.leaving
    s.n[LEAVING] -= 1
    size, i, child = s.n[LEAVING], 0, 1
    label = heap.labels[size]
    while child < size:
        if child + 1 < size and heap.labels[child + 1] < heap.labels[child]:
            child += 1
        if heap.labels[child] >= label:
            break
        _copy_row(heap, child, i)
        i, child = child, 2 * child + 1
    _copy_row(heap, size, i)


@inlined
def _copy_row(rows: Rows, i: int, j: int) -> None:
    rows.scores[j], rows.positions[j], rows.labels[j] = (
        rows.scores[i],
        rows.positions[i],
        rows.labels[i],
    )


# --------------------------------------------------------------------------------------
# The list C, whatever its gap


@inlined
def candidates(s: Sap) -> int:
    """How many entries C has, expired ones included."""
    return s.n[LEFT] + s.kept.scores.shape[0] - s.n[RIGHT]


@inlined
def place(s: Sap, i: int) -> int:
    """Where the i-th of them is."""
    return i if i < s.n[LEFT] else i - s.n[LEFT] + s.n[RIGHT]


@part
def rho(s: Sap, number: int) -> int:
    """The group dominance number of a partition, Definition 1, or k if it is more.  O(|C|)."""
    n, kept, at = s.n, s.kept, part_at(s, number)
    score, position, found = s.parts.scores[at], s.parts.positions[at], 0
    for i in range(candidates(s)):
        c = place(s, i)
        if found == s.asked[K] or not better(kept.scores[c], kept.positions[c], score, position):
            break
        found += kept.parts[c] > number and kept.labels[c] > n[BAR]
    return found
