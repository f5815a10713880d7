"""SAP beyond what all top-k algorithms are held to: its invariants, and the paper's figures.

The text of the paper names some of the scores in its figures; the others here are ours.  It ranks from
the top, so its scores are negated.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from conformance import EXAMPLES, JIT, says
from skytide.algorithms.topk import sap as sap_
from skytide.algorithms.topk.sap_check import entries, stacked
from skytide.algorithms.topk.sap_state import (
    BEST,
    FRONT,
    GUESS,
    LEFT,
    NEEDLESS,
    OLDEST,
    PART,
    RIGHT,
    RISEN,
    UNIT,
)
from skytide.structures import savl, scored
from skytide.structures.savl import LIMIT, NONE, empty_savl
from skytide.structures.scored import Scored
from topk_conformance import Ranked, opened, push, ranked

ALL = (
    sap_.SapEqual,
    sap_.SapDynamic,
    sap_.SapEnhanced,
    sap_.SapNonDelay,
    sap_.SapRescan,
)
every_variant = pytest.mark.parametrize("algorithm", ALL)
tried = settings(max_examples=EXAMPLES, deadline=None)


# --------------------------------------------------------------------------------------
# Invariants


@every_variant
@pytest.mark.kernels
@tried
@given(data=some.data())
def test_check_holds_at_every_stop(algorithm: Any, data: some.DataObject) -> None:
    stream = data.draw(ranked(longest=40))
    live, start = opened(algorithm, stream), 0
    for seen, clock in stream.stops:
        live.advance(clock)
        live.check()
        push(live, stream, range(start, seen))
        live.check()
        start = seen


def stream_of(kind: str, rows: int) -> Any:
    """Scores that make partitions long and short, M full and empty."""
    random, at = np.random.default_rng(3), np.arange(rows)
    return {
        "uniform": lambda: random.random(rows),
        "few values": lambda: random.integers(0, 9, rows).astype(float),
        "falling": lambda: at.astype(float),
        "rising": lambda: -at.astype(float),
        "sinus": lambda: np.sin(np.pi * at / 700),
        "steps": lambda: random.random(rows) + at // 500,
    }[kind]()


KINDS = ("uniform", "few values", "falling", "rising", "sinus", "steps")


@every_variant
@pytest.mark.skipif(not JIT, reason="too slow without compiled kernels")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("length", "k", "every"), [(1000, 3, 1), (997, 10, 20), (1000, 5, 300)])
def test_check_holds_on_long_streams(
    algorithm: Any, kind: str, length: int, k: int, every: int
) -> None:
    scores = stream_of(kind, 4_000)
    live, positions = algorithm(1, k, True, length, every), np.arange(1, len(scores) + 1)
    step = every * max(1, 60 // every)
    for start in range(0, len(scores) - step + 1, step):
        rows = slice(start, start + step)
        clocks = np.arange(start + every, start + step + 1, every)
        live.each(scores[rows].reshape(-1, 1), positions[rows], positions[rows], clocks)
        live.check()


@pytest.mark.skipif(not JIT, reason="too slow without compiled kernels")
@pytest.mark.parametrize("kind", ["uniform", "sinus", "steps"])
def test_candidates_are_few_whatever_the_partitions(kind: str) -> None:
    """Theorem 4, with a constant: the units hold up to 2 ζ rows each."""
    n, k, scores = 4_000, 10, stream_of(kind, 20_000)
    live, positions = sap_.SapEnhanced(1, k, True, n), np.arange(1, len(scores) + 1)
    for start in range(0, len(scores), 200):
        rows = slice(start, start + 200)
        live.each(scores[rows].reshape(-1, 1), positions[rows], positions[rows], positions[rows])
        assert live.stats()["candidates"] <= 8 * k * np.sqrt(n / k)


# --------------------------------------------------------------------------------------
# What is added to the paper


def told(live: Any, scores: Any, every: int, positions: Any = None, labels: Any = None) -> Any:
    """What ``each`` tells, slide by slide."""
    positions = np.arange(1, len(scores) + 1) if positions is None else positions
    labels = positions if labels is None else labels
    clocks = np.arange(every, labels[-1] + 1, every)
    rows = int(np.searchsorted(labels, clocks[-1], "right"))
    return live.each(scores[:rows].reshape(-1, 1), positions[:rows], labels[:rows], clocks)


def truth(scores: Any, k: int, length: int, every: int, positions: Any, labels: Any) -> list[int]:
    """The same by sorting."""
    worst = []
    for clock in range(every, labels[-1] + 1, every):
        window = np.flatnonzero((labels > clock - length) & (labels <= clock))
        best = window[np.lexsort((-window, scores[window]))[:k]]
        worst.append(int(positions[best[-1]]) if len(best) else -1)
    return worst


@pytest.mark.skipif(not JIT, reason="too slow without compiled kernels")
@pytest.mark.parametrize("kind", [*KINDS, "jumps", "turns"])
@pytest.mark.parametrize(("k", "every"), [(1, 50), (3, 200), (3, 7), (20, 41), (20, 300)])
def test_long_slides_whatever_the_slide_before_was_like(kind: str, k: int, every: int) -> None:
    """σ is guessed from the slide before, from its ends and from a sample: all may be wrong."""
    random, at = np.random.default_rng(5), np.arange(4_000)
    scores = {
        "jumps": lambda: (
            random.random(4_000) + random.integers(0, 9, 4_000 // every + 1)[at // every]
        ),
        "turns": lambda: np.abs(at % (2 * every) - every) + random.random(4_000),
    }.get(kind, lambda: stream_of(kind, 4_000))()
    positions = at + 1
    live = sap_.SapEnhanced(1, k, True, 900, every)
    expected = truth(scores, k, 900, every, positions, positions)
    assert says(told(live, scores, every)) == expected


@pytest.mark.skipif(not JIT, reason="too slow without compiled kernels")
def test_of_long_slides_little_more_than_what_counts_is_stored() -> None:
    """About ζ = 35 rows of each slide of 5,000, from the second on."""
    scores = np.random.default_rng(2).random(100_000)
    live = sap_.SapEnhanced(1, 20, True, 20_000, 5_000)
    told(live, scores, 5_000)
    assert live._state.tau[GUESS] < 0.02
    assert len(live) < 4 * 2 * 35 + 100


@every_variant
@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("gaps", ["none", "of labels", "of positions", "ties", "late"])
@pytest.mark.kernels
def test_positions_that_only_count_are_not_stored(algorithm: Any, every: int, gaps: str) -> None:
    rows, k, length = 120, 2, 40
    scores, at = np.random.default_rng(4).integers(0, 30, rows).astype(float), np.arange(rows)
    positions = 1 + at + (at // 17 if gaps == "of positions" else 0)
    labels = {
        "of labels": 1 + at + at // 13,
        "ties": 1 + at - (at % 5 == 3),
        "late": 1 + at + (at > 71),
    }.get(gaps, 1 + at)
    live = algorithm(1, k, True, length, every)
    assert says(told(live, scores, every, positions, labels)) == truth(
        scores, k, length, every, positions, labels
    )
    live.check()
    s = live._state
    last = (s.n[UNIT] - 1) % len(s.units.first)
    if gaps == "none" and every == 1:
        assert s.units.counted[last] == 1
    if gaps == "ties":
        assert s.units.counted[last] == 0


@every_variant
@pytest.mark.kernels
def test_rising_scores_are_put_side_by_side(algorithm: Any) -> None:
    """And what disturbs them goes on the heaps."""
    rising = [float(i) for i in range(60)]
    live = fed(algorithm, 4, 30, 1, rising)
    s = live._state
    assert (s.n[BEST], s.n[RISEN] > 0) == (0, True)
    assert scores_of(live, rising) == [59.0, 58.0, 57.0, 56.0]
    for seen in range(20, 60):
        disturbed = [score - 9.5 * (i % 7 == 3) for i, score in enumerate(rising)][:seen]
        live = fed(algorithm, 4, 30, 1, disturbed)
        assert scores_of(live, disturbed) == sorted(disturbed[-30:], reverse=True)[:4]


# --------------------------------------------------------------------------------------
# The paper's figures


def fed(algorithm: Any, k: int, length: int, every: int, scores: list[float]) -> Any:
    """The algorithm after these scores, the paper's way round."""
    live, positions = algorithm(1, k, True, length, every), np.arange(1, len(scores) + 1)
    live.each(
        -np.array(scores, float).reshape(-1, 1),
        positions,
        positions,
        np.arange(every, len(scores) + 1, every),
    )
    live.check()
    return live


