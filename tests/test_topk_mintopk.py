"""MinTopK: Figure 2 of "SAP: Improving Continuous Top-K Queries", and what must hold at all times."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from conformance import JIT, says
from skytide.algorithms.topk.mintopk import INDEXED, MinTopK
from topk_conformance import ranked, replay

# Slides s1 to s8 of the figure, n = 21, k = 2, s = 3.  The text names the rows from 78 up and tells by
# the predicted results which slide each is of; those below it are of no consequence.
SLIDES = [[70, 66, 71], [94, 93, 60], [92, 75, 63], [72, 68, 77], [61, 74, 69], [89, 73, 64]]
SEVENTH, EIGHTH = [91, 82, 65], [90, 84, 78]


def pushed(live: MinTopK, slides: list[list[int]], clock: int) -> int:
    """Push slides one by one; the paper's better is greater, ours less."""
    for slide in slides:
        labels = np.arange(clock + 1, clock + 4)
        clock += 3
        live.advance(clock)
        live.push(-np.array(slide, float).reshape(-1, 1), labels, labels)
        live.check()
    return clock


def predicted(live: MinTopK, slides: list[list[int]]) -> list[list[int]]:
    """The predicted results, as scores, from the current window on."""
    score = np.concatenate(slides)
    return [score[np.array(result) - 1].tolist() for result in live.predicted().values()]


def scores_of(positions: Any, slides: list[list[int]]) -> set[int]:
    return set(np.concatenate(slides)[positions - 1].tolist())


@pytest.mark.kernels
def test_figure_2_predicted_result_sets() -> None:
    live, slides = MinTopK(1, 2, True, 21, 3), [*SLIDES, SEVENTH]
    clock = pushed(live, slides, 0)
    assert predicted(live, slides) == [
        [94, 93],  # R1
        [94, 93],
        [92, 91],
        [91, 89],
        [91, 89],
        [91, 89],
        [91, 82],  # R7
    ]
    assert scores_of(live.kept(), slides) == {94, 93, 92, 91, 89, 82}

    slides = [*slides, EIGHTH]
    pushed(live, [EIGHTH], clock)
    assert predicted(live, slides) == [
        [94, 93],  # R2
        [92, 91],
        [91, 90],  # 90 is in all results from W4 on, and 89 and 82 in none
        [91, 90],
        [91, 90],
        [91, 90],
        [90, 84],  # 84 in that of W8 only, and 78 in none
    ]
    assert scores_of(live.kept(), slides) == {94, 93, 92, 91, 90, 84}


@pytest.mark.kernels
@settings(max_examples=60, deadline=None)
@given(data=some.data())
def test_pointers_and_candidates_are_those_of_the_predicted_results(data: Any) -> None:
    for live, _, _ in replay(MinTopK, data.draw(ranked())):
        live.check()


def best_of(scores: Any, window: range, k: int) -> list[int]:
    """The truth: positions count from 1, and of equal scores the younger is better."""
    return sorted(i + 1 for i in sorted(window, key=lambda i: (scores[i], -i))[:k])


@pytest.mark.kernels
@settings(max_examples=200 if JIT else 30, deadline=None)
@given(
    scores=some.lists(some.integers(0, 3).map(float), min_size=1, max_size=60),
    cuts=some.lists(some.integers(0, 60) | some.sampled_from([1, 2, 3, 21, 22, 41]), max_size=3),
    k=some.integers(1, 5),
    trend=some.sampled_from([0.0, 0.2, -0.2]),
)
def test_a_slide_of_many_rows_that_comes_in_pieces(
    scores: list[float], cuts: list[int], k: int, trend: float
) -> None:
    every, rows = 20, len(scores)
    values = np.array(scores) + trend * np.arange(rows)
    live = MinTopK(1, k, True, 40, every)
    for start in range(0, rows, every):
        stop = min(start + every, rows)
        live.advance(start + every)
        pieces = sorted({start, stop, *(cut for cut in cuts if start < cut < stop)})
        for first, last in pairwise(pieces):
            labels = np.arange(first + 1, last + 1)
            live.push(values[first:last].reshape(-1, 1), labels, labels)
            live.check()
            window = range(max(0, start + every - 40), last)
            assert says(live.answer(40)) == best_of(values, window, k)


@pytest.mark.kernels
def test_equal_to_rows_of_the_slide_that_came_in_before() -> None:
    live, labels = MinTopK(1, 3, True, 20, 20), np.arange(1, 9)
    live.advance(20)
    scores = np.array([[0.0], [0.0], [0.0], [0.0], [1.0], [5.0], [5.0], [5.0]])
    live.push(scores[:2], labels[:2], labels[:2])
    live.push(scores[2:], labels[2:], labels[2:])
    assert says(live.answer(20)) == [2, 3, 4]


LONG = {
    "uniform": lambda random, at: random.random(len(at)),
    "few": lambda random, at: random.integers(0, 30, len(at)).astype(float),
    "waves": lambda random, at: np.sin(at / 900) + random.random(len(at)),
    "rising": lambda random, at: -at,
    "constant": lambda random, at: 0.0 * at,
}


@pytest.mark.skipif(not JIT, reason="too slow without compiled kernels")
@pytest.mark.parametrize("kind", LONG)
def test_places_found_by_walking_and_by_the_index(kind: str) -> None:
    random, at = np.random.default_rng(7), np.arange(12_000.0)
    scores, indexed = LONG[kind](random, at), set()
    live = MinTopK(1, 300, True, 2_000, 250)
    for stop in range(250, 12_001, 250):
        labels = np.arange(stop - 249, stop + 1)
        live.advance(stop)
        live.push(scores[stop - 250 : stop].reshape(-1, 1), labels, labels)
        live.check()
        window = range(max(0, stop - 2_000), stop)
        assert says(live.answer(2_000)) == best_of(scores, window, 300)
        indexed.add(bool(live._state.sizes[INDEXED]))
    assert kind in ("rising", "constant") or indexed == {True, False}
