"""One query per key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import skytide as st

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
