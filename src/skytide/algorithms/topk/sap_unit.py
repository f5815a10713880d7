"""SAP: the unit that is coming in, and what is collected of it (see ``sap``; Algorithm 2).

Of the unit only rows with scores up to the threshold τ are *collected*, U^τ; the others cost one
comparison.  When as many as LIMIT are collected, τ becomes the ζ-th best score of them (by median
search, so O(1) a row) and what is worse is let go: ζ >= k rows of the unit beat it, none of them older
than the unit.  Partitioning by TBUI inherits τ from the unit before, which says where the best rows of
this one are likely to be.  That is a guess: if the answer or the k best of the unit turn out to need
rows that were not collected, the unit is gone through once more.

Of rows that end together only the k best matter at all.  So of slides that may be long a row is not
even stored once k rows of its slide are better: σ is a score that k of them reach, guessed and found as
τ is.  Then nearly every row costs one comparison and nothing else (Appendix C, at the door).
"""

from __future__ import annotations

import numpy as np

from skytide.algorithms.topk.sap_state import (
    ANSWER,
    ARRIVED,
    BEST,
    CULLS,
    GUESS,
    IN_BEST,
    IN_LEFT,
    IN_RISING,
    IN_STACKS,
    INHERITED,
    LATEST,
    LEAVING,
    LEFT,
    LIMIT,
    NEED_KEPT,
    NEED_LEAVING,
    NEED_UNIT,
    NOWHERE,
    OUT,
    RESCANS,
    REST,
    RIGHT,
    RISEN,
    ROWS,
    SEEN,
    SIGMA,
    SPOTTED,
    TAU,
    UNIT,
    ZETA,
    K,
    Sap,
    collected,
    enter,
    label_of,
    leave,
    next_best,
    position_of,
    score_at,
    unit_at,
    worst,
    worst_score,
)
from skytide.kernel import inlined, part
from skytide.structures import scored
from skytide.structures.blocks import Floats, Ints
from skytide.structures.scored import better
from skytide.structures.search import count_up_to, first_up_to, greatest

SAMPLED = 12
"""How many of the best rows of a sample are wanted."""


@inlined
def lacks_room(s: Sap, rows: int) -> int:
    """NEED_UNIT if there is no room to collect what may have to be collected of so many more rows."""
    unit = s.n[ROWS] - s.units.first[unit_at(s, s.n[UNIT])]
    most = min(s.asked[LIMIT], unit + rows) + 1
    return NEED_UNIT if s.rest.scores.shape[0] < most else 0


@inlined
def take(s: Sap, scores: Floats, positions: Ints, labels: Ints, start: int, stop: int) -> None:
    """Take these rows into the unit, all of one slide if slides are culled."""
    n, rows = s.n, s.rows
    n[SEEN] += stop - start
    n[LATEST] = labels[stop - 1]
    if s.asked[CULLS] == 1:
        _take_best(s, scores, positions, labels, start, stop)
        return
    unit, at, count = unit_at(s, n[UNIT]), n[ROWS], stop - start
    if at == s.units.first[unit]:
        s.units.begins[unit] = positions[start]
    if s.units.counted[unit] == 1 and not _counts_on(s, unit, positions, labels, start, stop):
        _spell_out(s, unit)
    for i in range(count):
        rows.scores[at + i] = scores[start + i]
    if s.units.counted[unit] == 0:
        for i in range(count):
            rows.positions[at + i] = positions[start + i]
        for i in range(count):
            rows.labels[at + i] = labels[start + i]
    n[ROWS] += count
    shift = at - s.units.first[unit] - start
    where = worst(s)
    bar = worst_score(s, where)  # as good a row comes into R: it is younger than all before
    row = first_up_to(scores, start, stop, s.tau[TAU])
    while row < stop:
        if scores[row] > bar:
            _set_aside(s, scores[row], row + shift)
        else:
            _let_in(s, where, scores[row], row + shift)
            where = worst(s)
            bar = worst_score(s, where)
        row = first_up_to(scores, row + 1, stop, s.tau[TAU])


@inlined
def _counts_on(s: Sap, unit: int, positions: Ints, labels: Ints, start: int, stop: int) -> bool:
    """Do positions and labels go up by one, from the first row of the unit to the last of these?

    Then there is nothing to copy but scores, which saves a tenth to a fifth of the time.
    """
    row, last = s.n[ROWS], stop - 1
    if positions[start] != position_of(s, unit, row) or labels[start] != label_of(s, unit, row):
        return False
    if positions[last] - positions[start] != last - start:  # they ascend strictly, labels need not
        return False
    return _in_step(labels, start, stop)


@part
def _in_step(labels: Ints, start: int, stop: int) -> bool:
    """Do these labels go up by one from row to row?"""
    bad, label = 0, labels[start]
    for i in range(stop - start):
        bad += labels[np.uint64(start) + np.uint64(i)] != label + i
    return bad == 0


