"""The sorted set in blocks against a plain list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from conformance import EXAMPLES, JIT
from skytide.kernel import kernel
from skytide.structures import sorted_blocks as blocks_
from skytide.structures.sorted_blocks import BEGIN, END, FREE, HIGH, LOW, ROWS, SortedBlocks

steps = some.lists(
    some.tuples(
        some.sampled_from(["insert", "insert", "insert", "pop", "worst"]), some.integers(0, 9)
    ),
    max_size=60,
)


@kernel
def insert(blocks: SortedBlocks, score: float, position: int) -> None:
    blocks_.insert(blocks, score, position)


@kernel
def push_worst(blocks: SortedBlocks, score: float, position: int) -> None:
    blocks_.push_worst(blocks, score, position)


@kernel
def pop_worst(blocks: SortedBlocks) -> None:
    blocks_.pop_worst(blocks)


@kernel
def clear(blocks: SortedBlocks) -> None:
    blocks_.clear(blocks)


def rows_of(blocks: SortedBlocks) -> list[tuple[float, int]]:
    """The rows, the worst first, with what must hold of the blocks checked on the way."""
    rows = []
    used = blocks.order[blocks.sizes[LOW] : blocks.sizes[HIGH]].tolist()
    free = blocks.free[: blocks.sizes[FREE]].tolist()
    assert sorted(used + free) == list(range(len(blocks.free)))
    for at, block in enumerate(used):
        begin, end = blocks.spans[block, BEGIN], blocks.spans[block, END]
        assert 0 <= begin < end <= blocks.scores.shape[1]
        assert blocks.worst[blocks.sizes[LOW] + at] == blocks.scores[block, begin]
        if 0 < at < len(used) - 1:
            assert end - begin >= blocks.scores.shape[1] // 2
        rows += zip(
            blocks.scores[block, begin:end], blocks.positions[block, begin:end], strict=True
        )
    assert len(rows) == blocks.sizes[ROWS]
    return [(float(score), int(position)) for score, position in rows]


@pytest.mark.kernels
@settings(max_examples=EXAMPLES, deadline=None)
@given(steps=steps)
def test_is_a_sorted_list(steps: list[tuple[str, int]]) -> None:
    blocks, truth = blocks_.empty_blocks(20), []
    for position, (what, score) in enumerate(steps):
        if what == "pop" or len(truth) == 20:
            if truth:
                pop_worst(blocks)
                del truth[0]
        elif what == "insert":
            insert(blocks, float(score), position)
            truth = sorted([*truth, (float(score), position)], key=lambda row: (-row[0], row[1]))
        else:
            worst = truth[0][0] + 1.0 if truth else 0.0
            push_worst(blocks, worst, position)
            truth.insert(0, (worst, position))
        assert rows_of(blocks) == truth
    clear(blocks)
    assert rows_of(blocks) == []


def _long(kind: str, rows: int) -> Any:
    random = np.random.default_rng(5)
    rising, noise = -np.arange(rows, dtype=float), random.random(rows)
    return {
        "rising": rising,
        "falling": -rising,
        "constant": np.zeros(rows),
        "random": noise,
        "rising by steps": rising + 300 * np.floor(3 * noise),
        "saw": (np.arange(rows) % 700) - 3 * noise,
    }[kind]


@pytest.mark.skipif(not JIT, reason="too slow without compiled kernels")
@pytest.mark.parametrize(
    "kind", ["rising", "falling", "constant", "random", "rising by steps", "saw"]
)
@pytest.mark.parametrize("k", [1, 17, 300, 5_000])
def test_the_best_of_a_long_stream(kind: str, k: int) -> None:
    scores, blocks = _long(kind, 20_000), blocks_.empty_blocks(k + 1)
    for position, score in enumerate(scores):
        insert(blocks, score, position)
        if blocks.sizes[ROWS] > k:
            pop_worst(blocks)
        if position % 1_999 == 0:
            age = np.arange(position + 1)
            best = np.lexsort((-age, scores[: position + 1]))[:k][::-1]
            assert [row[1] for row in rows_of(blocks)] == best.tolist()
