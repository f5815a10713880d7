"""The engine of a key from micro-batch to micro-batch, without Spark: against the oracle each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import oracles
import skytide as st

pytest.importorskip("pyspark")

from skytide.pruning import Pack, Pruner
from skytide.spark.keeper import Asked, Keeper

SECOND = 1_000_000_000


@some.composite
def streams(draw: Any) -> list[list[list[Any]]]:
    """Micro-batches of partitions of rows."""
    row = some.tuples(some.integers(0, 3), some.integers(0, 3), some.integers(0, 9))
    part = some.lists(row, max_size=5)
    return draw(some.lists(some.lists(part, min_size=1, max_size=3), min_size=1, max_size=6))


def rows_of(part: list[Any], first: int) -> pa.Table:
    """``number`` tells rows apart, ``ts`` is their time in seconds."""
    x, y, at = (list(column) for column in zip(*part, strict=True)) if part else ([], [], [])
    numbers = range(first, first + len(part))
    columns = {name: pa.array(column, pa.int64()) for name, column in (("x", x), ("y", y))}
    times = pa.array([second * SECOND for second in at], pa.timestamp("ns"))
    return pa.table({**columns, "ts": times, "number": pa.array(numbers, pa.int64())})


def packs_of(query: Any, batch: list[list[Any]], first: int) -> tuple[list[Pack], list[Any]]:
    """The packs of the partitions of a micro-batch, and the rows themselves in order of arrival."""
    packs, rows = [], []
    for part in batch:
        table = rows_of(part, first + len(rows))
        pruner = Pruner(query, table.schema)
        pruner.add(table)
        packs += [pack for _, pack in pruner.packs()]
        rows += table.to_pylist()
    return packs, rows


class Reader:
    """Whoever adds up the changes has the answer."""

    def __init__(self) -> None:
        self.rows: set[int] = set()

    def read(self, changes: pa.Table) -> list[int]:
        for change in changes.to_pylist():
            if change["_change_type"] == "insert":
                assert change["number"] not in self.rows
                self.rows.add(change["number"])
            else:
                self.rows.remove(change["number"])
        return sorted(self.rows)


def truth(query: Any, rows: list[Any], window: list[int]) -> list[int]:
    """The numbers of the rows that are the answer over the window, by brute force."""
    values = np.array([[row["x"], -row["y"]] for row in rows], float).reshape(-1, 2)
    values = values[:, : len(query.preferences)]
    best = oracles.skyband(values, window, query.k, query.ties == "newest")
    return sorted(rows[position - 1]["number"] for position in best)


QUESTIONS = [
    st.skyline(st.low("x"), st.high("y")),
    st.skyline(st.low("x"), st.high("y"), ties="newest"),
    st.skyband(2, st.low("x"), st.high("y")),
    st.top(2, st.low("x")),
]


@settings(deadline=None, max_examples=120)
@given(
    streams(), some.sampled_from(QUESTIONS), some.integers(1, 9), some.integers(1, 4), some.data()
)
def test_rows_that_count(stream: Any, question: Any, n: int, every: int, data: Any) -> None:
    query = question.over(st.last(n, every=min(every, n)))
    asked, reader, rows = Asked(query), Reader(), []
    keeper = Keeper(asked)
    for batch in stream:
        packs, fresh = packs_of(query, batch, len(rows))
        rows += fresh
        told = reader.read(keeper.take(packs).changes)
        clock = oracles.slide(len(rows), query.window.every)
        window = [p for p in range(1, clock + 1) if p > clock - n]
        assert told == truth(query, rows, window)
        keeper = _carried(asked, keeper, data)


def _carried(asked: Any, keeper: Any, data: Any) -> Any:
    """Sometimes a worker has forgotten the engine, and it is loaded."""
    return Keeper.load(asked, *keeper.save()) if data.draw(some.booleans()) else keeper


@settings(deadline=None, max_examples=120)
@given(
    streams(), some.sampled_from(QUESTIONS), some.integers(1, 6), some.integers(0, 3), some.data()
)
def test_time_that_the_watermark_tells(
    stream: Any, question: Any, length: int, every: int, data: Any
) -> None:
    slide = {"every": f"{min(every, length)} seconds"} if every else {}
    query = question.over(st.last(f"{length} seconds", on="ts", **slide))
    asked, reader, keeper = Asked(query), Reader(), None
    known, seen, watermark = [], 0, 0
    for batch in stream:
        packs, fresh = packs_of(query, batch, seen)
        seen += len(fresh)
        late = [row for row in fresh if _second(row) < watermark]
        known += [row for row in fresh if _second(row) >= watermark]
        keeper = keeper or Keeper(asked)
        outcome = keeper.take(packs, watermark * 1000)
        set_aside = 0 if outcome.late is None else outcome.late.num_rows
        # Of one slide or instant, rows that others beat are pruned before anybody asks.
        assert set_aside <= len(late)
        assert reader.read(outcome.changes) == _timed_truth(query, known, watermark)
        due = keeper.due
        watermark = max(
            [watermark, *(_second(row) - data.draw(some.integers(0, 2)) for row in fresh)]
        )
        if due is None or due <= watermark * 1000:
            told = reader.read(keeper.take([], watermark * 1000).changes)
            assert told == _timed_truth(query, known, watermark)
        else:  # nothing may change before it is due
            assert sorted(reader.rows) == _timed_truth(query, known, watermark)
        keeper = None if keeper.idle else _carried(asked, keeper, data)
        assert keeper or not reader.rows


def _second(row: Any) -> int:
    return row["ts"].value // SECOND if hasattr(row["ts"], "value") else int(row["ts"].timestamp())


def _timed_truth(query: Any, rows: list[Any], watermark: int) -> list[int]:
    """Age is told by time, then by arrival."""
    rows = sorted(rows, key=_second)
    times = [_second(row) * SECOND for row in rows]
    clock = oracles.slide(watermark * SECOND, query.window.every_ns or 1)
    return truth(query, rows, oracles.recent(times, query.window.length_ns, clock))


def test_rows_are_late_when_the_watermark_has_passed_them() -> None:
    keeper = Keeper(Asked(st.skyline(st.low("x")).over(st.last("1 hour", on="ts"))))
    keeper.take([Pack.of(rows_of([(1, 0, 5)], 0))], watermark=0)
    late = keeper.take(
        [Pack.of(rows_of([(1, 0, 4), (1, 0, 5), (1, 0, 6)], 1))], watermark=5000
    ).late
    assert late["number"].to_pylist() == [1]


def test_a_state_of_another_query_is_refused() -> None:
    ours = Asked(st.skyline(st.low("x")).over(st.last(9)))
    other = Asked(st.skyline(st.high("x")).over(st.last(9)))
    keeper = Keeper(ours)
    keeper.take([Pack.of(pa.table({"x": [1, 2]}))])
    with pytest.raises(st.StateError, match="of another query"):
        Keeper.load(other, *keeper.save())


def test_a_watch_of_its_own_goes_on_after_loading() -> None:
    asked = Asked(st.skyline(st.low("x")).over(st.last(9, history=True)), between=(2, 3))
    keeper, reader = Keeper(asked), set()
    for number in range(6):
        packs = [Pack.of(pa.table({"x": [number % 4]}))]
        for change in keeper.take(packs).changes.to_pylist():
            (reader.add if change["_change_type"] == "insert" else reader.remove)(change["x"])
        keeper = Keeper.load(asked, *keeper.save())
    assert reader == {0}
