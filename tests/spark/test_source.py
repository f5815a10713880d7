"""`format("skytide")`: the same offsets give the same rows, and slips are named."""

import pickle

import pyarrow as pa
import pytest

import skytide as st
from pyspark_skytide import DefaultSource
from skytide import data
from skytide.spark.source import Options, StreamReader


def rows_of(reader, parts):
    return pa.Table.from_batches([batch for part in parts for batch in reader.read(part)])


@pytest.mark.parametrize("kind", data.KINDS)
@pytest.mark.parametrize("partitions", [1, 3])
def test_a_replay_gives_the_same_rows_in_the_same_parts(kind, partitions):
    options = {"kind": kind, "partitions": str(partitions), "seed": "4", "rowsPerBatch": "20000"}
    reader = DefaultSource(options).streamReader(None)
    begin = reader.latestOffset(reader.initialOffset())
    end = reader.latestOffset(begin)
    assert (begin, end) == ({"row": 20_000}, {"row": 40_000})
    # A task has the reader as it was sent to it; a restart has a new one.
    sent = pickle.loads(pickle.dumps(reader))
    anew = DefaultSource(options).streamReader(None)
    first, again = reader.partitions(begin, end), anew.partitions(begin, end)
    assert [(p.start, p.stop) for p in first] == [(p.start, p.stop) for p in again]
    whole = pa.concat_tables(data.span(kind, 20_000, 40_000, seed=4)).combine_chunks()
    assert rows_of(sent, first).combine_chunks() == whole
    assert rows_of(anew, again).combine_chunks() == whole


def test_the_pace_is_kept_and_goes_on_after_a_restart():
    now = [100.0]
    options = Options(rows_per_second=1_000, rows_per_batch=1_500, rows=4_000)
    reader = StreamReader(options, clock=lambda: now[0])
    at = reader.latestOffset(reader.initialOffset())
    assert at == {"row": 1}, "the first row is there at once"
    now[0] += 1
    at = reader.latestOffset(at)
    assert at == {"row": 1_001}
    now[0] += 10
    at = reader.latestOffset(at)
    assert at == {"row": 2_501}, "never more than rowsPerBatch"
    restarted = StreamReader(options, clock=lambda: now[0])
    assert restarted.latestOffset(at) == {"row": 2_502}, "what it slept through is not made up for"
    now[0] += 10
    assert restarted.latestOffset({"row": 3_900}) == {"row": 4_000}, "and no row after the last"


def test_spark_4_1_does_not_say_where_it_is():
    reader = StreamReader(Options(rows_per_batch=10))
    assert reader.latestOffset() == {"row": 10}
    reader.partitions({"row": 30}, {"row": 40})  # a batch that is done again after a restart
    assert reader.latestOffset() == {"row": 50}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"knd": "trades"}, "no option 'knd'. Did you mean \"kind\""),
        ({"kind": "trade"}, "is 'trade'. Did you mean \"trades\""),
        ({"rows": "-5"}, "rows of .* is '-5'\nHint: give a whole number, at least 1"),
        ({"rowsPerSecond": "1e6"}, "rowsPerSecond of .* is '1e6'"),
        ({"dims": "2"}, "dims of .* no meaning for trades"),
        ({"keys": "2", "kind": "trades"}, "keys of .* no meaning for trades\nHint: leave it out"),
    ],
)
def test_slips_are_named(options, message):
    with pytest.raises(st.QueryError, match=message):
        DefaultSource(options).schema()


def test_a_batch_needs_its_size():
    with pytest.raises(st.QueryError, match='option\\("rows"'):
        DefaultSource({}).reader(None)


@pytest.mark.parametrize("kind", data.KINDS)
def test_spark_reads_the_rows_of_the_generators(spark, kind):
    source = spark.read.format("skytide").option("kind", kind).option("rows", 20_000)
    read = source.option("partitions", 3).option("seed", 2).load().toArrow()
    made = pa.concat_tables(data.span(kind, 0, 20_000, seed=2))
    assert read.cast(made.schema).combine_chunks() == made.combine_chunks()


def test_spark_streams_what_is_available_now(spark):
    source = spark.readStream.format("skytide").option("rows", 25_000)
    stream = source.option("rowsPerBatch", 10_000).load()
    query = stream.writeStream.format("noop").trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    assert [batch.numInputRows for batch in query.recentProgress] == [10_000, 10_000, 5_000]
