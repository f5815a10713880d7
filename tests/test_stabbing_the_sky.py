"""The worked examples of "Stabbing the Sky" by name, on the implementation and on the public face.

``test_oracles.py`` holds the oracles to the same examples, ``test_conformance.py`` every algorithm.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skytide as st
from paper_streams import (
    EXAMPLE_1,
    EXAMPLE_1_INTERVALS,
    FIGURE_2,
    FIGURE_2_ANSWERS,
    FIGURE_5,
    FIGURE_5_ANSWERS,
    FIGURE_5_INTERVALS,
    NAMES,
    letters,
)
from skytide.algorithms.sliding.n12_of_n import N12ofN
from skytide.algorithms.sliding.n_of_n import NofN, NofNTree
from skytide.structures.forest import POSITION, WHEN
from skytide.structures.interval_tree import ALWAYS

maintained = pytest.mark.parametrize("algorithm", [NofN, NofNTree, N12ofN])


def after(algorithm: Any, points: list[tuple[int, int]], length: int = 7) -> Any:
    """An algorithm that has seen these rows, one by one."""
    live = algorithm(2, 1, False, length)
    take(live, points, 1)
    return live


def take(live: Any, points: list[tuple[int, int]], first: int) -> None:
    """Push rows from this position on."""
    at = np.arange(first, first + len(points))
    live.push_each(np.array(points, np.float64).reshape(-1, 2), at, at)


def intervals(live: Any) -> set[tuple[int, int]]:
    """(position of the critical ancestor or 0, own position] of the rows that are not redundant."""
    kept = live._kept.forest
    slots = live._kept.flat.slots[live._kept.flat.slots >= 0]
    ends = {int(kept.facts[slot, POSITION]): int(kept.ancestors[slot, WHEN, 0]) for slot in slots}
    return {(0 if left == ALWAYS else left, right) for right, left in ends.items()}


def table(points: list[tuple[int, int]]) -> pa.Table:
    """The rows with their letters."""
    return pa.table({"name": list(NAMES[: len(points)]), **columns(points)})


def columns(points: list[tuple[int, int]]) -> dict[str, list[int]]:
    """The preferences."""
    return {"x": [x for x, _ in points], "y": [y for _, y in points]}


QUESTION = st.skyline(st.low("x"), st.low("y"))


def said(answer: pa.Table) -> str:
    """The letters of an answer."""
    return "".join(answer["name"].to_pylist())


@pytest.mark.kernels
@maintained
def test_example_1_only_the_youngest_dominator_holds_a_lock(algorithm: Any) -> None:
    assert intervals(after(algorithm, EXAMPLE_1)) == EXAMPLE_1_INTERVALS


@pytest.mark.kernels
@pytest.mark.parametrize("algorithm", [NofN, NofNTree])
def test_example_2_a_and_b_are_redundant(algorithm: Any) -> None:
    assert letters(after(algorithm, FIGURE_5).kept().tolist()) == "cefgh"


@pytest.mark.kernels
@maintained
def test_example_3_five_intervals_encode_the_graph(algorithm: Any) -> None:
    live = after(algorithm, FIGURE_5)
    assert intervals(live) == FIGURE_5_INTERVALS
    assert letters(live.answer(6).tolist()) == "ce"


@pytest.mark.kernels
@maintained
def test_example_4_c_expires_and_h_takes_its_place(algorithm: Any) -> None:
    live = algorithm(2, 1, False, 5)
    name = live.watch(4)
    answer: set[int] = set()
    for position, (point, expected) in enumerate(zip(FIGURE_5, TOLD, strict=True), 1):
        take(live, [point], position)
        for who, what, sign in zip(*live.events(), strict=True):
            assert who == name
            assert (what in answer) == (sign < 0)
            answer ^= {int(what)}
        assert letters(sorted(answer)) == expected


TOLD = ["a", "ab", "c", "ce", "ce", "ce", "eh"]
"""The skyline of the last 4 of Figure 5 after each element."""


@pytest.mark.parametrize(("seen", "n"), FIGURE_2_ANSWERS)
def test_figure_2_on_the_public_face(seen: int, n: int) -> None:
    live = QUESTION.over(st.last(6)).open()
    live.push(table(FIGURE_2[:seen]))
    assert said(live.answer(last=n)) == FIGURE_2_ANSWERS[seen, n]


@pytest.mark.parametrize(("seen", "n"), FIGURE_5_ANSWERS)
def test_figure_5_on_the_public_face_in_the_past_too(seen: int, n: int) -> None:
    live = QUESTION.over(st.last(7, history=True)).open()
    live.push(table(FIGURE_5))
    younger = len(FIGURE_5) - seen
    answer = live.answer(between=(younger + 1, younger + n))
    assert said(answer) == FIGURE_5_ANSWERS[seen, n]


@pytest.mark.kernels
def test_theorem_4_every_part_of_both_streams() -> None:
    for points in (FIGURE_2, FIGURE_5):
        live = after(N12ofN, points)
        for lo in range(1, 8):
            for hi in range(lo, 8):
                expected = [
                    p
                    for p in range(lo, hi + 1)
                    if not any(beats(points[q - 1], points[p - 1]) for q in range(lo, hi + 1))
                ]
                assert live.answer_between(lo - 1, hi).tolist() == expected


def beats(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Standard dominance."""
    return one != other and one[0] <= other[0] and one[1] <= other[1]
