"""Skylines of rows that stand still: two algorithms that have nothing in common, and the oracle."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import oracles
from conformance import EXAMPLES, JIT, rows_of
from skytide.algorithms.static import klp, sfs
from skytide.algorithms.static.klp import LEAF, skyline_klp
from skytide.algorithms.static.sfs import skyline_sfs
from skytide.data import anti_correlated, correlated, independent
from skytide.dominance import CHUNK, PACK_MIN, survivors

tried = settings(max_examples=3 * EXAMPLES, deadline=None)
seeded = settings(max_examples=EXAMPLES, deadline=None)
both_ties = pytest.mark.parametrize("newest", [False, True])
both_algorithms = pytest.mark.parametrize("skyline", [skyline_sfs, skyline_klp])


def truth(values: Any, k: int = 1, newest: bool = False) -> list[int]:
    """The answer of the oracle, rows counted from 0."""
    return [p - 1 for p in oracles.skyband(values, oracles.everything(len(values)), k, newest)]


def check(values: Any, ks: tuple[int, ...] = (1, 3)) -> None:
    """Both algorithms against the oracle."""
    for newest in (False, True):
        assert skyline_klp(values, newest=newest).tolist() == truth(values, 1, newest)
        for k in ks:
            assert skyline_sfs(values, k, newest).tolist() == truth(values, k, newest)


@pytest.fixture(autouse=True, scope="module")
def small_leaves() -> Any:
    """With the JIT off, few rows are enough to be halved and married again and again."""
    with pytest.MonkeyPatch.context() as patch:
        if not JIT:
            patch.setattr(klp, "LEAF", 2)
            patch.setattr(klp, "PAIRS", 3)
        yield


@some.composite
def tables(draw: some.DrawFn, most: int = 40) -> Any:
    """A few rows of one to six dimensions, full of ties."""
    dims = draw(some.integers(1, 6))
    rows = draw(some.lists(rows_of(dims), max_size=most))
    return np.array(rows, np.float64).reshape(-1, dims)


def gridded(seed: int, rows: int, dims: int, levels: int) -> Any:
    """Rows of one of the three distributions on a grid, a few of them infinite."""
    random = np.random.default_rng(seed)
    make = (independent, correlated, anti_correlated)[seed % 3]
    values = np.floor(levels * make(rows, dims, seed))
    values[random.random((rows, dims)) < 0.01] = np.inf
    values[random.random((rows, dims)) < 0.001] = -np.inf
    values[values == 0] = random.choice([0.0, -0.0], np.count_nonzero(values == 0))
    return values


# --------------------------------------------------------------------------------------
# Small tables, full of ties


@pytest.mark.kernels
@tried
@given(values=tables(), k=some.integers(1, 5), newest=some.booleans())
def test_sfs(values: Any, k: int, newest: bool) -> None:
    found = skyline_sfs(values, k, newest)
    assert found.dtype == np.int64
    assert found.tolist() == truth(values, k, newest)


@pytest.mark.kernels
@tried
@given(values=tables(), newest=some.booleans())
def test_klp(values: Any, newest: bool) -> None:
    found = skyline_klp(values, newest)
    assert found.dtype == np.int64
    assert found.tolist() == truth(values, 1, newest)


@pytest.mark.kernels
@seeded
@given(
    seed=some.integers(0, 2**32),
    rows=some.integers(0, 600 if JIT else 60),
    dims=some.integers(1, 7),
    levels=some.sampled_from([2, 5, 30, 10_000]),
)
def test_both_on_more_rows(seed: int, rows: int, dims: int, levels: int) -> None:
    check(gridded(seed, rows, dims, levels), ks=(1, 2))


wild = some.floats(allow_nan=False) | some.sampled_from(
    [
        5e-324,
        -5e-324,
        1e-300,
        1e308,
        -1e308,
        1.7976931348623157e308,
        np.inf,
        -np.inf,
        1e16,
        1e16 + 2,
    ]
)


@pytest.mark.kernels
@tried
@given(data=some.data(), dims=some.integers(1, 4))
def test_both_on_numbers_of_any_size(data: some.DataObject, dims: int) -> None:
    """Scores must neither overflow nor order rows wrongly by rounding."""
    rows = data.draw(some.lists(some.tuples(*[wild] * dims), max_size=12))
    check(np.array(rows).reshape(-1, dims))


@pytest.mark.kernels
@tried
@given(data=some.data(), dims=some.integers(1, 4))
def test_sorted_worst_first_no_row_comes_before_one_it_beats(
    data: some.DataObject, dims: int
) -> None:
    values = np.array(data.draw(some.lists(some.tuples(*[wild] * dims), min_size=1, max_size=12)))
    score = sfs.scores(values)
    assert np.isfinite(score).all()
    place = np.empty(len(values), int)
    place[sfs.worst_first(values)] = np.arange(len(values))
    for q, p in np.argwhere(oracles.beats(values, newest=True)):  # so equal rows are in there too
        assert score[q] <= score[p]
        assert place[q] > place[p]


# --------------------------------------------------------------------------------------
# Thousands of rows: the two algorithms check each other


@both_ties
@pytest.mark.parametrize("levels", [8, 60, 2**30])
@pytest.mark.parametrize("dims", [2, 3, 4, 5, 6])
def test_the_algorithms_agree_and_pruning_loses_nothing(
    dims: int, levels: int, newest: bool
) -> None:
    for seed in range(3):
        values = gridded(seed, 5_000, dims, levels)
        skyline = skyline_klp(values, newest)
        assert np.array_equal(skyline_sfs(values, 1, newest), skyline)
        left = survivors(values, 1, newest)
        assert np.isin(skyline, left).all()
        assert np.array_equal(left[skyline_klp(values[left], newest)], skyline)


@both_ties
@pytest.mark.parametrize("dims", [2, 4, 6])
def test_skybands_grow_with_k_and_pruning_loses_nothing(dims: int, newest: bool) -> None:
    values = gridded(dims + 1, 5_000, dims, 50)
    before = skyline_klp(values, newest)
    for k in (2, 4, 9):
        band = skyline_sfs(values, k, newest)
        assert np.isin(before, band).all()
        left = survivors(values, k, newest)
        assert np.array_equal(left[skyline_sfs(values[left], k, newest)], band)
        before = band


@pytest.mark.parametrize("dims", [1, 2, 3, 4, 5, 6])
def test_the_order_of_rows_and_of_columns_does_not_matter(dims: int) -> None:
    values = gridded(5, 3_000, dims, 25)
    random = np.random.default_rng(dims)
    rows, columns = random.permutation(len(values)), random.permutation(dims)
    for skyline in (skyline_sfs, skyline_klp):
        shuffled = skyline(values[rows][:, columns])
        assert np.array_equal(np.sort(rows[shuffled]), skyline(values))


@both_algorithms
@pytest.mark.parametrize("dims", [2, 3, 4, 5])
def test_equal_rows_are_in_together_or_only_the_youngest(skyline: Any, dims: int) -> None:
    values = independent(1_000, dims, seed=6)
    alone = skyline(values)
    thrice = np.vstack([values] * 3)
    expected = np.concatenate([alone, alone + 1_000, alone + 2_000])
    assert np.array_equal(skyline(thrice), expected)
    assert np.array_equal(skyline(thrice, newest=True), alone + 2_000)


# --------------------------------------------------------------------------------------
# Shapes that could hurt


def _plane(rows: int, dims: int) -> Any:
    """All in the skyline: what one dimension gains the first loses."""
    values = np.random.default_rng(rows).integers(0, 50, (rows, dims)).astype(float)
    values[:, 0] = -values[:, 1:].sum(axis=1)
    return values


def _ladder(rows: int, dims: int) -> Any:
    return np.repeat(np.arange(rows, dtype=float)[:, None], dims, axis=1)


def _one_constant(rows: int, dims: int) -> Any:
    values = np.floor(9 * anti_correlated(rows, dims, seed=rows))
    values[:, rows % dims] = 7
    return values


def _but_one(rows: int, dims: int) -> Any:
    """All equal but for one row in the middle that beats them."""
    values = np.zeros((rows, dims))
    values[rows // 2 : rows // 2 + 1, -1] = -1
    return values


SHAPES: dict[str, Callable[[int, int], Any]] = {
    "all equal": lambda rows, dims: np.ones((rows, dims)),
    "one better": _but_one,
    "constant column": _one_constant,
    "ascending": _ladder,
    "descending": lambda rows, dims: _ladder(rows, dims)[::-1],
    "all in the skyline": _plane,
    "zeros and ones": lambda rows, dims: np.random.default_rng(rows).integers(0, 2, (rows, dims)),
    "infinities": lambda rows, dims: np.random.default_rng(rows).choice(
        [np.inf, -np.inf, 0.0], (rows, dims)
    ),
}
EDGES = (0, 1, 2, 3, LEAF - 1, LEAF, LEAF + 1, 2 * LEAF + 1, PACK_MIN + 1, 3 * LEAF, CHUNK + 1)


@pytest.mark.kernels
@pytest.mark.parametrize("dims", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_of_few_rows(shape: str, dims: int) -> None:
    for rows in (0, 1, 2, 3, 9, 20):
        check(SHAPES[shape](rows, dims))


@pytest.mark.parametrize("dims", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_at_the_edges_of_leaves_and_chunks(shape: str, dims: int) -> None:
    for rows in EDGES:
        values = SHAPES[shape](rows, dims)
        for newest in (False, True):
            expected = truth(values, 1, newest)
            assert skyline_klp(values, newest=newest).tolist() == expected
            assert skyline_sfs(values, 1, newest).tolist() == expected


@pytest.mark.parametrize("dims", [2, 3, 4, 5, 6])
def test_thousands_of_rows_all_in_the_skyline(dims: int) -> None:
    values = _plane(6_000, dims)
    for skyline in (skyline_sfs, skyline_klp):
        assert skyline(values).tolist() == list(range(6_000))


@pytest.mark.parametrize("rows", [5 * LEAF, 8 * LEAF, 8 * LEAF + 1, 1_500])
@pytest.mark.parametrize("dims", [4, 5, 6, 7])
def test_marriages_of_halves_that_hold_many_equal_coordinates(rows: int, dims: int) -> None:
    """Whatever equals the median goes with both sides of it, and must not go for ever."""
    for levels in (2, 3, 6, 40):
        values = np.random.default_rng(levels).integers(0, levels, (rows, dims)).astype(float)
        values[:, 0] = 2 * levels - values[:, 1:3].sum(axis=1)  # few beat another
        assert skyline_klp(values).tolist() == truth(values)


# --------------------------------------------------------------------------------------
# What can be given


@both_algorithms
@pytest.mark.parametrize("make", [np.asfortranarray, lambda v: v[::-1][::-1], lambda v: v.tolist()])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int8, np.uint16])
def test_any_layout_and_type_of_number(skyline: Any, make: Any, dtype: Any) -> None:
    values = np.random.default_rng(8).integers(0, 9, (300, 4))
    assert skyline(make(values.astype(dtype))).tolist() == truth(values)


@both_algorithms
@both_ties
@pytest.mark.parametrize("dims", [1, 2, 3, 4])
def test_values_are_neither_changed_nor_need_be_writable(
    skyline: Any, newest: bool, dims: int
) -> None:
    values = independent(500, dims, seed=9)
    before = values.copy()
    values.flags.writeable = False
    assert skyline(values, newest=newest).tolist() == truth(before, 1, newest)
    assert np.array_equal(values, before)


@both_algorithms
@pytest.mark.parametrize("values", [[], [1.0, 2.0], np.zeros((2, 2, 2))])
def test_what_is_no_table_is_refused(skyline: Any, values: Any) -> None:
    with pytest.raises(ValueError, match="expected rows of numbers"):
        skyline(values)


SECOND_PROCESS = """
import numpy as np
from skytide.algorithms.static.klp import skyline_klp
from skytide.algorithms.static.sfs import skyline_sfs
for dims in (2, 3, 4, 5):
    values = np.random.default_rng(dims).random((1_000, dims))
    assert np.array_equal(skyline_klp(values), skyline_sfs(values))
print("done")
"""


def test_a_second_process_gets_sound_kernels_from_the_cache() -> None:
    """A recursive kernel would crash it: numba loads those broken (its issue 6061)."""
    for dims in (2, 3, 4, 5):
        values = independent(1_000, dims, seed=1)
        assert np.array_equal(skyline_klp(values), skyline_sfs(values))  # so they are in the cache
    run = subprocess.run(
        [sys.executable, "-c", SECOND_PROCESS], capture_output=True, text=True, env=dict(os.environ)
    )
    assert run.stdout == "done\n", run.stderr[-500:]
