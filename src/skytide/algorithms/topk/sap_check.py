"""SAP: what must always be true of its state, for tests (see ``sap``).

The bounds of Sections 4.1 and 5.2 are stated for rows that end together: of those of one slide, at most
min(s, k) are meaningful.  If s does not divide n the rows of a slide end at two clocks, and a scan that
stops between slides counts one of them twice; so the factor two.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from skytide.algorithms.topk.sap_state import (
    ANSWER,
    BAR,
    BEST,
    CULLS,
    ENHANCED,
    EVERY,
    FRONT,
    INHERITED,
    INSTALLED,
    KIND,
    LEAVING,
    LEFT,
    LENGTH,
    LIMIT,
    LOADED,
    OLDEST,
    OPEN,
    OUT,
    PART,
    RAW,
    REST,
    RIGHT,
    RISEN,
    ROWS,
    STACKS,
    TAU,
    UNIT,
    K,
    Sap,
)
from skytide.structures.savl import FREE, NODES, NONE, TOPS, USED

Row = tuple[float, int, int]  # score, minus position, label: the less the better


def rounded(label: Any, every: Any) -> int:
    """Up to a slide's clock: ``slides.arrival``, which only kernels can call."""
    return int(-(-label // every) * every)


def check(s: Sap) -> None:
    """Walk all of it; AssertionError if anything is wrong."""
    check_answer(s)
    check_candidates(s)
    check_unit(s)
    check_partitions(s)
    check_stacks(s)
    check_bounds(s)


def entries(s: Sap, start: int, stop: int) -> list[Row]:
    """These places of C, without what has expired."""
    kept = s.kept
    rows = zip(*(a[start:stop].tolist() for a in kept[:3]), strict=True)
    return [(score, -position, label) for score, position, label in rows if label > s.n[BAR]]


def collected(s: Sap, name: str) -> list[Row]:
    """What is collected of the unit coming in: what is in R, the best, or the rest."""
    unit, out = s.n[UNIT] % len(s.units.first), int(s.n[OUT])
    if name == "best":
        rows = [*-s.best.rows[: s.n[BEST]], *s.rising.rows[out : s.n[RISEN]]]
    else:
        rows = [*s.rest.rows[: s.n[REST]], *s.rising.rows[:out]]
    return [raw(s, unit, s.units.first[unit] + row) for row in rows]


def raw(s: Sap, unit: int, row: int) -> Row:
    """A row of the unit at this place of the ring."""
    units, score = s.units, float(s.rows.scores[row])
    if units.counted[unit]:
        beyond = row - int(units.first[unit])
        return score, -int(units.begins[unit]) - beyond, int(units.labels[unit, 0]) + beyond
    return score, -int(s.rows.positions[row]), int(s.rows.labels[row])


def rows_of(s: Sap, unit: int) -> list[Row]:
    """The rows of the unit at this place of the ring, complete as it is."""
    return [raw(s, unit, row) for row in range(s.units.first[unit], s.units.end[unit])]


def stacked(s: Sap) -> list[list[Row]]:
    """The stacks of M_0, each from the top."""
    stacks, found = s.stacks, []
    for node in s.stacks.tops[: s.stacks.sizes[TOPS]].tolist():
        stack = []
        while node != NONE:
            row = stacks.scores[node], stacks.positions[node], stacks.labels[node]
            stack.append((float(row[0]), -int(row[1]), int(row[2])))
            node = int(stacks.below[node])
        found.append(stack)
    return found


def check_answer(s: Sap) -> None:
    """R is the best of it all."""
    n = s.n
    inside = entries(s, 0, n[LEFT]) + collected(s, "best")
    alive = [row for stack in stacked(s) for row in stack if row[2] > n[BAR]]
    outside = entries(s, n[RIGHT], len(s.kept.scores)) + collected(s, "rest") + alive
    assert len(inside) == n[ANSWER] <= s.asked[K]
    assert not inside or not outside or max(inside) < min(outside)
    assert n[ANSWER] == s.asked[K] or not outside


def check_candidates(s: Sap) -> None:
    """C is in order, no more than k of each partition, none that k younger ones beat."""
    n, kept = s.n, s.kept
    rows = entries(s, 0, n[LEFT]) + entries(s, n[RIGHT], len(kept.scores))
    assert rows == sorted(set(rows))
    places = [*range(n[LEFT]), *range(n[RIGHT], len(kept.scores))]
    alive = [i for i in places if kept.labels[i] > n[BAR]]
    assert all(kept.dominators[i] < s.asked[K] for i in alive)
    numbers, counts = np.unique(kept.parts[alive], return_counts=True)
    assert all(n[FRONT] <= number <= n[PART] for number in numbers)
    assert all(count <= s.asked[K] for count in counts)
    if n[INSTALLED]:
        front = {kept.positions[i] for i in alive if kept.parts[i] == n[FRONT]}
        assert front <= set(s.leaving.positions[: n[LEAVING]].tolist())


def check_unit(s: Sap) -> None:
    """All rows of the unit coming in that reach τ are collected (of long slides only the k best)."""
    n = s.n
    assert n[OPEN] or not (n[INHERITED] or n[BEST] or n[REST] or n[RISEN])
    inside = collected(s, "best") + collected(s, "rest")
    assert len(inside) == len(set(inside)) < s.asked[LIMIT]
    unit = n[UNIT] % len(s.units.first)
    first = s.units.first[unit]
    rising = [raw(s, unit, first + row) for row in s.rising.rows[: n[RISEN]]]
    assert rising == sorted(rising, reverse=True)
    if n[OPEN] and not s.asked[CULLS]:
        rows = [raw(s, unit, row) for row in range(first, n[ROWS])]
        assert {row for row in rows if row[0] < s.tau[TAU]} <= set(inside)


def check_partitions(s: Sap) -> None:
    """They hold whole slides, one after the other; o^k is the k-th best row of each."""
    n, size, k = s.n, len(s.parts.state), s.asked[K]
    for number in range(n[FRONT], n[PART] + 1):
        at = number % size
        first, past = s.parts.units[at]
        if number < n[PART]:
            after = (number + 1) % size
            assert past == s.parts.units[after, 0]
            labels = s.parts.labels[at, 1], s.parts.labels[after, 0]
            if s.asked[LENGTH]:
                assert rounded(labels[0], s.asked[EVERY]) < rounded(labels[1], s.asked[EVERY])
        if s.parts.state[at] == RAW and s.parts.sizes[at] >= k and first >= n[OLDEST]:
            rows = sorted(row for unit in range(first, past) for row in rows_of(s, unit % size))
            assert rows[k - 1][:2] == (s.parts.scores[at], -s.parts.positions[at])


def check_stacks(s: Sap) -> None:
    """In a stack the upper row is better and ends no later; every node is somewhere."""
    length, every = s.asked[LENGTH], s.asked[EVERY]
    stacks = stacked(s)
    for stack in stacks:
        for upper, lower in pairwise(stack):
            assert upper < lower
            assert rounded(upper[2] + length, every) <= rounded(lower[2] + length, every)
    for i in range(1, len(stacks)):
        assert stacks[(i - 1) // 2][0] < stacks[i][0]
    free, node = 0, s.stacks.sizes[FREE]
    while node != NONE:
        free, node = free + 1, s.stacks.below[node]
    assert free + s.stacks.sizes[NODES] == s.stacks.sizes[USED] <= len(s.stacks.scores)


def most_meaningful(s: Sap) -> int:
    """How many rows M_0 may have: k of each k-unit that waits; of others what each slide may have."""
    number = s.n[FRONT] % len(s.parts.state)
    most = 0
    for unit in range(*s.parts.units[number].tolist()):
        at = unit % len(s.units.first)
        if unit < s.n[OLDEST]:
            continue
        if s.units.k_unit[at] == 1:
            assert unit > s.n[OLDEST] + 1, "the rest of a k-unit should have been scanned by now"
            most += s.asked[K]
            continue
        first, last = (rounded(label, s.asked[EVERY]) for label in s.units.labels[at])
        slides = (last - first) // s.asked[EVERY] + 1
        most += min(s.units.sizes[at], 2 * slides * min(s.asked[EVERY], s.asked[K]))
    return int(most)


def check_bounds(s: Sap) -> None:
    """|C| and |M_0|: Equation (1), Theorem 4."""
    n, live = s.n, [row for stack in stacked(s) for row in stack if row[2] > s.n[BAR]]
    state = s.parts.state[n[FRONT] % len(s.parts.state)]
    if not (n[INSTALLED] and state == LOADED):
        assert not live
    elif s.asked[STACKS] and labels_are_positions(s):
        assert len(live) <= most_meaningful(s)
    assert s.asked[KIND] == ENHANCED or not s.units.k_unit.any()


def labels_are_positions(s: Sap) -> bool:
    """Else a slide may have any number of rows."""
    units = range(s.n[OLDEST], s.n[UNIT])
    rows = [row for unit in units for row in rows_of(s, unit % len(s.units.first))]
    return all(-position == label for _, position, label in rows)
