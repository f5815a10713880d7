"""The k-skyband in blocks: random rows and expiries against a plain list, all invariants checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from skytide.algorithms.topk.kskyband import KSkyband
from skytide.structures.ranked import (
    BLOCKS,
    LIVE,
    OLDEST,
    POSITION,
    SIZE,
    WIDTH,
    YOUNGER,
    Ranked,
)


def check(band: Ranked, k: int) -> list[tuple[float, int, int]]:
    """Walk through everything; the rows from best to worst, with how often each is beaten."""
    found = []
    used = band.order[: band.sizes[BLOCKS]]
    assert sorted(band.order.tolist()) == list(range(len(band.order)))
    for at, block in enumerate(used):
        size, debt, most = band.facts[block]
        assert 0 < size <= WIDTH
        assert at == 0 or size + band.facts[used[at - 1], SIZE] > WIDTH // 2
        assert most >= band.beaten[block, :size].max()
        assert most + debt < k or band.beaten[block, :size].max() + debt < k
        for place in range(size):
            slot = band.slots[block, place]
            assert band.marks[slot] == band.scores[block, place]
            row = band.marks[slot], int(band.rows[slot, POSITION])
            found.append((*row, int(band.beaten[block, place] + debt)))
    assert len(found) == band.sizes[LIVE]
    slots = {int(slot) for b in used for slot in band.slots[b, : band.facts[b, SIZE]]}
    assert sorted([*slots, *band.free[band.sizes[LIVE] :]]) == list(range(len(band.free)))
    ages, slot = [], band.sizes[OLDEST]
    while slot >= 0:
        ages.append(int(band.rows[slot, POSITION]))
        slot = band.rows[slot, YOUNGER]
    assert ages == sorted(position for _, position, _ in found)
    return found


def truth(rows: list[tuple[float, int]], k: int) -> list[tuple[float, int, int]]:
    """The same by counting."""
    beaten = [(s, p, sum(q > p and t <= s for t, q in rows)) for s, p in rows]
    return sorted((row for row in beaten if row[2] < k), key=lambda row: (row[0], -row[1]))


@pytest.mark.kernels
@settings(max_examples=50, deadline=None)
@given(
    scores=some.lists(some.integers(0, 9).map(float), max_size=60),
    k=some.integers(1, 5),
    length=some.integers(1, 40),
    step=some.integers(1, 5),
)
def test_rows_and_counts(scores: list[float], k: int, length: int, step: int) -> None:
    live = KSkyband(1, k, True, length)
    for start in range(0, len(scores), step):
        stop = min(start + step, len(scores))
        labels = np.arange(start + 1, stop + 1)
        live.advance(stop)
        live.push(np.array(scores[start:stop]).reshape(-1, 1), labels, labels)
        first = max(0, stop - length)
        rows = [(scores[i], i + 1) for i in range(first, stop)]
        assert check(live._state.ranked, k) == truth(rows, k)


@pytest.mark.parametrize("k", [1, 7, 300])
@pytest.mark.parametrize("kind", ["uniform", "few", "falling", "waves"])
def test_many_blocks(kind: str, k: int) -> None:
    random, at = np.random.default_rng(5), np.arange(4_000.0)
    scores: Any = {
        "uniform": random.random(4_000),
        "few": random.integers(0, 30, 4_000).astype(float),
        "falling": at,
        "waves": np.sin(at / 150) + 0.1 * random.random(4_000),
    }[kind]
    live = KSkyband(1, k, True, 1_500)
    for stop in range(250, 4_001, 250):
        labels = np.arange(stop - 249, stop + 1)
        live.each(scores[stop - 250 : stop].reshape(-1, 1), labels, labels, labels)
        found = check(live._state.ranked, k)
        window = range(max(0, stop - 1_500), stop)
        by_rank = sorted(window, key=lambda i: (scores[i], -i))[:k]
        assert [position - 1 for _, position, _ in found[: len(by_rank)]] == by_rank
