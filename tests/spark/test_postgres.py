"""The table in PostgreSQL is the answer after some micro-batch, whatever was done twice."""

import datetime as dt
from decimal import Decimal

import psycopg
import pytest
from pyspark.sql import functions as F  # noqa: N812

import servers
import skytide as st
from change_histories import SCHEMA, counted, histories
from skytide import data
from skytide.spark.jobs import read_job
from skytide.spark.postgres import PostgresSink
from skytide.spark.running import run

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.fixture(scope="module")
def server():
    with servers.postgres() as dsn:
        yield dsn


@pytest.fixture
def ask(server):
    def ask(statement):
        with psycopg.connect(server, row_factory=psycopg.rows.dict_row) as connection:
            return connection.execute(statement).fetchall()

    return ask


def test_the_table_is_the_answer_after_every_micro_batch(spark, server, ask):
    for seed in range(3):
        sink = PostgresSink(f"deals_{seed}", server, stream="one")
        for batch, (changes, answer) in enumerate(histories(seed, batches=8)):
            told = spark.createDataFrame(changes, SCHEMA)
            sink(told, batch)
            if batch % 2:
                sink(told, batch)
            assert counted(ask(f"SELECT * FROM deals_{seed}")) == answer


def test_values_of_every_type_arrive(spark, server, ask):
    row = """
      SELECT 'insert' AS _change_type, 1L AS _change_at, 'O''Hara \\\\ "x"\t\n' AS `a "text"; --`,
        true AS yes, 1Y AS tiny, 2S AS short, 3 AS whole, 4L AS long, float(0.1) AS single,
        double('NaN') AS nan, double('-Infinity') AS low, 1.25BD AS exact, X'00FF' AS bytes,
        DATE'2024-02-29' AS day, TIMESTAMP'2024-02-29 12:00:00.123456 UTC' AS moment,
        TIMESTAMP_NTZ'2024-02-29 12:00:00' AS local, array(1L, null) AS list,
        array(array('x')) AS lists, map('b', 2, 'a', 1) AS pairs, named_struct('p', 1) AS parts,
        cast(null AS string) AS nothing
    """
    insert = spark.sql(row)
    sink = PostgresSink("typed", server, stream="one")
    sink(insert.union(insert), 0)
    found = ask("SELECT * FROM typed")
    assert len(found) == 2
    assert found[0].pop("_row")
    assert found[0].pop("nan") != found[1]["nan"]
    assert list(found[0].values()) == [
        *('O\'Hara \\ "x"\t\n', True, 1, 2, 3, 4, pytest.approx(0.1), float("-inf")),
        *(Decimal("1.25"), b"\x00\xff", dt.date(2024, 2, 29)),
        dt.datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=dt.UTC),
        dt.datetime(2024, 2, 29, 12, 0),
        *([1, None], [["x"]], {"a": 1, "b": 2}, {"p": 1}, None),
    ]
    sink(insert.withColumn("_change_type", F.lit("delete")), 1)
    assert len(ask("SELECT * FROM typed")) == 1


def test_a_new_stream_begins_with_an_empty_table_and_shuts_the_old_one_out(spark, server, ask):
    told = spark.createDataFrame([("insert", 1, 1.0, "a")], SCHEMA)
    old, new = (PostgresSink("taken", server, stream) for stream in ("old", "new"))
    old(told, 0)
    old(told, 1)
    assert len(ask("SELECT * FROM taken")) == 2
    new(told, 0)
    assert len(ask("SELECT * FROM taken")) == 1
    with pytest.raises(st.StateError, match="another stream has taken the table over"):
        old(told, 2)


def test_a_table_of_somebody_else_is_not_touched(spark, server, ask):
    told = spark.createDataFrame([("insert", 1, 1.0, "a")], SCHEMA)
    with psycopg.connect(server) as connection:
        connection.execute("CREATE TABLE theirs (price double precision, name text, _row bytea)")
        connection.execute("INSERT INTO theirs VALUES (1, 'x', '')")
        connection.execute("CREATE TABLE other (price bigint, name text)")
    with pytest.raises(st.StateError, match="no stream of skytide wrote"):
        PostgresSink("theirs", server, "one")(told, 0)
    with pytest.raises(
        st.SchemaError, match=r"price is bigint, not double precision; _row is miss"
    ):
        PostgresSink("other", server, "one")(told, 0)
    with pytest.raises(st.StateError, match="micro-batch 3, but wrote none yet"):
        PostgresSink("anew", server, "one")(told, 3)
    assert len(ask("SELECT * FROM theirs")) == 1


