"""MinTopK: Figure 2 of "SAP: Improving Continuous Top-K Queries", and what must hold at all times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from skytide.algorithms.topk.mintopk import MinTopK
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
