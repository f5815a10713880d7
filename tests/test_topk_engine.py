"""Top-k queries through the engine: which algorithm they get, shorter windows, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skytide as st
from skytide.choices import ALGORITHMS

RANKING = [name for name, line in ALGORITHMS.items() if getattr(line.load(), "ranking", False)]
BEST = st.top(3, st.high("x"))


def xs(table: pa.Table) -> list[float]:
    return table["x"].to_pylist()


@pytest.mark.parametrize(
    ("window", "name"),
    [
        (st.last(1_000), "two-stacks-linked"),
        (st.last(1_000, every=2), "two-stacks-linked"),
        (st.last(1_000, every=23), "two-stacks-linked"),
        (st.last(1_000, every=24), "two-stacks-culled"),
        (st.last("1 hour", every="1 minute"), "two-stacks-linked"),
        (st.everything(), "two-stacks-linked"),
        (st.last(1_000, history=True), "n12-of-n"),
    ],
)
def test_the_default_goes_by_the_slide(window: Any, name: str) -> None:
    assert BEST.over(window).open().algorithm == name


def test_a_shorter_window_is_refused_with_the_algorithm_that_can() -> None:
    query = BEST.over(st.last(100, every=50))
    rows = {"x": np.arange(100.0)}
    live = query.open()
    live.push(rows)
    for ask in (live.answer, live.watch):
        with pytest.raises(
            st.QueryError,
            match=r'two-stacks-culled answers for .*\n.*algorithm="two-stacks-linked"',
        ):
            ask(last=10)
    able = query.open(algorithm="two-stacks-linked")
    able.push(rows)
    assert xs(able.answer(last=10, k=2)) == [99, 98]


@pytest.mark.parametrize("name", ["k-skyband", "two-stacks-linked"])
def test_standing_watches_of_their_own_n_and_k(name: str) -> None:
    live = BEST.over(st.last(100)).open(algorithm=name)
    watch = live.watch(last=5, k=1)
    scores = np.random.default_rng(2).random(300)
    held: list[float] = []
    for end in range(10, 301, 10):
        live.push({"x": scores[end - 10 : end]})
        for change in watch.changes().to_pylist():
            if change["_change_type"] == "insert":
                held.append(change["x"])
            else:
                held.remove(change["x"])
        assert held == xs(watch.answer()) == [scores[end - 5 : end].max()]
        assert xs(live.answer(last=30, k=2)) == sorted(scores[max(0, end - 30) : end])[-1:-3:-1]


@pytest.mark.parametrize("name", RANKING)
def test_batches_and_single_rows_give_the_same(name: str) -> None:
    query = BEST.over(st.last(200, every=7))
    scores = np.random.default_rng(5).integers(0, 50, 1_000).astype(float)
    many, one = query.open(algorithm=name), query.open(algorithm=name)
    for start in range(0, 1_000, 250):
        many.push({"x": scores[start : start + 250], "at": np.arange(start, start + 250)})
        for i in range(start, start + 250):
            one.push({"x": scores[i : i + 1], "at": np.array([i])})
        assert many.answer().equals(one.answer())


@pytest.mark.parametrize("every", [1, 3_000, 7_001])
@pytest.mark.parametrize("question", [st.top(5, st.high("x")), st.top(5, st.low("x"))], ids=str)
def test_large_batches_are_looked_at_before_they_are_read(question: Any, every: int) -> None:
    query = question.over(st.last(20_000, every=every))
    scores = np.random.default_rng(6).integers(-900, 900, 50_000) * 1.0
    many, few = query.open(), query.open()
    for start in range(0, 50_000, 10_000):
        part = {"x": scores[start : start + 10_000], "at": np.arange(start, start + 10_000)}
        many.push(part)
        for cut in range(0, 10_000, 2_500):
            few.push({name: column[cut : cut + 2_500] for name, column in part.items()})
        assert many.answer().equals(few.answer())
    assert many.stats().seen == 50_000
    before = many.save()
    scores[30_000] = np.nan
    with pytest.raises(st.BadRows, match=r"NaN.*row 30,?000"):
        many.push({"x": scores, "at": np.arange(50_000)})
    assert many.save() == before


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: st.top(0, st.low("x")), "k is 0"),
        (lambda: st.top(-3, st.low("x")), "k is -3"),
        (lambda: st.top(2.5, st.low("x")), "k is 2.5"),
        (lambda: st.last(10, every=0), "every"),
        (lambda: st.last(10, every=11), "every"),
        (lambda: st.last("1 minute", every="2 minutes"), "every"),
    ],
)
def test_questions_that_make_no_sense(make: Any, says: str) -> None:
    with pytest.raises(st.QueryError, match=says):
        make()


BAD_ROWS = [
    ("x", {"x": [1.0, np.nan]}, st.BadRows, "NaN"),
    ("x", {"x": [1.0, None]}, st.BadRows, "null"),
    ("x", {"x": ["1", "2"]}, st.SchemaError, "changed|non-numeric"),
    ("x", {"y": [1.0]}, st.SchemaError, "missing: x"),
    ("x", {"x": [1.0], "y": [1.0]}, st.SchemaError, "new: y"),
    ("LN(x)", {"x": [1.0, -1.0]}, st.BadRows, "NaN"),
]


@pytest.mark.parametrize("name", RANKING)
@pytest.mark.parametrize(("score", "rows", "error", "says"), BAD_ROWS)
def test_bad_rows_leave_the_engine_as_it_was(
    name: str, score: str, rows: Any, error: Any, says: str
) -> None:
    live = st.top(2, st.high(score)).over(st.last(5)).open(algorithm=name)
    live.push({"x": [3.0, 9.0, 4.0]})
    before = live.save()
    with pytest.raises(error, match=says):
        live.push(rows)
    assert live.save() == before
    live.push({"x": [5.0]})
    assert xs(live.answer()) == [9, 5]


def test_a_score_of_another_type() -> None:
    live = st.top(1, st.high("CAST(x AS TEXT)")).over(st.last(5)).open()
    with pytest.raises(st.SchemaError, match="non-numeric"):
        live.push({"x": [1.0]})
    truth = st.top(1, st.high("x > 3")).over(st.last(5)).open()  # a truth is a number, 0 or 1
    truth.push({"x": [5.0, 2.0]})
    assert xs(truth.answer()) == [5]
