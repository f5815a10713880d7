"""The stateful processor, driven without a JVM."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import skytide as st

tester = pytest.importorskip("pyspark.sql.streaming.tws_tester", reason="comes with Spark 4.2")

from pyspark.sql import Row

from skytide.pruning import Pack
from skytide.spark import processor
from skytide.spark.keeper import Asked
from skytide.spark.processor import Memory, Processor

QUERY = st.skyline(st.low("x")).over(st.last(3))


def packs(*parts: list[int]) -> list[Row]:
    """A row a partition, the last partition first."""
    rows = [
        Row(_part=part, _kind="rows", _pack=Pack.of(pa.table({"x": xs})).to_bytes())
        for part, xs in enumerate(parts)
    ]
    return rows[::-1]


def told(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [(row["_change_type"], row["_change_at"], row["x"]) for row in rows]


def test_packs_are_taken_in_the_order_of_their_partitions() -> None:
    spark = tester.TwsTester(Processor(Asked(QUERY), "one"))
    assert told(spark.test("a", packs([5, 4], [7]))) == [("insert", 3, 4)]
    assert told(spark.test("a", packs([9, 9]))) == [("delete", 5, 4), ("insert", 5, 7)]
    assert told(spark.test("b", packs([1]))) == [("insert", 1, 1)]


def test_an_engine_that_is_remembered_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = tester.TwsTester(Processor(Asked(QUERY), "two"))
    spark.test("a", packs([5]))
    monkeypatch.setattr(processor.Keeper, "load", None)  # loading would raise
    assert told(spark.test("a", packs([4]))) == [("delete", 2, 5), ("insert", 2, 4)]


def test_a_retry_does_not_meet_the_engine_of_the_first_try() -> None:
    spark = tester.TwsTester(Processor(Asked(QUERY), "three"))
    spark.test("a", packs([5]))
    before = {name: spark.peekValueState(name, "a") for name in ("note", "state")}
    first = spark.test("a", packs([4, 6]))
    for (
        name,
        value,
    ) in before.items():  # the micro-batch failed elsewhere: its state is not committed
        spark.updateValueState(name, "a", value)
    assert told(spark.test("a", packs([4, 6]))) == told(first)


def test_a_large_state_is_not_written_whole_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is logged and whatever remembered, changes are those of an engine that goes on."""
    monkeypatch.setattr(processor, "LOG_FROM", 0)
    monkeypatch.setattr(processor, "LOG_SHARE", 3)
    spark, stored = tester.TwsTester(Processor(Asked(QUERY), "log")), []
    live = QUERY.open()
    watch = live.watch()
    for number in range(40):
        x = number * 7 % 5
        if number % 3:
            processor.MEMORY.take(("log", ("a",)), b"")  # another worker
        live.push({"x": [x]})
        changes = [tuple(change.values()) for change in watch.changes().to_pylist()]
        assert told(spark.test("a", packs([x]))) == changes
        stored.append(len(spark.peekListState("log", "a") or ()))
    assert 0 in stored[1:]
    assert max(stored) > 1


def test_another_question_over_old_state_is_refused() -> None:
    spark = tester.TwsTester(Processor(Asked(QUERY), "four"))
    spark.test("a", packs([5]))
    other = tester.TwsTester(Processor(Asked(QUERY, last=2), "five"))
    for name in ("note", "state"):
        other.updateValueState(name, "a", spark.peekValueState(name, "a"))
    with pytest.raises(st.StateError, match=r"of another question.*last=2"):
        other.test("a", packs([4]))


def test_state_of_another_format_is_refused() -> None:
    spark = tester.TwsTester(Processor(Asked(QUERY), "six"))
    spark.test("a", packs([5]))
    note = spark.peekValueState("note", "a")[0].replace('"format": 1', '"format": 99')
    spark.updateValueState("note", "a", (note,))
    with pytest.raises(st.StateError, match=r"format 99.*\n.*new checkpointLocation"):
        spark.test("a", packs([4]))


def test_rejects_pass_through_and_touch_no_state() -> None:
    spark = tester.TwsTester(Processor(Asked(QUERY), "seven"))
    bad = pa.table({"x": pa.array([None], pa.int64()), "_reasons": ["x: null"]})
    [row] = spark.test("a", [Row(_part=0, _kind="rejects", _pack=Pack.of(bad).to_bytes())])
    assert (row["_change_type"], row["_reasons"]) == ("reject", "x: null")
    assert spark.peekValueState("note", "a") is None


def test_memory_is_bounded_and_forgets_the_oldest() -> None:
    memory = Memory(limit=10)
    for name in "abc":
        memory.put(name, b"t", name, size=4)
    assert [memory.take(name, b"t") for name in "abc"] == [None, "b", "c"]
