"""Every sliding-window algorithm against the oracles, on every kind of stream."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import oracles
from conformance import (
    EXAMPLES,
    JIT,
    LONGEST,
    SLIDING,
    Batch,
    Stream,
    long_stream,
    replay,
    says,
    streams,
)
from paper_streams import FIGURE_2, FIGURE_2_ANSWERS, FIGURE_5, FIGURE_5_ANSWERS, letters
from skytide.data.generators import anti_correlated, correlated, independent

tried = settings(max_examples=EXAMPLES, deadline=None)
every_algorithm = pytest.mark.parametrize("algorithm", SLIDING)


def those_with(what: str) -> pytest.MarkDecorator:
    """The algorithms that can do something that not all of them can."""
    return pytest.mark.parametrize(
        "algorithm", [one for one in SLIDING if getattr(one, what, False)]
    )


def those_without(what: str) -> pytest.MarkDecorator:
    """The algorithms that cannot."""
    return pytest.mark.parametrize("algorithm", [one for one in SLIDING if not getattr(one, what)])


def gridded(rows: int, dims: int, seed: int) -> Any:
    """Rows on a coarse grid: many are equal, more are in one coordinate."""
    return np.floor(8 * anti_correlated(rows, dims, seed))


# --------------------------------------------------------------------------------------
# Small streams, full of ties


@every_algorithm
@pytest.mark.kernels
@tried
@given(data=some.data())
def test_answers_over_the_whole_window(algorithm: Any, data: some.DataObject) -> None:
    stream = data.draw(streams(algorithm))
    for live, so_far in replay(algorithm, stream, pickled=data.draw(some.booleans())):
        expected = so_far.answer(stream, so_far.window(stream.length))
        assert says(live.answer(stream.length)) == expected


@every_algorithm
@pytest.mark.kernels
@tried
@given(data=some.data())
def test_answers_though_never_asked_before(algorithm: Any, data: some.DataObject) -> None:
    stream = data.draw(streams(algorithm))
    for live, so_far in replay(algorithm, stream):  # noqa: B007
        pass
    if stream.batches:
        expected = so_far.answer(stream, so_far.window(stream.length))
        assert says(live.answer(stream.length)) == expected


@those_with("any_length")
@pytest.mark.kernels
@tried
@given(data=some.data())
def test_answers_over_every_shorter_window(algorithm: Any, data: some.DataObject) -> None:
    stream = data.draw(streams(algorithm))
    for live, so_far in replay(algorithm, stream):
        for n in range(1, (stream.length or 2 * LONGEST) + 1):
            assert says(live.answer(n)) == so_far.answer(stream, so_far.window(n)), n


@those_with("push_each")
@pytest.mark.kernels
@tried
@given(data=some.data())
def test_answers_when_the_clock_moves_with_each_row(algorithm: Any, data: some.DataObject) -> None:
    stream = data.draw(streams(algorithm))
    for live, so_far in replay(algorithm, stream, each=True):
        expected = so_far.answer(stream, so_far.window(stream.length))
        assert says(live.answer(stream.length)) == expected


@those_with("history")
@pytest.mark.kernels
@tried
@given(data=some.data())
def test_answers_between_any_two_ages(algorithm: Any, data: some.DataObject) -> None:
    stream = data.draw(streams(algorithm))
    longest = stream.length or 2 * LONGEST
    each = hasattr(algorithm, "push_each") and data.draw(some.booleans())
    for live, so_far in replay(algorithm, stream, each):
        for younger, older in combinations(range(longest + 1), 2):
            answer = live.answer_between(so_far.clock - older, so_far.clock - younger)
            expected = so_far.answer(stream, so_far.window_between(younger, older))
            assert says(answer) == expected, (younger, older)


@those_with("watch")
@pytest.mark.kernels
@tried
@given(data=some.data())
def test_watches_tell_all_that_changes(algorithm: Any, data: some.DataObject) -> None:
    stream = data.draw(streams(algorithm))
    watched: dict[int, tuple[Any, set[int]]] = {}  # the window's name and what we were told so far
    for live, so_far in replay(algorithm, stream, each=data.draw(some.booleans())):
        follow(live.events(), watched)
        for window, answer in watched.values():
            assert sorted(answer) == so_far.answer(stream, window(so_far)), window
        if data.draw(some.booleans()):
            name, window = stand_watch(data, live, stream)
            watched[name] = window, set(so_far.answer(stream, window(so_far)))


def follow(events: Any, watched: dict[int, tuple[Any, set[int]]]) -> None:
    """Add what entered and remove what left; nothing may enter or leave twice."""
    for name, position, sign in zip(*(column.tolist() for column in events), strict=True):
        answer = watched[name][1]
        assert (position in answer) == (sign == -1)
        answer ^= {position}


def stand_watch(data: some.DataObject, live: Any, stream: Stream) -> tuple[int, Any]:
    """Have some window watched; the watch's name, and what tells its rows at a moment."""
    ages = some.integers(0, stream.length or 2 * LONGEST)
    if live.history and data.draw(some.booleans()):
        younger, older = sorted(data.draw(some.lists(ages, min_size=2, max_size=2, unique=True)))
        name = live.watch_between(younger, older)
        return name, lambda so_far: so_far.window_between(younger, older)
    n = data.draw(ages.filter(bool) | some.just(stream.length))
    return live.watch(n), lambda so_far: so_far.window(n)