def scores_of(live: Any, scores: list[float]) -> list[float]:
    """The answer, as the paper writes it."""
    return sorted((scores[p - 1] for p in live.answer(live._length)), reverse=True)


def candidates_of(live: Any) -> list[float]:
    """C, the best first."""
    s = live._state
    kept = entries(s, 0, s.n[LEFT]) + entries(s, s.n[RIGHT], len(s.kept.scores))
    return [-row[0] for row in kept]


@every_variant
@pytest.mark.kernels
def test_figure_1_scores_that_only_fall_or_do_not(algorithm: Any) -> None:
    """n = 10, k = 2: (a) each row is a skyband row and its turn comes, (b) three rows beat a."""
    falling = [float(score) for score in range(60, 30, -1)]
    for seen in range(10, 31):
        live = fed(algorithm, 2, 10, 1, falling[:seen])
        assert scores_of(live, falling) == falling[seen - 10 : seen - 8]
    mixed = [70.0, 90.0, 60.0, 80.0, 65.0, 85.0, 50.0, 75.0, 55.0, 64.0]
    live = fed(algorithm, 2, 10, 1, mixed)
    assert scores_of(live, mixed) == [90.0, 85.0]


FIGURE_3 = [
    *(95.0, 92.0, 60.0, 89.0, 58.0, 55.0),
    *(87.0, 70.0, 79.0, 61.0, 50.0, 66.0),
    *(54.0, 91.0, 57.0, 82.0, 49.0, 63.0),
    *(88.0, 52.0, 47.0, 68.0, 59.0, 44.0),
    *(84.0, 46.0, 72.0, 43.0, 51.0, 48.0),
]
"""m = 5, k = 2, s = 1: P_0^k = {95, 92}, P_1^k = {87, 79}, and 79 is beaten by 91, 82, 88 and 84."""


