"""SAP: the window slides; rows go in, the front partition goes out (see ``sap``; Algorithm 1).

What is to be done when the clock moves: the unit coming in is closed before its own rows expire; the
front partition is *installed* when its first rows are about to slide out, which is when its M has to be
there; meanwhile the next one is scanned bit by bit; units and partitions that are gone are dropped.
Each step either does all it should or finds first that it lacks room, and is then called again.
"""

from __future__ import annotations

from skytide.algorithms.sliding.protocol import Floats, Ints
from skytide.algorithms.topk.ranking import ROW, TURN, start_of
from skytide.algorithms.topk.sap_meaningful import (
    WHOLE,
    begin_partition,
    finish,
    finish_units,
    scan,
)
from skytide.algorithms.topk.sap_partition import FOREVER, close_unit, new_slide, open_unit, squeeze
from skytide.algorithms.topk.sap_state import (
    BAR,
    BUILDING,
    BUILT,
    CULLED,
    CULLS,
    DELAY,
    EQUAL,
    FORMED,
    FRONT,
    INSTALLED,
    KIND,
    LENGTH,
    LOADED,
    NEED_LEAVING,
    NEED_ROWS,
    OLDEST,
    OPEN,
    PART,
    RAW,
    ROWS,
    SPLIT,
    STACKS,
    TOTAL,
    UNIT,
    UNIT_END,
    K,
    Sap,
    await_expiry,
    candidates,
    expire,
    part_at,
    place,
    unit_at,
    worst_position,
)
from skytide.algorithms.topk.sap_unit import (
    arrive_spotted,
    lacks_room,
    look_ahead,
    settle,
    take,
)
from skytide.kernel import inlined, kernel, part
from skytide.structures import savl
from skytide.structures.search import first_after

CHUNK = 1024
"""Rows taken in at one go."""


@kernel
def feed(
    s: Sap,
    scores: Floats,
    positions: Ints,
    labels: Ints,
    clocks: Ints,
    told: Ints,
    done: Ints,
) -> int:
    """See ``ranking``."""
    for turn in range(done[TURN], clocks.shape[0]):
        done[TURN] = turn
        clock = clocks[turn]
        need = _move(s, clock)
        if need:
            return need
        start, stop = start_of(clock, s.asked[LENGTH]), first_after(labels, done[ROW], clock)
        while done[ROW] < stop:
            if labels[done[ROW]] <= start:
                done[ROW] += 1
                continue
            need = _make_room(s, labels[done[ROW]])
            if need:
                return need
            end = _end_of_part(s, labels, done[ROW], stop)
            if s.asked[CULLS] == 1:
                look_ahead(s, scores, done[ROW], end)
            while done[ROW] < end:
                took = min(CHUNK, end - done[ROW])
                need = _lacks(s, took)
                if need:
                    return need
                take(s, scores, positions, labels, done[ROW], done[ROW] + took)
                done[ROW] += took
        if s.asked[CULLS] == 1 and s.n[OPEN] == 1:
            arrive_spotted(s)
        need = settle(s)
        if need:
            return need
        told[turn] = worst_position(s)
    return 0


@inlined
def _end_of_part(s: Sap, labels: Ints, start: int, stop: int) -> int:
    """Where the unit or, if slides are culled, the slide ends that the first row belongs to."""
    if s.asked[LENGTH] == 0:
        return min(start + CHUNK, stop)
    last = min(s.n[UNIT_END], s.n[CULLED])
    return stop if labels[stop - 1] <= last else first_after(labels, start, last)


@inlined
def _make_room(s: Sap, label: int) -> int:
    """See that there is an open unit that this label belongs to; what is lacking, or 0."""
    n = s.n
    if n[OPEN] == 1:
        full = label > n[UNIT_END]
        if s.asked[LENGTH] == 0:
            rows = n[ROWS] - s.units.first[unit_at(s, n[UNIT])]
            full = rows >= max(FOREVER, 4 * s.asked[K])
        if full:
            need = close_unit(s)
            if need:
                return need
    if n[OPEN] == 0:
        if s.asked[DELAY] == 0:
            need = _form_all(s)
            if need:
                return need
        open_unit(s, label)
    elif label > n[CULLED]:
        arrive_spotted(s)
        new_slide(s, label)
    return 0


@part
def _form_all(s: Sap) -> int:
    """The variant that does not delay: M_i as soon as P_i is complete."""
    n = s.n
    n[FORMED] = max(n[FORMED], n[FRONT])
    while n[FORMED] < n[PART] + (s.asked[KIND] == EQUAL):
        need = finish(s, n[FORMED])
        if need:
            return need
        n[FORMED] += 1
    return 0


