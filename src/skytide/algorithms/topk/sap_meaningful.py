"""SAP: the meaningful rows M of a partition, found by scanning it backwards (see ``sap``; Section 5).

A row of P_i that is not among its k best is *meaningful* if fewer than k rows that outlive it are
better.  The scan prunes twice, by one comparison for nearly every row: *globally* by F_θ, the k-th best
candidate of younger partitions; *locally* by the stacks of the S-AVL, of which there are k - P_i.ρ.  Of
the rows that end together only the k - P_i.ρ best go that far (Appendix C).

UBSA (Section 5.2): of a k-unit only the k best are looked at then.  They are told by the unit's k-th
score, so that nothing but that need be stored; what is below it is scanned when only one other unit
is left before it, on an S-AVL of its own.  A unit whose best row would be pruned is skipped, as
is the rest of a k-unit whose k-th best would.

A scan is a *job* that can stop anywhere: the partition next in line is scanned bit by bit while the
front slides out ("amortized proactive formation").  The scan of a k-unit's rest is another.
"""

from __future__ import annotations

import numpy as np

from skytide.algorithms.topk.ranking import NEVER
from skytide.algorithms.topk.sap_state import (
    BAR,
    BUILDING,
    BUILDS,
    BUILT,
    EVERY,
    FRONT,
    LENGTH,
    NEED_NODES,
    NEED_SLIDE,
    NEEDLESS,
    OLDEST,
    RAW,
    SCANNED,
    STACKS,
    STRIDE,
    K,
    Sap,
    candidates,
    label_of,
    part_at,
    place,
    position_of,
    rho,
    unit_at,
)
from skytide.algorithms.topk.slides import end
from skytide.kernel import inlined, part
from skytide.structures import savl, scored
from skytide.structures.savl import NONE
from skytide.structures.scored import better
from skytide.structures.search import count_up_to

JOB_PART, JOB_UNIT, JOB_STOP, JOB_ROW, GROUP, GROUP_BAR, F_THETA, BETTER, WANTED = range(9)
"""What ``jobs[lane]`` holds: the partition; the unit being scanned, and the last to scan, going back;
how many of its rows are left, -1 before the first; how many rows of one end are gathered, and which
labels are of an earlier end; the position of F_θ; without S-AVL, how many of the best rows are known,
and how many there are to be, k - P_i.ρ.
"""

WHOLE, REST_OF_UNIT = 0, 1  # the lanes
EVERYTHING = 1 << 62


@part
def begin_partition(s: Sap, number: int) -> None:
    """Start to scan a whole partition; or find that it need not be (Lemma 1)."""
    at = part_at(s, number)
    dominated = rho(s, number)
    if dominated >= s.asked[K] or s.parts.sizes[at] <= s.asked[K]:
        s.parts.state[at] = NEEDLESS
        return
    s.n[BUILDS] += 1
    s.parts.state[at] = BUILDING
    s.parts.stacks[at] = NONE
    _begin(s, WHOLE, number, s.parts.units[at, 1] - 1, s.parts.units[at, 0], dominated)


@part
def _begin(s: Sap, lane: int, number: int, unit: int, stop: int, dominated: int) -> None:
    job = s.jobs
    job[lane, JOB_PART], job[lane, JOB_UNIT], job[lane, JOB_STOP] = number, unit, stop
    job[lane, JOB_ROW], job[lane, GROUP], job[lane, GROUP_BAR] = -1, 0, EVERYTHING
    _find_theta(s, lane, number)
    job[lane, BETTER], job[lane, WANTED] = 0, s.asked[K] - dominated
    limit = job[lane, WANTED] if s.asked[STACKS] == 1 else EVERYTHING
    savl.open_stacks(s.stacks, lane, limit)


@part
def _find_theta(s: Sap, lane: int, number: int) -> None:
    """F_θ: the k-th best of the candidates that outlive the partition."""
    kept, found = s.kept, 0
    s.thetas[lane], s.jobs[lane, F_THETA] = np.inf, NEVER
    for i in range(candidates(s)):
        c = place(s, i)
        if kept.parts[c] > number and kept.labels[c] > s.n[BAR]:
            found += 1
            if found == s.asked[K]:
                s.thetas[lane], s.jobs[lane, F_THETA] = kept.scores[c], kept.positions[c]
                return


@part
def scan(s: Sap, lane: int, budget: int) -> int:
    """Scan up to so many rows, or a few more; what is lacking, or 0 with all done or gone."""
    job, scanned = s.jobs, 0
    while scanned < budget and job[lane, JOB_UNIT] >= job[lane, JOB_STOP]:
        unit = unit_at(s, job[lane, JOB_UNIT])
        if job[lane, JOB_ROW] < 0:
            first = s.units.first[unit]
            job[lane, JOB_ROW] = 0 if _skipped(s, lane, unit) else s.units.end[unit] - first
        if 2 * (job[lane, GROUP] + STRIDE) > s.slide.scores.shape[0]:  # to sort in
            return NEED_SLIDE
        if savl.room(s.stacks) < job[lane, GROUP] + STRIDE:
            return NEED_NODES
        scanned += _scan_some(s, lane, unit)
        if job[lane, JOB_ROW] == 0:
            _flush(s, lane, unit)
            job[lane, JOB_UNIT] -= 1
            job[lane, JOB_ROW] = -1
    if job[lane, JOB_UNIT] >= job[lane, JOB_STOP]:  # the scratch may be wanted by the other lane
        _flush(s, lane, unit_at(s, job[lane, JOB_UNIT]))
    s.n[SCANNED] += scanned
    return 0