class Five(sap_.SapEqual):
    partitions = 5


@pytest.mark.kernels
def test_figure_3_an_equal_partition() -> None:
    live = fed(Five, 2, 30, 1, [*FIGURE_3, 40.0])  # 95 has slid out, and 40 has begun a unit
    s = live._state
    assert (s.n[FRONT], s.n[PART]) == (0, 4)
    assert s.parts.sizes.tolist()[:5] == [6] * 5
    assert scores_of(live, FIGURE_3) == [92.0, 91.0]
    of_0 = entries(s, 0, s.n[LEFT]) + entries(s, s.n[RIGHT], len(s.kept.scores))
    assert [-row[0] for row in of_0 if row[1] >= -6] == [92.0]  # of P_0^k
    assert -s.parts.scores[1] == 79.0
    assert [[-row[0] for row in stack] for stack in stacked(s)] == [[89.0]]  # F_θ is 88


@pytest.mark.kernels
def test_figure_3_a_partition_with_nothing_meaningful_is_not_scanned() -> None:
    live = fed(Five, 2, 30, 1, [*FIGURE_3, *[40.0] * 7])
    s = live._state
    assert s.n[FRONT] == 1
    assert s.parts.state[1] == NEEDLESS  # four rows beat 79: ρ >= k
    assert stacked(s) == []
    assert scores_of(live, FIGURE_3) == [91.0, 88.0]


