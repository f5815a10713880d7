"""Rows: every kind of input, the schema they are held to, the matrix, the clock, the bad ones."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skytide.errors import BadRows, QueryError, SchemaError
from skytide.query import everything, high, last, latest, lifetime, low, skyline, top_pairs
from skytide.rows import Batch, Reader, to_table
from skytide.widening import widens

QUERY = skyline(low("price"), high("volume")).over(last(10))
DATA = {"price": [1.5, 0.0, -0.0], "volume": [3, 2, 0]}
VALUES = [[1.5, -3.0], [0.0, -2.0], [0.0, 0.0]]
BIG = 2**53


def reader(*preferences, window=None):
    return Reader(skyline(*preferences).over(window or everything()))


class Stream:
    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Single:
    def __init__(self, batch):
        self.batch = batch

    def __arrow_c_array__(self, requested_schema=None):
        return self.batch.__arrow_c_array__(requested_schema)


# ------------------------------------------------------------------------------- kinds of input

FRAME = pd.DataFrame(DATA, index=[7, 7, 9])

KINDS = {
    "table": pa.table(DATA),
    "chunked table": pa.concat_tables([pa.table(DATA).slice(0, 1), pa.table(DATA).slice(1)]),
    "sliced table": pa.concat_tables([pa.table(DATA), pa.table(DATA)]).combine_chunks().slice(3),
    "batch": pa.record_batch(DATA),
    "batch reader": None,
    "stream": Stream(pa.table(DATA)),
    "array protocol": Single(pa.record_batch(DATA)),
    "pandas": FRAME,
    "polars": pl.DataFrame(DATA),
    "dict of lists": DATA,
    "dict of tuples": {name: tuple(column) for name, column in DATA.items()},
    "dict of numpy": {name: np.array(column) for name, column in DATA.items()},
    "dict of arrow": {name: pa.array(column) for name, column in DATA.items()},
    "dict of pandas": {name: FRAME[name] for name in DATA},
    "dict of polars": {name: pl.Series(column) for name, column in DATA.items()},
    "dicts": pa.table(DATA).to_pylist(),
    "tuple of dicts": tuple(pa.table(DATA).to_pylist()),
    "numpy": np.array([DATA["price"], DATA["volume"]]).T,
    "numpy of integers": np.array([[15, 3], [0, 2], [0, 0]]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_input_gives_the_same_matrix(kind):
    rows = KINDS[kind]
    if kind == "batch reader":
        rows = pa.table(DATA).to_reader()
    batch = Reader(QUERY).read(rows)
    expected = np.array(VALUES)
    if kind == "numpy of integers":
        expected = expected * [10, 1] + [0.0, 0.0]
    np.testing.assert_array_equal(batch.values, expected)
    assert not np.signbit(batch.values[2]).any()
    assert batch.table.column_names == ["price", "volume"]
    assert batch.table.num_rows == 3
    assert batch.labels is None


def test_duckdb_relations_are_read():
    relation = duckdb.sql("select 1.5::double as price, 3 as volume, 'x' as note")
    assert Reader(QUERY).read(relation).table.to_pylist() == [
        {"price": 1.5, "volume": 3, "note": "x"}
    ]


def test_a_dict_of_single_values_is_one_row():
    row = {"price": 1.5, "volume": np.float64(2), "note": "x", "at": datetime(2024, 1, 1)}
    assert to_table(row).to_pylist() == [{**row, "volume": 2.0}]
    assert to_table({"a": np.array(1), "b": None, "c": {"d": 1}}).to_pylist() == [
        {"a": 1, "b": None, "c": {"d": 1}}
    ]


def test_dicts_may_miss_what_others_have():
    rows = [{"price": 1.0}, {"price": 2.0, "note": "x"}]
    assert to_table(rows).column("note").to_pylist() == [None, "x"]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (3, "cannot be read from a builtins.int"),
        ("price", "cannot be read from a builtins.str"),
        (None, "NoneType"),
        (iter([]), "list_iterator"),
        ([1, 2], "row 0 of the list is a int, not a dict"),
        ([{"price": 1}, [2]], "row 1 of the list is a list"),
        ([{}, {}], "the 2 rows have no columns"),
        ({"price": [1, 2], "volume": [1]}, "not equally long: {'price': 2, 'volume': 1}"),
        ({"price": [1, 2], "volume": 1}, "'volume' is a single value, but 'price' has several"),
        ({"price": [1, "x"]}, "the column 'price' has no one type"),
        ({"price": {1, 2}}, "is a set, which has no order"),
        ({"price": [object()]}, "the column 'price' has no one type"),
        ({"price": np.zeros((2, 2))}, "the column 'price' has no one type"),
        ({1: [1]}, "the column name 1 is not text"),
        ([{1: 1}], "the column name 1 is not text"),
        (pa.table([[1], [2]], names=["a", "a"]), "more than one column named a"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than one column named a"),
        (pd.DataFrame({"a": [1, "x"]}), "Arrow cannot read the rows"),
        (pa.array([1, 2]), "Arrow cannot read the rows"),
        (pl.Series([1, 2]), "Arrow cannot read the rows"),
        (np.zeros(3), "has 1 dimensions, not 2"),
        (np.zeros((2, 3)), "a numpy array has no column names"),
        (pa.schema([]), "cannot be read from a pyarrow.lib.Schema"),
    ],
)
def test_what_cannot_be_read(rows, says):
    with pytest.raises(SchemaError) as caught:
        to_table(rows)
    assert says in str(caught.value)
    assert "\nHint: " in str(caught.value)


def test_numpy_must_have_the_columns_of_the_query():
    with pytest.raises(SchemaError, match="has 3 columns, but 2 are needed: price, volume"):
        Reader(QUERY).read(np.zeros((2, 3)))


def test_numpy_takes_the_columns_of_the_first_push():
    read = Reader(QUERY)
    read.read({"note": [0.0], "price": [1.0], "volume": [2.0]})
    assert read.read(np.array([[7.0, 8.0, 9.0]])).table.to_pylist() == [
        {"note": 7.0, "price": 8.0, "volume": 9.0}
    ]


def test_what_its_owner_writes_later_does_not_reach_us():
    prices, matrix = np.array([1.0, 2.0]), np.array([[1.0, 2.0]])
    frame = pd.DataFrame({"price": prices.copy()})
    tables = [
        to_table({"price": prices}),
        to_table({"price": frame["price"]}),
        to_table(frame),
        to_table(matrix, ["price", "volume"]),
    ]
    prices[:] = 9.0
    matrix[:] = 9.0
    frame.iloc[:, 0] = 9.0
    assert all(table["price"][0].as_py() == 1.0 for table in tables)


def test_the_matrix_is_ours_to_write():
    table = pa.table({"price": [1.0, 2.0]})
    values = reader(low("price")).read(table).values
    assert values.flags.c_contiguous
    assert values.flags.owndata
    values[:] = 0.0
    assert table["price"].to_pylist() == [1.0, 2.0]


PAYLOAD = pa.table(
    {
        "price": [1.0, 2.0],
        "text": ["x", None],
        "list": [[1, None], []],
        "struct": [{"a": 1}, None],
        "decimal": [Decimal("1.10"), None],
        "nan": [float("nan"), None],
        "dictionary": pa.array(["a", "b"]).dictionary_encode(),
        "binary": [b"x", None],
        "null": pa.nulls(2),
        "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
        "period": pa.array([timedelta(1), None]),
    }
)


def test_payload_passes_through_untouched():
    read = reader(low("price"))
    batch = read.read(PAYLOAD)
    assert batch.table is PAYLOAD
    assert read.read(PAYLOAD.slice(1)).table.slice(0).column_names == PAYLOAD.column_names


def test_polars_strings_come_in_a_type_that_rows_can_be_taken_from():
    frame = pl.DataFrame({"price": [1.0, 2.0], "s": ["x", "y"], "l": [["x"], []]}).with_columns(
        c=pl.col("s").cast(pl.Categorical)
    )
    table = reader(low("price")).read(frame).table
    assert table.take([1]).to_pylist() == [{"price": 2.0, "s": "y", "l": [], "c": "y"}]


def test_run_ends_are_laid_out():
    table = pa.table({"price": pc.run_end_encode(pa.array([1.5, 1.5, 2.5]))})
    batch = reader(low("price")).read(table)
    assert batch.values.ravel().tolist() == [1.5, 1.5, 2.5]
    assert batch.table.take([2]).to_pylist() == [{"price": 2.5}]


# ----------------------------------------------------------------------------------- the schema


def test_the_first_push_fixes_the_schema():
    read = Reader(QUERY)
    assert read.schema is None
    read.read(DATA)
    assert read.schema == pa.schema({"price": pa.float64(), "volume": pa.int64()})


def test_later_pushes_may_differ_in_order_width_encoding_and_nullability():
    first = {"price": [1.5], "volume": [2], "s": ["x"], "d": pa.array(["x"]).dictionary_encode()}
    read = Reader(QUERY)
    read.read(first)
    schema = pa.schema(
        [
            pa.field("s", pa.dictionary(pa.int8(), pa.large_string())),
            pa.field("volume", pa.int32(), nullable=False, metadata={"a": "b"}),
            pa.field("d", pa.string_view()),
            pa.field("price", pa.float32()),
        ],
        metadata={"made": "elsewhere"},
    )
    later = pa.table(
        [
            pa.array(["y"], pa.large_string()).dictionary_encode().cast(schema.field("s").type),
            pa.array([7], pa.int32()),
            pa.array(["z"], pa.string_view()),
            pa.array([0.5], pa.float32()),
        ],
        schema=schema,
    )
    batch = read.read(later)
    assert batch.table.schema.equals(read.schema, check_metadata=True)
    assert batch.table.to_pylist() == [{"price": 0.5, "volume": 7, "s": "y", "d": "z"}]
    assert batch.values.tolist() == [[0.5, -7.0]]


def test_metadata_is_dropped():
    table = pa.table(DATA).replace_schema_metadata({"pandas": "{}"})
    read = Reader(QUERY)
    assert read.read(table).table.schema.metadata is None
    assert read.read(table).table.schema.metadata is None
    assert Reader(QUERY).read(FRAME).table.schema.metadata is None


def test_integers_are_welcome_where_floats_were_first():
    read = Reader(QUERY)
    read.read({"price": [1.5], "volume": [1.5]})
    assert read.read({"price": [2], "volume": [3]}).values.tolist() == [[2.0, -3.0]]
    with pytest.raises(SchemaError, match="does not fit double"):
        read.read({"price": [BIG + 1], "volume": [3]})


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ({"price": [1.0]}, "missing: volume"),
        ({**DATA, "note": ["x"] * 3}, "new: note"),
        ({"price": [1.0], "volume": [1.5]}, "changed: volume was int64, is double"),
        ({"prices": [1.0], "volume": ["1"]},
         "(new: prices; missing: price; changed: volume was int64, is string)"),
    ],
)  # fmt: skip
def test_other_columns_are_refused(rows, says):
    read = Reader(QUERY)
    read.read(DATA)
    schema = read.schema
    with pytest.raises(SchemaError) as caught:
        read.read(rows)
    assert says in str(caught.value)
    assert read.schema == schema


@pytest.mark.parametrize(
    "rows", [{"price": [None], "volume": [1]}, {"price": [1.0]}, {"price": ["x"], "volume": [1]}]
)
def test_a_first_read_that_fails_fixes_nothing(rows):
    read = Reader(QUERY)
    with pytest.raises((BadRows, SchemaError)):
        read.read(rows)
    assert read.schema is None
    read.read(DATA)


def test_a_schema_can_be_given():
    schema = pa.schema({"volume": pa.int64(), "price": pa.float64()})
    read = Reader(QUERY, schema)
    assert read.read(DATA).table.column_names == ["volume", "price"]
    with pytest.raises(SchemaError, match="no column"):
        Reader(QUERY, pa.schema({"price": pa.float64()}))


def test_a_schema_can_be_checked_without_rows():
    read = Reader(QUERY)
    read.check(pa.schema({"price": pa.float64(), "volume": pa.int8()}))
    assert read.schema is None
    with pytest.raises(SchemaError, match="non-numeric"):
        read.check(pa.schema({"price": pa.string(), "volume": pa.int8()}))
    read.read(DATA)
    read.check(pa.schema({"volume": pa.int8(), "price": pa.float64()}))
    with pytest.raises(SchemaError, match="missing: price"):
        read.check(pa.schema({"volume": pa.int8()}))


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (skyline(low("prize")).over(last(1)), 'no column "prize". Did you mean "price"?'),
        (skyline(low("a"), low("b")).over(last(1)), 'no columns "a", "b".'),
        (skyline(low("price * prize")).over(last(1)), 'no column "prize"'),
        (skyline(low("price")).over(last(1)).per("symbol"), 'no column "symbol"'),
        (skyline(low("price")).over(latest("id")), 'no column "id"'),
        (skyline(low("price")).over(lifetime(start="s", end="e")), 'no columns "s", "e"'),
        (skyline(low("price")).over(last("1h", on="ts")), 'no column "ts"'),
        (top_pairs(1, low("a.prize - b.price")).over(last(1)), 'no column "prize"'),
    ],
)
def test_missing_columns_are_named(query, says):
    with pytest.raises(SchemaError) as caught:
        Reader(query).read(DATA)
    assert says in str(caught.value)
    assert "its columns are price, volume" in str(caught.value)


# ---------------------------------------------------------------------------------- empty pushes


@pytest.mark.parametrize("rows", [[], {}, (), pa.table({}), pd.DataFrame(), pl.DataFrame()])
def test_an_empty_push_without_columns_says_nothing(rows):
    read = Reader(skyline(low("price"), low("volume")).over(last("1h", on="ts")))
    batch = read.read(rows)
    assert batch.values.shape == (0, 2)
    assert batch.labels.dtype == np.int64
    assert read.schema is None
    read.read({"price": [1], "volume": [1], "ts": [datetime(2024, 1, 1)]})
    assert read.read(rows).table.schema == read.schema


def test_an_empty_push_with_typed_columns_fixes_the_schema():
    read = Reader(QUERY)
    assert read.read(pa.table(DATA).slice(0, 0)).values.shape == (0, 2)
    assert read.schema is not None
    assert Reader(QUERY).read(pa.table(DATA).schema.empty_table()).table.num_rows == 0


def test_an_empty_push_with_untyped_columns_does_not():
    read = Reader(QUERY)
    assert read.read({"price": [], "volume": []}).values.shape == (0, 2)
    assert read.schema is None
    read.read(DATA)
    assert read.read({"price": [], "volume": []}).values.shape == (0, 2)


def test_a_column_of_nulls_only_takes_the_type_it_had():
    read = Reader(QUERY)
    read.read({**DATA, "note": ["x", "y", "z"]})
    assert (
        read.read({"price": [1.0], "volume": [1], "note": [None]}).table["note"].type == pa.string()
    )


# ------------------------------------------------------------------------------------ the matrix


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, -2], pa.int8()), [1.0, -2.0]),
        (pa.array([1, 2**31], pa.uint32()), [1.0, 2.0**31]),
        (pa.array([BIG, -BIG], pa.int64()), [float(BIG), -float(BIG)]),
        (pa.array([2**60, -(2**63)], pa.int64()), [2.0**60, -(2.0**63)]),
        (pa.array([2**63, 1], pa.uint64()), [2.0**63, 1.0]),
        (pa.array(np.array([1.5, -0.0], np.float16)), [1.5, 0.0]),
        (pa.array([0.1, -0.0], pa.float32()), [float(np.float32(0.1)), 0.0]),
        (pa.array([True, False]), [1.0, 0.0]),
        (pa.array([Decimal("0.3"), Decimal("-1.25")]), [0.3, -1.25]),
        (pa.array([1, 0], pa.date32()), [1.0, 0.0]),
        (pa.array([86_400_000, 0], pa.date64()), [86_400_000.0, 0.0]),
        (pa.array([time(0, 0, 1), time(0)], pa.time32("ms")), [1000.0, 0.0]),
        (pa.array([5, 6], pa.time64("ns")), [5.0, 6.0]),
        (pa.array([5, 6], pa.duration("s")), [5.0, 6.0]),
        (pa.array([5, -6], pa.timestamp("us", "UTC")), [5.0, -6.0]),
        (pa.array([5, 6]).dictionary_encode(), [5.0, 6.0]),
        (pa.array([np.inf, -np.inf]), [np.inf, -np.inf]),
        (pa.array([5, 6], pa.int32()).dictionary_encode(), [5.0, 6.0]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_types_a_preference_may_have(column, expected):
    table = pa.table({"x": column})
    values = reader(low("x"), high("x")).read(table).values
    np.testing.assert_array_equal(values[:, 0], expected)
    np.testing.assert_array_equal(values[:, 1], np.negative(expected))
    assert not np.signbit(values[values == 0]).any()


@pytest.mark.parametrize("column", [["x"], [[1]], [{"a": 1}], [b"x"]])
def test_types_it_may_not_have(column):
    with pytest.raises(SchemaError, match="the preference x is non-numeric"):
        reader(low("x")).read({"x": column})
    with pytest.raises(SchemaError, match="non-numeric"):
        reader(low("x")).read({"x": pa.array(column)})


def test_expressions_become_columns_of_the_matrix():
    batch = reader(high("abs(x - y)"), low("x > y"), low("coalesce(z, 7)")).read(
        {"x": [1.0, 5.0], "y": [4, 4], "z": [None, 1]}
    )
    assert batch.values.tolist() == [[-3.0, 0.0, 7.0], [-1.0, 1.0, 1.0]]


def test_an_expression_over_chunks():
    table = pa.table({"x": pa.chunked_array([[1.0], [2.0, 3.0], []])})
    assert reader(low("x + 1")).read(table).values.ravel().tolist() == [2.0, 3.0, 4.0]


def test_an_expression_of_the_wrong_type_is_found_without_rows():
    with pytest.raises(SchemaError, match="a number is needed"):
        reader(low("s * 2")).check(pa.schema({"s": pa.string()}))
    with pytest.raises(SchemaError, match="the preference coalesce\\(s, 'x'\\) is non-numeric"):
        reader(low("coalesce(s, 'x')")).check(pa.schema({"s": pa.string()}))


def test_for_pairs_the_matrix_has_the_columns_themselves():
    query = top_pairs(3, high("abs(a.t - b.t) + a.u")).over(last(10))
    batch = Reader(query).read({"u": [1.0, 2.0], "t": [3.0, 4.0]})
    assert batch.values.tolist() == [[3.0, 1.0], [4.0, 2.0]]
    with pytest.raises(SchemaError, match="a number is needed"):
        Reader(query).read({"u": ["x"], "t": [3.0]})


CELLS = st.none() | st.floats(width=64) | st.sampled_from([0.0, -0.0, np.inf, np.nan])


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8), st.integers(0, 8))
def test_reading_and_sifting_agree(rows, cut):
    columns = [pa.array([row[i] for row in rows], pa.float64()) for i in range(2)]
    table = pa.table(columns, names=["price", "volume"])
    table = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    bad = [
        (i, name)
        for i, row in enumerate(rows)
        for name, value in zip(table.column_names, row, strict=True)
        if value is None or np.isnan(value)
    ]
    batch, rejects = Reader(QUERY).sift(table)
    good = [row for i, row in enumerate(rows) if i not in dict(bad)]
    np.testing.assert_array_equal(batch.values, np.array([[a, -b] for a, b in good]).reshape(-1, 2))
    assert not np.signbit(batch.values[batch.values == 0]).any()
    assert batch.table.num_rows == len(good)
    assert rejects.num_rows == len(rows) - len(good)
    if bad:
        with pytest.raises(BadRows) as caught:
            Reader(QUERY).read(table)
        assert list(zip(caught.value.rows, caught.value.columns, strict=True)) == bad
    else:
        np.testing.assert_array_equal(Reader(QUERY).read(table).values, batch.values)


# -------------------------------------------------------------------------------------- bad rows


def test_all_bad_cells_are_told_at_once():
    rows = {
        "price": pa.array([1.0, None, float("nan"), 4.0]),
        "volume": [BIG + 1, 2, None, BIG],
        "ts": [datetime(2024, 1, 1), None, None, datetime(2500, 1, 1)],
    }
    read = Reader(skyline(low("price"), high("volume")).over(last("1h", on="ts")))
    with pytest.raises(BadRows) as caught:
        read.read(rows)
    far = "outside the years 1678 to 2262, which int64 nanoseconds can hold"
    assert list(
        zip(caught.value.rows, caught.value.columns, caught.value.reasons, strict=True)
    ) == [
        (0, "volume", "not exact in float64"),
        (1, "price", "null"),
        (1, "ts", "null"),
        (2, "price", "NaN"),
        (2, "ts", "null"),
        (2, "volume", "null"),
        (3, "ts", far),
    ]
    for remedy in ("COALESCE(price, 0)", "CAST(volume AS DOUBLE)", "correct the times in ts"):
        assert remedy in str(caught.value)


def test_the_remedy_for_inexact_numbers_works():
    rows = {"unit price": [BIG + 1, 1]}
    with pytest.raises(BadRows) as caught:
        reader(low('"unit price"')).read(rows)
    remedy = 'CAST("unit price" AS DOUBLE)'
    assert remedy in str(caught.value)
    assert reader(low(remedy)).read(rows).values.ravel().tolist() == [float(BIG), 1.0]


def test_inexact_numbers_inside_an_expression_are_told_by_column():
    with pytest.raises(BadRows) as caught:
        reader(low("x + n")).read({"x": [1.0, 1.0], "n": [1, BIG + 1]})
    assert (caught.value.rows, caught.value.columns) == ([1], ["n"])


def test_a_cell_is_told_once_however_many_preferences_stumble_over_it():
    rows = {"x": [None, 1.0, 1.0], "n": [1, BIG + 1, 1], "m": [1, 1, BIG + 1]}
    read = reader(low("x"), high("x"), low("n / m"), high("n + 1"), low("coalesce(n, 0) * m"))
    with pytest.raises(BadRows) as caught:
        read.read(rows)
    told = set(zip(caught.value.rows, caught.value.columns, strict=True))
    assert told == {(0, "x"), (1, "n"), (2, "m")}
    assert len(told) == len(caught.value.rows)
    batch, rejects = read.sift(rows)
    assert batch.values.shape == (0, 5)
    assert rejects["_reasons"].to_pylist() == [
        "x: null", "n: not exact in float64", "m: not exact in float64"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "bad"),
    [
        (pa.array([1, 1_700_000_000_000_000_001], pa.timestamp("ns")), [1]),
        (pa.array([Decimal("90071992547409930.1"), Decimal("0.1")]), [0]),
        (pa.array([2**64 - 1, 2**63 + 1], pa.uint64()), [0, 1]),
        (pa.array([2**63 - 1, None], pa.int64()), [0, 1]),
    ],
)
def test_what_float64_cannot_hold_is_refused(column, bad):
    with pytest.raises(BadRows) as caught:
        reader(low("x")).read({"x": column})
    assert caught.value.rows == bad


def test_nan_of_an_expression_is_refused():
    with pytest.raises(BadRows) as caught:
        reader(low("ln(x)")).read({"x": [1.0, -1.0, None]})
    assert caught.value.columns == ["ln(x)", "ln(x)"]
    assert caught.value.reasons == ["NaN", "null"]


def test_sifting_sets_bad_rows_aside_and_goes_on():
    rows = {
        "price": [1.0, None, float("nan"), 4.0],
        "ts": [datetime(2024, 1, 1), None, datetime(2024, 1, 1), datetime(2024, 1, 2)],
        "note": ["a", "b", "c", "d"],
    }
    read = Reader(skyline(low("price")).over(last("1h")))
    batch, rejects = read.sift(rows)
    assert isinstance(batch, Batch)
    assert batch.values.tolist() == [[1.0], [4.0]]
    assert batch.labels.tolist() == [1_704_067_200 * 10**9, (1_704_067_200 + 86_400) * 10**9]
    assert batch.table["note"].to_pylist() == ["a", "d"]
    assert rejects.select(["note", "_reasons"]).to_pylist() == [
        {"note": "b", "_reasons": "price: null; ts: null"},
        {"note": "c", "_reasons": "price: NaN"},
    ]
    assert rejects.schema.names == ["price", "ts", "note", "_reasons"]


def test_sifting_good_rows_rejects_none():
    batch, rejects = Reader(QUERY).sift(DATA)
    assert batch.values.tolist() == VALUES
    assert rejects.num_rows == 0
    assert rejects.schema.field("_reasons").type == pa.string()
    assert Reader(QUERY).sift([])[1].num_rows == 0


def test_sifting_only_untyped_rows_fixes_nothing():
    read = Reader(QUERY)
    _, rejects = read.sift({"price": [None], "volume": [None]})
    assert rejects.num_rows == 1
    assert read.schema is None
    read.read(DATA)


def test_sifting_keeps_its_name_for_reasons():
    with pytest.raises(SchemaError, match="rename it"):
        Reader(QUERY).sift({**DATA, "_reasons": ["x"] * 3})


# --------------------------------------------------------------------------------------- the clock

NOON = datetime(2024, 1, 1, 12)
NOON_NS = 1_704_110_400 * 10**9


@pytest.mark.parametrize(
    ("column", "label"),
    [
        (pa.array([NOON], pa.timestamp("s")), NOON_NS),
        (pa.array([NOON], pa.timestamp("ms", "Asia/Tokyo")), NOON_NS),
        (pa.array([NOON], pa.timestamp("us")), NOON_NS),
        (pa.array([NOON], pa.timestamp("ns")), NOON_NS),
        (pa.array([date(2024, 1, 1)], pa.date32()), NOON_NS - 43_200 * 10**9),
        (pa.array([date(2024, 1, 1)], pa.date64()), NOON_NS - 43_200 * 10**9),
        (pa.array([-1], pa.timestamp("us")), -1000),
    ],
)
@pytest.mark.parametrize("on", ["ts", None])
def test_times_become_nanoseconds(column, label, on):
    batch = reader(low("x"), window=last("1h", on=on)).read({"x": [1.0], "ts": column})
    assert batch.labels.tolist() == [label]
    assert batch.labels.dtype == np.int64
    assert batch.labels.flags.writeable


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5))
def test_times_out_of_range_are_refused(counts):
    table = {"x": [1.0] * len(counts), "ts": pa.array(counts, pa.timestamp("us"))}
    far = [i for i, count in enumerate(counts) if abs(count * 1000) >= 2**63]
    batch, rejects = reader(low("x"), window=last("1h")).sift(table)
    assert rejects.num_rows == len(far)
    good = [count * 1000 for i, count in enumerate(counts) if i not in far]
    assert batch.labels.tolist() == good


@pytest.mark.parametrize(
    ("columns", "on", "says"),
    [
        ({}, None, "the data has 0: none"),
        ({"t": [NOON], "u": [NOON]}, None, "the data has 2: t, u"),
        ({"t": [1]}, "t", "the time column 't' is int64"),
        ({"t": [1]}, "t", 'pc.cast(column, pa.timestamp("s"))'),
        ({"t": ["2024-01-01"]}, "t", "pc.strptime"),
        ({"t": [1.5]}, "t", "pa.int64()"),
        ({"t": [time(1)]}, "t", "not a timestamp or date"),
    ],
)
def test_times_that_are_none(columns, on, says):
    with pytest.raises(SchemaError) as caught:
        reader(low("x"), window=last("1h", on=on)).read({"x": [1.0], **columns})
    assert says in str(caught.value)


def test_a_time_column_of_nulls_only_is_bad_row_by_row():
    with pytest.raises(BadRows) as caught:
        reader(low("x"), window=last("1h", on="t")).read({"x": [1.0], "t": [None]})
    assert caught.value.columns == ["t"]


def test_other_windows_have_no_labels():
    data = {"x": [1.0], "t": [NOON]}
    assert reader(low("x")).read(data).labels is None
    assert reader(low("x"), window=latest("t")).read(data).labels is None


# -------------------------------------------------------------------------------------- widening

WIDER = [
    (pa.int8(), pa.int16()),
    (pa.uint8(), pa.int16()),
    (pa.uint32(), pa.uint64()),
    (pa.int64(), pa.float64()),
    (pa.float16(), pa.float32()),
    (pa.decimal128(5, 2), pa.decimal128(7, 3)),
    (pa.string(), pa.large_string()),
    (pa.large_string(), pa.string()),
    (pa.large_binary(), pa.binary()),
    (pa.large_list(pa.int8()), pa.list_(pa.int16())),
    (pa.list_(pa.field("item", pa.int8(), nullable=False)), pa.list_(pa.int8())),
    (pa.struct({"a": pa.int8()}), pa.struct({"a": pa.int16()})),
    (pa.timestamp("s"), pa.timestamp("ns")),
    (pa.timestamp("s", "UTC"), pa.timestamp("ms", "UTC")),
    (pa.time32("s"), pa.time64("us")),
    (pa.duration("ms"), pa.duration("us")),
    (pa.date32(), pa.date64()),
    (pa.null(), pa.list_(pa.int8())),
    (pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.string())),
]


@pytest.mark.parametrize(("source", "target"), WIDER, ids=str)
def test_a_wider_type_takes_the_narrower(source, target):
    assert widens(source, target)
    assert pa.chunked_array([pa.nulls(2, source)]).cast(target).type == target


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.int16(), pa.int8()),
        (pa.int8(), pa.uint16()),
        (pa.uint8(), pa.int8()),
        (pa.float64(), pa.float32()),
        (pa.float64(), pa.int64()),
        (pa.bool_(), pa.int8()),
        (pa.int8(), pa.bool_()),
        (pa.string(), pa.binary()),
        (pa.string(), pa.int8()),
        (pa.decimal128(7, 3), pa.decimal128(7, 2)),
        (pa.decimal128(7, 2), pa.decimal128(7, 3)),
        (pa.timestamp("ns"), pa.timestamp("s")),
        (pa.timestamp("s"), pa.timestamp("s", "UTC")),
        (pa.date32(), pa.timestamp("s")),
        (pa.struct({"a": pa.int8()}), pa.struct({"b": pa.int8()})),
        (pa.list_(pa.int16()), pa.list_(pa.int8())),
        (pa.int8(), pa.null()),
    ],
)
def test_a_narrower_or_other_type_does_not(source, target):
    assert not widens(source, target)


def test_values_that_do_not_fit_the_first_push_are_told():
    read = reader(low("x"))
    read.read({"x": [1.0], "t": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises(SchemaError, match="'t' is timestamp\\[s\\] and does not fit"):
        read.read({"x": [1.0], "t": pa.array([2**40], pa.timestamp("s"))})


def test_a_reader_needs_a_query_that_can_be_asked():
    with pytest.raises(QueryError):
        reader()