def test_a_micro_batch_that_cannot_happen_changes_nothing(spark, server, ask):
    sink = PostgresSink("whole", server, "one")
    sink(spark.createDataFrame([("insert", 1, 1.0, "a")], SCHEMA), 0)
    wrong = [("delete", 1, 9.0, "z"), ("insert", 1, 2.0, "b")]
    with pytest.raises(st.StateError, match="1 rows were to leave the table whole, but only 0"):
        sink(spark.createDataFrame(wrong, SCHEMA), 1)
    assert counted(ask("SELECT * FROM whole")) == {(1.0, "a"): 1}
    assert ask("SELECT batch FROM skytide_streams WHERE answer = 'whole'") == [{"batch": 0}]


def test_names_are_quoted_and_schemas_kept(spark, server, ask):
    with psycopg.connect(server) as connection:
        connection.execute('CREATE SCHEMA "My Market"')
    sink = PostgresSink('My Market.deals"; DROP', server, "one")
    sink(spark.createDataFrame([("insert", 1, 1.0, "a")], SCHEMA), 0)
    assert len(ask('SELECT * FROM "My Market"."deals""; DROP"')) == 1


def test_a_stream_is_known_by_its_checkpoint(spark, server, ask, tmp_path):
    def run(checkpoint):
        rows = spark.readStream.format("skytide").option("rows", 30).option("rowsPerBatch", 10)
        changes = rows.load().selectExpr("'insert' AS _change_type", "1L AS _change_at", "price")
        writer = changes.writeStream.foreachBatch(PostgresSink("streamed", server))
        writer = writer.option("checkpointLocation", str(tmp_path / checkpoint))
        assert writer.trigger(availableNow=True).start().awaitTermination(60)

    for checkpoint in ("one", "one", "two"):
        run(checkpoint)
        assert len(ask("SELECT * FROM streamed")) == 30


def key(row):
    return row["ts"].timestamp(), row["symbol"], row["price"], row["volume"], row["venue"]


def test_a_job_keeps_the_answer_in_a_table(spark, server, ask, tmp_path, monkeypatch):
    monkeypatch.setenv("WHERE", server)
    file = tmp_path / "job.toml"
    file.write_text(f"""
    checkpoint = "{tmp_path}/checkpoint"
    trigger = "available now"
    [source]
    format = "skytide"
    options = {{ rows = 20_000, rowsPerBatch = 5_000, seed = 7 }}
    [query]
    low = "price"
    high = "volume"
    last = 9_000
    per = "symbol"
    [sink]
    format = "postgres"
    table = "best"
    dsn = "${{WHERE}}"
    """)
    run(read_job(file))
    query = read_job(file).query
    expected = query.answer(data.trades(20_000, seed=7)).to_pylist()
    found = ask("SELECT ts, symbol, price, volume, venue FROM best")
    assert sorted(map(key, found)) == sorted(map(key, expected))


def test_a_server_that_is_not_there_is_named_before_spark_starts(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text("""
    checkpoint = "nowhere"
    source.format = "skytide"
    query = { low = "price", last = 10 }
    [sink]
    format = "postgres"
    table = "best"
    dsn = "host=/nowhere connect_timeout=2"
    """)
    with pytest.raises(st.JobError, match=r"(?s)does not let us in: .*\nHint: set dsn in \[sink\]"):
        run(read_job(file))


@pytest.mark.parametrize("table", ["", ".deals", "a.b.c"])
def test_a_table_must_have_a_name(table):
    with pytest.raises(st.QueryError, match="names no table"):
        PostgresSink(table)


def test_what_postgres_has_no_like_for_is_named(spark, server):
    told = spark.sql("SELECT 'insert' AS _change_type, 1L AS _change_at, INTERVAL '1' DAY AS gap")
    with pytest.raises(st.SchemaError, match="column gap is a interval day"):
        PostgresSink("gaps", server, "one")(told, 0)