@pytest.mark.kernels
def test_figure_4_merging_refines() -> None:
    """86 and 90 come: 75 and 78 are beaten by both and removed, what is between is beaten once."""

    class Three(sap_.SapEqual):
        partitions = 3

    scores = [75.0, 93.0, 60.0, 78.0, 88.0, 61.0, 86.0, 90.0, 62.0]
    live = fed(Three, 2, 9, 1, scores[:6])
    assert candidates_of(live) == [93.0, 75.0]  # of the first unit; the second is not complete
    live = fed(Three, 2, 9, 1, [*scores, 50.0])
    assert candidates_of(live) == [93.0, 90.0, 88.0, 86.0]
    s = live._state
    rest = range(s.n[RIGHT], len(s.kept.scores))
    assert [int(s.kept.dominators[i]) for i in (*range(s.n[LEFT]), *rest)] == [0, 0, 1, 0]


FIGURE_5 = [
    *(80.0, 79.0, 75.0),  # s_1
    *(94.0, 93.0, 70.0),
    *(92.0, 74.0, 73.0),
    *(83.0, 72.0, 71.0),
    *(81.0, 69.0, 68.0),
    *(89.0, 67.0, 66.0),
    *(91.0, 82.0, 65.0),  # s_7
    *(90.0, 84.0, 78.0),
    *(86.0, 64.0, 63.0),
    *(77.0, 76.0, 62.0),  # s_10
]
"""Figures 2 and 5: n = 21, k = 2, s = 3; the predicted sets of Figure 2 say where the best stand."""


@every_variant
@pytest.mark.kernels
def test_figure_5_windows_1_to_4(algorithm: Any) -> None:
    answers = [[94.0, 93.0], [94.0, 93.0], [92.0, 91.0], [91.0, 90.0]]
    for window, answer in enumerate(answers):
        live = fed(algorithm, 2, 21, 3, FIGURE_5[: 21 + 3 * window])
        assert scores_of(live, FIGURE_5) == answer
        s = live._state
        for unit in range(s.n[OLDEST], s.n[UNIT]):
            assert s.units.sizes[unit % len(s.units.first)] % 3 == 0  # whole slides


@pytest.mark.kernels
def test_figure_5_fewer_candidates_than_predicted() -> None:
    """MinTopK keeps 94, 93, 92, 91, 90, 89 and 84 on its way; the partitions' best are fewer."""
    live = fed(sap_.SapEqual, 2, 21, 3, FIGURE_5)
    assert candidates_of(live) == [91.0, 90.0]


driver = numba.njit(nogil=True, error_model="numpy")


@driver
def opened_stacks(stacks: Any, limit: int) -> None:
    savl.open_stacks(stacks, 0, limit)


@driver
def added(stacks: Any, score: float, position: int, label: int) -> Any:
    return savl.add(stacks, 0, score, position, label)


@driver
def turned(stacks: Any) -> None:
    savl.load(stacks, savl.close_stacks(stacks, 0))


@driver
def best_of(stacks: Any, bar: int, taken: Any) -> Any:
    node = savl.best(stacks, bar)
    if node != NONE and taken:
        score = stacks.scores[node]
        savl.pop(stacks)
        return score
    return np.nan if node == NONE else stacks.scores[node]


@driver
def cleared(stacks: Any) -> Any:
    savl.clear(stacks)
    return savl.room(stacks)


def stacks_from_the_bottom(stacks: Any) -> list[list[float]]:
    """What is being built, the paper's way round, S_1 first (the lowest top)."""
    found = []
    for node in stacks.built[0, : stacks.sizes[savl.BUILT]].tolist()[::-1]:
        stack = []
        while node != NONE:
            stack.append(-float(stacks.scores[node]))
            node = int(stacks.below[node])
        found.append(stack[::-1])
    return found