@inlined
def _lacks(s: Sap, rows: int) -> int:
    """What is lacking to take in so many rows, or 0."""
    have = s.rows.scores.shape[0]
    if s.n[ROWS] + rows > have:
        squeeze(s)
        if s.n[ROWS] + rows > have - have // 4:  # so that squeezing costs O(1) a row
            return NEED_ROWS
    return lacks_room(s, rows)


@inlined
def _move(s: Sap, clock: int) -> int:
    """Move the clock; what is lacking, or 0."""
    n, parts = s.n, s.parts
    bar = start_of(clock, s.asked[LENGTH])
    if bar <= n[BAR]:
        return 0
    if n[OPEN] == 1 and s.units.labels[unit_at(s, n[UNIT]), 0] <= bar:
        need = close_unit(s)
        if need:
            return need
    while n[FRONT] <= n[PART]:
        at = part_at(s, n[FRONT])
        if parts.labels[at, 0] > bar:
            break
        need = _slide(s, min(bar, parts.labels[at, 1]))
        if need:
            return need
        if parts.labels[at, 1] > bar:
            break
        _drop_front(s)
    n[BAR] = bar
    return 0


@inlined
def _slide(s: Sap, bar: int) -> int:
    """Rows of the front partition with labels up to the bar slide out; what is lacking, or 0."""
    n, units = s.n, s.units
    if n[INSTALLED] == 0:
        need = _install(s)
        if need:
            return need
    while n[OLDEST] < n[UNIT] and units.labels[unit_at(s, n[OLDEST]), 1] <= bar:
        n[TOTAL] -= units.sizes[unit_at(s, n[OLDEST])]
        n[OLDEST] += 1
    need = 0
    if _waits(s):
        need = finish_units(s)
    if need == 0 and _is_next(s, n[FRONT] + 1):
        need = _prepare_next(s, bar)
    if need:
        return need
    expire(s, bar)
    return 0


@part
def _install(s: Sap) -> int:
    """The first rows of the front partition are about to slide out: its M is needed."""
    n, parts, at = s.n, s.parts, part_at(s, s.n[FRONT])
    if n[FRONT] == n[PART]:
        n[SPLIT] = 1
    need = finish(s, n[FRONT])
    if need:
        return need
    if candidates(s) > s.leaving.labels.shape[0]:
        return NEED_LEAVING
    if parts.state[at] == BUILT:
        savl.load(s.stacks, parts.stacks[at])
        parts.state[at] = LOADED
    for i in range(candidates(s)):
        if s.kept.parts[place(s, i)] == n[FRONT]:
            await_expiry(s, place(s, i))
    n[INSTALLED] = 1
    return 0


@inlined
def _waits(s: Sap) -> bool:
    """Is one of the two oldest units a k-unit of the front partition whose rest is to be scanned?

    Asked before the work is called for, as is what follows: calls with all of the state at each slide
    made slides of one row take 28 ns in some processes and 54 ns in others."""
    k_unit, oldest = s.units.k_unit, s.n[OLDEST]
    some = k_unit[unit_at(s, oldest)] == 1 or k_unit[unit_at(s, oldest + 1)] == 1
    return some and s.parts.state[part_at(s, s.n[FRONT])] == LOADED


@inlined
def _is_next(s: Sap, number: int) -> bool:
    """Is this partition to be scanned before it is the front?"""
    if number >= s.n[PART] or s.asked[DELAY] == 0 or s.asked[STACKS] == 0:
        return False
    state = s.parts.state[part_at(s, number)]
    return state in (RAW, BUILDING)


@part
def _prepare_next(s: Sap, bar: int) -> int:
    """Scan as much of the partition next in line as slides out of the front (Section 5.1)."""
    n, parts, number = s.n, s.parts, s.n[FRONT] + 1
    at, front = part_at(s, number), part_at(s, n[FRONT])
    if parts.state[at] == RAW:
        begin_partition(s, number)
    if parts.state[at] == BUILDING:
        gone = bar - max(n[BAR], parts.labels[front, 0] - 1)
        share = gone / (parts.labels[front, 1] - parts.labels[front, 0] + 1)
        return scan(s, WHOLE, int(share * parts.sizes[at]) + 1)
    return 0


@part
def _drop_front(s: Sap) -> None:
    """The front partition has slid out."""
    savl.clear(s.stacks)
    s.n[FRONT] += 1
    s.n[INSTALLED] = 0
