"""Sinks: what they hold is the answer, once, whatever was done twice."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import functions as F  # noqa: N812

import skytide as st
from change_histories import SCHEMA, counted, histories
from skytide.spark.folding import BATCH, fold
from skytide.spark.sinks import Answer, ConsoleSink, ParquetSink


def test_fold_is_the_answer(spark):
    for seed in range(3):
        history = histories(seed)
        changes = [change for batch, _ in history for change in batch]
        folded = fold(spark.createDataFrame(changes, SCHEMA))
        assert counted(folded.toArrow().to_pylist()) == history[-1][1]


def test_fold_takes_columns_of_any_type_and_leaves_rejects_out(spark):
    rows = """
      ('insert', 1L, double('NaN'), map('b', 2, 'a', 1), array(1), named_struct('z', 1), 'one.two'),
      ('insert', 1L, -0.0D, map('b', 2, 'a', 1), array(1), named_struct('z', 1), null),
      ('insert', 1L, 0.0D, map('a', 1, 'b', 2), array(1), named_struct('z', 1), null),
      ('reject', 1L, null, null, null, null, null),
      ('delete', 2L, double('NaN'), map('a', 1, 'b', 2), array(1), named_struct('z', 1), 'one.two')
    """
    names = "_change_type, _change_at, x, `a map`, `a.list`, `a``tick`, text"
    changes = spark.sql(
        f"SELECT *, cast(null AS string) AS _reasons FROM VALUES {rows} AS t({names})"
    )
    folded = fold(changes)
    assert folded.columns == ["x", "a map", "a.list", "a`tick", "text"]
    assert folded.count() == 2


def test_fold_refuses_what_has_no_beginning(spark):
    changes = spark.createDataFrame([("delete", 1, 1.0, "a")], SCHEMA)
    with pytest.raises(SparkRuntimeException, match="deleted more often than it was inserted"):
        fold(changes).collect()
    with pytest.raises(st.SchemaError, match="_change_at is missing"):
        fold(changes.drop("_change_at"))


def test_a_change_table_has_each_change_once(spark, tmp_path):
    sink = ParquetSink(str(tmp_path / "deals"))
    history = histories(seed=5)
    for batch, (changes, answer) in enumerate(history):
        told = spark.createDataFrame(changes, SCHEMA)
        for _ in range(1 + batch % 2):  # every other micro-batch is done again
            sink(told, batch)
        assert counted(fold(sink.path).toArrow().to_pylist()) == answer
    table = spark.read.parquet(sink.path)
    assert table.count() == sum(len(changes) for changes, _ in history)
    assert table.columns == ["_change_type", "_change_at", "price", "name", BATCH]
    assert pq.read_table(sink.path).num_rows == table.count()
    files = {path.name for path in (tmp_path / "deals").rglob("*") if path.is_file()}
    assert not any(name.startswith("_") for name in files)


def test_a_new_stream_does_not_write_over_an_old_one(spark, tmp_path):
    sink = ParquetSink(str(tmp_path / "deals"))
    changes = spark.createDataFrame([("insert", 1, 1.0, "a")], SCHEMA)
    sink(changes, 0)
    sink(changes, 0)
    sink(changes, 1)
    with pytest.raises(st.StateError, match=r"change_batch=1/.* stands already"):
        sink(changes, 0)
    with pytest.raises(st.SchemaError, match="have a column change_batch"):
        sink(changes.withColumn(BATCH, F.lit(1)), 2)


def test_an_answer_moves_once_with_each_micro_batch():
    for seed in range(20):
        answer = Answer()
        for batch, (changes, expected) in enumerate(histories(seed)):
            kinds, at, prices, names = zip(*changes, strict=True) if changes else ((),) * 4
            columns = {
                "_change_type": pa.array(kinds, pa.string()),
                "_change_at": pa.array(at, pa.int64()),
                "price": pa.array(prices, pa.float64()),
                "name": pa.array(names, pa.string()),
            }
            for _ in range(1 + batch % 2):
                answer.take(pa.table(columns), batch)
            assert counted(answer.rows.to_pylist()) == expected


def test_a_console_is_shown_what_has_moved(spark):
    seen = []
    sink = ConsoleSink(show=lambda answer: seen.append((answer.batch, answer.rows.num_rows)))
    schema = f"{SCHEMA}, _reasons string"
    sink(spark.createDataFrame([], schema), 0)
    told = [("insert", 1, 1.0, "a", None), ("reject", 1, None, "b", "price: null")]
    sink(spark.createDataFrame(told, schema), 1)
    sink(spark.createDataFrame([], schema), 2)
    assert seen == [(0, 0), (1, 1)]
    assert sink.answer.batch == 2
