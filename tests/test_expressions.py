"""Expressions: against a small evaluator in Python, at their corners, and when they are refused."""

import math
import pickle
import sys
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import BadRows, MissingExtra, QueryError, SchemaError
from skytide.expressions import parse
from skytide.preferences import low
from skytide.values import doubles, gap, plain, restored, storable

BIG = 2**53


def values(text, table):
    result = parse(text).evaluate(table.column)
    return result.as_py() if isinstance(result, pa.Scalar) else result.to_pylist()


# -------------------------------------------------------- random trees against plain Python
#
# A tree is (SQL, function of a row). The functions say what SQL means with None for null.

FLOATS = st.sampled_from([0.0, 1.0, -1.0, 2.5, -3.0, 7.0, 1e300, math.inf, math.nan])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "x": st.none() | FLOATS,
            "y": st.none() | FLOATS,
            "n": st.none() | st.integers(-3, 3),
            "p": st.none() | st.booleans(),
        }
    ),
    min_size=1,
    max_size=4,
)


def strict(function):
    """Null in, null out; what float64 cannot say is NaN, as IEEE has it."""

    def apply(*values):
        if None in values:
            return None
        with np.errstate(all="ignore"):
            return function(
                *(value if isinstance(value, bool) else np.float64(value) for value in values)
            )

    return apply


def kleene_and(a, b):
    if a is False or b is False:
        return False
    return None if None in (a, b) else True


def kleene_or(a, b):
    if a is True or b is True:
        return True
    return None if None in (a, b) else False


def greatest(*values):
    known = [value for value in values if value is not None]
    if any(math.isnan(value) for value in known):
        return math.nan
    return max(known, default=None)


def least(*values):
    known = [value for value in values if value is not None]
    numbers = [value for value in known if not math.isnan(value)]
    return min(numbers) if numbers else (math.nan if known else None)


def coalesce(*values):
    return next((value for value in values if value is not None), None)


def away_from_zero(value):
    return np.copysign(np.floor(np.abs(value) + 0.5), value) if np.isfinite(value) else value


def node(template, function, *operands):
    text = template.format(*(sql for sql, _ in operands))
    return text, lambda row: function(*(operand(row) for _, operand in operands))


LEAVES = st.one_of(
    st.sampled_from(["x", "y", "n"]).map(lambda name: (name, lambda row: row[name])),
    st.sampled_from([0, 1, 2.5]).map(lambda number: (str(number), lambda row: float(number))),
    st.just(("CAST(NULL AS DOUBLE)", lambda row: None)),
)
CONDITIONS = st.sampled_from(["p", '"p"']).map(lambda name: (name, lambda row: row["p"]))

NUMERIC = [
    ("({} + {})", strict(np.add), "nn"),
    ("({} - {})", strict(np.subtract), "nn"),
    ("({} * {})", strict(np.multiply), "nn"),
    ("({} / {})", strict(np.divide), "nn"),
    ("({} % {})", strict(np.fmod), "nn"),
    ("-({})", strict(np.negative), "n"),
    ("abs({})", strict(np.abs), "n"),
    ("sign({})", strict(np.sign), "n"),
    ("sqrt({})", strict(np.sqrt), "n"),
    ("floor({})", strict(np.floor), "n"),
    ("CEIL({})", strict(np.ceil), "n"),
    ("round({})", strict(away_from_zero), "n"),
    ("greatest({}, {}, {})", greatest, "nnn"),
    ("least({}, {})", least, "nn"),
    ("coalesce({}, {})", coalesce, "nn"),
    ("nullif({}, {})", lambda a, b: None if None not in (a, b) and a == b else a, "nn"),
    ("CASE WHEN {} THEN {} ELSE {} END", lambda p, a, b: a if p is True else b, "pnn"),
    ("CASE WHEN {} THEN {} WHEN {} THEN {} END",
     lambda p, a, q, b: a if p is True else b if q is True else None, "pnpn"),
    ("CASE {} WHEN {} THEN {} ELSE {} END",
     lambda s, w, a, b: a if None not in (s, w) and s == w else b, "nnnn"),
    ("if({}, {}, {})", lambda p, a, b: a if p is True else b, "pnn"),
    ("CAST({} AS DOUBLE)", lambda p: None if p is None else float(p), "p"),
]  # fmt: skip
LOGICAL = [
    ("({} < {})", strict(lambda a, b: bool(a < b)), "nn"),
    ("({} <= {})", strict(lambda a, b: bool(a <= b)), "nn"),
    ("({} > {})", strict(lambda a, b: bool(a > b)), "nn"),
    ("({} >= {})", strict(lambda a, b: bool(a >= b)), "nn"),
    ("({} = {})", strict(lambda a, b: bool(a == b)), "nn"),
    ("({} <> {})", strict(lambda a, b: bool(a != b)), "nn"),
    ("({} AND {})", kleene_and, "pp"),
    ("({} OR {})", kleene_or, "pp"),
    ("(NOT {})", lambda p: None if p is None else not p, "p"),
    ("({} IS NULL)", lambda a: a is None, "n"),
    ("({} IS NOT NULL)", lambda a: a is not None, "p"),
    ("({} BETWEEN {} AND {})",
     lambda v, a, b: kleene_and(strict(lambda v, a: bool(v >= a))(v, a),
                                strict(lambda v, b: bool(v <= b))(v, b)), "nnn"),
    ("({} IN ({}, {}))",
     lambda v, a, b: kleene_or(strict(lambda v, a: bool(v == a))(v, a),
                               strict(lambda v, b: bool(v == b))(v, b)), "nnn"),
]  # fmt: skip