@part
def _spell_out(s: Sap, unit: int) -> None:
    """Store the positions and labels of the unit's rows."""
    for row in range(s.units.first[unit], s.n[ROWS]):
        s.rows.positions[row] = position_of(s, unit, row)
        s.rows.labels[row] = label_of(s, unit, row)
    s.units.counted[unit] = 0


@inlined
def _take_best(
    s: Sap, scores: Floats, positions: Ints, labels: Ints, start: int, stop: int
) -> None:
    """The same, but store only rows that may be among the k best of their slide."""
    n, rows = s.n, s.rows
    first = s.units.first[unit_at(s, n[UNIT])]
    row = first_up_to(scores, start, stop, s.tau[SIGMA])
    while row < stop:
        at = n[ROWS]
        rows.scores[at], rows.positions[at] = scores[row], positions[row]
        rows.labels[at] = labels[row]
        n[ROWS] += 1
        _spot(s, scores[row], at - first)
        row = first_up_to(scores, row + 1, stop, s.tau[SIGMA])


@inlined
def _spot(s: Sap, score: float, row: int) -> None:
    """Note a row of the slide; of 2 ζ the ζ best are known, and σ.  O(1) amortised."""
    spotted, at, zeta = s.spotted, s.n[SPOTTED], s.asked[ZETA]
    spotted.scores[at], spotted.rows[at] = score, row
    s.n[SPOTTED] += 1
    if s.n[SPOTTED] == 2 * zeta:
        scored.select(spotted, 2 * zeta, zeta)
        s.n[SPOTTED], s.tau[SIGMA] = zeta, spotted.scores[zeta - 1]


@part
def look_ahead(s: Sap, scores: Floats, start: int, stop: int) -> None:
    """Find a σ for these rows of a slide before they are taken: a score that k of them reach.

    The worst of the k first and of the k last rows are such, which is as good as can be where scores
    fall or rise.  Else as many rows as in the slide before should reach what about ζ of them reached,
    or what ζ should by a sample; whether k do is counted, and less than 2 ζ are what is wanted.
    O(rows), by SIMD; saves three quarters of the time of long slides.
    """
    k = s.asked[K]
    if stop - start < 2 * k:
        return
    bar = min(greatest(scores, start, start + k), greatest(scores, stop - k, stop))
    if s.n[SPOTTED] == 0:
        bar = _tighter(s, scores, start, stop, bar, s.tau[GUESS])
        if stop - start >= 4 * s.asked[ZETA]:
            bar = _tighter(s, scores, start, stop, bar, -np.inf)
    s.tau[SIGMA] = min(s.tau[SIGMA], bar)


@inlined
def _tighter(s: Sap, scores: Floats, start: int, stop: int, bar: float, guess: float) -> float:
    """The guess, -inf for one by a sample, if k rows reach it; the bar, if that is good enough."""
    if count_up_to(scores, start, stop, bar) < 2 * s.asked[ZETA]:
        return bar
    if guess == -np.inf:
        guess = _sampled(s, scores, start, stop)
    reached = guess < bar and count_up_to(scores, start, stop, guess) >= s.asked[K]
    return guess if reached else bar