@every_algorithm
@pytest.mark.kernels
@tried
@given(data=some.data())
def test_keeps_what_it_will_need_and_little_else(algorithm: Any, data: some.DataObject) -> None:
    stream = data.draw(streams(algorithm))
    question = stream.k, stream.newest
    # Of rows that leave together, one that another beats is never in an answer.
    leave_never = stream.length is None and not algorithm.any_length
    for live, so_far in replay(algorithm, stream):
        window = so_far.window(stream.length)
        leaves = [0] * len(so_far.rows) if leave_never else so_far.labels
        needed = oracles.kept_of_fixed_window(so_far.rows, leaves, window, *question)
        useful = window if algorithm.history else oracles.kept(so_far.rows, window, *question)
        kept = says(live.kept())
        assert set(needed) <= set(kept) <= set(useful) & so_far.taken
        assert len(live) == len(kept)
        assert isinstance(live.stats(), dict)


# --------------------------------------------------------------------------------------
# Long streams, to grow, squeeze and rebalance whatever there is


@pytest.mark.skipif(not JIT, reason="too slow without compiled kernels")
@every_algorithm
@pytest.mark.parametrize("way", ["batches", "each", "times"])
@pytest.mark.parametrize("make", [independent, correlated, anti_correlated, gridded])
def test_long_streams(algorithm: Any, make: Any, way: str) -> None:
    if way == "each" and not hasattr(algorithm, "push_each"):
        return
    k = 3 if algorithm.any_k else 1
    values = make(5_000, 3, seed=5)
    stream = long_stream(values, 1_000, k, make is gridded, timed=way == "times", seed=6)
    for moment, (live, so_far) in enumerate(replay(algorithm, stream, each=way == "each")):
        window = so_far.window(1_000)
        assert set(says(live.kept())) <= set(window)
        if moment % 5 == 0:
            assert says(live.answer(1_000)) == so_far.answer(stream, window)


# --------------------------------------------------------------------------------------
# Streams with a name


@every_algorithm
@pytest.mark.kernels
@pytest.mark.parametrize("k", [1, 2])
def test_an_empty_window_has_an_empty_answer(algorithm: Any, k: int) -> None:
    if k > 1 and not algorithm.any_k:
        return
    live = algorithm(2, k, False, 5)
    assert says(live.answer(5)) == says(live.kept()) == []
    live.advance(100)
    assert says(live.answer(5)) == says(live.kept()) == []


@every_algorithm
@pytest.mark.kernels
@pytest.mark.parametrize(
    ("figure", "answers"), [(FIGURE_2, FIGURE_2_ANSWERS), (FIGURE_5, FIGURE_5_ANSWERS)]
)
def test_the_streams_of_the_paper(algorithm: Any, figure: Any, answers: Any) -> None:
    for (seen, n), expected in answers.items():
        rows = [Batch([row], [p], p) for p, row in enumerate(figure[:seen], 1)]
        *_, (live, _) = replay(algorithm, Stream(rows, 2, 1, newest=False, length=n))
        assert letters(says(live.answer(n))) == expected


# --------------------------------------------------------------------------------------
# What an algorithm cannot do it refuses


@those_without("any_length")
def test_refuses_other_lengths(algorithm: Any) -> None:
    live = algorithm(2, 1, False, 5)
    with pytest.raises(ValueError, match="length 5"):
        live.answer(4)


@those_without("any_k")
def test_refuses_skybands(algorithm: Any) -> None:
    with pytest.raises(ValueError, match="k = 2"):
        algorithm(2, 2, False, 5)