def grown(leaves, conditions, depth):
    """Number trees and condition trees of some depth."""
    if depth == 0:
        return leaves, conditions
    n, p = grown(leaves, conditions, depth - 1)

    def of(table):
        return st.one_of(
            [
                st.tuples(*({"n": n, "p": p}[kind] for kind in shape)).map(
                    lambda operands, t=template, f=function: node(t, f, *operands)
                )
                for template, function, shape in table
            ]
        )

    return leaves | of(NUMERIC), conditions | of(LOGICAL)


NUMBERS_TREE, CONDITIONS_TREE = grown(LEAVES, CONDITIONS, 2)


def same(ours, theirs):
    if ours is None or theirs is None:
        return ours is theirs
    return float(ours) == float(theirs) or (math.isnan(ours) and math.isnan(theirs))


@settings(max_examples=300, deadline=None)
@given(NUMBERS_TREE | CONDITIONS_TREE, ROWS, st.booleans())
def test_random_expressions_mean_what_python_says(tree, rows, chunked):
    text, function = tree
    table = pa.table(
        {
            "x": pa.array([row["x"] for row in rows], pa.float64()),
            "y": pa.array([row["y"] for row in rows], pa.float64()),
            "n": pa.array([row["n"] for row in rows], pa.int32()),
            "p": pa.array([row["p"] for row in rows], pa.bool_()),
        }
    )
    table = pa.concat_tables([table.slice(0, 1), table.slice(1)]) if chunked else table
    result = parse(text).evaluate(table.column)
    if isinstance(result, pa.Scalar):
        assert not parse(text).columns
        result = [result] * len(rows)
    for ours, row in zip(result, rows, strict=True):
        assert same(ours.as_py(), function(row)), (text, row, ours, function(row))


# ----------------------------------------------------------------------------------- functions

