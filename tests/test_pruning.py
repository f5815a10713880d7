"""Pruned parts lead to the same answers as all rows: against an engine that sees every row."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import skytide as st
from skytide import pruning
from skytide.packs import Pack, merged
from skytide.pruning import Pruner
from small_questions import questions

SECOND = 1_000_000_000


@some.composite
def row_windows(draw: Any) -> Any:
    n = draw(some.integers(1, 12))
    every = draw(some.integers(1, n))
    return draw(some.sampled_from([st.last(n, every=every), st.last(n), st.everything()]))


def tables(most: int = 30) -> Any:
    small = some.integers(0, 4)
    row = some.tuples(small, small, small, some.sampled_from("ab"))
    return some.lists(row, max_size=most).map(_table)


def _table(rows: list[Any]) -> pa.Table:
    x, y, order, key = (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 4
    return pa.table(
        {
            "x": pa.array(x, pa.int64()),
            "y": pa.array(y, pa.int64()),
            "order": pa.array(order, pa.int64()),
            "key": pa.array(key, pa.string()),
            "number": pa.array(range(len(x)), pa.int64()),
        }
    )


def cuts(draw: Any, table: pa.Table, most: int = 3) -> list[pa.Table]:
    """The table in parts, some of them empty."""
    at = sorted(draw(some.lists(some.integers(0, table.num_rows), max_size=most)))
    edges = [0, *at, table.num_rows]
    return [table.slice(start, end - start) for start, end in pairwise(edges)]


def said(table: pa.Table) -> list[Any]:
    return sorted(map(repr, table.to_pylist()))


@settings(deadline=None, max_examples=150)
@given(some.data(), questions(), row_windows(), tables(), some.booleans(), some.booleans())
def test_packs_lead_where_all_rows_lead(
    data: Any, question: Any, window: Any, table: Any, keyed: bool, ordered: bool
) -> None:
    query = st.Query(question, window, ("key",) if keyed else ())
    order_by = ["order"] if ordered else []
    each = st.Query(question, window)
    truth: dict[Any, Any] = {}
    live: dict[Any, Any] = {}
    for batch in cuts(data.draw, table):
        packs: dict[Any, list[Pack]] = {}
        for part in cuts(data.draw, batch, 2):
            for key, pack in _pruned(query, cuts(data.draw, part, 2), order_by):
                packs.setdefault(key, []).append(pack)
        for rows in pruning.split_by_key(batch, query.keys):
            key = tuple(rows[name][0].as_py() for name in query.keys)
            rows = rows.take(np.argsort(rows["order"], kind="stable")) if ordered else rows
            truth.setdefault(key, each.open()).push(rows)
            live.setdefault(key, each.open()).push_pack(merged(packs[key]))
            assert live[key].stats().seen == truth[key].stats().seen
            assert said(live[key].answer()) == said(truth[key].answer())


def _pruned(query: Any, batches: list[pa.Table], order_by: list[str]) -> list[Any]:
    before, pruning.PENDING = pruning.PENDING, 3  # so that what was gathered is pruned many times
    try:
        pruner = Pruner(query, batches[0].schema, order_by)
        for batch in batches:
            assert not pruner.add(batch).num_rows
        return [(key, Pack.from_bytes(pack.to_bytes())) for key, pack in pruner.packs()]
    finally:
        pruning.PENDING = before


@settings(deadline=None, max_examples=100)
@given(some.data(), questions(), some.integers(1, 6), some.integers(1, 6), tables(15))
def test_of_a_window_of_time_only_what_is_seen_together_is_pruned(
    data: Any, question: Any, length: int, every: int, table: Any
) -> None:
    """Wherever the clock stops, the answer over what is left is the answer over all."""
    times = table["order"].to_numpy() * SECOND
    table = table.append_column("ts", pa.array(times, pa.timestamp("ns")))
    window = st.last(f"{length} seconds", every=f"{min(every, length)} seconds", on="ts")
    query = question.over(window)
    left = [rows for _, pack in _pruned(query, cuts(data.draw, table), []) for rows in [pack.rows]]
    for now in range(12):
        answers = []
        for rows in (table, left[0] if left else table):
            live = query.open()
            order = np.argsort(rows["ts"], kind="stable")
            sorted_rows = rows.take(order)
            come = sorted_rows.filter(pa.array(sorted_rows["ts"].to_numpy() <= _at(now)))
            live.push(come)
            live.advance(to=_at(now))
            answers.append(said(live.answer()))
        assert answers[0] == answers[1]


def _at(second: int) -> np.datetime64:
    return np.datetime64(second * SECOND, "ns")


def test_history_needs_every_row() -> None:
    pruner = Pruner(st.skyline(st.low("x")).over(st.last(9, history=True)))
    pruner.add({"x": [3, 2, 1]})
    assert [pack.places.tolist() for _, pack in pruner.packs()] == [[1, 2, 3]]


def test_rows_without_a_place_in_the_order_are_set_aside() -> None:
    query = st.skyline(st.low("x")).over(st.last(9))
    rows = pa.table({"x": [1.0, 2.0, None], "o": [1.0, float("nan"), 3.0]})
    pruner = Pruner(query, rows.schema, ["o"])
    why = pruner.add(rows)["_reasons"].to_pylist()
    assert why == ["x: null", "o: null or NaN, which has no place in the order"]
    assert [pack.seen for _, pack in pruner.packs()] == [1]


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(st.SchemaError, match='Did you mean "ts"'):
        Pruner(
            st.skyline(st.low("x")).over(st.last(9)),
            pa.schema({"x": pa.float64(), "ts": pa.int64()}),
            ["t"],
        )
