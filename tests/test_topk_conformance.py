"""Every top-k algorithm against the oracle, on every kind of stream."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import oracles
from conformance import EXAMPLES, JIT, says
from topk_conformance import RANKING, Ranked, opened, push, ranked, replay

tried = settings(max_examples=EXAMPLES, deadline=None)
every_algorithm = pytest.mark.parametrize("algorithm", RANKING)


@every_algorithm
@pytest.mark.kernels
@tried
@given(data=some.data())
def test_answers_over_the_whole_window(algorithm: Any, data: some.DataObject) -> None:
    stream = data.draw(ranked())
    for live, seen, clock in replay(algorithm, stream):
        assert says(live.answer(stream.length)) == stream.answer(seen, clock, stream.length)


@every_algorithm
@pytest.mark.kernels
@tried
@given(data=some.data())
def test_answers_though_never_asked_before_and_pickled(
    algorithm: Any, data: some.DataObject
) -> None:
    stream = data.draw(ranked())
    live, start, clock = opened(algorithm, stream), 0, 0
    for seen, clock in stream.stops:
        live.advance(clock)
        push(live, stream, range(start, seen))
        live, start = pickle.loads(pickle.dumps(live)), seen
    assert says(live.answer(stream.length)) == stream.answer(start, clock, stream.length)


@pytest.mark.parametrize("algorithm", [one for one in RANKING if one.any_length])
@pytest.mark.kernels
@tried
@given(data=some.data())
def test_answers_over_every_shorter_window(algorithm: Any, data: some.DataObject) -> None:
    stream = data.draw(ranked())
    for live, seen, clock in replay(algorithm, stream):
        for n in range(1, (stream.length or 24) + 1):
            assert says(live.answer(n)) == stream.answer(seen, clock, n), n


@every_algorithm
@pytest.mark.kernels
@tried
@given(data=some.data())
def test_answers_at_each_of_many_slides(algorithm: Any, data: some.DataObject) -> None:
    stream = data.draw(ranked())
    live, start = opened(algorithm, stream), 0
    stops = {clock: seen for seen, clock in stream.stops}  # of equal clocks the last
    clocks = sorted(stops)
    for part in (clocks[: len(clocks) // 2], clocks[len(clocks) // 2 :]):
        if part:
            rows = range(start, stops[part[-1]])
            told = live.each(*stream.arrays(rows), np.array(part, np.int64))
            assert says(told) == [stream.worst(stops[clock], clock) for clock in part]
            start, last = rows.stop, part[-1]
            assert says(live.answer(stream.length)) == stream.answer(start, last, stream.length)


@every_algorithm
@pytest.mark.kernels
@tried
@given(data=some.data())
def test_keeps_what_it_will_need_and_nothing_else(algorithm: Any, data: some.DataObject) -> None:
    stream = data.draw(ranked())
    live, start, taken = opened(algorithm, stream), 0, set()
    for seen, clock in stream.stops:
        live.advance(clock)
        taken |= push(live, stream, range(start, seen))
        start = seen
        window = stream.window(seen, clock, stream.length)
        kept = says(live.kept())
        assert set(_needed(algorithm, stream, window)) <= set(kept) <= set(window) & taken
        assert len(live) == len(kept)
        assert {"bytes", "candidates"} <= set(live.stats())


def _needed(algorithm: Any, stream: Ranked, window: oracles.Window) -> oracles.Answer:
    """What some later answer may still hold."""
    scores = np.array(stream.scores)
    if algorithm.any_length:
        return oracles.kept(scores, window, stream.k, newest=True)
    ends = [0] * len(scores) if stream.length is None else stream.ends()
    return oracles.kept_of_fixed_window(scores, ends, window, stream.k, newest=True)


# --------------------------------------------------------------------------------------
# Long streams, to fill and empty whatever there is


def _long(kind: str, rows: int) -> Any:
    random, at = np.random.default_rng(3), np.arange(rows)
    return {
        "uniform": lambda: random.random(rows),
        "few values": lambda: random.integers(0, 9, rows).astype(float),
        "falling": lambda: at.astype(float),
        "rising": lambda: -at.astype(float),
        "constant": lambda: np.zeros(rows),
        "sinus": lambda: np.sin(np.pi * at / 700),
        "bursts": lambda: random.random(rows) - 3.0 * (at % 400 < 20),
    }[kind]()


KINDS = ("uniform", "few values", "falling", "rising", "constant", "sinus", "bursts")
QUESTIONS = [
    (1000, 10, 10),
    (1000, 30, 7),
    (997, 5, 100),
    (1000, 40, 1),
    (500, 20, 500),
    (90, 200, 9),
    (2_000, 6, 600),
]


@pytest.mark.skipif(not JIT, reason="too slow without compiled kernels")
@every_algorithm
@pytest.mark.parametrize("kind", KINDS)
def test_long_streams(algorithm: Any, kind: str) -> None:
    scores = _long(kind, 6_000)
    for length, k, every in QUESTIONS:
        _check_long(algorithm, scores, length, k, every)


def _check_long(algorithm: Any, scores: Any, length: int, k: int, every: int) -> None:
    """``each`` and ``push`` by turns, against sorting."""
    live, positions = algorithm(1, k, True, length, every), np.arange(1, len(scores) + 1)
    random, clock = np.random.default_rng(4), 0
    for turn in range(200):
        start, clock = clock, clock + every * int(random.choice([1, 1, 2, 5, 1 + 700 // every]))
        if clock > len(scores):
            break
        rows = slice(start, clock)
        lent = scores[rows].reshape(-1, 1).copy(), positions[rows].copy(), positions[rows].copy()
        if turn % 3 == 2:
            live.each(*lent, np.arange(start + every, clock + 1, every))
        else:
            live.advance(clock)
            live.push(*lent)
        window = np.arange(max(1, clock - length + 1), clock + 1)
        best = window[np.lexsort((-window, scores[window - 1]))[:k]]
        assert np.array_equal(live.answer(length), np.sort(best)), (length, k, every, clock)


SHAPES = (
    lambda random, at: random.random(len(at)),
    lambda random, at: random.integers(0, 6, len(at)) * 1.0,
    lambda random, at: at + random.integers(0, 50, len(at)) * 3.0,
    lambda random, at: random.integers(0, 50, len(at)) * 3.0 - at,
    lambda random, at: np.sin(at / 300),
    lambda random, at: np.where(random.random(len(at)) < 0.01, np.inf, -4.0 * (at % 997 < 30)),
)


@pytest.mark.skipif(not JIT, reason="too slow without compiled kernels")
@every_algorithm
@pytest.mark.parametrize("seed", range(24))
def test_long_streams_of_any_shape(algorithm: Any, seed: int) -> None:
    """Slides, gaps, leaps of the clock and batches as they come, answers against sorting."""
    random = np.random.default_rng(seed)
    every, k = int(random.choice([1, 2, 7, 30, 600])), int(random.choice([1, 2, 5, 17, 60]))
    length = every * int(random.integers(1, max(2, 3_000 // every) + 1))
    at = np.arange(length + 4_000)
    scores = SHAPES[seed % len(SHAPES)](random, at)
    labels = np.cumsum(random.integers(0, 4, len(at))) + 1 if seed % 2 else at + 1
    live, clock, done = algorithm(1, k, True, length, every), 0, 0
    while done < len(at):
        leap = int(random.choice([1, 1, 2, 5, 20, max(1, 3 * length // every)]))
        start, clock = clock, clock + every * leap
        stop = int(np.searchsorted(labels, clock, side="right"))
        lent = scores[done:stop].reshape(-1, 1), at[done:stop] + 1, labels[done:stop]
        if random.random() < 0.5:
            live.each(*lent, np.arange(start + every, clock + 1, every))
        else:
            live.advance(clock)
            live.push(*lent)
        window = np.flatnonzero((labels <= clock) & (labels > clock - length))
        best = window[np.lexsort((-window, scores[window]))[:k]]
        assert np.array_equal(live.answer(length), np.sort(best) + 1), (every, k, length, clock)
        done = stop


# --------------------------------------------------------------------------------------
# What an algorithm cannot do it refuses


@every_algorithm
def test_refuses_what_is_no_ranking(algorithm: Any) -> None:
    with pytest.raises(ValueError, match="ranks by one score"):
        algorithm(2, 1, True, 5, 1)
    with pytest.raises(ValueError, match="ranks by one score"):
        algorithm(1, 1, False, 5, 1)


@pytest.mark.parametrize("algorithm", [one for one in RANKING if not one.any_length])
def test_refuses_other_lengths(algorithm: Any) -> None:
    with pytest.raises(ValueError, match="length 5"):
        algorithm(1, 1, True, 5, 1).answer(4)