X = pa.table(
    {"x": [1.0, 8.0, None], "n": [2, 3, 4], "s": ["7", "no", None], "p": [True, None, False]}
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", [1.0, 8.0, None]),
        ('"x" + 1', [2.0, 9.0, None]),
        ("exp(x - x)", [1.0, 1.0, None]),
        ("ln(x / x)", [0.0, 0.0, None]),
        ("log(2, x)", [0.0, 3.0, None]),
        ("log(n, n * n)", [2.0, 2.0, 2.0]),
        ("log2(x)", [0.0, 3.0, None]),
        ("log10(1000 * x / x)", [3.0, 3.0, None]),
        ("pow(x, 2)", [1.0, 64.0, None]),
        ("power(n, x)", [2.0, 6561.0, None]),
        ("round(x / 3, 2)", [0.33, 2.67, None]),
        ("round(x * 7, -1)", [10.0, 60.0, None]),
        ("sin(0 * x) + cos(0 * x) + tan(0 * x)", [1.0, 1.0, None]),
        ("asin(0 * x) + acos(x / x) + atan(0 * x) + atan2(0 * x, 1)", [0.0, 0.0, None]),
        ("degrees(pi()) * x", [180.0, 1440.0, None]),
        ("radians(180) / pi() * x", [1.0, 8.0, None]),
        ("mod(n + 1, 3)", [0.0, 1.0, 2.0]),
        ("-n % 3", [-2.0, 0.0, -1.0]),
        ("n / 4", [0.5, 0.75, 1.0]),
        ("7 - 2 - n * 2 + 1", [2.0, 0.0, -2.0]),
        ("CAST(x / 3 AS INT)", [0, 2, None]),
        ("CAST(-x / 3 AS BIGINT)", [0, -2, None]),
        ("x::int::text", ["1", "8", None]),
        ("CAST(s AS DOUBLE)", [7.0, None, None]),
        ("CAST(1 AS FLOAT) * x", [1.0, 8.0, None]),
        ("CAST(x * 1000 AS TINYINT)", [None, None, None]),
        ("CAST(x AS BOOLEAN)", [True, True, None]),
        ("p * 2", [2.0, None, 0.0]),
        ("s = '7'", [True, False, None]),
        ("s IN ('no', 'yes')", [False, True, None]),
        ("n NOT IN (2, NULL)", [False, None, None]),
        ("n IN (2, NULL)", [True, None, None]),
        ("x = NULL", [None, None, None]),
        ("coalesce(s, 'none')", ["7", "no", "none"]),
        ("CASE WHEN x > 5 THEN 'big' ELSE s END", ["7", "big", None]),
        ("if(x > 5, 1)", [None, 1, None]),
        ("ifnull(x, n)", [1.0, 8.0, 4.0]),
        ("1e400 * x", [math.inf, math.inf, None]),
        ("1 + 2", 3.0),
        ("NULL IS NULL", True),
        ("-(-x) -- a comment", [1.0, 8.0, None]),
    ],
)
def test_functions(text, expected):
    assert values(text, X) == expected


def test_dividing_by_zero_is_infinite():
    result = values("x / 0", pa.table({"x": [1.0, -1.0, 0.0]}))
    assert result[:2] == [math.inf, -math.inf]
    assert math.isnan(result[2])


def test_columns_are_in_order_of_mention_and_qualified_as_written():
    expression = parse('b.y + A.x * b.y - a."strange ""name"""')
    assert expression.columns == ("b.y", "a.x", 'a.strange "name"')
    assert expression.rows == {"a", "b"}


def test_a_scalar_stands_for_every_row():
    sides = {"a.t": pa.scalar(1.5), "b.t": pa.array([1.0, None, 4.0])}
    assert parse("abs(a.t - b.t)").evaluate(sides.__getitem__).to_pylist() == [0.5, None, 2.5]


def test_reading_happens_once_and_survives_pickling():
    assert parse("x + 1") is parse("x + 1")
    assert pickle.loads(pickle.dumps(parse("x + 1"))) == parse("x + 1")


# --------------------------------------------------------------------------------------- types


def test_encoded_columns_are_read_as_what_they_mean():
    table = pa.table(
        {
            "d": pa.array(["a", "b", None]).dictionary_encode(),
            "v": pa.array(["a", "b", None], pa.string_view()),
            "n": pa.array([1, 2, None]).dictionary_encode(),
            "r": pc.run_end_encode(pa.array([1.5, 1.5, None])),
            "h": pa.array(np.array([1.5, 2.5, 3.5], np.float16)),
        }
    )
    assert values("d = v AND d = 'a'", table) == [True, False, None]
    assert values("n + r + h", table) == [4.0, 6.0, None]


def test_dictionaries_of_views_are_read_too():
    words = pa.array(["a", "b"], pa.string_view())
    column = pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), words)])
    assert plain(column).to_pylist() == ["a", "b", None]


@pytest.mark.parametrize(
    "data_type",
    [
        pa.list_(pa.string_view()),
        pa.large_list(pa.string_view()),
        pa.list_(pa.string_view(), 1),
        pa.struct([("a", pa.binary_view())]),
        pa.map_(pa.string(), pa.string_view()),
    ],
)
def test_views_inside_of_types_are_laid_out(data_type):
    words = pa.array([None], data_type)
    assert restored(words).type == storable(data_type)
    restored(words).take([0])


def test_decimals_become_the_nearest_number():
    numbers = [Decimal(i).scaleb(-3) for i in range(-500, 500)]
    near, inexact = doubles(pa.array(numbers, pa.decimal128(18, 3)))
    assert near.to_pylist() == [float(number) for number in numbers]
    assert inexact is None


