"""Merge sort against numpy's stable sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from conformance import EXAMPLES
from skytide.kernel import kernel
from skytide.structures import merge_sort
from skytide.structures.merge_sort import LEAST, Sorting

stretches = some.lists(
    some.tuples(some.lists(some.integers(0, 9), max_size=40), some.sampled_from([None, 1, -1])),
    max_size=6,
)


@kernel
def sort(s: Sorting, size: int) -> None:
    merge_sort.sort(s, size)


@pytest.mark.kernels
@settings(max_examples=EXAMPLES, deadline=None)
@given(stretches=stretches)
def test_is_a_stable_sort(stretches: list[tuple[list[int], int | None]]) -> None:
    values: list[int] = []
    for stretch, order in stretches:
        values += sorted(stretch, reverse=order == -1) if order else stretch
    scores, size = np.array(values, float), len(values)
    s = Sorting(
        scores.copy(),
        np.arange(size),
        np.zeros(size),
        np.zeros(size, np.int64),
        np.zeros(size // LEAST + 2, np.int64),
    )
    sort(s, size)
    order = np.argsort(scores, kind="stable")
    assert np.array_equal(s.rows, order)
    assert np.array_equal(s.scores, scores[order])
