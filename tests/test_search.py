"""Search in plain arrays, against looking at every place."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from skytide.structures import search

driver = numba.njit(nogil=True, error_model="numpy")


@driver
def first_after(labels, start, label):  # type: ignore[no-untyped-def]
    return search.first_after(labels, start, label)


@driver
def first_up_to(values, start, stop, bar):  # type: ignore[no-untyped-def]
    return search.first_up_to(values, start, stop, bar)


@driver
def last_under(values, start, stop, bar):  # type: ignore[no-untyped-def]
    return search.last_under(values, start, stop, bar)


@pytest.mark.kernels
@settings(deadline=None)
@given(some.lists(some.integers(-9, 40), max_size=60).map(sorted), some.data())
def test_first_after(labels: list[int], data: some.DataObject) -> None:
    start, label = data.draw(some.integers(0, len(labels))), data.draw(some.integers(-10, 41))
    expected = next((i for i in range(start, len(labels)) if labels[i] > label), len(labels))
    assert first_after(np.array(labels, np.int64), start, label) == expected


@pytest.mark.kernels
@settings(deadline=None)
@given(
    rows=some.integers(0, 70),
    others=some.dictionaries(
        some.integers(0, 69), some.sampled_from([-np.inf, 0.0, 1.0, np.inf]), max_size=3
    ),
    data=some.data(),
)
def test_first_up_to_and_last_under(
    rows: int, others: dict[int, float], data: some.DataObject
) -> None:
    values = np.array([others.get(i, 2.0) for i in range(rows)], np.float64)
    stop = data.draw(some.integers(0, rows))
    start, bar = data.draw(some.integers(0, stop)), data.draw(some.sampled_from([0.0, 1.0, np.inf]))
    stretch = range(start, stop)
    first = next((i for i in stretch if values[i] <= bar), stop)
    assert first_up_to(values, start, stop, bar) == first
    last = next((i for i in reversed(stretch) if values[i] < bar), start - 1)
    assert last_under(values, start, stop, bar) == last