@pytest.mark.kernels
def test_figure_8_an_s_avl_step_by_step() -> None:
    """k = 3: 30, 31, 36, then 34 goes on 31 although it also beats 30, then 35 goes on 34."""
    stacks = empty_savl(16)
    opened_stacks(stacks, 3)
    steps = {
        30: [],
        31: [],
        36: [[30], [31], [36]],
        34: [[30], [31, 34], [36]],
        35: [[30], [31, 34, 35], [36]],
        29: [[30], [31, 34, 35], [36]],  # three tops beat it
        33: [[30, 33], [31, 34, 35], [36]],
        40: [[30, 33], [31, 34, 35], [36, 40]],
    }
    for age, (score, expected) in enumerate(steps.items()):
        taken = added(stacks, -float(score), 50 - age, 50 - age)
        assert taken == (score != 29)
        if expected:
            assert stacks_from_the_bottom(stacks) == expected
    assert stacks.sizes[LIMIT] == 3
    turned(stacks)
    assert [-best_of(stacks, 0, True) for _ in range(7)] == [40, 36, 35, 34, 33, 31, 30]


@pytest.mark.kernels
def test_an_s_avl_skips_what_has_expired() -> None:
    stacks = empty_savl(8)
    opened_stacks(stacks, 1)
    for score, label in ((5.0, 9), (4.0, 8), (3.0, 7)):
        assert added(stacks, score, label, label)
    turned(stacks)
    assert best_of(stacks, 7, False) == 4.0
    assert cleared(stacks) == 8
    assert np.isnan(best_of(stacks, 0, False))


@driver
def sorted_pairs(pairs: Any, size: int, wanted: int) -> None:
    scored.sort(pairs, size, wanted)


@driver
def selected_pairs(pairs: Any, size: int, wanted: int) -> None:
    scored.select(pairs, size, wanted)


@pytest.mark.kernels
@tried
@given(
    size=some.integers(1, 150),
    seed=some.integers(0, 99),
    order=some.sampled_from(["any", "rising", "falling"]),
    data=some.data(),
)
def test_pairs_are_sorted_and_selected(
    size: int, seed: int, order: str, data: some.DataObject
) -> None:
    scores = np.random.default_rng(seed).integers(0, 50, size).tolist()
    if order != "any":
        scores.sort(reverse=order == "falling")
    wanted = data.draw(some.integers(1, size))
    expected = sorted((float(score), -row) for row, score in enumerate(scores))
    for work in (sorted_pairs, selected_pairs):
        pairs = Scored(np.zeros(2 * size), np.zeros(2 * size, np.int64))
        pairs.scores[:size], pairs.rows[:size] = scores, range(size)
        work(pairs, size, wanted)
        found = [(float(pairs.scores[i]), -int(pairs.rows[i])) for i in range(size)]
        assert sorted(found) == expected
        if work is sorted_pairs:
            assert found[:wanted] == expected[:wanted]
        else:
            assert max(found[:wanted]) == found[wanted - 1] == expected[wanted - 1]


# --------------------------------------------------------------------------------------
# The partitioners


@pytest.mark.kernels
def test_a_rank_test_needs_a_table_for_small_samples() -> None:
    """Of 10 against 10 rows: 78 to 132 is the usual table's region at 0.05, two-sided."""
    assert sap_.rank_sum_bounds(10, 10)[10] in (131.0, 132.0)


@pytest.mark.skipif(not JIT, reason="too slow without compiled kernels")
def test_units_join_while_nothing_changes_and_part_when_scores_rise() -> None:
    n, k = 10_000, 20
    level = np.random.default_rng(1).random(n)
    rising = level - np.arange(n) / 1000
    parts = {}
    for name, scores in (("level", level), ("rising", rising)):
        live = fed(sap_.SapDynamic, k, n, 1, (-scores).tolist())
        parts[name] = live.stats()["partitions"]
    assert parts["level"] < live.stats()["units"] / 2
    assert parts["rising"] > parts["level"]


