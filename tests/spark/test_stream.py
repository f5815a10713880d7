"""Changes of a query over a real Spark stream: against the embedded engine after every micro-batch."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import skytide as st

pytest.importorskip("pyspark")

SCHEMA = "x BIGINT, y DOUBLE, ts TIMESTAMP, key STRING, tags ARRAY<STRING>, number BIGINT"
START = datetime(2024, 1, 1)


class Stream:
    """A stream that reads one file of rows a micro-batch, and what it told after each."""

    def __init__(self, spark: Any, folder: Any) -> None:
        self.spark, self.folder = spark, folder
        self.told: list[pa.Table] = []
        self.progress: list[Any] = []

    def write(self, rows: list[dict[str, Any]], partitions: int) -> None:
        """The rows of a micro-batch; files are read in the order of their names within it."""
        frame = self.spark.createDataFrame(rows, SCHEMA)
        frame.coalesce(partitions).write.mode("append").parquet(str(self.folder / "rows"))

    def run(self, changes: Any) -> None:
        """Read what there is and not read yet."""
        self.told.clear()
        query = (
            changes.writeStream.foreachBatch(lambda frame, _: self.told.append(frame.toArrow()))
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)
        self.progress = query.recentProgress

    def source(self) -> Any:
        return self.spark.readStream.schema(SCHEMA).parquet(str(self.folder / "rows"))


def made(seed: int, count: int, first: int = 0) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        {
            "x": rng.randint(0, 5),
            "y": float(rng.randint(0, 5)),
            "ts": START + timedelta(seconds=number + rng.randint(0, 3)),
            "key": rng.choice("abc"),
            "tags": [str(number)],
            "number": first + number,
        }
        for number in range(count)
    ]


def numbers(table: pa.Table) -> list[int]:
    return sorted(table["number"].to_pylist())


QUESTIONS = {
    "skyline": st.skyline(st.low("x"), st.high("y")).over(st.last(20)),
    "skyband per key": st.skyband(2, st.low("x"), st.high("y"))
    .over(st.last(9, every=4))
    .per("key"),
    "top by an expression": st.top(3, st.low("x * 2 - y")).over(st.last(15)).per("key"),
    "everything": st.skyline(st.low("x"), ties="newest").over(st.everything()).per("key"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_micro_batch_leads_to_the_answer(spark: Any, tmp_path: Any, name: str) -> None:
    query, stream, seen = QUESTIONS[name], Stream(spark, tmp_path), []
    live, folded = query.open(), []
    for batch in range(3):
        rows = made(batch, 30, first=30 * batch)
        stream.write(rows, partitions=2)
        stream.run(query.changes(stream.source(), order_by="number"))
        folded += stream.told
        seen += rows
        live.push(pa.Table.from_pylist(rows))
        assert numbers(st.fold(folded)) == numbers(live.answer())
    assert folded[0].schema.field("tags").type == pa.list_(pa.string())


def test_a_standing_query_of_its_own(spark: Any, tmp_path: Any) -> None:
    query, stream = st.skyline(st.low("x")).over(st.last(20, history=True)), Stream(spark, tmp_path)
    rows = made(1, 50)
    stream.write(rows, partitions=2)
    stream.run(query.changes(stream.source(), order_by="number", between=(3, 12)))
    live = query.open()
    live.push(pa.Table.from_pylist(rows))
    assert numbers(st.fold(stream.told)) == numbers(live.answer(between=(3, 12)))


def test_time_goes_on_for_keys_from_which_nothing_comes(spark: Any, tmp_path: Any) -> None:
    query, stream = (
        st.skyline(st.low("x")).over(st.last("10 seconds", on="ts")),
        Stream(spark, tmp_path),
    )
    query = query.per("key")
    first = [{**row, "key": "a"} for row in made(1, 5)]
    second = [{**row, "key": "b", "ts": row["ts"] + timedelta(minutes=1)} for row in made(2, 5, 5)]
    late = [{**made(3, 1, 10)[0], "ts": START}]
    folded = []
    for rows in (first, second, late):
        stream.write(rows, partitions=1)
        stream.run(query.changes(stream.source(), watermark="2 seconds", rejects=True))
        folded += stream.told
    told = pa.concat_tables(folded)
    rejects = told.filter(pc.equal(told["_change_type"], "reject"))
    assert numbers(rejects) == [10]
    assert rejects["_reasons"][0].as_py().startswith("late")
    changes = told.filter(pc.not_equal(told["_change_type"], "reject"))
    left = st.fold(changes.drop_columns(["_reasons"]))
    assert set(left["key"].to_pylist()) == {"b"}
    assert {"a"} <= set(changes["key"].to_pylist())


def test_bad_rows_are_counted_and_shown_when_asked(spark: Any, tmp_path: Any) -> None:
    query, stream = QUESTIONS["skyband per key"], Stream(spark, tmp_path)
    rows = made(1, 10)
    rows[3]["x"], rows[4]["y"] = None, float("nan")
    stream.write(rows, partitions=1)
    stream.run(query.changes(stream.source(), order_by="number", rejects=True))
    told = pa.concat_tables(stream.told)
    rejects = told.filter(pc.equal(told["_change_type"], "reject")).sort_by("number")
    assert rejects["_reasons"].to_pylist() == ["x: null", "y: NaN"]
    metrics = stream.progress[0].observedMetrics
    assert metrics["skytide_in"]["rows"] == 10
    assert metrics["skytide_in"]["rejected"] == 2
    assert metrics["skytide_out"]["rejected"] == 2


def test_a_key_may_have_a_name_that_packs_use(spark: Any, tmp_path: Any) -> None:
    stream, rows = Stream(spark, tmp_path), made(1, 20)
    stream.write(rows, partitions=2)
    renamed = stream.source().withColumnRenamed("key", "_part")
    query = st.skyline(st.low("x")).over(st.last(5))
    stream.run(query.per("_part").changes(renamed, order_by="number"))
    live = query.per("key").open()
    live.push(pa.Table.from_pylist(rows))
    assert numbers(st.fold(stream.told)) == numbers(live.answer())
    with pytest.raises(st.SchemaError, match="'_place', a name that skytide needs"):
        query.changes(stream.source().withColumnRenamed("key", "_place"))


def test_what_is_wrong_is_said_before_the_stream_starts(spark: Any, tmp_path: Any) -> None:
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path))
    with pytest.raises(st.SchemaError, match='no column "prize"'):
        st.skyline(st.low("prize")).over(st.last(9)).changes(stream)
    with pytest.raises(st.SchemaError, match="non-numeric"):
        st.skyline(st.low("key")).over(st.last(9)).changes(stream)
    with pytest.raises(st.SchemaError, match="order_by"):
        st.skyline(st.low("x")).over(st.last(9)).changes(stream, order_by="nmber")
    with pytest.raises(st.QueryError, match="rows that this query forgets"):
        st.skyline(st.low("x")).over(st.last(9)).changes(stream, between=(1, 2))
    with pytest.raises(st.QueryError, match="streaming"):
        st.skyline(st.low("x")).over(st.last(9)).answer(stream)
    with pytest.raises(st.QueryError, match="not streaming"):
        st.skyline(st.low("x")).over(st.last(9)).changes(spark.range(3))
