"""Pruning a batch against the oracle: each row is judged by the rows behind it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import oracles
from conformance import EXAMPLES, JIT, rows_of
from skytide import dominance
from skytide.dominance import CHUNK, CORNERS, MOST_PIVOTS, PACKED, ROWS, SPARE_PIVOTS, survivors
from skytide.structures.blocks import LANES

tried = settings(max_examples=3 * EXAMPLES, deadline=None)
seeded = settings(max_examples=EXAMPLES, deadline=None)

FIRST_CHUNKS = [LANES * (2**i - 1) for i in range(1, 6)]
"""Where the first chunks end, counted from the youngest row: they double from 64 to 1,024."""


def kept(values: Any, k: int = 1, newest: bool = False) -> list[int]:
    """The truth, in the words of ``survivors``."""
    return [p - 1 for p in oracles.kept(values, oracles.everything(len(values)), k, newest)]


def gridded(seed: int, rows: int, dims: int, levels: int) -> Any:
    """Rows on a grid, infinities at its rim; anti-correlated for odd seeds, so that many survive."""
    random = np.random.default_rng(seed)
    values = random.random((rows, dims))
    if seed % 2:
        values += random.normal(0, 0.05, (rows, 1)) - values.mean(axis=1, keepdims=True)
    values = np.floor(levels * values)
    values[values == values.max(initial=-1)] = np.inf
    values[values == values.min(initial=levels)] = -np.inf
    values[values == 0] = random.choice([0.0, -0.0], np.count_nonzero(values == 0))
    return values


@some.composite
def batches(draw: some.DrawFn) -> Any:
    """A few rows of one to six dimensions, full of ties."""
    dims = draw(some.integers(1, 6))
    rows = draw(some.lists(rows_of(dims), max_size=40))
    return np.array(rows, np.float64).reshape(-1, dims)


# --------------------------------------------------------------------------------------
# Which rows survive


@pytest.mark.kernels
@tried
@given(values=batches(), k=some.integers(1, 4), newest=some.booleans())
def test_survivors_of_a_few_rows(values: Any, k: int, newest: bool) -> None:
    found = survivors(values, k, newest)
    assert found.dtype == np.int64
    assert found.tolist() == kept(values, k, newest)


@pytest.mark.kernels
@seeded
@given(
    seed=some.integers(0, 2**32),
    rows=some.integers(0, 700 if JIT else 140),
    dims=some.integers(1, 6),
    levels=some.sampled_from([2, 4, 30, 10_000]),
    k=some.sampled_from([1, 1, 2, 3, 8]),
    newest=some.booleans(),
)
def test_survivors_of_many_rows(
    seed: int, rows: int, dims: int, levels: int, k: int, newest: bool
) -> None:
    values = gridded(seed, rows, dims, levels)
    assert survivors(values, k, newest).tolist() == kept(values, k, newest)


@pytest.mark.parametrize("dims", [2, 5])
@pytest.mark.parametrize("beyond", [-1, 0, 1])
@pytest.mark.parametrize("rows", FIRST_CHUNKS)
def test_survivors_where_chunks_end(rows: int, beyond: int, dims: int) -> None:
    values = gridded(rows, rows + beyond, dims, 20)
    for k, newest in ((1, False), (1, True), (3, False)):
        assert survivors(values, k, newest).tolist() == kept(values, k, newest)


@pytest.mark.parametrize(
    "k", [2, 12, MOST_PIVOTS - SPARE_PIVOTS + 1, MOST_PIVOTS - SPARE_PIVOTS + 2]
)
@pytest.mark.parametrize("newest", [False, True])
def test_survivors_for_k_with_pivots_and_too_great_for_them(k: int, newest: bool) -> None:
    for dims in (2, 4):
        values = gridded(k, 1500, dims, 12)
        assert survivors(values, k, newest).tolist() == kept(values, k, newest)


@pytest.mark.kernels
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_no_killer_counts_twice(k: int) -> None:
    """Two rows beat all others; they become pivots early, and stay in the front."""
    rows = 3 * CHUNK if JIT else 3 * LANES
    steps = np.arange(rows, dtype=np.float64)
    values = np.column_stack([steps, -steps, np.zeros(rows)])
    values[-2:] = [[-1, -rows, 0], [-1, -rows, -1]]
    expected = {1: [rows - 1], 2: [rows - 2, rows - 1]}
    assert survivors(values, k).tolist() == expected.get(k, list(range(rows)))


@pytest.mark.kernels
@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("first", [0.0, -0.0, 1e308, np.inf, -np.inf])
def test_a_pivot_spares_its_equals(first: float, newest: bool) -> None:
    """Equal rows, of which one became a pivot because it killed what lies between them."""
    rows = 3 * CHUNK if JIT else 4 * LANES
    values = np.full((rows, 2), [first, 1.0])
    values[1::2, 1] = 2  # beaten by all the others, though equal to them in the first dimension
    assert survivors(values, 1, newest).tolist() == kept_of_two(rows, newest)


def kept_of_two(rows: int, newest: bool) -> list[int]:
    """The even rows and the last; of equal ones only the youngest if so asked."""
    return [rows - 2, rows - 1] if newest else [*range(0, rows, 2), rows - 1]


@pytest.mark.parametrize("dims", [2, 3, 5])
def test_a_front_of_more_than_64_blocks(dims: int) -> None:
    """Corner blocks hold 64 corners each; nothing may be lost where one is full."""
    rows = LANES * LANES + 900
    random = np.random.default_rng(dims)
    values = random.random((rows, dims))
    values[:, 0] = dims - values[:, 1:].sum(axis=1)  # all on one plane: none beats another
    assert survivors(values).tolist() == list(range(rows))
    worse = values[random.permutation(rows)[:500]] + 1e-9
    assert survivors(np.vstack([worse, values])).tolist() == list(range(500, 500 + rows))
    assert len(survivors(np.vstack([values, worse]))) == rows + 500


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("dims", [2, 3, 4, 5, 6])
def test_pruning_in_parts_first_changes_nothing(dims: int, k: int, newest: bool) -> None:
    """What a part loses is beaten k times by younger rows of it: so it is by those of the whole."""
    values = gridded(2 * dims + k, 5_000, dims, 40)
    whole = survivors(values, k, newest)
    ends = [0, 900, 1_000, 3_500, 5_000]
    left = [a + survivors(values[a:b], k, newest) for a, b in pairwise(ends)]
    rows = np.concatenate(left)
    assert np.array_equal(rows[survivors(values[rows], k, newest)], whole)
    assert np.array_equal(whole[survivors(values[whole], k, newest)], whole)


# --------------------------------------------------------------------------------------
# What can be given


@pytest.mark.kernels
@pytest.mark.parametrize("shape", [(0, 1), (0, 5), (1, 1), (1, 6)])
def test_survivors_of_none_and_of_one(shape: tuple[int, int]) -> None:
    assert survivors(np.zeros(shape)).tolist() == list(range(shape[0]))


@pytest.mark.parametrize("make", [np.asfortranarray, lambda v: v[::-1][::-1], lambda v: v.tolist()])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int8, np.uint16])
def test_any_layout_and_type_of_number(make: Any, dtype: Any) -> None:
    values = np.random.default_rng(8).integers(0, 9, (300, 3))
    given_rows = make(values.astype(dtype))
    assert survivors(given_rows).tolist() == kept(values)


def test_values_are_neither_changed_nor_need_be_writable() -> None:
    values = np.random.default_rng(9).random((500, 2))
    before = values.copy()
    values.flags.writeable = False
    assert survivors(values).tolist() == kept(before)
    assert np.array_equal(values, before)


@pytest.mark.parametrize("values", [[], [1.0, 2.0], np.zeros((2, 2, 2))])
def test_what_is_no_table_is_refused(values: Any) -> None:
    with pytest.raises(ValueError, match="expected rows of numbers"):
        survivors(values)


# --------------------------------------------------------------------------------------
# The parts: bits, leaves of a k-d tree, the packed front


@numba.njit
def bits_of(word: Any, count: int) -> Any:
    """What the helpers say about a word of 64 bits, and about a count."""
    return dominance.lowest(word), dominance.highest(word), dominance.first_lanes(count)


@pytest.mark.kernels
@tried
@given(word=some.integers(1, 2**64 - 1), count=some.integers(0, 70))
def test_bits(word: int, count: int) -> None:
    low, high, lanes = bits_of(np.uint64(word), count)
    assert low == (word & -word).bit_length() - 1
    assert high == word.bit_length() - 1
    assert int(lanes) == 2 ** min(count, 64) - 1


@numba.njit
def lanes_of(points: Any, rows: Any) -> Any:
    """Both comparisons with the only row."""
    at_most = dominance.lanes_at_most(points, 0, rows, 0)
    return at_most, dominance.lanes_at_least(points, 0, rows, 0)


@pytest.mark.kernels
@seeded
@given(data=some.data(), dims=some.integers(1, 6))
def test_lanes(data: some.DataObject, dims: int) -> None:
    rows = data.draw(some.lists(rows_of(dims), min_size=2, max_size=LANES + 1))
    point, others = np.array(rows[:1]), np.array(rows[1:])
    points = np.full((1, dims, LANES), np.nan)  # empty lanes match nothing
    points[0, :, : len(others)] = others.T
    at_most, at_least = lanes_of(points, point)
    assert [i for i in range(64) if int(at_most) >> i & 1] == list(
        np.flatnonzero((others <= point).all(axis=1))
    )
    assert [i for i in range(64) if int(at_least) >> i & 1] == list(
        np.flatnonzero((others >= point).all(axis=1))
    )


@pytest.mark.kernels
@seeded
@given(seed=some.integers(0, 2**32), rows=some.integers(0, 400), dims=some.integers(1, 4))
def test_leaf_order(seed: int, rows: int, dims: int) -> None:
    columns = np.random.default_rng(seed).integers(0, 40, (dims, rows)).astype(np.float64)
    order = dominance.leaf_order(columns)
    assert sorted(order.tolist()) == list(range(rows))
    check_split(columns, order, 0)


def check_split(columns: Any, order: Any, dim: int) -> None:
    """The two halves are whole leaves and do not overlap in the dimension they were split in."""
    if len(order) <= LANES:
        return
    leaves = -(-len(order) // LANES)
    middle = (leaves + 1) // 2 * LANES
    first, second = order[:middle], order[middle:]
    assert columns[dim, first].max() <= columns[dim, second].min()
    check_split(columns, first, (dim + 1) % len(columns))
    check_split(columns, second, (dim + 1) % len(columns))


@pytest.mark.kernels
@pytest.mark.parametrize("rows", [1, 63, 64, 65, 200])
def test_packing_keeps_rows_and_their_hits(rows: int) -> None:
    front = dominance.new_front(rows + 10, 2)
    values = np.random.default_rng(rows).random((rows, 2))
    for place, row in enumerate(values):
        front.points[place // LANES, :, place % LANES] = row
    front.hits[:rows] = np.arange(rows)
    front.sizes[ROWS] = rows
    dominance.pack(front)
    assert front.sizes[PACKED] == rows
    places = [(place // LANES, slice(None), place % LANES) for place in range(rows)]
    packed = np.array([front.points[place] for place in places])
    assert np.array_equal(packed, values[front.hits[:rows]])
    corners = front.points[front.sizes[CORNERS]].T
    for block in range(rows // LANES):
        assert np.array_equal(corners[block], packed[block * LANES :][:LANES].min(axis=0))
    assert np.all(corners[rows // LANES :] == -np.inf)