@pytest.mark.skipif(not JIT, reason="too slow without compiled kernels")
def test_k_units_are_those_that_scores_fall_after() -> None:
    """Figure 7: where scores fall the unit before remains a k-unit."""
    random, n, k = np.random.default_rng(1), 10_000, 20
    unit = 434  # n / ceil(sqrt(n / k)), rounded down
    scores = [1000 + random.random() - 50 * max(0, i // unit - 5) for i in range(9 * unit + 1)]
    live = fed(sap_.SapEnhanced, k, n, 1, scores)
    assert live._state.units.k_unit[:9].tolist()[:5] == [0, 0, 0, 0, 0]
    assert live._state.units.k_unit[5:9].tolist() == [1, 1, 1, 1]


@every_variant
@pytest.mark.kernels
def test_more_rows_than_the_window_holds_at_once(algorithm: Any) -> None:
    """k >= n, s = n: each slide replaces all."""
    for seen in (4, 8, 12):
        live = fed(algorithm, 9, 4, 4, [float(i * 7 % 5) for i in range(seen)])
        assert says(live.answer(4)) == list(range(seen - 3, seen + 1))


@pytest.mark.kernels
def test_time_windows_count_rows_not_nanoseconds() -> None:
    """An hour in nanoseconds, a row a second: units must not be of a few milliseconds."""
    hour, second = 3_600_000_000_000, 1_000_000_000
    rows = 200
    stream = Ranked(
        [float(i * 37 % 101) for i in range(rows)],
        [second * (i + 1) for i in range(rows)],
        [(rows, second * rows)],
        2,
        hour,
        1,
    )
    live = opened(sap_.SapEqual, stream)
    live.advance(second * rows)
    push(live, stream, range(rows))
    live.check()
    assert live.stats()["units"] < 20
    assert says(live.answer(hour)) == stream.answer(rows, second * rows, hour)


@every_variant
@pytest.mark.kernels
def test_a_threshold_that_was_guessed_wrong_costs_no_answer(algorithm: Any) -> None:
    """After a pause worse rows come, none of which reaches τ; then all that reached it expire."""
    labels = [1 + i // 2 for i in range(20)] + [36, 37, 38, 39, 40]
    scores = [float(i) for i in range(20)] + [50.0, 60.0, 55.0, 70.0, 65.0]
    stream = Ranked(scores, labels, [(25, 40), (25, 52)], 3, 40, 1)
    live, start = opened(algorithm, stream), 0
    for seen, clock in stream.stops:
        live.advance(clock)
        push(live, stream, range(start, seen))
        live.check()
        assert says(live.answer(40)) == stream.answer(seen, clock, 40)
        start = seen
    assert says(live.answer(40)) == [21, 22, 23]


@every_variant
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("clock", [97, 102, 104, 105])
@pytest.mark.kernels
def test_a_guess_ends_with_its_unit(algorithm: Any, clock: int, each: bool) -> None:
    """Of rows 17 to 25, a unit, those that reach the τ of the unit before go first; then there is no
    unit coming in whose other rows might be wanted."""
    labels = [*range(1, 26), clock + 1, clock + 2]
    scores = [0.0] * 20 + [1.0] * 5 + [0.5, 2.0]
    stops = [(20, 20), (25, 25), (25, clock), (26, clock + 1), (27, clock + 2)]
    stream = Ranked(scores, labels, stops, 4, 80, 1)
    live, start = opened(algorithm, stream), 0
    for seen, now in stream.stops:
        rows = range(start, seen)
        if each:
            live.each(*stream.arrays(rows), np.array([now]))
        else:
            live.advance(now)
            live.check()
            push(live, stream, rows)
        assert says(live.answer(80)) == stream.answer(seen, now, 80)
        live.check()
        start = seen
