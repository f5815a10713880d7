"""Preferences that a Python function scores, and questions for a smaller k."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skytide as st


def turnover(price: Any, volume: Any) -> Any:
    return price * volume


ROWS = {"price": [2.0, 9.0, 3.0], "volume": [5, 1, 7], "id": ["a", "b", "c"]}


BEST = st.top(2, st.high(turnover, "price", "volume")).over(st.last(10))


def ids(table: pa.Table) -> list[Any]:
    return table["id"].to_pylist()


def test_a_function_scores_rows() -> None:
    live = BEST.open()
    live.push(ROWS)
    assert ids(live.answer()) == ["c", "a"]
    assert ids(BEST.answer(ROWS)) == ["c", "a"]
    assert repr(BEST) == 'top(2, high(turnover, "price", "volume")).over(last(10))'
    assert str(BEST.question) == "the top 2 by high turnover(price, volume)"
    assert BEST.columns == ("price", "volume")
    assert pickle.loads(pickle.dumps(BEST)) == BEST
    assert hash(BEST) == hash(pickle.loads(pickle.dumps(BEST)))


def test_functions_and_columns_make_one_skyline() -> None:
    query = st.skyline(st.low(turnover, "price", "volume"), st.low("price")).over(st.last(10))
    assert ids(query.answer(ROWS)) == ["a", "b"]


def test_two_functions_of_one_name_are_two_preferences() -> None:
    def named(scale: float) -> Any:
        def score(price: Any) -> Any:
            return price * scale

        return score

    one, other = named(1.0), named(-1.0)
    st.skyline(st.low(one, "price"), st.low(other, "price"))
    with pytest.raises(st.QueryError, match="given twice"):
        st.skyline(st.low(one, "price"), st.low(one, "price"))


@pytest.mark.parametrize(
    ("function", "error", "says"),
    [
        (lambda price: 1 / 0, st.QueryError, "raised ZeroDivisionError"),
        (lambda price: price[:1], st.SchemaError, r"shape \(1,\)"),
        (lambda price: price.reshape(-1, 1), st.SchemaError, "shape"),
        (lambda price: None, st.SchemaError, "did not return numbers"),
        (lambda price: ["x"] * len(price), st.SchemaError, "did not return numbers"),
        (lambda price: np.full(len(price), 2**53 + 1), st.SchemaError, "cannot hold exactly"),
        (lambda price: price * np.nan, st.BadRows, "NaN"),
        (lambda: 1, st.QueryError, "raised TypeError"),
    ],
)
def test_a_function_is_not_taken_on_trust(function: Any, error: Any, says: str) -> None:
    def score(price: Any) -> Any:
        return function(price) if len(price) == 3 else price

    live = st.top(1, st.low(score, "price")).over(st.last(3)).open()
    live.push({"price": [4.0, 2.0]})
    before = live.answer(), live.stats().seen
    with pytest.raises(error, match=says):
        live.push({"price": [1.0, 2.0, 3.0]})
    assert (live.answer(), live.stats().seen) == before
    live.push({"price": [1.0]})
    assert live.answer()["price"].to_pylist() == [1.0]


def test_a_function_cannot_alter_what_was_pushed() -> None:
    def vandal(price: Any) -> Any:
        price[:] = 0
        return price

    with pytest.raises(st.QueryError, match="read-only"):
        st.top(1, st.low(vandal, "price")).over(st.last(3)).open().push({"price": [1.0, 2.0]})


def test_no_rows_are_not_scored() -> None:
    live = st.top(1, st.low(lambda price: price - price.max(), "price")).over(st.last(3)).open()
    live.push({"price": pa.array([], pa.float64())})
    assert live.answer().num_rows == 0


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: st.low(5), "neither text nor a function"),
        (lambda: st.low(turnover), "mentions no column"),
        (lambda: st.low(turnover, ""), "a column of the score turnover"),
        (lambda: st.low("price", "volume"), "names several columns"),
    ],
)
def test_preferences_that_make_no_sense(make: Any, says: str) -> None:
    with pytest.raises(st.QueryError, match=says):
        make()


def test_a_missing_column_is_named() -> None:
    with pytest.raises(st.SchemaError, match='Did you mean "volumes"'):
        BEST.open().push({"price": [1.0], "volumes": [1.0]})


def test_a_state_needs_its_function() -> None:
    live = BEST.open()
    live.push(ROWS)
    blob = live.save()
    assert st.load(blob, BEST).answer().equals(live.answer())
    with pytest.raises(st.StateError, match=r"st\.load\(blob, query="):
        st.load(blob)
    with pytest.raises(st.StateError, match="another query"):
        st.load(blob, st.top(3, st.high(turnover, "price", "volume")).over(st.last(10)))
    keyed = st.top(1, st.high(turnover, "price", "volume")).over(st.last(10)).per("id")
    many = keyed.open()
    many.push(ROWS)
    assert st.load(many.save(), keyed).answer().equals(many.answer())


def test_a_smaller_k_can_be_asked() -> None:
    live = BEST.open()
    live.push(ROWS)
    assert ids(live.answer(k=1)) == ["c"]
    watch = live.watch(k=1)
    assert ids(watch.changes()) == ["c"]
    live.push({"price": [50.0], "volume": [1], "id": ["d"]})
    assert ids(watch.answer()) == ["d"]
    told = watch.changes().select(["_change_type", "id"]).to_pylist()
    assert [tuple(row.values()) for row in told] == [("delete", "c"), ("insert", "d")]
    with pytest.raises(st.QueryError, match="more than this query keeps rows for"):
        live.answer(k=3)
    with pytest.raises(st.QueryError, match="k is 0"):
        live.watch(k=0)