@inlined
def _scan_some(s: Sap, lane: int, unit: int) -> int:
    """Look at the next rows back; how many."""
    job, first = s.jobs, s.units.first[unit]
    high = job[lane, JOB_ROW]
    low = max(0, high - STRIDE)
    job[lane, JOB_ROW] = low
    if count_up_to(s.rows.scores, first + low, first + high, _bar(s, lane)) > 0:
        for row in range(first + high - 1, first + low - 1, -1):
            if s.rows.scores[row] <= _bar(s, lane):
                _consider(s, lane, unit, row)
    return high - low


@inlined
def _bar(s: Sap, lane: int) -> float:
    """A score that every row must reach that is not to be pruned."""
    bar = s.thetas[lane]
    if savl.full(s.stacks, lane):
        bar = min(bar, s.stacks.scores[savl.lowest(s.stacks, lane)])
    return bar


@part
def _skipped(s: Sap, lane: int, unit: int) -> bool:
    """Would the best row that the scan is to find in the unit be pruned?"""
    units, which = s.units, 1 if lane == REST_OF_UNIT else 0
    score, position = units.scores[unit, which], units.positions[unit, which]
    return score > _bar(s, lane) or not _beats_theta(s, lane, score, position)


@inlined
def _beats_theta(s: Sap, lane: int, score: float, position: int) -> bool:
    return better(score, position, s.thetas[lane], s.jobs[lane, F_THETA])


@inlined
def _consider(s: Sap, lane: int, unit: int, row: int) -> None:
    """Gather a row that may be meaningful with those that end when it does."""
    score, position, job = s.rows.scores[row], position_of(s, unit, row), s.jobs
    label = label_of(s, unit, row)
    if not _beats_theta(s, lane, score, position) or label <= s.n[BAR]:
        return
    at, units = part_at(s, job[lane, JOB_PART]), s.units
    if not better(s.parts.scores[at], s.parts.positions[at], score, position):
        return  # of P_i^k
    if units.k_unit[unit] == 1:
        below = better(units.scores[unit, 1], units.positions[unit, 1], score, position)
        if below != (lane == REST_OF_UNIT):
            return
    if s.asked[STACKS] == 0 and _outdone(s, lane, score, position):
        return
    if label <= job[lane, GROUP_BAR]:
        _flush(s, lane, unit)
    if job[lane, GROUP] == 0:
        length, every = s.asked[LENGTH], s.asked[EVERY]
        ends = label + length
        if every > 1:
            ends = end(label, length, every)
        job[lane, GROUP_BAR] = ends - every - length
    s.slide.scores[job[lane, GROUP]] = score
    s.slide.rows[job[lane, GROUP]] = row - s.units.first[unit]
    job[lane, GROUP] += 1


@inlined
def _outdone(s: Sap, lane: int, score: float, position: int) -> bool:
    """Without S-AVL: do k - P_i.ρ of the rows seen before beat this one?  Else it is one of them."""
    job, wanted, best = s.jobs, s.jobs[lane, WANTED], s.group
    if wanted > best.scores.shape[0]:
        return False
    if job[lane, BETTER] < wanted:
        job[lane, BETTER] = scored.push(best, job[lane, BETTER], -score, -position)
        return False
    if not better(score, position, -best.scores[0], -best.rows[0]):
        return True
    scored.sink(best, wanted, 0, -score, -position)
    return False


@part
def _flush(s: Sap, lane: int, unit: int) -> None:
    """Put the best of the rows that end together on the stacks, the best first."""
    size, limit, first = s.jobs[lane, GROUP], s.stacks.sizes[savl.LIMIT + lane], s.units.first[unit]
    if size > limit:
        scored.select(s.slide, size, limit)
        size = limit
    if size > 1:
        scored.sort(s.slide, size, size)
    for i in range(size):
        row = first + s.slide.rows[i]
        position, label = position_of(s, unit, row), label_of(s, unit, row)
        savl.add(s.stacks, lane, s.rows.scores[row], position, label)
    s.jobs[lane, GROUP] = 0


@part
def finish(s: Sap, number: int) -> int:
    """Have the stacks of a partition built, if it needs any; what is lacking, or 0."""
    at = part_at(s, number)
    if s.parts.state[at] == RAW:
        begin_partition(s, number)
    if s.parts.state[at] == BUILDING:
        need = scan(s, WHOLE, EVERYTHING)
        if need:
            return need
        s.parts.stacks[at] = savl.close_stacks(s.stacks, WHOLE)
        s.parts.state[at] = BUILT
    return 0


@part
def finish_unit(s: Sap, unit: int) -> int:
    """Have the rest of a k-unit of the front partition scanned; what is lacking, or 0."""
    at = unit_at(s, unit)
    if s.units.k_unit[at] != 1:
        return 0
    if s.jobs[REST_OF_UNIT, JOB_UNIT] != unit:
        _begin(s, REST_OF_UNIT, s.n[FRONT], unit, unit, min(rho(s, s.n[FRONT]), s.asked[K] - 1))
    need = scan(s, REST_OF_UNIT, EVERYTHING)
    if need:
        return need
    s.units.k_unit[at] = 2
    savl.load(s.stacks, savl.close_stacks(s.stacks, REST_OF_UNIT))
    return 0


@part
def finish_units(s: Sap) -> int:
    """Have the rests of k-units scanned that stand at the front or one behind."""
    past = s.parts.units[part_at(s, s.n[FRONT]), 1]
    for unit in range(s.n[OLDEST], min(s.n[OLDEST] + 2, past)):
        need = finish_unit(s, unit)
        if need:
            return need
    return 0
