"""SAP: a unit is complete; where partitions begin and end, and C kept current (see ``sap``; Section 4).

Three partitioners.  *Equal*: each unit is a partition.  *Dynamic*: a unit joins the partition before it
unless the k best of both are improper, which is when the Mann-Whitney rank test finds them better than
the ηk best candidates of before, or the two would be longer than l_max.  *Enhanced*: the same, and TBUI
tells k-units from others.  (Of the interval that the paper compares with, [t0 - n + |P|, t0], the rows
of P itself are left out: the test wants two samples.)

The k best of the unit are merged into C, and C is refined, in one pass over both (Figure 4).
"""

from __future__ import annotations

import numpy as np

from skytide.algorithms.topk.ranking import NEVER
from skytide.algorithms.topk.sap_state import (
    ANSWER,
    ARRIVED,
    BAR,
    BEST,
    CULLED,
    CULLS,
    DOWN,
    ENHANCED,
    EQUAL,
    EVERY,
    FRONT,
    INHERITED,
    KIND,
    LAST,
    LATEST,
    LEFT,
    LENGTH,
    MERGES,
    NEED_KEPT,
    NEED_UNITS,
    NEEDLESS,
    OLDEST,
    OPEN,
    OUT,
    PART,
    PARTITIONS,
    RAW,
    REST,
    RIGHT,
    RISEN,
    ROWS,
    SEEN,
    SIGMA,
    SPLIT,
    SPOTTED,
    TAU,
    TOTAL,
    UNIT,
    UNIT_END,
    ZETA,
    K,
    Sap,
    candidates,
    collected,
    copy,
    label_of,
    part_at,
    place,
    position_of,
    rho,
    unit_at,
    worst,
    worst_score,
)
from skytide.algorithms.topk.sap_unit import arrive_spotted, collect_rest, settle
from skytide.algorithms.topk.slides import arrival, end
from skytide.kernel import part
from skytide.structures import scored
from skytide.structures.savl import NONE

QUANTILE = 1.959963984540054
"""u of 1 - α/2, with α = 0.05."""

FOREVER = 4096
"""Of a window without end, units have so many rows, or 4 k if that is more."""


@part
def open_unit(s: Sap, label: int) -> None:
    """Begin a unit with the row of this label."""
    n, units = s.n, s.units
    at = unit_at(s, n[UNIT])
    units.first[at], units.labels[at, 0], units.k_unit[at] = n[ROWS], label, 0
    units.counted[at] = 1 - s.asked[CULLS]
    n[OPEN], n[SEEN], n[ARRIVED] = 1, 0, 0
    new_slide(s, label)
    n[UNIT_END] = -NEVER
    if s.asked[LENGTH] > 0:
        every = s.asked[EVERY]
        n[UNIT_END] = arrival(label, every) + unit_length(s) - every
    where = worst(s)
    guess = n[ANSWER] == s.asked[K] and worst_score(s, where) <= s.tau[TAU] < np.inf
    n[INHERITED] = guess
    if not guess:
        s.tau[TAU] = np.inf


@part
def new_slide(s: Sap, label: int) -> None:
    """Begin with the rows that end when the row of this label does; find the last label of such."""
    n, length, every = s.n, s.asked[LENGTH], s.asked[EVERY]
    n[SPOTTED], s.tau[SIGMA], n[CULLED] = 0, np.inf, -NEVER
    if s.asked[CULLS] == 1 and length > 0:
        n[CULLED] = end(label, length, every) - length