@pytest.mark.parametrize("data_type", [pa.decimal128(38, 3), pa.decimal256(60, 3)])
def test_decimals_that_do_not_survive_are_noted(data_type):
    numbers = [Decimal("90071992547409931.001"), Decimal("1.5"), None, Decimal(2**60)]
    _, inexact = doubles(pa.array(numbers, data_type))
    assert inexact.to_pylist() == [True, False, False, False]


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=5))
def test_integers_are_exact_or_noted(numbers):
    near, inexact = doubles(pa.array(numbers, pa.int64()))
    exact = [number is None or int(float(number)) == number for number in numbers]
    assert near.to_pylist() == [None if number is None else float(number) for number in numbers]
    assert exact == ([True] * len(numbers) if inexact is None else pc.invert(inexact).to_pylist())


@given(st.lists(st.integers(0, 2**64 - 1), max_size=5))
def test_unsigned_integers_are_exact_or_noted(numbers):
    _, inexact = doubles(pa.array(numbers, pa.uint64()))
    exact = [int(float(number)) == number for number in numbers]
    assert exact == ([True] * len(numbers) if inexact is None else pc.invert(inexact).to_pylist())


def test_inexact_integers_are_refused_in_arithmetic_only():
    table = pa.table({"id": [BIG + 1, 5], "x": [1.0, 1.0]})
    assert values(f"id = {BIG + 1}", table) == [True, False]
    assert values("CAST(id AS DOUBLE) + 1", table) == [float(BIG), 6.0]
    assert values("coalesce(id, 0)", table) == [BIG + 1, 5]
    with pytest.raises(BadRows, match="CAST\\(id AS DOUBLE\\)") as caught:
        values("x + id", table)
    assert (caught.value.rows, caught.value.columns) == ([0], ["id"])


# --------------------------------------------------------------------------------------- times


TIMES = pa.table(
    {
        "t": pa.array([datetime(2024, 1, 1, 12), datetime(9999, 1, 1), None], pa.timestamp("us")),
        "ns": pa.array([datetime(2024, 1, 1), datetime(2024, 1, 1), None], pa.timestamp("ns")),
        "utc": pa.array([0, 1, None], pa.timestamp("s", "UTC")),
        "paris": pa.array([0, 1000, None], pa.timestamp("ms", "Europe/Paris")),
        "d": pa.array([date(2024, 1, 1), date(2024, 1, 2), None]),
        "d64": pa.array([date(2024, 1, 2), date(2024, 1, 2), None], pa.date64()),
        "clock": pa.array([time(1), time(2), None]),
        "took": pa.array([timedelta(seconds=1.5), timedelta(0), None], pa.duration("ms")),
        "span": pa.array([timedelta(seconds=1), timedelta(0), None], pa.duration("us")),
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t - d", [43_200.0, 251_666_611_200.0 + 43_200.0 - 43_200.0, None]),
        ("d64 - d", [86_400.0, 0.0, None]),
        ("t > ns", [True, True, None]),
        ("d < d64", [True, False, None]),
        ("utc = paris", [True, True, None]),
        ("paris - utc", [0.0, 0.0, None]),
        ("clock - clock", [0.0, 0.0, None]),
        ("took - span", [0.5, 0.0, None]),
        ("took > span", [True, False, None]),
        ("took > 1", [True, False, None]),
        ("took * 2", [3.0, 0.0, None]),
        ("CAST(took AS DOUBLE)", [1.5, 0.0, None]),
        ("t > TIMESTAMP '2024-06-01'", [False, True, None]),
        ("d BETWEEN DATE '2024-01-02' AND DATE '2024-01-03'", [False, True, None]),
        ("CAST(utc AS DOUBLE)", [0.0, 1.0, None]),
        ("CAST(CAST(t AS DATE) AS TIMESTAMP) = d", [True, False, None]),
        ("utc < CAST('1970-01-01 00:00:01Z' AS TIMESTAMPTZ)", [True, False, None]),
        ("greatest(utc, utc) = utc", [True, True, None]),
    ],
)
def test_times(text, expected):
    if text == "t - d":
        expected[1] = (datetime(9999, 1, 1) - datetime(2024, 1, 2)).total_seconds()
    assert values(text, TIMES) == expected


UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
INT64 = st.integers(-(2**63), 2**63 - 1)


@given(INT64, st.sampled_from([*UNITS]), INT64, st.sampled_from([*UNITS]))
def test_gaps_between_times_have_the_right_sign(a, a_unit, b, b_unit):
    distance, _ = gap(pa.scalar(a, pa.timestamp(a_unit)), pa.scalar(b, pa.timestamp(b_unit)))
    true = a * UNITS[a_unit] - b * UNITS[b_unit]
    assert np.sign(distance.as_py()) == (true > 0) - (true < 0)


