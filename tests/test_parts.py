"""Any tree of merges of pruned parts leads to the answer over all rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import skytide as st
from skytide import parts, pruning
from skytide.parts import Merger, Part, split
from small_questions import questions

SECOND = 1_000_000_000


@some.composite
def windows(draw: Any) -> Any:
    n = draw(some.integers(1, 12))
    every = draw(some.integers(1, n))
    history = draw(some.booleans())
    seconds = draw(some.integers(1, 8))
    slide = f"{draw(some.integers(1, seconds))} seconds"
    return draw(
        some.sampled_from(
            [
                st.last(n, every=every, history=history),
                st.last(n),
                st.last(f"{seconds} seconds", every=slide, on="ts", history=history),
                st.last(f"{seconds} seconds", on="ts"),
                st.everything(),
            ]
        )
    )


def tables(most: int = 40) -> Any:
    small = some.integers(0, 4)
    row = some.tuples(small, small, small, some.integers(0, 12), some.sampled_from("abc"))
    return some.lists(row, max_size=most).map(_table)


def _table(rows: list[Any]) -> pa.Table:
    x, y, order, ts, key = (
        (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 5
    )
    return pa.table(
        {
            "x": pa.array(x, pa.int64()),
            "y": pa.array(y, pa.int64()),
            "order": pa.array(order, pa.int64()),
            "ts": pa.array([t * SECOND for t in ts], pa.timestamp("ns")),
            "key": pa.array(key, pa.string()),
            "bucket": pa.array([ord(k) % 2 for k in key], pa.int32()),
            "number": pa.array(range(len(x)), pa.int64()),
        }
    )


def truth(query: Any, table: pa.Table, order_by: list[str]) -> list[int]:
    """What engines say that are fed the rows in order, all of them by one clock."""
    keys = [(name, "ascending") for name in ["ts"] * query.timed + order_by]
    rows = table.sort_by([*keys, ("number", "ascending")])
    live = query.open()
    live.push(rows)
    return numbers(live.answer()) if rows.num_rows else []


def numbers(table: pa.Table) -> list[int]:
    return sorted(table["number"].to_pylist()) if table.num_rows else []


def cuts(draw: Any, table: pa.Table, most: int = 6) -> list[pa.Table]:
    """The table in parts, some of them empty."""
    at = sorted(draw(some.lists(some.integers(0, table.num_rows), max_size=most)))
    return [table.slice(start, end - start) for start, end in pairwise([0, *at, table.num_rows])]


def groups(draw: Any, things: list[Any]) -> list[list[Any]]:
    """The things in runs of neighbours."""
    at = sorted(draw(some.lists(some.integers(0, len(things)), max_size=3)))
    return [things[start:end] for start, end in pairwise([0, *at, len(things)])]


@pytest.fixture(autouse=True)
def gather_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "PENDING", 5)
    monkeypatch.setattr(parts, "PENDING", 5)


def shipped(part: Part) -> Part:
    return Part.from_bytes(part.to_bytes(), part.newest) if part.rows.num_rows else part


@settings(deadline=None, max_examples=400)
@given(some.data(), questions(), windows(), tables(), some.booleans(), some.booleans())
def test_a_tree_of_merges_gives_the_answer_over_all_rows(
    data: Any, question: Any, window: Any, table: Any, keyed: bool, ordered: bool
) -> None:
    query = st.Query(question, window, ("bucket", "key") if keyed else ())
    order_by = ["order"] * ordered
    leaves = []
    for rows in cuts(data.draw, table):
        merger = Merger(query, order_by)
        pruner = merger.pruner()
        for batch in cuts(data.draw, rows, 1):
            pruner.add(batch)
        leaves.append(shipped(merger.left_by(pruner)))
    middle = []
    for group in groups(data.draw, leaves):
        merger = Merger(query, order_by)
        for part in group:
            merger.add(part)
        newest = merger.newest
        middle.append(shipped(merger.part()._replace(newest=newest)))
    newest = max((part.newest for part in middle if part.newest is not None), default=None)
    found = []
    for bucket in (0, 1) if keyed else (None,):
        merger = Merger(query, order_by)
        for part in middle:
            pieces = [(None, part)] if bucket is None else split(part, "bucket")
            for piece in [piece for name, piece in pieces if name == bucket]:
                merger.add(shipped(piece))
        merger.newest = newest
        found += numbers(merger.answer())
    assert sorted(found) == truth(query, table, order_by)


@settings(deadline=None, max_examples=200)
@given(questions(), windows(), tables(), some.booleans())
def test_the_answer_over_a_table_is_that_of_an_engine_fed_in_order_of_time(
    question: Any, window: Any, table: Any, keyed: bool
) -> None:
    query = st.Query(question, window, ("key",) if keyed else ())
    assert numbers(query.answer(table)) == truth(query, table, [])


def test_of_equal_rows_the_later_in_time_is_the_younger() -> None:
    times = pa.array(np.array([2, 1, 2, 1]) * SECOND, pa.timestamp("ns"))
    rows = pa.table({"ts": times, "price": [1, 1, 2, 2], "number": [0, 1, 2, 3]})
    window = st.last("1 hour")
    newest = st.skyline(st.low("price"), ties="newest").over(window).answer(rows)
    assert newest["number"].to_pylist() == [0]
    best = st.top(3, st.low("price")).over(window).answer(rows)
    assert best["number"].to_pylist() == [0, 1, 2]


def test_a_ledger_reaches_no_further_than_the_window() -> None:
    merger = Merger(st.skyline(st.low("x")).over(st.last(10, every=4)), ["order"])
    for start in range(0, 100, 10):
        pruner = merger.pruner()
        pruner.add({"x": np.arange(start, start + 10), "order": np.arange(start, start + 10)})
        merger.add(merger.left_by(pruner))
    part = merger.part()
    assert part.ledger is not None
    assert part.ledger["order"].to_pylist() == list(range(84, 100))
    merger.add(part)
    assert merger.answer()["x"].to_pylist() == [90]


def test_rows_that_have_left_the_window_for_good_are_not_sent_on() -> None:
    merger = Merger(st.skyline(st.low("x")).over(st.last(10)))
    pruner = merger.pruner()
    pruner.add({"x": np.arange(100)})
    assert merger.left_by(pruner).rows["x"].to_pylist() == list(range(90, 100))
