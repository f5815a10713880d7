"""Slots in the order of their scores, against a plain sorted list, all invariants checked."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from conformance import JIT
from skytide.structures import sorted_slots
from skytide.structures.sorted_slots import WIDTH, SortedSlots, empty_sorted_slots

ROOM = 2_000
INSERT, REMOVE, APPEND, CLEAR, FULL = range(5)
driver = numba.njit(nogil=True, error_model="numpy")


@driver
def do(state, what, slot, score):  # type: ignore[no-untyped-def]
    if what == INSERT:
        return sorted_slots.insert(state, slot, score)
    if what == REMOVE:
        sorted_slots.remove(state, slot)
    elif what == APPEND:
        sorted_slots.append(state, slot, score)
    elif what == CLEAR:
        sorted_slots.clear(state)
    else:
        return int(sorted_slots.full(state))
    return 0


def check(state: SortedSlots) -> list[tuple[float, int]]:
    """Walk through everything; scores and slots in order."""
    used, found = int(state.used[0]), []
    assert 1 <= used <= len(state.order)
    assert sorted(state.order.tolist()) == list(range(len(state.order)))
    fences = [-np.inf, *state.fences[: used - 1], np.inf]
    assert fences == sorted(fences)
    for rank, block in enumerate(state.order[:used]):
        start, stop = state.bounds[block]
        assert 0 <= start <= stop <= WIDTH
        scores, slots = state.scores[block], state.slots[block]
        assert (scores[:start] == -np.inf).all()
        assert (scores[stop:] == np.inf).all()
        assert (slots[:start] == -1).all()
        assert (slots[stop:] == -1).all()
        assert (state.home[slots[start:stop]] == block).all()
        assert (scores[start:stop] >= fences[rank]).all()
        assert (scores[start:stop] <= fences[rank + 1]).all()
        found += list(zip(scores[start:stop].tolist(), slots[start:stop].tolist(), strict=True))
    return found


class Tried:
    """The structure, and beside it the list."""

    def __init__(self) -> None:
        self.state = empty_sorted_slots(ROOM)
        self.truth: list[tuple[float, int]] = []
        self.free = list(range(ROOM))
        self.filled = 0

    def insert(self, score: float) -> None:
        """Add a slot, in front of its equals."""
        if do(self.state, FULL, 0, 0.0):
            self.fill()
        at = sum(other < score for other, _ in self.truth)
        slot = self.free.pop()
        behind = do(self.state, INSERT, slot, score)
        assert behind == (self.truth[at][1] if at < len(self.truth) else -1)
        self.truth.insert(at, (score, slot))

    def remove(self, at: int) -> None:
        """Take away the one at this place."""
        _, slot = self.truth.pop(at)
        do(self.state, REMOVE, slot, 0.0)
        self.free.append(slot)

    def fill(self) -> None:
        """All anew."""
        self.filled += 1
        do(self.state, CLEAR, 0, 0.0)
        for score, slot in self.truth:
            do(self.state, APPEND, slot, score)


WHATS = (
    "few",
    "spread",
    "rising",
    "falling",
    "infinite",
    "drop",
    "drop first",
    "drop last",
    "fill",
)


def step(tried: Tried, what: str, times: int, random: Any) -> None:
    """So many operations of one kind."""
    low = tried.truth[0][0] if tried.truth else 0.0
    high = tried.truth[-1][0] if tried.truth else 0.0
    low, high = max(low, -1e9), min(high, 1e9)
    if what == "fill":
        tried.fill()
    for i in range(1, times + 1):
        places = {"drop": random.integers(1 << 30), "drop first": 0, "drop last": -1}
        if what in places:
            if tried.truth:
                tried.remove(places[what] % len(tried.truth))
        elif what != "fill" and tried.free:
            score = {
                "few": float(random.integers(0, 4)),
                "spread": random.random() * 100,
                "rising": high + i,
                "falling": low - i,
                "infinite": random.choice([-np.inf, np.inf]),
            }[what]
            tried.insert(score)


@pytest.mark.kernels
@settings(max_examples=60 if JIT else 10, deadline=None)
@given(data=some.data())
def test_sorted_slots(data: Any) -> None:
    tried = Tried()
    times = some.integers(1, 6) | some.integers(1, 150 if JIT else 70)
    for _ in range(data.draw(some.integers(1, 10))):
        random = np.random.default_rng(data.draw(some.integers(0, 999)))
        step(tried, data.draw(some.sampled_from(WHATS)), data.draw(times), random)
        assert check(tried.state) == tried.truth


def test_runs_out_of_blocks_and_is_filled_anew() -> None:
    tried, random = Tried(), np.random.default_rng(6)
    step(tried, "spread", 900, random)
    for _ in range(60):
        step(tried, "drop first", 100, random)
        step(tried, "rising", 100, random)
        assert check(tried.state) == tried.truth
    assert tried.filled > 0