# ------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "cannot be read"),
        ("-- nothing", "cannot be read"),
        ("x +", "\n  x +\n    ^"),
        ("x * (n +\n 1", "cannot be read"),
        ("x\n + y z z", "\n   + y z z\n         ^"),
        ("x, n", "\n  x, n\n   ^"),
        ("'open", "cannot be read"),
        ("`x`", "double quotes"),
        ("unit price", "a name after an expression"),
        ("x AS y", "a name after an expression"),
        ("x; n", "block"),
        ("1 + sum(x)", "the aggregate SUM cannot be used here:\n  1 + sum(x)\n      ^"),
        ("max(x, n)", "GREATEST"),
        ("count(*)", "the aggregate COUNT"),
        ("row_number() over ()", "a window function"),
        ("sum(x) over ()", "a window function"),
        ("x + (select 1)", "a subquery"),
        ("exists(select 1)", "a subquery"),
        ("x in (select 1)", "IN with query"),
        ("x in ()", "IN of so few values"),
        ("x + *", "\n  x + *\n      ^"),
        ("a.*", "a star"),
        ("sqr(x)", 'Did you mean "SQRT"'),
        ("frobnicate(x)", "the unknown function frobnicate"),
        ("log(x)", "LN(x), LOG2(x) or LOG10(x)"),
        ("round(x, n)", "a computed number of digits"),
        ("ceil(x, 2)", "CEIL with decimals"),
        ("coalesce(x)", "COALESCE of so few values"),
        ("abs(distinct x)", "distinct"),
        ("abs(x, n)", "cannot be read"),
        ("x ^ 2", "bitwise xor"),
        ("x || s", "dpipe"),
        ("s LIKE 'a%'", "LIKE"),
        ("x IS TRUE", "IS other than IS [NOT] NULL"),
        ("CAST(x AS DECIMAL(10, 2))", "a cast to DECIMAL(10, 2)"),
        ("CAST(x AS frob)", "cast to DOUBLE, FLOAT"),
        ("c.x", "a column of c"),
        ("a.b.x", "a column of b"),
        ("x[1]", "bracket"),
        ("?", "placeholder"),
        ("(" * 400 + "x + 1" + ")" * 400, "nested too deeply"),
    ],
)
def test_what_cannot_be_an_expression(text, says):
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert says in str(caught.value)
    assert "\nHint: " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("s * 2", "* cannot take large_string, int64: a number is needed (s is large_string)"),
        ("abs(s)", "ABS cannot take"),
        ("s < 2", "< cannot take large_string, int64: the two sides must be of one kind"),
        ("NOT x", "a condition is needed"),
        ("x AND p", "a condition is needed"),
        ("CASE WHEN x THEN 1 END", "a condition is needed"),
        ("coalesce(x, s)", "all values must be of one type"),
        ("t + 1", "a number is needed"),
        ("t - z", "the two sides must be of one kind"),
        ("t < z", "the two sides must be of one kind"),
        ("t > '2024-01-01'", "the two sides must be of one kind"),
        ("t > DATE 'tomorrow'", "'tomorrow' cannot be read as date32"),
        ("CAST(t AS BIGINT)", "there is no way from timestamp[s] to int64"),
        ("CAST(l AS TEXT)", "CAST AS TEXT cannot take"),
        ("l = l", "no order"),
        ("l + 1", "a number is needed"),
    ],
)
def test_types_that_do_not_fit(text, says):
    table = pa.table(
        {
            **{name: X[name] for name in X.column_names},
            "t": pa.array([0, 1, 2], pa.timestamp("s")),
            "z": pa.array([0, 1, 2], pa.timestamp("s", "UTC")),
            "l": [[1], [2], [3]],
        }
    )
    with pytest.raises(SchemaError) as caught:
        values(text, table)
    assert says in str(caught.value)
    assert repr(text) in str(caught.value)


def test_null_checks_work_on_any_type():
    assert values("l IS NULL", pa.table({"l": [[1], None]})) == [False, True]


def test_without_sqlglot_plain_columns_still_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    assert low("price").columns == ("price",)
    assert parse('"never read before"').columns == ("never read before",)
    with pytest.raises(MissingExtra, match="skytide\\[sql\\]"):
        low("price * never_read_before")