@part
def unit_length(s: Sap) -> int:
    """l_min = n / m*, whole slides, in units of labels.

    As many rows as labels are taken for granted at first, later as many as there were of late: in
    m* = ceil(sqrt(n / max(s, k))), n and s are numbers of rows (Appendix A).
    """
    n, units, length, every = s.n, s.units, s.asked[LENGTH], s.asked[EVERY]
    if s.asked[PARTITIONS] > 0:
        return max(1, length // s.asked[PARTITIONS] // every) * every
    density = 1.0
    if n[OLDEST] < n[UNIT] and n[TOTAL] > 0:
        first = units.labels[unit_at(s, n[OLDEST]), 0]
        density = n[TOTAL] / (units.labels[unit_at(s, n[UNIT] - 1), 1] - first + 1)
    m = np.ceil(np.sqrt(density * length / max(density * every, s.asked[K])))
    least = int(length / max(m, 1.0))
    return every if least <= 2 * every else least // every * every


@part
def close_unit(s: Sap) -> int:
    """The unit is complete: make it a partition or part of one; what is lacking, or 0."""
    n, units = s.n, s.units
    if s.asked[CULLS] == 1:
        arrive_spotted(s)
    need = settle(s)
    if need:
        return need
    before = s.tau[LAST]
    size, at = units.first.shape[0], unit_at(s, n[UNIT])
    rows = n[ROWS] - units.first[at]
    if n[UNIT] - n[OLDEST] + 2 >= size:
        return NEED_UNITS
    if candidates(s) + min(s.asked[K], rows) > s.merged.scores.shape[0]:
        return NEED_KEPT
    n[DOWN] = n[INHERITED] == 1 and collected(s) < min(s.asked[K], rows)
    if n[DOWN] == 1:
        collect_rest(s)
    gathered = _gather(s)
    units.end[at], units.labels[at, 1], units.sizes[at] = n[ROWS], n[LATEST], n[SEEN]
    for which in range(2):
        row = s.group.rows[0 if which == 0 else gathered - 1]
        units.scores[at, which] = s.rows.scores[units.first[at] + row]
        units.positions[at, which] = position_of(s, at, units.first[at] + row)
    if _extends(s, gathered):
        if units.scores[at, 1] <= before:  # Theorem 2: k rows that reach the τ of the unit before
            units.k_unit[unit_at(s, n[UNIT] - 1)] = 0
    else:
        _open_part(s)
    units.k_unit[at] = s.asked[KIND] == ENHANCED and rows > s.asked[K]
    _join(s, at)
    _merge(s, gathered)
    n[BEST], n[REST], n[RISEN], n[OUT], n[OPEN] = 0, 0, 0, 0, 0
    n[INHERITED] = 0  # R may want rows before the next unit opens: there is none to collect more of
    n[UNIT] += 1
    n[TOTAL] += n[SEEN]
    if s.asked[LENGTH] == 0:
        n[ROWS], n[OLDEST] = units.first[at], n[UNIT]
    return 0


@part
def _gather(s: Sap) -> int:
    """The k best of the unit into ``group``, the best first, and τ for the next; how many."""
    n, group, count, k, zeta = s.n, s.group, 0, s.asked[K], s.asked[ZETA]
    for i in range(n[BEST]):
        group.scores[count], group.rows[count] = -s.best.scores[i], -s.best.rows[i]
        count += 1
    for i in range(n[RISEN] - 1, -1, -1):
        group.scores[count], group.rows[count] = s.rising.scores[i], s.rising.rows[i]
        count += 1
    for i in range(n[REST]):
        group.scores[count], group.rows[count] = s.rest.scores[i], s.rest.rows[i]
        count += 1
    scored.sort(group, count, min(count, zeta))
    own = s.tau[TAU]  # reached by some ζ rows of the unit
    if n[INHERITED] == 0:
        own = group.scores[zeta - 1] if count >= zeta else np.inf
    s.tau[LAST] = own
    s.tau[TAU] = own if s.asked[KIND] == ENHANCED and n[DOWN] == 0 else np.inf
    return min(count, k)


# --------------------------------------------------------------------------------------
# Where partitions begin


@part
def _extends(s: Sap, gathered: int) -> bool:
    """Does the unit join the partition before it?"""
    n, parts = s.n, s.parts
    if s.asked[LENGTH] == 0:
        return n[PART] >= 0
    if s.asked[KIND] == EQUAL or n[PART] < n[FRONT] or n[SPLIT] == 1:
        return False
    at, zeta, k, length = part_at(s, n[PART]), s.asked[ZETA], s.asked[K], s.asked[LENGTH]
    last = s.units.labels[unit_at(s, n[UNIT]), 1]
    whole = max(last, n[UNIT_END]) - parts.labels[at, 0] + 1
    if whole > length * (k / (k + zeta)):  # l_max, the solution of (n - l_max) / l_max = η = ζ / k
        return False
    return _proper(s, gathered, last - length + whole)


@part
def _proper(s: Sap, gathered: int, since: int) -> bool:
    """The evaluation function F of Equation (2), not positive; both samples come best first.

    Where scores rise, C has less than ηk rows of before, because k younger ones beat the others: these
    count as worse than all.
    """
    n, kept, group, k, zeta = s.n, s.kept, s.group, s.asked[K], s.asked[ZETA]
    taken, others, places, mine = 0, 0, 0, 0  # of the partition, of before; sum of places
    for i in range(candidates(s)):
        c = place(s, i)
        ours = kept.parts[c] == n[PART]
        if kept.labels[c] <= (n[BAR] if ours else since):
            continue
        while mine < gathered and taken < k and group.scores[mine] <= kept.scores[c]:
            mine, taken = mine + 1, taken + 1
            places += taken + others
        if ours and taken < k:
            taken += 1
            places += taken + others
        elif not ours and others < zeta:
            others += 1
        if taken == k and others == zeta:
            break
    while mine < gathered and taken < k:
        mine, taken = mine + 1, taken + 1
        places += taken + others
    others = max(others, min(zeta, n[TOTAL] - s.parts.sizes[part_at(s, n[PART])]))
    rank_sum = taken * (taken + others + 1) - places
    return taken < k or rank_sum <= _upper(s, others)


@part
def _upper(s: Sap, others: int) -> float:
    """The rank sum up to which a sample of k may come from where ``others`` other rows come from.

    A table for k <= 10, above that a normal distribution: with n1 and n2 rows of mean
    n1 (n1 + n2 + 1) / 2 and variance n1 n2 (n1 + n2 + 1) / 12.
    """
    k = s.asked[K]
    if k <= 10:
        return s.upper[others]
    return k * (k + others + 1) / 2 + QUANTILE * np.sqrt(k * others * (k + others + 1) / 12)


@part
def _open_part(s: Sap) -> None:
    n, parts = s.n, s.parts
    n[PART] += 1
    n[SPLIT] = 0
    at = part_at(s, n[PART])
    parts.labels[at, 0] = s.units.labels[unit_at(s, n[UNIT]), 0]
    parts.units[at, 0], parts.sizes[at], parts.stacks[at] = n[UNIT], 0, NONE
    parts.state[at] = NEEDLESS if s.asked[LENGTH] == 0 else RAW


@part
def _join(s: Sap, unit: int) -> None:
    """The unit's rows are the partition's."""
    n, parts = s.n, s.parts
    at = part_at(s, n[PART])
    s.units.part[unit] = n[PART]
    parts.labels[at, 1] = s.units.labels[unit, 1]
    parts.units[at, 1] = n[UNIT] + 1
    parts.sizes[at] += s.units.sizes[unit]


# --------------------------------------------------------------------------------------
# Merge and refine


@part
def _merge(s: Sap, gathered: int) -> None:
    """C becomes C ∪ P_m^k, less what is expired, what k younger candidates beat, and what is no longer
    among the k best of its own partition.  O(|C| + k)."""
    n, kept, merged, group = s.n, s.kept, s.merged, s.group
    k, at, mine, out, ours = s.asked[K], part_at(s, n[PART]), 0, 0, 0
    n[MERGES] += 1
    entries = candidates(s)
    for i in range(entries + 1):
        c = place(s, i)
        while mine < gathered and (i == entries or group.scores[mine] <= kept.scores[c]):
            if ours < k:
                _write(s, group.rows[mine], out)
                ours, out = ours + 1, out + 1
            mine += 1
        if i == entries:
            break
        dominators = kept.dominators[c] + mine
        if kept.labels[c] <= n[BAR] or dominators >= k:
            continue
        if kept.parts[c] == n[PART]:
            if ours == k:
                continue
            ours += 1
            s.parts.scores[at], s.parts.positions[at] = kept.scores[c], kept.positions[c]
        copy(kept, c, merged, out)
        merged.dominators[out] = dominators
        out += 1
    _write_back(s, out)


@part
def _write(s: Sap, row: int, out: int) -> None:
    """A row of the unit becomes a candidate."""
    merged, parts, at = s.merged, s.parts, unit_at(s, s.n[UNIT])
    row += s.units.first[at]
    merged.scores[out], merged.positions[out] = s.rows.scores[row], position_of(s, at, row)
    merged.labels[out], merged.parts[out] = label_of(s, at, row), s.n[PART]
    merged.dominators[out] = 0
    at = part_at(s, s.n[PART])
    parts.scores[at], parts.positions[at] = merged.scores[out], merged.positions[out]


@part
def _write_back(s: Sap, size: int) -> None:
    """The best are in R, what is worse goes to the right of the gap."""
    n, gap = s.n, s.kept.scores.shape[0] - size
    for i in range(n[ANSWER]):
        copy(s.merged, i, s.kept, i)
    for i in range(n[ANSWER], size):
        copy(s.merged, i, s.kept, i + gap)
    n[LEFT], n[RIGHT] = n[ANSWER], n[ANSWER] + gap


# --------------------------------------------------------------------------------------
# Room for rows


@part
def squeeze(s: Sap) -> None:
    """Let go of the rows of units that are gone, and of partitions that need not be scanned."""
    n, parts, units, rows, free = s.n, s.parts, s.units, s.rows, 0
    for number in range(n[FRONT], n[PART]):
        at = part_at(s, number)
        if parts.state[at] == RAW:
            if parts.sizes[at] <= s.asked[K] or rho(s, number) >= s.asked[K]:
                parts.state[at] = NEEDLESS
    for unit in range(n[OLDEST], n[UNIT] + n[OPEN]):
        at = unit_at(s, unit)
        closed = unit < n[UNIT]
        first, past = units.first[at], units.end[at] if closed else n[ROWS]
        if closed and parts.state[part_at(s, units.part[at])] == NEEDLESS:
            past = first
        back = first - free
        for to in range(free, past - back):
            rows.scores[to] = rows.scores[to + back]
        if units.counted[at] == 0:
            for to in range(free, past - back):
                rows.positions[to] = rows.positions[to + back]
                rows.labels[to] = rows.labels[to + back]
        units.first[at], free = free, free + past - first
        units.end[at] = free
    n[ROWS] = free
