"""One query per key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import skytide as st
from skytide.state import pack, unpack

TOP = st.top(2, st.high("price")).over(st.last(3)).per("symbol")


def trades(*rows: tuple[str | None, float]) -> pa.Table:
    return pa.table({"symbol": [s for s, _ in rows], "price": [float(p) for _, p in rows]})


def test_each_key_has_a_window_of_its_own() -> None:
    live = TOP.open()
    live.push(trades(("a", 9), ("b", 1), ("a", 1), ("a", 2), ("a", 3)))
    assert live.answer(key="a")["price"].to_pylist() == [3, 2]
    assert live.answer(key="b")["price"].to_pylist() == [1]
    assert live.answer().num_rows == 3
    assert live.answer(last=1)["price"].to_pylist() == [3, 1]
    assert live.stats().seen == 5
    assert live.stats().details["keys"] == 2


def test_null_is_a_key_and_several_columns_make_one() -> None:
    live = st.skyline(st.low("price")).over(st.last(5)).per("symbol", "price").open()
    live.push(trades((None, 1), ("a", 2), (None, 1)))
    assert live.answer(key=(None, 1.0)).num_rows == 2


def test_changes_of_all_keys_also_of_new_ones() -> None:
    live = TOP.open()
    watch = live.watch()
    assert watch.changes().num_rows == 0
    live.push(trades(("a", 9), ("b", 1)))
    assert watch.changes()["symbol"].to_pylist() == ["a", "b"]
    live.push(trades(("c", 5)))
    assert watch.changes()["symbol"].to_pylist() == ["c"]
    assert watch.answer().num_rows == 3
    watch.close()


def test_the_clock_is_common() -> None:
    def at(second: int, symbol: str, price: float) -> pa.Table:
        ts = np.array(["2024-01-01"], "M8[ns]") + np.timedelta64(second, "s")
        return pa.table({"ts": ts, "symbol": [symbol], "price": [price]})

    live = st.skyline(st.low("price")).over(st.last("10 seconds")).per("symbol").open()
    live.push(at(0, "a", 1))
    live.push(at(30, "b", 2))
    assert live.answer()["symbol"].to_pylist() == ["b"]
    with pytest.raises(st.LateRows):
        live.push(at(29, "a", 1))
    live.advance(to="2024-01-01T00:01:00")
    assert live.answer().num_rows == 0
    assert st.load(live.save()).answer().num_rows == 0


def test_bad_rows_of_one_key_are_refused_with_all() -> None:
    live = TOP.open()
    live.push(trades(("a", 9)))
    before = live.save()
    with pytest.raises(st.BadRows):
        live.push(trades(("b", 1), ("a", float("nan"))))
    assert live.save() == before


def test_nonsense() -> None:
    live = TOP.open()
    with pytest.raises(st.SchemaError, match='no column "symbol"'):
        live.push({"price": [1.0]})
    with pytest.raises(st.QueryError, match="more rows than the window keeps"):
        live.answer(last=9)
    with pytest.raises(st.QueryError, match="more rows than the window keeps"):
        live.watch(last=9)
    with pytest.raises(st.QueryError, match="no row of the key"):
        live.answer(key="z")


def test_explain_looks_at_the_key_of_the_row() -> None:
    live = st.skyline(st.low("price")).over(st.last(5)).per("symbol").open()
    live.push(trades(("a", 1), ("b", 5)))
    assert live.explain({"symbol": "b", "price": 6.0})["price"].to_pylist() == [5]


def test_one_shot_per_key() -> None:
    rows = trades(("a", 9), ("b", 1), ("a", 1), ("a", 2), ("a", 3))
    assert TOP.answer(rows)["price"].to_pylist() == [1, 2, 3]


def test_keys_of_many_types() -> None:
    for keys in (
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([float("nan"), 1.0, float("nan")]),
        pa.array([-0.0, 1.0, 0.0]),
        pa.array([None, "x", None]),
        pa.array([b"1", b"2", b"1"], pa.binary_view()),
        pa.array([True, False, True]),
        pa.array([1, 2, 1], pa.decimal128(9, 2)),
        pa.array([1, 2, 1], pa.timestamp("us", "UTC")),
    ):
        live = st.skyline(st.low("price")).over(st.last(5)).per("key").open()
        for _ in range(2):
            live.push(pa.table({"key": keys, "price": [1.0, 2.0, 3.0]}))
        assert live.stats().details["keys"] == 2, keys.type
        assert live.answer()["price"].to_pylist() == [1, 1, 2, 2]


def test_what_cannot_be_a_key_is_refused_before_anything_is_fixed() -> None:
    live = TOP.open()
    with pytest.raises(st.SchemaError, match=r"cannot be grouped\n(?s:.)*Hint"):
        live.push(pa.table({"symbol": [["a"]], "price": [1.0]}))
    live.push(trades(("a", 1)))
    assert live.answer().num_rows == 1


def test_empty_pushes_are_nothing() -> None:
    live = TOP.open()
    for nothing in ({}, pa.table({}), trades()):
        live.push(nothing)
        assert live.answer().num_rows == 0
    assert live.stats().seen == 0
    assert TOP.answer({}).num_rows == 0


def test_silent_keys_are_forgotten_when_their_rows_have_expired() -> None:
    live = st.skyline(st.low("price")).over(st.last("10 seconds", on="ts")).per("symbol").open()
    watch = live.watch()
    for second in range(100):
        ts = np.array([second], "M8[s]").astype("M8[ns]")
        live.push(pa.table({"ts": ts, "symbol": [f"s{second}"], "price": [1.0]}))
    assert live.stats().details["keys"] < 30
    assert watch.changes()["symbol"].to_pylist() == [f"s{second}" for second in range(90, 100)]
    assert live.answer(key="s0").num_rows == 0
    live.advance(to="1970-01-01T00:10:00")
    assert watch.changes()["_change_type"].to_pylist() == ["delete"] * 10
    live.advance(to="1970-01-01T00:10:01")
    assert live.stats().details["keys"] == 0


def test_a_state_whose_keys_are_mixed_up_is_refused() -> None:
    live = TOP.open()
    live.push(trades(("a", 9), ("b", 1), ("a", 3)))
    state = unpack(live.save())
    for each in ({"kept": [1, 2]}, {"kept": [3, 0]}, {"seen": [2]}, {"waiting": ["x", 0]}):
        facts = state.facts | {"each": state.facts["each"] | each}
        with pytest.raises(st.StateError):
            st.load(pack(state._replace(facts=facts)))
