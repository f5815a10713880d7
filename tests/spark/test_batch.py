"""`query.answer(df)`: the answer over all rows, however they lie in partitions."""

import numpy as np
import pyarrow as pa
import pytest

import skytide as st

PARTITIONS = 18  # more than are merged at a time


def invented(seed, count=1_500):
    """Rows full of ties, in partitions of very different size, one of them empty."""
    random = np.random.default_rng(seed)
    part = np.sort(random.choice([0, 1, 2, 3, 5, *range(8, PARTITIONS)], count))
    times = random.integers(0, 600, count) * 1_000_000
    return pa.table(
        {
            "number": np.arange(count),
            "part": part.astype(np.int32),
            "price": random.integers(0, 30, count).astype(float),
            "volume": random.integers(0, 30, count),
            "turn": random.integers(0, 200, count),
            "ts": pa.array(times, pa.timestamp("us")).cast(pa.timestamp("us", "UTC")),
            "symbol": pa.array(random.choice([*"abcdefg", None], count), pa.string()),
        }
    )


@pytest.fixture(scope="module")
def session(spark):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", 3)  # so that keys meet in several tasks
    yield spark
    spark.conf.set("spark.sql.shuffle.partitions", before)


def spread(session, rows):
    return session.createDataFrame(rows).coalesce(1).repartitionById(PARTITIONS, "part")


def numbers(rows):
    return rows["number"].to_pylist()


SKYLINE = st.skyline(st.low("price"), st.high("volume"))
BEST = st.top(5, st.low("price + 0.1 * volume"))


@pytest.mark.parametrize(
    ("query", "order_by"),
    [
        (SKYLINE.over(st.everything()), []),
        (st.skyline(st.low("price"), ties="newest").over(st.everything()), ["turn"]),
        (st.skyband(3, st.low("price"), st.high("volume")).over(st.last(400)).per("symbol"), []),
        (SKYLINE.over(st.last(150, every=40, history=True)).per("symbol"), ["turn", "volume"]),
        (st.skyband(2, st.low("price")).over(st.last("90 seconds", every="1 minute")), []),
        (BEST.over(st.last("2 minutes")).per("symbol"), []),
        (BEST.over(st.last(700)), ["turn"]),
    ],
)
def test_the_answer_is_that_over_all_rows(session, query, order_by):
    rows = invented(7)
    sort = [(name, "ascending") for name in [*order_by, "number"]]
    answer = query.answer(spread(session, rows), order_by=order_by)
    found = answer.toArrow()
    assert found.schema.equals(rows.schema)
    expected = query.answer(rows.sort_by(sort))
    if repr(query).startswith("top") and not query.keys:
        assert numbers(found) == numbers(expected), "the best come first"
    else:
        assert sorted(numbers(found)) == sorted(numbers(expected))
    whole = rows.filter(pa.array(np.isin(rows["number"], numbers(found))))
    assert found.sort_by("number").equals(whole), "rows come back whole"


def test_bad_rows_are_set_aside_and_counted(session):
    from pyspark.sql import Observation

    rows = pa.table(
        {"price": [2.0, None, float("nan"), 1.0], "note": [*"abcd"], "part": pa.array([0] * 4)}
    )
    df, query, counts = session.createDataFrame(rows), SKYLINE_OF_PRICE, Observation()
    assert [row.note for row in query.answer(df, counts=counts).collect()] == ["d"]
    told = counts.get
    assert (told["rows"], told["rejected"]) == (4, 2)
    assert told["bytes"] > 0
    told = query.answer(df, rejects=True).sort("note").collect()
    why = {row.note: row["_reasons"] for row in told}
    assert why == {"b": "price: null", "c": "price: NaN", "d": None}


SKYLINE_OF_PRICE = st.skyline(st.low("price")).over(st.everything())


def test_no_rows_have_no_answer(session):
    df = session.createDataFrame(invented(1).slice(0, 0))
    answer = df.transform(SKYLINE.over(st.last(5)).per("symbol").answer)
    assert answer.schema == df.schema
    assert answer.count() == 0


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        (st.skyline(st.low("prise")).over(st.everything()), {}, 'Did you mean "price"'),
        (SKYLINE.over(st.last(5)), {"order_by": "tern"}, 'Did you mean "turn"'),
        (SKYLINE.over(st.last("1 hour", on="turn")), {}, "not a timestamp"),
        (st.skyline(st.low("symbol")).over(st.last(5)), {}, "non-numeric"),
        (st.top_pairs(2, st.low("abs(a.price - b.price)")).over(st.last(5)), {}, "no engine"),
    ],
)
def test_slips_are_named_before_anything_runs(session, query, options, message):
    df = session.createDataFrame(invented(1, 3))
    with pytest.raises((st.SchemaError, st.QueryError), match=message):
        query.answer(df, **options)


def test_names_that_skytide_needs_are_refused(session):
    df = session.createDataFrame(pa.table({"price": [1.0], "_bucket": [1]}))
    with pytest.raises(st.SchemaError, match="_bucket"):
        SKYLINE_OF_PRICE.answer(df)
