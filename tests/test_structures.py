"""Every structure against a naive model of it, its invariants walked as it goes.

Nodes and blocks hold 64, so a single operation at a time would never fill one: a *step* is an
operation done many times over with what a seed makes up, and hypothesis draws the steps.

A ``part`` cannot be called from Python, so each structure has a driver: one function that numba
compiles here, without a cache, and that does whatever operation it is told.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from numba.core import config

from conformance import JIT
from skytide import kernel
from skytide.algorithms.sliding import kept as k_
from skytide.algorithms.sliding.n12_of_n import N12ofN
from skytide.algorithms.sliding.n_of_n import NofN, NofNTree
from skytide.structures import (
    blocks,
    compress,
    flat,
    forest,
    graph,
    heap,
    interval_tree,
    rtree,
    triggers,
)
from skytide.structures.blocks import LANES
from skytide.structures.compress import EIGHT
from skytide.structures.triggers import ALWAYS, NEVER

EXAMPLES = 60 if JIT else 20
BATCH = 90 if JIT else 70
"""A step does its operation so many times at most: more than a block holds."""

tried = settings(max_examples=EXAMPLES, deadline=None)
driver = numba.njit(nogil=True, error_model="numpy")
NO_POINT = np.zeros(0)
NOBODY = np.zeros(0, np.int64)


class Step(NamedTuple):
    """Do ``what`` about ``times`` times, with what ``seed`` makes up."""

    what: str
    times: int
    seed: int


def steps(*whats: str, longest: int = 10) -> some.SearchStrategy[list[Step]]:
    """Any steps of these kinds; who is named twice comes twice as often."""
    times = some.integers(1, 6) | some.integers(1, BATCH)
    step = some.builds(Step, some.sampled_from(whats), times, some.integers(0, 999))
    return some.lists(step, max_size=longest)


def some_points(random: Any, count: int, dims: int) -> Any:
    """Points on a grid that is mostly coarse, so that ties abound; some of them infinite."""
    points = random.integers(0, random.choice([2, 4, 40]), (count, dims)).astype(np.float64)
    points[random.random((count, dims)) < 0.03] = np.inf
    points[random.random((count, dims)) < 0.03] = -np.inf
    return np.where((points == 0) & (random.random((count, dims)) < 0.3), -0.0, points)


def a_few(random: Any, names: Any, times: int) -> list[int]:
    """At most so many different ones of these."""
    names = list(names)
    return random.permutation(names)[:times].astype(np.int64).tolist()


def beaters(points: Any, point: Any) -> Any:
    """Which of the points dominate this one?"""
    return (points <= point).all(axis=1) & (points < point).any(axis=1)


def beaten(points: Any, point: Any, equals: bool = False) -> Any:
    """Which of the points does this one dominate, or also equal?"""
    return (points >= point).all(axis=1) & (equals | (points > point).any(axis=1))


def stacked(points: Any, dims: int) -> Any:
    """Points, perhaps none, as a matrix."""
    return np.array(list(points), np.float64).reshape(-1, dims)


# --------------------------------------------------------------------------------------
# Blocks

AT_LEAST, AT_MOST, EQUALS, PUT, MOVE, WIPE = range(6)


@driver
def do_blocks(state, what, block, lane, to_block, to_lane, point):  # type: ignore[no-untyped-def]
    if what == AT_LEAST:
        return blocks.mark_at_least(state, block, point)
    if what == AT_MOST:
        return blocks.mark_at_most(state, block, point)
    if what == EQUALS:
        return blocks.lane_equals(state, block, lane, point)
    if what == PUT:
        blocks.put(state, block, lane, point)
    elif what == MOVE:
        blocks.move(state, block, lane, to_block, to_lane)
    else:
        blocks.wipe(state, block, lane)
    return True


@pytest.mark.kernels
@tried
@given(steps("put", "put", "move", "wipe"), some.integers(1, 4))
def test_blocks(todo: list[Step], dims: int) -> None:
    state = blocks.empty_blocks(3, dims)
    model = np.full((3, dims, LANES), np.nan)
    for what, times, seed in todo:
        random = np.random.default_rng(seed)
        for point in some_points(random, times, dims):
            block, lane, to_block, to_lane = random.integers(0, [3, LANES, 3, LANES]).tolist()
            code = {"put": PUT, "move": MOVE, "wipe": WIPE}[what]
            do_blocks(state, code, block, lane, to_block, to_lane, point)
            if what == "move":
                model[to_block, :, to_lane] = model[block, :, lane]
            else:
                model[block, :, lane] = point if what == "put" else np.nan
        np.testing.assert_array_equal(state.points, model)
        check_comparisons(state, some_points(random, 3, dims))


def check_comparisons(state: Any, points: Any) -> None:
    """Lanes are marked right, empty ones never, in whichever dimension the comparison ended."""
    for block, point in enumerate(points):
        lanes = state.points[block].T
        for what, matches in (AT_LEAST, point <= lanes), (AT_MOST, point >= lanes):
            expected = matches.all(axis=1)
            assert do_blocks(state, what, block, 0, 0, 0, point) == expected.any()
            assert state.mask.tolist() == expected.tolist()
        for lane in (0, 17, LANES - 1):
            same = do_blocks(state, EQUALS, block, lane, 0, 0, point)
            assert same == (lanes[lane] == point).all()


# --------------------------------------------------------------------------------------
# Flat

INSERT, REMOVE, SQUEEZE, OLDEST, FIRST_AFTER, DOMINATED, DOMINATED_EQUALS, DOMINATORS = range(8)


@driver
def do_flat(state, what, slot, label, point, k, out):  # type: ignore[no-untyped-def]
    if what == INSERT:
        flat.insert(state, slot, label, point)
    elif what == REMOVE:
        flat.remove(state, slot)
    elif what == SQUEEZE:
        flat.squeeze(state)
    elif what == OLDEST:
        return flat.oldest(state)
    elif what == FIRST_AFTER:
        return flat.first_place_after(state, label)
    elif what == DOMINATORS:
        return flat.youngest_dominators(state, point, k, label, out)
    else:
        return flat.report_dominated(state, point, what == DOMINATED_EQUALS, out)
    return 0


def check_flat(rows: Any, model: dict[int, tuple[int, Any]]) -> None:
    """Rows stand in arrival order between HEAD and TAIL, and all other places are holes.

    ``model``: label and point of each slot, in order of arrival.
    """
    head, tail, live = rows.sizes.tolist()
    places = np.flatnonzero(rows.slots != -1)
    assert rows.slots[places].tolist() == list(model)
    assert live == len(model)
    assert rows.places[rows.slots[places]].tolist() == places.tolist()
    assert 0 <= head <= tail <= len(rows.slots)
    assert ((places >= head) & (places < tail)).all()
    assert (np.diff(rows.labels[:tail]) >= 0).all()
    assert rows.labels[places].tolist() == [label for label, _ in model.values()]
    dims = rows.blocks.points.shape[1]
    expected = np.full((len(rows.slots), dims), np.nan)
    expected[places] = stacked((point for _, point in model.values()), dims)
    lanes = rows.blocks.points.transpose(0, 2, 1).reshape(-1, dims)
    np.testing.assert_array_equal(lanes, expected)


@pytest.mark.kernels
@tried
@given(
    steps("add", "add", "drop", "expire", "squeeze"),
    some.integers(1, 3),
    some.sampled_from([100, 128]),
)
def test_flat(todo: list[Step], dims: int, slots: int) -> None:
    rows = flat.empty_flat(dims, slots)
    model: dict[int, tuple[int, Any]] = {}
    label = 0
    for what, times, seed in todo:
        random = np.random.default_rng(seed)
        if what == "add":
            free = a_few(random, set(range(slots)) - set(model), times)
            for slot, point in zip(free, some_points(random, len(free), dims), strict=True):
                label += int(random.integers(0, 3))
                do_flat(rows, INSERT, slot, label, point, 0, NOBODY)
                model[slot] = label, point
                assert rows.sizes[flat.TAIL] <= LANES + len(model) * 5 // 4 + 1  # a fifth of holes
        elif what == "squeeze":
            do_flat(rows, SQUEEZE, 0, 0, NO_POINT, 0, NOBODY)
            assert rows.sizes[flat.TAIL] == len(model)
        else:
            gone = list(model)[:times] if what == "expire" else a_few(random, model, times)
            for slot in gone:
                do_flat(rows, REMOVE, slot, 0, NO_POINT, 0, NOBODY)
                del model[slot]
        check_flat(rows, model)
        ask_flat(rows, model, random, dims)
        check_flat(rows, model)


def ask_flat(rows: Any, model: dict[int, tuple[int, Any]], random: Any, dims: int) -> None:
    """Compare all searches with the model's."""
    assert do_flat(rows, OLDEST, 0, 0, NO_POINT, 0, NOBODY) == next(iter(model), -1)
    head, tail, _ = rows.sizes.tolist()
    for label in {0, *(label + i for label, _ in list(model.values())[::9] for i in (-1, 0, 1))}:
        place = do_flat(rows, FIRST_AFTER, 0, label, NO_POINT, 0, NOBODY)
        assert head <= place <= tail
        assert (rows.labels[head:place] <= label).all()
        assert (rows.labels[place:tail] > label).all()
    slots = np.array(list(model), np.int64)
    points = stacked((point for _, point in model.values()), dims)
    for point in some_points(random, 3, dims):
        for what in (DOMINATED, DOMINATED_EQUALS):
            expected = slots[beaten(points, point, what == DOMINATED_EQUALS)]
            out = np.zeros(len(expected), np.int64)  # not one place too many is needed
            assert do_flat(rows, what, 0, 0, point, 0, out) == len(out)
            assert sorted(out) == sorted(expected)
        k, most = int(random.integers(1, 4)), int(random.integers(0, 4))
        recent = rows.places[slots] >= (-(-tail // LANES) - most) * LANES
        expected = slots[beaters(points, point) & recent][::-1][:k]
        out = np.zeros(len(expected), np.int64)
        assert do_flat(rows, DOMINATORS, 0, most, point, k, out) == len(out)
        assert out.tolist() == expected.tolist()


# --------------------------------------------------------------------------------------
# R-tree

SETTLE = SQUEEZE  # the rest of the codes are those of the flat scan


@driver
def do_rtree(state, what, slot, age, point, k, out):  # type: ignore[no-untyped-def]
    if what == INSERT:
        rtree.insert(state, slot, age, point)
    elif what == REMOVE:
        rtree.remove(state, slot)
    elif what == SETTLE:
        rtree.settle(state)
    elif what == DOMINATORS:
        return rtree.youngest_dominators(state, point, k, out)
    else:
        return rtree.report_dominated(state, point, what == DOMINATED_EQUALS, out)
    return 0


def check_rtree(tree: Any, model: dict[int, tuple[int, Any]], settled: bool = True) -> None:
    """All nodes are in the tree or free, and in the tree every box tells the truth.

    ``model``: age and point of each slot.
    """
    free, touched, root, live = tree.sizes.tolist()
    nodes = list(nodes_of(tree, root, settled))
    assert sorted(nodes + tree.lists[rtree.FREE, :free].tolist()) == list(range(len(tree.nodes)))
    leaves = [node for node in nodes if tree.nodes[node, rtree.LEVEL] == 0]
    places = [leaf * LANES + i for leaf in leaves for i in range(tree.nodes[leaf, rtree.COUNT])]
    assert tree.nodes[root, rtree.PARENT] == -1
    assert live == len(model)
    assert sorted(tree.places[list(model)]) == sorted(places)
    for slot, (age, point) in model.items():
        node, lane = divmod(int(tree.places[slot]), LANES)
        assert tree.entries[node, :, lane].tolist() == [slot, age]
        np.testing.assert_array_equal(tree.boxes.points[2 * node, :, lane], point)
        np.testing.assert_array_equal(tree.boxes.points[2 * node + 1, :, lane], point)
    # What a lane beyond COUNT holds would be found, in a node taken from the free list as well.
    empty = np.arange(LANES) >= tree.nodes[:, rtree.COUNT].repeat(2)[:, None]
    assert np.isnan(tree.boxes.points.transpose(0, 2, 1)[empty]).all()
    assert sorted(tree.lists[rtree.TOUCHED, :touched]) == sorted(
        np.flatnonzero(tree.nodes[:, rtree.IS_TOUCHED])
    )
    assert touched == 0 or not settled
    assert (np.isfinite(tree.scale) & (tree.scale > 0)).all()


def nodes_of(tree: Any, node: int, settled: bool) -> Iterator[int]:
    """The node and all below it, each child's box and age looked at on the way."""
    yield node
    count, level, parent, *_ = tree.nodes[node].tolist()
    assert 0 <= count <= LANES
    if settled and parent >= 0:
        assert count >= 1
    if settled and parent < 0 and level > 0:
        assert count >= 2
    for lane in range(count if level else 0):
        child = int(tree.entries[node, rtree.REF, lane])
        size, child_level, *family = tree.nodes[child, : rtree.IS_TOUCHED].tolist()
        assert child_level == level - 1
        assert family == [node, lane]  # PARENT and SEAT
        if size:
            low = tree.boxes.points[2 * child, :, :size].min(axis=1)
            high = tree.boxes.points[2 * child + 1, :, :size].max(axis=1)
            age = tree.entries[child, rtree.AGE, :size].max()
            # A removal leaves boxes wider than need be, until they are settled.
            assert (tree.boxes.points[2 * node, :, lane] <= low).all()
            assert (tree.boxes.points[2 * node + 1, :, lane] >= high).all()
            assert tree.entries[node, rtree.AGE, lane] >= age
            if settled:
                assert (tree.boxes.points[2 * node, :, lane] == low).all()
                assert (tree.boxes.points[2 * node + 1, :, lane] == high).all()
                assert tree.entries[node, rtree.AGE, lane] == age
        yield from nodes_of(tree, child, settled)


class Wood:
    """An R-tree and its model."""

    def __init__(self, dims: int, slots: int, k: int) -> None:
        self.dims, self.k = dims, k
        self.tree = rtree.empty_rtree(dims, slots, k)
        self.model: dict[int, tuple[int, Any]] = {}
        self.free = set(range(slots))
        self.age = 0

    def do(self, what: int, slot: int, point: Any = NO_POINT, out: Any = NOBODY) -> int:
        # The costs of infinite boxes are not numbers, which Python would warn of.
        with np.errstate(invalid="ignore"):
            return do_rtree(self.tree, what, slot, self.age, point, self.k, out)  # type: ignore[no-any-return]

    def add(self, random: Any, points: Any) -> None:
        for slot, point in zip(a_few(random, self.free, len(points)), points, strict=False):
            self.age += 1
            free = self.tree.sizes[rtree.FREE]
            self.do(INSERT, slot, point)
            assert free - self.tree.sizes[rtree.FREE] <= rtree.SPARE
            self.model[slot] = self.age, point
            self.free.remove(slot)
        assert self.tree.sizes[rtree.FREE] >= rtree.SPARE  # "however they fall"

    def drop(self, gone: list[int]) -> None:
        for slot in gone:
            self.do(REMOVE, slot)
            del self.model[slot]
            self.free.add(slot)

    def ask(self, asked: Any) -> None:
        slots = np.array(sorted(self.model, key=lambda slot: -self.model[slot][0]), np.int64)
        points = stacked((self.model[slot][1] for slot in slots), self.dims)
        for point in asked:
            for what in (DOMINATED, DOMINATED_EQUALS):
                expected = slots[beaten(points, point, what == DOMINATED_EQUALS)]
                out = np.zeros(len(expected), np.int64)
                assert self.do(what, 0, point, out) == len(out)
                assert sorted(out) == sorted(expected)
            expected = slots[beaters(points, point)][: self.k]
            out = np.zeros(self.k, np.int64)
            assert self.do(DOMINATORS, 0, point, out) == len(expected)
            assert out[: len(expected)].tolist() == expected.tolist()


@pytest.mark.kernels
@tried
@given(
    steps("add", "add", "add", "drop", "expire", "near"), some.integers(1, 3), some.integers(1, 3)
)
def test_rtree(todo: list[Step], dims: int, k: int) -> None:
    wood = Wood(dims, 500, k)
    for what, times, seed in todo:
        random = np.random.default_rng(seed)
        by_age = sorted(wood.model, key=lambda slot: wood.model[slot][0])
        if what == "add":
            wood.add(random, some_points(random, times, dims))
        elif what == "drop":
            wood.drop(a_few(random, wood.model, times))
        elif what == "expire":
            wood.drop(by_age[:times])
        else:  # empty some leaves rather than thin out all of them
            wood.drop(sorted(wood.model, key=lambda slot: tuple(wood.model[slot][1]))[: 2 * times])
        check_rtree(wood.tree, wood.model, settled=False)
        wood.ask(some_points(random, 2, dims))
        wood.do(SETTLE, 0)
        check_rtree(wood.tree, wood.model)
        wood.ask(some_points(random, 2, dims))


@pytest.mark.skipif(not JIT, reason="too slow without compiled kernels")
@pytest.mark.parametrize("spread", [4, 30, 1e6])
def test_an_rtree_of_three_levels_and_back(spread: float) -> None:
    random = np.random.default_rng(3)
    wood = Wood(2, 6000, k=2)
    while wood.free:
        wood.add(random, np.floor(random.random((1500, 2)) * spread))
        check_rtree(wood.tree, wood.model)
    assert wood.tree.nodes[wood.tree.sizes[rtree.ROOT], rtree.LEVEL] >= 2
    while wood.model:
        order = sorted(wood.model, key=lambda slot: tuple(wood.model[slot][1]))
        start = int(random.integers(0, len(order)))
        wood.drop(order[start : start + 400] + order[:100][: max(0, start - 400)])
        wood.do(SETTLE, 0)
        check_rtree(wood.tree, wood.model)
        wood.ask(np.floor(random.random((3, 2)) * spread))
    # It starts anew as a single leaf.
    assert wood.tree.nodes[wood.tree.sizes[rtree.ROOT], rtree.LEVEL] == 0
    assert wood.tree.sizes[rtree.FREE] == len(wood.tree.nodes) - 1


# --------------------------------------------------------------------------------------
# Interval tree

RAISE, STAB, FIRST_LEAF = 3, 4, 5  # after INSERT, REMOVE and SQUEEZE


@driver
def do_intervals(state, what, slot, left, right, tag, out):  # type: ignore[no-untyped-def]
    if what == INSERT:
        interval_tree.insert(state, slot, left, right, tag)
    elif what == REMOVE:
        interval_tree.remove(state, slot)
    elif what == SQUEEZE:
        interval_tree.squeeze(state)
    elif what == RAISE:
        interval_tree.raise_left(state, slot, left)
    elif what == FIRST_LEAF:
        return interval_tree.first_leaf_after(state, right)
    else:
        return interval_tree.stab(state, right, out)
    return 0


def check_intervals(tree: Any, model: dict[int, tuple[int, int, int]]) -> None:
    """Intervals in order of arrival, summaries exact.

    ``model``: left and right end and tag of each slot's interval.
    """
    used, live = tree.sizes.tolist()
    assert 1 <= used <= len(tree.leaves)
    assert live == len(model)
    found, bound = {}, ALWAYS
    for leaf in range(used):
        count, least, last = tree.leaves[leaf].tolist()
        left, right, tag, slot = tree.lanes[leaf, :, :count].tolist()
        found.update(zip(slot, zip(left, right, tag, strict=True), strict=True))
        assert 0 <= count <= LANES
        assert least == min(left, default=interval_tree.NEVER)
        assert (tree.leaf_of[slot] == leaf).all()
        assert tag == sorted(tag)
        assert (tree.lanes[leaf, interval_tree.LEFT, count:] == interval_tree.NEVER).all()
        if live:  # an empty tree has no LAST yet
            assert bound <= min(right, default=last)
            assert max(right, default=last) <= last
            bound = last
    assert found == model
    assert (tree.leaves[used:, interval_tree.COUNT] == 0).all()


@pytest.mark.kernels
@tried
@given(
    steps("add", "add", "add", "drop", "expire", "raise", "squeeze"), some.sampled_from([64, 200])
)
def test_interval_tree(todo: list[Step], slots: int) -> None:
    tree = interval_tree.empty_interval_tree(slots)
    model: dict[int, tuple[int, int, int]] = {}
    right = tags = 0
    for what, times, seed in todo:
        random = np.random.default_rng(seed)
        if what == "add":
            for slot in a_few(random, set(range(slots)) - set(model), times):
                right, tags = right + int(random.integers(0, 3)), tags + 1
                left = ALWAYS if random.random() < 0.2 else right - int(random.integers(1, 60))
                do_intervals(tree, INSERT, slot, left, right, tags, NOBODY)
                model[slot] = left, right, tags
        elif what == "raise":
            for slot in a_few(random, model, times):
                left, end, tag = model[slot]
                left = int(random.integers(max(left, end - 60), end + 1))
                do_intervals(tree, RAISE, slot, left, 0, 0, NOBODY)
                model[slot] = left, end, tag
                check_intervals(tree, model) if times < 6 else None
        elif what == "squeeze":
            do_intervals(tree, SQUEEZE, 0, 0, 0, 0, NOBODY)
            assert tree.sizes[interval_tree.LEAVES] == max(1, -(-len(model) // LANES))
        else:
            by_tag = sorted(model, key=lambda slot: model[slot][2])
            for slot in by_tag[:times] if what == "expire" else a_few(random, model, times):
                do_intervals(tree, REMOVE, slot, 0, 0, 0, NOBODY)
                del model[slot]
        check_intervals(tree, model)
        points = random.integers(right - 100, right + 3, 6).tolist()
        for point in [ALWAYS, *points]:
            expected = [tag for left, end, tag in model.values() if left <= point < end]
            out = np.full(len(expected) + 2 * EIGHT, -1)  # stab writes eight ahead
            assert do_intervals(tree, STAB, 0, 0, point, 0, out) == len(expected)
            assert out[: len(expected)].tolist() == sorted(expected)
            assert (out[-EIGHT:] == -1).all()


WITHOUT_AVX512 = """
import numpy as np, numba
from skytide.structures.compress import append_eight
@numba.njit
def call(lanes, keys, values, most, out, found):
    return append_eight(lanes, keys, values, most, out, found)
lanes, out = np.arange(32).reshape(2, 16) % 7, np.full(20, -1)
assert call(lanes, 3, 20, 4, out, 2) == 2 + 6
assert out[:8].tolist() == [-1, -1, 6, 0, 3, 4, 5, 6]
assert "zmm" not in next(iter(call.inspect_asm().values()))
"""


def test_intervals_are_filtered_on_processors_of_any_kind() -> None:
    random = np.random.default_rng(8)
    for _ in range(100):
        lanes = random.integers(0, 9, (2, 16))
        most, found = int(random.integers(-1, 10)), int(random.integers(0, 3))
        outs = np.full((2, 20), -1)
        ends = [
            call(lanes, 3, 20, most, out, found)
            for call, out in zip((compress._append_eight, append_by_kernel), outs, strict=True)
        ]
        assert ends[0] == ends[1] == found + (lanes.flat[3:11] <= most).sum()
        assert (outs[0, : ends[0]] == outs[1, : ends[1]]).all()
        assert (outs[:, ends[0] + EIGHT :] == -1).all()
    plain = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    subprocess.run([sys.executable, "-c", WITHOUT_AVX512], env=os.environ | plain, check=True)


@driver
def append_by_kernel(lanes, keys, values, most, out, found):  # type: ignore[no-untyped-def]
    return compress.append_eight(lanes, keys, values, most, out, found)


def test_rows_of_any_layout_reach_the_compiled_code_as_they_are() -> None:
    # Calls past numba's own check of types would read them wrongly.
    random = np.random.default_rng(9)
    values = random.integers(0, 9, (40, 3)).astype(np.float64)
    at = np.arange(1, 41)
    plain, odd = NofN(3, 1, False, 30), NofN(3, 1, False, 30)
    frozen = values.copy()
    frozen.flags.writeable = False
    wide = np.repeat(at, 2)
    layouts = [
        (values, at, at),
        (np.asfortranarray(values), wide[::2], at.astype(np.int32)),
        (np.repeat(values, 2, axis=0)[::2], at, at),
        (values.astype(np.float32), at, at),
        (frozen, at, at),
    ]
    for i, (rows, positions, labels) in enumerate(layouts):
        for way in ("push", "push_each"):
            for start in range(0, 40, 5):
                part = slice(start, start + 5)
                past = 40 * (2 * i + (way == "push_each"))
                for live, batch in (
                    (plain, (values[part], at[part] + past, at[part] + past)),
                    (odd, (rows[part], positions[part] + past, labels[part] + past)),
                ):
                    live.advance(start + 5 + past)
                    getattr(live, way)(*batch)
                assert (plain.answer(30) == odd.answer(30)).all()


# --------------------------------------------------------------------------------------
# Heap


@pytest.mark.kernels
@tried
@given(some.lists(some.none() | some.integers(-3, 3), max_size=40))
def test_heap(keys: list[int | None]) -> None:
    """A number is pushed, with its index for an item; at None the greatest is popped."""
    room = sum(key is not None for key in keys)
    items = np.zeros((2, room), np.int64)
    model: set[tuple[int, int]] = set()
    size = 0
    for item, key in enumerate(keys):
        if key is not None:
            size = heap.push(items, size, key, item)
            model.add((key, item))
        elif size:
            top = tuple(items[:, 0].tolist())
            assert top[0] == max(model)[0]
            size = heap.pop(items, size)
            model.remove(top)
        assert size == len(model)
        check_heap(items, size)
        assert set(zip(*items[:, :size].tolist(), strict=True)) == model


def check_heap(items: Any, size: int) -> None:
    """No key is greater than its parent's."""
    keys = items[heap.KEY, :size]
    assert (keys[1:] <= keys[(np.arange(1, size) - 1) // 2]).all()


# --------------------------------------------------------------------------------------
# Forest

PLANT, WEAKEN, FELL, LEFT_END = range(4)


@driver
def do_forest(state, what, slot, point, position, label, elders, n):  # type: ignore[no-untyped-def]
    if what == PLANT:
        return forest.plant(state, point, position, label, elders, n)
    if what == WEAKEN:
        forest.weaken(state, slot)
    elif what == FELL:
        forest.fell(state, slot)
    else:
        return forest.left_end(state, slot)
    return 0


def check_forest(trees: Any) -> set[int]:
    """Lists of children and the children's parents agree, all slots are used or free; the used."""
    free = trees.free[: trees.sizes[forest.FREE]].tolist()
    used = set(range(len(trees.free))) - set(free)
    assert len(free) + len(used) == len(trees.free)
    k = trees.ancestors.shape[2]
    parents = dict.fromkeys(used, -1)
    for slot in used:
        before, child = -1, int(trees.facts[slot, forest.CHILD])
        while child >= 0:
            assert parents[child] == -1
            assert trees.facts[child, forest.BEFORE] == before
            parents[child] = slot
            before, child = child, int(trees.facts[child, forest.NEXT])
    for slot in used:
        _, _, beaten, parent, _, following, before = trees.facts[slot].tolist()
        assert 0 <= beaten < k
        assert parent == parents[slot]
        if parent < 0:
            assert before == following == -1
        elders, left = trees.ancestors[slot].tolist()
        assert left == sorted(left, reverse=True)
        assert [elder < 0 for elder in elders] == [label == ALWAYS for label in left]
        if parent >= 0:
            assert parent == elders[k - 1 - beaten]
            assert left[k - 1 - beaten] > trees.sizes[forest.START]
    return used


class Sapling:
    """What a row of the forest should be."""

    def __init__(
        self, position: int, label: int, point: Any, elders: list[tuple[int, int]]
    ) -> None:
        self.position, self.label, self.point = position, label, point
        self.elders = elders  # slot and label
        self.beaten, self.parent = 0, -1


class Grove:
    """A forest and its model."""

    def __init__(self, k: int, slots: int) -> None:
        self.k, self.start, self.seen, self.label = k, ALWAYS, 0, 0
        self.trees = forest.empty_forest(2, k, slots)
        self.model: dict[int, Sapling] = {}

    def do(
        self, what: int, slot: int, row: Sapling | None = None, elders: Any = NOBODY, n: int = 0
    ) -> int:
        point, position, label = (row.point, row.position, row.label) if row else (NO_POINT, 0, 0)
        return int(do_forest(self.trees, what, slot, point, position, label, elders, n))

    def awaited(self, row: Sapling, rank: int) -> tuple[int, int]:
        """Slot and label of one of its elders."""
        return row.elders[rank] if rank < len(row.elders) else (-1, ALWAYS)

    def link(self, row: Sapling) -> None:
        slot, label = self.awaited(row, self.k - 1 - row.beaten)
        row.parent = slot if label > self.start else -1

    def plant(self, random: Any) -> None:
        if not self.trees.sizes[forest.FREE]:
            return
        self.seen, self.label = self.seen + 1, self.label + int(random.integers(0, 2))
        elders = a_few(random, self.model, int(random.integers(0, self.k + 1)))
        elders.sort(key=lambda slot: -self.model[slot].position)
        labels = [self.model[slot].label for slot in elders]
        row = Sapling(
            self.seen, self.label, random.random(2), list(zip(elders, labels, strict=True))
        )
        listed = np.array(elders + [99] * (self.k - len(elders)), np.int64)
        slot = self.do(PLANT, 0, row, listed, len(elders))
        assert slot not in self.model
        self.link(row)
        self.model[slot] = row

    def fell(self, slot: int) -> None:
        """Whom its children waited for is never asked for again, or they would have to be told."""
        self.do(FELL, slot)
        gone = self.model.pop(slot)
        for row in self.model.values():
            if row.parent == slot:
                row.parent = -1
            row.elders = [
                (-2 if (elder, label) == (slot, gone.label) else elder, label)
                for elder, label in row.elders
            ]

    def weaken(self, slot: int) -> None:
        row = self.model[slot]
        rank = self.k - 2 - row.beaten
        if rank < 0 or (self.awaited(row, rank)[0] == -2 and row.elders[rank][1] > self.start):
            return  # no row is weakened k times, nor to wait for one that is gone
        row.beaten += 1
        self.link(row)
        self.do(WEAKEN, slot)

    def expire(self, times: int) -> None:
        self.start = sorted(row.label for row in self.model.values())[:times][-1]
        self.trees.sizes[forest.START] = self.start
        for slot, row in list(self.model.items()):
            if row.label <= self.start:
                self.fell(slot)

    def check(self) -> None:
        assert check_forest(self.trees) == set(self.model)
        for slot, row in self.model.items():
            facts = trees_facts(self.trees, slot)
            assert facts == [row.position, row.label, row.beaten, row.parent]
            assert self.trees.points[slot].tolist() == row.point.tolist()
            rank = self.k - 1 - row.beaten
            assert self.do(LEFT_END, slot) == self.awaited(row, rank)[1]


def trees_facts(trees: Any, slot: int) -> list[int]:
    """POSITION, LABEL, BEATEN and PARENT of a row."""
    return trees.facts[slot, : forest.PARENT + 1].tolist()  # type: ignore[no-any-return]


@pytest.mark.kernels
@tried
@given(steps("plant", "plant", "weaken", "weaken", "fell", "expire"), some.integers(1, 4))
def test_forest(todo: list[Step], k: int) -> None:
    grove = Grove(k, slots=100)
    for what, times, seed in todo:
        random = np.random.default_rng(seed)
        if what == "plant":
            for _ in range(times):
                grove.plant(random)
        elif what == "expire" and grove.model:
            grove.expire(times)
        elif what != "expire":
            for slot in a_few(random, grove.model, times):
                grove.weaken(slot) if what == "weaken" else grove.fell(slot)
        grove.check()


# --------------------------------------------------------------------------------------
# Triggers

NEXT_ALARM, SET_ALARM, TELL_STABBED, EVENTS_LEFT, AFTER = range(5)


@driver
def do_triggers(state, what, clock, rank, left, right, sign):  # type: ignore[no-untyped-def]
    if what == NEXT_ALARM:
        return triggers.next_alarm(state)
    if what == EVENTS_LEFT:
        return triggers.events_left(state)
    if what == AFTER:
        return triggers.after(left, right)
    if what == SET_ALARM:
        triggers.set_alarm(state, rank, clock)
    else:
        triggers.tell_stabbed(state, left, right, rank, sign)
    return 0


def check_triggers(watches: Any) -> None:
    """Watches by ascending length, each with one alarm and a cut it has not yet passed."""
    lengths, _, cuts = watches.table.tolist()
    clock = int(watches.sizes[triggers.CLOCK])
    assert lengths == sorted(lengths)
    assert sorted(watches.alarms[heap.ITEM]) == list(range(len(lengths)))
    check_heap(watches.alarms, len(lengths))
    assert all(cut <= max(ALWAYS, clock - n) for cut, n in zip(cuts, lengths, strict=True))
    assert 0 <= watches.sizes[triggers.EVENTS] <= watches.events.shape[1]


def stabbed(lengths: list[int], clock: int, left: int, right: int) -> list[int]:
    """The watches whose window starts after ``left``, or at it, and before ``right``."""
    return [rank for rank, n in enumerate(lengths) if left <= max(ALWAYS, clock - n) < right]


lengths_of_watches = some.lists(some.integers(1, 12) | some.just(NEVER), max_size=8).map(sorted)
labels = some.integers(-15, 15)
clocks = some.integers(-3, 20)


@pytest.mark.kernels
@tried
@given(
    lengths_of_watches, clocks, some.lists(some.tuples(clocks, labels | some.just(ALWAYS), labels))
)
def test_triggers(lengths: list[int], clock: int, told: list[tuple[int, int, int]]) -> None:
    names = np.arange(100, 100 + len(lengths))
    watches = triggers.triggers(np.array(lengths, np.int64), names, clock, events=500)
    expected, alarms = [], [(clock, rank) for rank in range(len(lengths))]
    assert do_triggers(watches, NEXT_ALARM, 0, 0, 0, 0, 0) == (clock if lengths else NEVER)
    for tag, (wait, left, right) in enumerate(told):
        clock += abs(wait)
        watches.sizes[triggers.CLOCK] = clock
        sign = 1 if tag % 2 else -1
        do_triggers(watches, TELL_STABBED, 0, tag, left, right, sign)
        expected += [(100 + rank, tag, sign) for rank in stabbed(lengths, clock, left, right)]
        if lengths:  # put the first alarm off
            rank = int(watches.alarms[heap.ITEM, 0])
            alarms.remove((min(alarms)[0], rank))
            alarms.append((clock + right + 16, rank))
            do_triggers(watches, SET_ALARM, clock + right + 16, rank, 0, 0, 0)
            assert do_triggers(watches, NEXT_ALARM, 0, 0, 0, 0, 0) == min(alarms)[0]
        check_triggers(watches)
        assert do_triggers(watches, EVENTS_LEFT, 0, 0, 0, 0, 0) == 500 - len(expected)
    assert list(zip(*watches.events[:, : len(expected)].tolist(), strict=True)) == expected


@pytest.mark.kernels
@pytest.mark.parametrize("clock", [ALWAYS, ALWAYS + 5, -(2**62), 0, 2**62, NEVER])
def test_times_at_the_ends_of_time(clock: int) -> None:
    """Nothing wraps around: what is before all time is ALWAYS, what is after it NEVER."""
    for length in (0, 1, 7, 2**62, NEVER):
        assert triggers.before(clock, length) == max(ALWAYS, clock - length)
        nobody = triggers.triggers(NOBODY, NOBODY, clock)
        assert do_triggers(nobody, AFTER, 0, 0, clock, length, 0) == min(NEVER, clock + length)
    lengths = [1, 7, 2**62, NEVER]
    for left, right in [(ALWAYS, clock), (ALWAYS, NEVER), (clock, NEVER), (ALWAYS, -3), (-9, -3)]:
        watches = triggers.triggers(np.array(lengths), np.arange(4), clock)
        do_triggers(watches, TELL_STABBED, 0, 0, left, right, 1)
        told = watches.events[triggers.WHO, : watches.sizes[triggers.EVENTS]]
        assert told.tolist() == stabbed(lengths, clock, left, right), (left, right)


# --------------------------------------------------------------------------------------
# Graph


@driver
def add_to_graph(state, label, beaten, elders):  # type: ignore[no-untyped-def]
    """Add a row with the positions it beats and the k youngest that beat it; -1 if that is full."""
    if not graph.room(state, len(beaten)):
        return -1
    place = graph.append(state, label)
    for position in beaten:
        graph.note_beaten(state, position)
    for rank, elder in enumerate(elders):
        graph.note_elder(state, place, rank, elder)
    graph.seal(state, place)
    return place


def check_graph(rows: Any) -> None:
    """Elders and youngers in order, lists and log their inverse, blocks no narrower than they are."""
    first, upcoming, _, step = rows.sizes.tolist()
    capacity, _, k = rows.kin.shape
    assert 0 <= upcoming - first <= capacity - LANES + 1
    here = range(first, upcoming)
    elders, youngers = {}, {}
    for position in here:
        place = position % capacity
        elders[position], youngers[position], _ = rows.kin[place].tolist()
        known = [e for e in elders[position] if e != graph.NOBODY_BEFORE]
        later = [y for y in youngers[position] if y != graph.NOBODY_AFTER]
        assert elders[position] == known + [graph.NOBODY_BEFORE] * (k - len(known))
        assert youngers[position] == later + [graph.NOBODY_AFTER] * (k - len(later))
        assert known == sorted(set(known), reverse=True)
        assert later == sorted(set(later))
        assert all(e < position for e in known)
        assert all(position < y < upcoming for y in later)
        assert rows.rows[place, graph.BEATEN] == len(later)
        assert rows.rows[place, graph.SEEN] <= step
    for position in here:
        assert sorted(children_of(rows, position)) == [p for p in here if position in elders[p]]
        beat = [q for q in logged_of(rows, position) if q >= first]
        assert sorted(beat) == [q for q in here if position in youngers[q]]
    for block in {position % capacity // LANES for position in here}:
        inside = [p for p in here if p % capacity // LANES == block]
        oldest, last = rows.blocks[block].tolist()
        assert oldest <= min(elders[p][k - 1] for p in inside)
        assert last >= max(youngers[p][k - 1] for p in inside)
        if len(inside) == LANES:  # none forgotten and none to come: no wider either
            assert oldest == min(elders[p][k - 1] for p in inside)
            assert last == max(youngers[p][k - 1] for p in inside)
    labels = [rows.rows[p % capacity, graph.LABEL] for p in here]
    assert labels == sorted(labels)


def children_of(rows: Any, position: int) -> Iterator[int]:
    """The rows that this one is an elder of, by the list that starts at it."""
    capacity, _, k = rows.kin.shape
    first = int(rows.sizes[graph.FIRST])
    node = int(rows.rows[position % capacity, graph.CHILD])
    while node >= 0:
        place, rank = divmod(node, k)
        assert rows.kin[place, graph.ELDERS, rank] == position
        yield first + (place - first) % capacity
        node = int(rows.kin[place, graph.SIBLING, rank])


def logged_of(rows: Any, position: int) -> list[int]:
    """The rows that this one beat when it came, by its part of the log."""
    start, end = (
        int(rows.rows[p % len(rows.rows), graph.LOG_START])
        if p < rows.sizes[graph.NEXT]
        else int(rows.sizes[graph.LOGGED])
        for p in (position, position + 1)
    )
    assert 0 <= end - start <= len(rows.log)
    return [int(rows.log[i % len(rows.log)]) for i in range(start, end)]


class History:
    """A graph, all rows there ever were, and who beats whom."""

    def __init__(self, k: int, first: int) -> None:
        self.k, self.start, self.first = k, first, first
        self.graph = graph.empty_graph(2 * LANES, k, first)
        self.points = np.zeros((0, 2))
        self.labels: list[int] = []
        self.youngers: list[int] = []
        self.span = [first, first - 1]

    @property
    def upcoming(self) -> int:
        return self.start + len(self.points)

    def push(self, random: Any, points: Any) -> None:
        for point in points:
            self.labels.append((self.labels or [0])[-1] + int(random.integers(0, 2)))
            alive = np.arange(self.first - self.start, len(self.points))
            rows = self.points[alive]
            kept = np.array([self.youngers[i] < self.k for i in alive], bool)
            beats = alive[beaten(rows, point) & kept]
            elders = alive[beaters(rows, point)][::-1][: self.k]
            self.add(self.start + beats, self.start + elders)
            self.points = np.concatenate([self.points, [point]])
            self.youngers.append(0)
            for i in beats:
                self.youngers[i] += 1

    def add(self, beats: Any, elders: Any) -> None:
        label = self.labels[-1]
        while (place := add_to_graph(self.graph, label, beats, elders)) < 0:
            logged = sum(len(logged_of(self.graph, p)) for p in self.here())
            assert len(self.here()) > len(self.graph.rows) - LANES or (
                logged + len(beats) > len(self.graph.log)
            )
            self.graph = graph.larger_graph(self.graph)
            check_graph(self.graph)
        assert place == self.upcoming % len(self.graph.rows)

    def here(self) -> range:
        return range(self.first, self.upcoming)

    def answer(self, lo: int, hi: int) -> list[int]:
        """The truth."""
        rows = self.points[lo - self.start : hi + 1 - self.start]
        return [lo + i for i, point in enumerate(rows) if beaters(rows, point).sum() < self.k]

    def stab(self, lo: int, hi: int) -> list[int]:
        out = np.zeros(max(0, hi - lo + 1), np.int64)
        return out[: graph.stab_between(self.graph, lo, hi, out)].tolist()

    def move_span(self, random: Any) -> None:
        """Move both edges of a watch on; what enters and leaves is the difference of the answers."""
        before = self.span
        lo = int(random.integers(before[0], self.upcoming + 1))
        hi = max(before[1], int(random.integers(lo - 1, self.upcoming)))
        self.span = [lo, hi]
        old, new = set(self.answer(*before)), set(self.answer(*self.span))
        expected = [(p, 1 if p in new else -1) for p in sorted(old ^ new)]
        small = np.full((2, int(random.integers(0, 3))), 77)
        edges = np.array(before + self.span)
        # Who has too little room is told how much it takes, and may ask again.
        assert graph.move_span(self.graph, edges, small) == len(expected)
        out = np.zeros((2, len(expected)), np.int64)
        assert graph.move_span(self.graph, edges, out) == len(expected)
        assert sorted(zip(*out.tolist(), strict=True)) == expected

    def forget(self, random: Any) -> None:
        """Only what no watch will ask about."""
        upto = int(random.integers(self.first, self.span[0] + 1)) - self.start
        if upto == 0:
            return
        label = self.labels[upto - 1]
        if self.start + sum(one <= label for one in self.labels) <= self.span[0]:
            graph.forget(self.graph, label)
            self.first = self.start + sum(one <= label for one in self.labels)

    def check(self, random: Any) -> None:
        assert self.graph.sizes[graph.FIRST] == self.first
        assert self.graph.sizes[graph.NEXT] == self.upcoming
        check_graph(self.graph)
        for _ in range(6):
            lo, hi = sorted(random.integers(self.first, self.upcoming + 1, 2).tolist())
            assert self.stab(lo, hi - 1) == self.answer(lo, hi - 1)
            label = self.labels[lo - self.start] if lo < self.upcoming else 10**6
            later = [p for p in self.here() if self.labels[p - self.start] > label]
            assert graph.first_after(self.graph, label) == min(later, default=self.upcoming)


@pytest.mark.kernels
@tried
@given(
    steps("push", "push", "push", "span", "forget", longest=12),
    some.integers(1, 3),
    some.sampled_from([1, 64, 1000]),
)
def test_graph(todo: list[Step], k: int, first: int) -> None:
    history = History(k, first)
    for what, times, seed in todo:
        random = np.random.default_rng(seed)
        if what == "push":
            history.push(random, some_points(random, times, 2))
        elif what == "span":
            history.move_span(random)
        else:
            history.forget(random)
        history.check(random)


@pytest.mark.kernels
@pytest.mark.parametrize("k", [1, 2])
def test_a_graph_wraps_round_and_grows(k: int) -> None:
    random = np.random.default_rng(k)
    history = History(k, first=1)
    for _ in range(7):
        history.push(random, some_points(random, 45, 2))
        history.span = [history.upcoming - 3, history.upcoming - 1]
        while len(history.here()) > 10:
            history.forget(random)
        history.check(random)
    assert (len(history.graph.rows), history.upcoming) == (2 * LANES, 7 * 45 + 1)  # went round
    history.push(random, some_points(random, 200, 2))
    history.check(random)
    assert len(history.graph.rows) == 8 * LANES


@pytest.mark.kernels
def test_a_full_graph_takes_no_more() -> None:
    rows = graph.empty_graph(2 * LANES, 1, 1)
    for _ in range(LANES + 1):
        assert add_to_graph(rows, 1, NOBODY, NOBODY) >= 0
    before = [array.copy() for array in rows]
    assert add_to_graph(rows, 1, NOBODY, NOBODY) == -1
    assert same(before, rows)
    graph.forget(rows, 0)  # nothing goes
    assert add_to_graph(rows, 2, NOBODY, NOBODY) == -1
    graph.forget(rows, 1)
    assert add_to_graph(rows, 2, NOBODY, NOBODY) >= 0


@pytest.mark.kernels
def test_a_full_log_takes_no_more() -> None:
    rows = graph.empty_graph(2 * LANES, 1, 1)
    assert add_to_graph(rows, 1, NOBODY, NOBODY) >= 0
    rows.sizes[graph.LOGGED] = len(rows.log)  # as if that row had beaten so many
    assert add_to_graph(rows, 1, np.array([1]), NOBODY) == -1
    assert add_to_graph(rows, 1, NOBODY, NOBODY) >= 0


def same(before: Any, after: Any) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(before, after, strict=True))


# --------------------------------------------------------------------------------------
# All of them together, as the sliding skyline uses them


def check_kept(kept: Any) -> None:
    """Every structure holds the same rows, and knows the same of each."""
    trees, rows = kept.forest, kept.flat
    slots = rows.slots[rows.slots >= 0]
    position, label, beaten = trees.facts[slots, : forest.PARENT].T.tolist()
    left = trees.ancestors[slots, forest.WHEN, trees.ancestors.shape[2] - 1 - np.array(beaten, int)]
    points, slots = trees.points[slots], slots.tolist()
    assert check_forest(trees) == set(slots)
    assert position == sorted(position)
    check_flat(rows, by_slot(slots, label, points))
    check_intervals(kept.intervals, by_slot(slots, left.tolist(), label, position))
    if kept.modes[k_.HAS_TREE]:
        check_rtree(kept.tree, by_slot(slots, position, points))
    check_triggers(kept.watches)
    if kept.modes[k_.HAS_GRAPH]:
        check_graph(kept.graph)
        first, upcoming = kept.graph.sizes[:2].tolist()
        assert set(position) <= set(range(first, upcoming))


def by_slot(slots: list[int], *columns: Any) -> dict[int, Any]:
    return dict(zip(slots, zip(*columns, strict=True), strict=True))


@pytest.mark.kernels
@settings(tried, max_examples=max(5, EXAMPLES // 3))
@given(
    some.lists(some.tuples(some.integers(1, BATCH), some.integers(0, 999)), max_size=6),
    some.sampled_from([NofN, NofNTree, N12ofN]),
    some.integers(1, 3),
    some.booleans(),
)
def test_what_is_kept_hangs_together(
    batches: list[tuple[int, int]], algorithm: Any, k: int, newest: bool
) -> None:
    live = algorithm(2, k, newest, 150)
    live.watch(20)
    label = seen = 0
    for times, seed in batches:
        random = np.random.default_rng(seed)
        points = some_points(random, times, 2)
        if seed % 2:  # many are kept
            points[:, 1] = random.integers(0, 3, times) - points[:, 0]
        places = np.arange(seen + 1, seen + times + 1)
        labels = label + np.cumsum(random.integers(0, 3, times))
        seen, label = seen + times, int(labels[-1])
        with np.errstate(invalid="ignore"):
            live.advance(label)
            live.push(points, places, labels)
        check_kept(live._kept)


def crossing(rows: int) -> tuple[Any, Any, Any]:
    """Rows of which none beats another, with positions and labels."""
    at = np.arange(1, rows + 1)
    return np.stack([at, -at], axis=1).astype(np.float64), at, at


def with_small_tree(live: Any) -> None:
    tree = rtree.empty_rtree(2, 64, 1, nodes=rtree.SPARE + 1)
    live._kept = live._kept._replace(tree=tree)
    live._kept.modes[k_.HAS_TREE] = 1
    live._kept = k_.with_more_slots(live._kept)._replace(tree=rtree.empty_rtree(2, 128, 1, 17))


def with_few_events(live: Any) -> None:
    live.watch(100)
    watches = live._kept.watches
    live._kept = live._kept._replace(watches=watches._replace(events=watches.events[:, :5].copy()))


def with_tree_from_ten(live: Any) -> None:
    live._kept.modes[k_.TREE_FROM] = 10


def with_history(live: Any) -> None:
    live._kept = k_.with_more_slots(live._kept)._replace(graph=graph.empty_graph(128, 1, 1))
    live._kept.modes[k_.HAS_GRAPH] = 1


NEEDS = {
    k_.NEED_SLOTS: (lambda live: None, 64),
    k_.NEED_TREE: (with_tree_from_ten, 10),
    k_.NEED_NODES: (with_small_tree, 64 + 1),  # once its only leaf has been split
    k_.NEED_EVENTS: (with_few_events, 5),
    k_.NEED_GRAPH: (with_history, 64 + 1),
}
"""What is lacking, how to come to lack it, and after how many rows."""


def state_of(kept: Any) -> list[Any]:
    """Copies of all arrays but scratch and the reason for stopping."""
    kept = kept._replace(
        found=NOBODY,
        modes=kept.modes[: k_.NEED],
        flat=kept.flat._replace(blocks=kept.flat.blocks.points),
        tree=[*kept.tree[1:7], kept.tree.boxes.points],
    )
    return [array.copy() for part in kept for array in (part if len(part) else ())]


@pytest.mark.kernels
@pytest.mark.parametrize("need", NEEDS)
def test_a_kernel_stops_before_it_runs_out_of_room(need: int) -> None:
    prepare, done = NEEDS[need]
    live = NofN(2, 1, False, None)
    prepare(live)
    live.advance(100)
    points, positions, labels = crossing(100)
    rows = points, positions, labels
    first = [array[:done] for array in rows]
    assert k_.insert_rows(live._kept, *first, 0, -1) == done
    before = state_of(live._kept)
    assert k_.insert_rows(live._kept, *rows, done, -1) == done
    assert live._kept.modes[k_.NEED] == need
    assert same(before, state_of(live._kept))
    live._make_room()
    check_kept(live._kept)
    assert k_.insert_rows(live._kept, *rows, done, -1) > done
    live.push(*crossing(0))
    check_kept(live._kept)


@pytest.mark.kernels
def test_the_clock_stops_before_it_runs_out_of_events() -> None:
    live = NofN(2, 1, False, 50)
    live.advance(10)
    live.push(*crossing(10))
    with_few_events(live)
    before = state_of(live._kept)
    assert not k_.advance(live._kept, 500, 50)
    assert live._kept.modes[k_.NEED] == k_.NEED_EVENTS
    live._kept.watches.sizes[triggers.CLOCK] = 10  # all that has moved
    assert same(before, state_of(live._kept))
    live.advance(500)
    assert sorted(live.events()[1]) == list(range(1, 11))
    check_kept(live._kept)


# --------------------------------------------------------------------------------------
# No references are counted (numba.md, rule 4)


def functions_that_count(compiled: Any, *arguments: Any) -> dict[str, int]:
    """By name, how often each function in a kernel's machine code counts a reference.

    Compiled anew, because numba does not show the code of what it finds in its cache.
    """
    fresh = numba.njit(nogil=True, error_model="numpy", boundscheck=False)(compiled.py_func)
    fresh.compile(tuple(numba.typeof(argument) for argument in arguments))
    (code,) = fresh.inspect_llvm().values()
    counts: dict[str, int] = {}
    for body in re.findall(r"^define [^{]*@[^{]*\{.*?^\}", code, re.MULTILINE | re.DOTALL):
        name = re.search(r'@"?([\w.]+)', body)[1]  # type: ignore[index]
        if not name.startswith(("_ZN7cpython", "cfunc.")):  # called once, from Python
            counts[name] = counts.get(name, 0) + body.count("call void @NRT_incref")
    assert any(compiled.__name__ in name for name in counts), list(counts)
    return {name: count for name, count in counts.items() if count}


def arrays_in(state: Any) -> int:
    return sum(map(arrays_in, state)) if isinstance(state, tuple) else 1


def a_state() -> Any:
    return NofN(2, 1, False, 10)._kept


needs_code = pytest.mark.skipif(
    not JIT or bool(config.BOUNDSCHECK), reason="there is no machine code, or not that of users"
)
MATRIX = np.zeros((2, 1), np.int64)


@needs_code
def test_the_count_sees_references() -> None:
    """Or the tests below would pass whatever numba calls them."""

    def two(state: Any, times: int) -> Any:
        arrays = [state.lanes]
        for _ in range(times):
            arrays.append(state.leaves.reshape(-1, 3, 1))
        return arrays

    assert functions_that_count(numba.njit(two), interval_tree.empty_interval_tree(1), 3)


@needs_code
@pytest.mark.parametrize(
    ("compiled", "arguments"),
    [
        (interval_tree.stab, lambda: (a_state().intervals, 0, NOBODY)),
        (graph.stab_between, lambda: (a_state().graph, 0, 0, NOBODY)),
        (graph.move_span, lambda: (a_state().graph, NOBODY, MATRIX)),
        (graph.forget, lambda: (a_state().graph, 0)),
        (graph.first_after, lambda: (a_state().graph, 0)),
        (heap.push, lambda: (MATRIX, 0, 0, 0)),
        (heap.pop, lambda: (MATRIX, 0)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_searches_count_no_references(compiled: Any, arguments: Any) -> None:
    assert functions_that_count(compiled, *arguments()) == {}


def counts_of_a_push(compiled: Any, arguments: Any) -> tuple[int, dict[str, int]]:
    """How often a kernel itself counts references, and how often what it calls does."""
    counts = functions_that_count(compiled, *arguments)
    itself = [name for name in counts if f"{len(compiled.__name__)}{compiled.__name__}B" in name]
    return sum(counts.pop(name) for name in itself), counts


@needs_code
def test_a_push_counts_its_arguments_and_no_more() -> None:
    """Each array once a call; for each row one, the row itself, a view of the batch."""
    arguments = a_state(), np.zeros((1, 2)), NOBODY, NOBODY, 0, 0
    once, below = counts_of_a_push(k_.insert_rows, arguments)
    assert once <= arrays_in(arguments[:4]) + 1
    assert below == {}


@needs_code
def test_an_advance_counts_its_arguments_and_no_more() -> None:
    arguments = a_state(), 0, 0
    once, below = counts_of_a_push(k_.advance, arguments)
    assert once <= arrays_in(arguments[:1])
    assert below == {}


# --------------------------------------------------------------------------------------
# The stamp of the kernel cache

SOURCES = Path(kernel.__file__).parent


def a_copy(folder: Path) -> Path:
    """The package's sources, to be altered."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(SOURCES, folder / "skytide", ignore=ignored))


def stamp_of(package: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(kernel, "_ROOT", package)
    return kernel.sources_stamp.__wrapped__()


@pytest.mark.kernels
def test_the_stamp_changes_with_every_file_that_has_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = a_copy(tmp_path)
    stamps = {stamp_of(package, monkeypatch)}
    assert stamps == {stamp_of(SOURCES, monkeypatch)}  # it is what is written, not where or when
    declares = re.compile(r"^(from skytide\.kernel|from numba|import numba)\b", re.MULTILINE)
    written = [file for file in package.rglob("*.py") if declares.search(file.read_text())]
    assert len(written) > 10
    for file in written:
        file.write_text(file.read_text() + "# so\n")
        stamps.add(stamp_of(package, monkeypatch))
    assert len(stamps) == len(written) + 1
    (package / "structures" / "new.py").write_text("")
    assert stamp_of(package, monkeypatch) not in stamps


@pytest.mark.kernels
def test_the_stamp_leaves_other_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = a_copy(tmp_path)
    before = stamp_of(package, monkeypatch)
    (package / "query.py").write_text("")
    assert stamp_of(package, monkeypatch) == before


CALLEE = """
from skytide.kernel import part

@part
def callee(x: int) -> int:
    return x + {}
"""

CALLER = """
from skytide.kernel import kernel
from skytide.structures.callee import callee

@kernel
def caller(x: int) -> int:
    return callee(x)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package with a kernel that calls one in another file."""
    package = a_copy(tmp_path)
    (package / "structures" / "callee.py").write_text(CALLEE.format(1))
    (package / "algorithms" / "caller.py").write_text(CALLER)
    return package


def call(package: Path, **environment: str) -> list[str]:
    """What the caller says of 40, whether it was found in a cache, and which kind of cache."""
    program = (
        "from skytide.algorithms.caller import caller as c;"
        "print(c(40), sum(c.stats.cache_hits.values()), type(c._cache).__name__)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ
        | {"PYTHONPATH": str(package.parent), "NUMBA_DISABLE_JIT": "0"}
        | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.split()


@needs_code
def test_a_cached_caller_is_not_served_stale(package: Path, tmp_path: Path) -> None:
    where = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert call(package, **where) == ["41", "0", "FunctionCache"]
    assert call(package, **where) == ["41", "1", "FunctionCache"]
    (package / "structures" / "callee.py").write_text(CALLEE.format(2))
    assert call(package, **where) == ["42", "0", "FunctionCache"]


@needs_code
def test_without_a_writable_folder_kernels_are_compiled_afresh(
    package: Path, tmp_path: Path
) -> None:
    """A file where a folder is wanted stops the superuser as well."""
    blocked = tmp_path / "blocked"
    blocked.touch()
    for room in ("structures", "algorithms", "."):
        (package / room / "__pycache__").touch()
    where = dict.fromkeys(
        ["NUMBA_CACHE_DIR", "HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"], str(blocked / "cache")
    )
    for _ in range(2):
        assert call(package, **where) == ["41", "0", "NullCache"]
    shutil.rmtree(package.parent / "cache", ignore_errors=True)
    where["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
    call(package, **where)
    assert call(package, **where) == ["41", "1", "FunctionCache"]