@inlined
def _sampled(s: Sap, scores: Floats, start: int, stop: int) -> float:
    """A score that about 1.5 ζ rows reach: the twelfth best of every (ζ / 8)-th row."""
    best, found = s.spotted.scores, 0
    for row in range(start, stop, max(1, s.asked[ZETA] // 8)):
        if found < SAMPLED or scores[row] < best[found - 1]:
            at = min(found, SAMPLED - 1)
            found = at + 1
            while at > 0 and best[at - 1] > scores[row]:
                best[at] = best[at - 1]
                at -= 1
            best[at] = scores[row]
    return best[found - 1]


@part
def arrive_spotted(s: Sap) -> None:
    """Collect what the slide has brought, its k best: when the answer is asked for, not row by row."""
    n, spotted, before = s.n, s.spotted, s.n[ARRIVED]
    if n[ROWS] - s.units.first[unit_at(s, n[UNIT])] == before:
        return
    n[ARRIVED] = n[ROWS] - s.units.first[unit_at(s, n[UNIT])]
    size = n[SPOTTED]
    if size >= s.asked[ZETA]:
        size = s.asked[ZETA]
        scored.select(spotted, n[SPOTTED], size)
        s.tau[GUESS] = spotted.scores[size - 1]
    if size > s.asked[K]:
        scored.select(spotted, size, s.asked[K])
        size = s.asked[K]
        n[SPOTTED], s.tau[SIGMA] = size, spotted.scores[size - 1]
    for i in range(size):
        if spotted.rows[i] >= before and spotted.scores[i] <= s.tau[TAU]:
            where = worst(s)
            if _enters(s, where, spotted.scores[i], spotted.rows[i]):
                _let_in(s, where, spotted.scores[i], spotted.rows[i])
            else:
                _set_aside(s, spotted.scores[i], spotted.rows[i])


@inlined
def _set_aside(s: Sap, score: float, row: int) -> None:
    """Collect a row that is not in R."""
    s.n[REST] = scored.push(s.rest, s.n[REST], score, row)
    if collected(s) >= s.asked[LIMIT]:
        _raise_threshold(s)


@inlined
def _let_in(s: Sap, where: int, score: float, row: int) -> None:
    """Collect a row that is better than the worst of R, which is there; of k rows that one leaves."""
    if s.n[ANSWER] == s.asked[K]:
        leave(s, where)
    else:
        s.n[ANSWER] += 1
    _put_in(s, score, row)
    if collected(s) >= s.asked[LIMIT]:
        _raise_threshold(s)


@inlined
def _enters(s: Sap, where: int, score: float, row: int) -> bool:
    """Is a row better than the worst of R, which is there?"""
    if where == IN_LEFT:
        return score <= s.kept.scores[s.n[LEFT] - 1]
    if where == IN_BEST:
        return better(score, row, -s.best.scores[0], -s.best.rows[0])
    at = s.n[OUT]
    return where == IN_RISING and better(score, row, s.rising.scores[at], s.rising.rows[at])


@inlined
def _put_in(s: Sap, score: float, row: int) -> None:
    """Add a row of R: to those that rise if it is better than all of them, which saves half of the
    time, or more, where scores rise."""
    n, rising, last = s.n, s.rising, s.n[RISEN] - 1
    if last < 0 or better(score, row, rising.scores[last], rising.rows[last]):
        rising.scores[last + 1], rising.rows[last + 1] = score, row
        n[RISEN] += 1
    else:
        n[BEST] = scored.push(s.best, n[BEST], -score, -row)


@part
def _raise_threshold(s: Sap) -> None:
    """Let go of all but the ζ best collected (lines 5-8)."""
    n, keep = s.n, s.asked[ZETA] - s.n[BEST] - s.n[RISEN] + s.n[OUT]
    n[INHERITED] = 0
    if n[REST] == 0 and keep > 0:
        _drop_risen(s, n[OUT] - keep)
        s.tau[TAU] = s.rising.scores[0]
        return
    for i in range(n[OUT]):
        s.rest.scores[n[REST] + i], s.rest.rows[n[REST] + i] = s.rising.scores[i], s.rising.rows[i]
    n[REST] += n[OUT]
    _drop_risen(s, n[OUT])
    if keep <= 0:
        n[REST], s.tau[TAU] = 0, _worst_collected(s)
        return
    scored.select(s.rest, n[REST], keep)
    n[REST], s.tau[TAU] = keep, s.rest.scores[keep - 1]
    scored.make_heap(s.rest, keep)


@inlined
def _drop_risen(s: Sap, count: int) -> None:
    """Let go of the worst that are rising, none of them in R."""
    rising = s.rising
    s.n[RISEN] -= count
    s.n[OUT] -= count
    for i in range(s.n[RISEN]):
        rising.scores[i], rising.rows[i] = rising.scores[i + count], rising.rows[i + count]


@inlined
def _worst_collected(s: Sap) -> float:
    """The worst score of the unit in R, of which there is some; and none of it outside."""
    score = -s.best.scores[0] if s.n[BEST] > 0 else -np.inf
    return max(score, s.rising.scores[0]) if s.n[RISEN] > 0 else score


@part
def collect_rest(s: Sap) -> None:
    """Go through the unit once more, for rows that were not collected.  O(rows of the unit).

    None of them is in R, whose rows all reach the threshold."""
    n, rows = s.n, s.rows
    first = s.units.first[unit_at(s, n[UNIT])]
    inherited, s.tau[TAU], n[INHERITED] = s.tau[TAU], np.inf, 0
    n[RESCANS] += 1
    for row in range(first, n[ROWS]):
        if inherited < rows.scores[row] <= s.tau[TAU]:
            n[REST] = scored.push(s.rest, n[REST], rows.scores[row], row - first)
            if collected(s) >= s.asked[LIMIT]:
                _raise_threshold(s)


@inlined
def settle(s: Sap) -> int:
    """Fill R up (Algorithm 1, line 6); what is lacking, or 0.  O(log k) for each row."""
    n = s.n
    while n[ANSWER] < s.asked[K]:
        where = next_best(s)
        if n[INHERITED] == 1 and (where == NOWHERE or score_at(s, where) > s.tau[TAU]):
            collect_rest(s)
            continue
        if where == NOWHERE:
            break
        if where == IN_STACKS:
            if n[LEFT] == n[RIGHT]:
                return NEED_KEPT
            if n[LEAVING] == s.leaving.labels.shape[0]:
                return NEED_LEAVING
        enter(s, where)
    return 0
