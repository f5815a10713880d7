"""Questions, windows and queries: what they refuse, and how they print, pickle and travel."""

import json
import os
import pickle
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skytide import query as public
from skytide.durations import format_duration, parse_duration
from skytide.errors import QueryError
from skytide.query import (
    LastRows,
    LastTime,
    Lifetime,
    Preference,
    Query,
    Skyband,
    Skyline,
    Top,
    TopPairs,
    everything,
    high,
    last,
    latest,
    lifetime,
    low,
    query_from_dict,
    skyband,
    skyline,
    top,
    top_pairs,
)

SECOND = 10**9

# ----------------------------------------------------------------------------------- strategies

NAMES = st.text(min_size=1, max_size=6).filter(lambda name: name.strip())
COLUMNS = st.sampled_from(["price", "volume", '"unit price"', '"a""b"', "ünit", "x * 2", "abs(y)"])
PREFERENCES = st.builds(Preference, COLUMNS, st.sampled_from(["low", "high"]))
UNIQUE = st.lists(PREFERENCES, min_size=1, max_size=4, unique_by=lambda one: one.expression)
COUNTS = st.integers(1, 10**12)
TIES = st.sampled_from(["all", "newest"])
PAIRS = st.sampled_from([low("abs(a.temp - b.temp)"), high('a."x y"'), low("a.x + b.y")])

QUESTIONS = st.one_of(
    st.builds(lambda given, ties: skyline(*given, ties=ties), UNIQUE, TIES),
    st.builds(lambda k, given, ties: skyband(k, *given, ties=ties), COUNTS, UNIQUE, TIES),
    st.builds(top, COUNTS, PREFERENCES),
    st.builds(top_pairs, COUNTS, PAIRS),
)


@st.composite
def windows_with_slide(draw):
    length = draw(st.integers(1, 2**63 - 1))
    every = draw(st.integers(1, length))
    history = draw(st.booleans())
    if draw(st.booleans()):
        return LastRows(length, every, history)
    on = draw(st.none() | NAMES)
    late = draw(st.sampled_from(["raise", "drop"]))
    return LastTime(length, draw(st.none() | st.just(every)), on, late, history)


WINDOWS = st.one_of(
    windows_with_slide(),
    st.builds(Lifetime, st.none(), NAMES),
    st.just(lifetime(start="from", end="until")),
    st.builds(latest, NAMES),
    st.just(everything()),
)
KEYS = st.lists(NAMES, max_size=3, unique=True).map(tuple)
QUERIES = st.builds(Query, QUESTIONS, WINDOWS, KEYS)

# ------------------------------------------------------------------------------- there and back


@given(QUERIES)
def test_a_query_survives_every_way_of_travelling(query):
    assert pickle.loads(pickle.dumps(query)) == query
    assert query_from_dict(json.loads(json.dumps(query.to_dict()))) == query
    assert eval(repr(query), vars(public).copy()) == query
    assert len({query, pickle.loads(pickle.dumps(query))}) == 1


def test_values_cannot_be_changed():
    for value in (low("x"), skyline(low("x")), last(1), skyline(low("x")).over(last(1))):
        name = type(value).__dataclass_fields__
        with pytest.raises(AttributeError):
            setattr(value, next(iter(name)), None)
        with pytest.raises((AttributeError, TypeError)):
            value.something_new = 1


@pytest.mark.parametrize(
    ("query", "code", "english"),
    [
        (
            skyline(low("price"), high("volume")).over(last(1_000_000)).per("symbol"),
            'skyline(low("price"), high("volume")).over(last(1000000)).per("symbol")',
            "the skyline of low price and high volume over the last 1,000,000 rows, per symbol",
        ),
        (
            skyline(low("a"), low("b"), high("c"), ties="newest").over(last(1)),
            'skyline(low("a"), low("b"), high("c"), ties="newest").over(last(1))',
            "the skyline of low a, low b and high c, keeping the newest of equal rows, "
            "over the last row",
        ),
        (
            skyband(3, low("a"), ties="newest").over(last(10, every=2, history=True)),
            'skyband(3, low("a"), ties="newest").over(last(10, every=2, history=True))',
            "the 3-skyband of low a, keeping the 3 newest of equal rows, "
            "over the last 10 rows, every 2 rows, keeping its history",
        ),
        (
            top(10, high("price"))
            .over(last("90s", every="1s", on="ts", late="drop"))
            .per("a", "b"),
            'top(10, high("price")).over(last("1 minute 30 seconds", every="1 second", on="ts", '
            'late="drop")).per("a", "b")',
            "the top 10 by high price over the last 1 minute 30 seconds by ts, every 1 second, "
            "dropping late rows, per a and b",
        ),
        (
            top_pairs(1, low("abs(a.t - b.t)")).over(lifetime(end="end")),
            'top_pairs(1, low("abs(a.t - b.t)")).over(lifetime(end="end"))',
            "the top 1 pair by low abs(a.t - b.t) over the rows alive from their arrival until end",
        ),
        (
            skyline(low('"x""y"')).over(latest("id")),
            'skyline(low("\\"x\\"\\"y\\"")).over(latest("id"))',
            'the skyline of low "x""y" over the latest row of each id',
        ),
        (
            skyline(low("x\n+ y")).over(everything()),
            'skyline(low("x\\n+ y")).over(everything())',
            "the skyline of low x + y over all rows",
        ),
    ],
)
def test_code_and_english(query, code, english):
    assert repr(query) == code
    assert str(query) == english


def test_importing_queries_is_light():
    code = (
        "import sys; from skytide.query import *; skyline(low('price')).over(last(3)).columns;"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    source = str(Path(__file__).parents[1] / "src")
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
    )
    assert {"pyarrow", "numpy", "numba", "sqlglot", "pandas"}.isdisjoint(run.stdout.split())


# ---------------------------------------------------------------------------------- preferences


def test_columns_come_in_order_of_mention():
    query = skyline(low("c + a"), high("b"), low('"c" * d')).over(last("1h", on="ts")).per("a", "k")
    assert query.columns == ("c", "a", "b", "d", "ts", "k")
    assert query.value_columns == ("c", "a", "b", "d")


def test_pairs_need_the_columns_of_both_rows():
    query = top_pairs(3, low("abs(a.temp - b.temp) + b.noise")).over(latest("id"))
    assert query.preferences[0].columns == ("a.temp", "b.temp", "b.noise")
    assert query.columns == ("temp", "noise", "id")


def test_a_quoted_name_may_hold_a_dot():
    assert low('"a.temp"').rows == {""}
    assert skyline(low('"a.temp"')).over(last(1)).columns == ("a.temp",)


def test_plain_answers_about_the_question():
    assert skyline(low("x")).over(last(1)).k == 1
    assert skyband(4, low("x")).over(last(1)).k == 4
    assert skyband(4, low("x")).over(last(1)).ties == "all"
    assert top(4, low("x")).over(last(1)).ties == "newest"
    assert isinstance(skyline(low("x")), Skyline)
    assert skyline(low("x")) != skyband(1, low("x"))
    assert skyband(np.int64(4), low("x")) == skyband(4, low("x"))
    assert type(skyband(np.int64(4), low("x")).k) is int


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: low(""), "not empty"),
        (lambda: low("  "), "not empty"),
        (lambda: low(3), "is 3"),
        (lambda: low("1 + 1"), "mentions no column"),
        (lambda: low("price +"), "cannot be read here:\n  price +\n        ^"),
        (lambda: low("unit price"), "a name after an expression"),
        (lambda: low("sum(price)"), "the aggregate SUM"),
        (lambda: Preference("price", "lower"), 'Did you mean "low"'),
        (skyline, "at least one preference"),
        (lambda: skyline("price"), 'say which end is better: low("price")'),
        (lambda: skyline(low("price"), low("price")), "given twice"),
        (lambda: skyline(low("price"), low('"price"')), "given twice"),
        (lambda: skyline(low("price"), ties="oldest"), "choose"),
        (lambda: skyline(low("a.price")), "only top_pairs asks of pairs"),
        (lambda: skyline(low("a.price * 2")), "only top_pairs asks of pairs"),
        (lambda: skyband(0, low("price")), "at least 1"),
        (lambda: skyband(True, low("price")), "not a whole number"),
        (lambda: skyband(2.0, low("price")), "write 2"),
        (lambda: skyband("2", low("price")), "not a whole number"),
        (lambda: skyband(low("price")), "k is low"),
        (lambda: top(3, "price"), "not a preference"),
        (lambda: top_pairs(3, low("temp")), "write a. or b."),
        (lambda: top_pairs(3, low("a.temp - temp")), "write a. or b."),
        (lambda: Skyline((low("x"),), k=2), "ask skyband"),
        (lambda: Skyband("x"), "give a list"),
        (lambda: Top((low("x"),)), "the younger is better"),
        (lambda: Top((low("x"), low("y")), ties="newest"), "one preference, not by 2"),
        (lambda: TopPairs((), ties="newest"), "at least one"),
    ],
)
def test_questions_that_cannot_be_asked(make, says):
    with pytest.raises(QueryError) as caught:
        make()
    assert says in str(caught.value)


def test_high_of_the_same_column_is_another_preference():
    assert skyline(low("price"), high("price")).preferences == (low("price"), high("price"))


# ------------------------------------------------------------------------------------- windows


def test_last_tells_rows_from_time():
    assert last(5, every=2) == LastRows(5, 2)
    assert last(np.int32(5)) == LastRows(5)
    assert last("1h") == LastTime(3600 * SECOND)
    assert last(timedelta(minutes=1), every=timedelta(seconds=1)) == last("1m", every="1s")
    assert last("1h", on="ts").columns == ("ts",)
    assert last("1h").columns == last(4).columns == everything().columns == ()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: last(0), "at least 1"),
        (lambda: last(-5), "at least 1"),
        (lambda: last(True), "not a whole number"),
        (lambda: last(10.5), "not a whole number"),
        (lambda: last(1e6), "write 1_000_000"),
        (lambda: last(None), "not a whole number"),
        (lambda: last(10, every=0), "at least 1"),
        (lambda: last(10, every=11), "between 1 and 10"),
        (lambda: last(10, every="1s"), "not a whole number"),
        (lambda: last(10, on="ts"), "on and late do not apply"),
        (lambda: last(10, late="drop"), "on and late do not apply"),
        (lambda: last(10, history=1), "True or False"),
        (lambda: last("0s"), "longer than zero"),
        (lambda: last(timedelta(seconds=-1)), "longer than zero"),
        (lambda: last("300 years"), "unknown unit 'years'"),
        (lambda: last("20000 weeks"), "the longest is 292 years"),
        (lambda: last("10s", every=2), "give a length of time"),
        (lambda: last("10s", every="11s"), "no longer than 10 seconds"),
        (lambda: last("10s", on=""), "not empty"),
        (lambda: last("10s", on=3), "the time column"),
        (lambda: last("10s", late="ignore"), 'choose "raise" or "drop"'),
        (lambda: last("10s", history="yes"), "True or False"),
        (lambda: last("10"), 'last("10 seconds")'),
        (lambda: last(""), "is not a length of time"),
        (lambda: last("ten minutes"), "is not a length of time"),
        (lambda: last("1M"), "unknown unit 'M'"),
        (lambda: last("0.5ns"), "part of a nanosecond"),
        (lambda: last("-1s"), "is not a length of time"),
        (lambda: lifetime(start="t", end="t"), "two columns"),
        (lambda: lifetime(start="", end="t"), "not empty"),
        (lambda: lifetime(end=None), "the end column"),
        (lambda: latest(""), "the key of latest()"),
        (lambda: skyline(low("x")).over(10), "is not a window"),
        (lambda: Query("skyline", last(1)), "is not a question"),
        (lambda: skyline(low("x")).over(last(1)).per(), "names no column"),
        (lambda: skyline(low("x")).over(last(1)).per("a", "a"), "named twice"),
        (lambda: skyline(low("x")).over(last(1)).per(""), "not empty"),
        (lambda: skyline(low("x")).over(last(1)).per("a").per("b"), '.per("a", "b")'),
        (lambda: Query(skyline(low("x")), last(1), "key"), "give a list"),
    ],
)
def test_windows_and_keys_that_make_no_sense(make, says):
    with pytest.raises(QueryError) as caught:
        make()
    assert says in str(caught.value)


# ----------------------------------------------------------------------------------- durations


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("10 minutes", 600 * SECOND),
        ("1h", 3600 * SECOND),
        ("90s", 90 * SECOND),
        ("500 ms", SECOND // 2),
        ("1 day", 86_400 * SECOND),
        ("2 weeks", 14 * 86_400 * SECOND),
        ("1h 30m", 5400 * SECOND),
        ("1h30m", 5400 * SECOND),
        ("1 Hour, 30 MINUTES", 5400 * SECOND),
        (" 1.5 h ", 5400 * SECOND),
        ("0.1s", SECOND // 10),
        ("3 µs", 3000),
        ("3 us 5ns", 3005),
        ("1 min 1 sec", 61 * SECOND),
    ],
)
def test_durations_are_read(text, nanoseconds):
    assert parse_duration(text) == nanoseconds


def test_time_deltas_are_read_to_the_end():
    assert parse_duration(timedelta(days=1, microseconds=1)) == 86_400 * SECOND + 1000
    assert parse_duration(pd.Timedelta(1, "ns")) == 1


@given(st.integers(0, 2**63))
def test_durations_come_back_as_they_were(nanoseconds):
    assert parse_duration(format_duration(nanoseconds)) == nanoseconds


@given(st.timedeltas(timedelta(0)))
def test_time_deltas_come_back_as_they_were(delta):
    length = parse_duration(delta)
    assert timedelta(microseconds=length // 1000) == delta
    assert parse_duration(format_duration(length)) == length


# ------------------------------------------------------------------------------------ as a dict


GOOD = skyline(low("price")).over(last("1 hour", on="ts")).per("symbol").to_dict()


def changed(path, value):
    """A copy of the good dict with one entry changed, or removed if the value is None."""
    copy = json.loads(json.dumps(GOOD))
    *parents, final = path
    place = copy
    for name in parents:
        place = place[name]
    if value is None:
        del place[final]
    else:
        place[final] = value
    return copy


@pytest.mark.parametrize(
    ("plain", "says"),
    [
        ([], "written as a dict"),
        (changed(["window"], None), "lacks ['window']"),
        (changed(["extra"], 1), "the unknown ['extra']"),
        (changed(["question"], "skyline"), "unknown kind None"),
        (changed(["question", "kind"], "skylin"), 'Did you mean "skyline"'),
        (changed(["question", "kind"], ["skyline"]), "unknown kind"),
        (changed(["question", "k"], "1"), "not a whole number"),
        (changed(["question", "k"], 2), "ask skyband"),
        (changed(["question", "ties"], None), "lacks ['ties']"),
        (changed(["question", "preferences"], "x"), "give a list"),
        (changed(["question", "preferences"], ["x"]), "written as a dict"),
        (changed(["question", "preferences", 0, "direction"], "up"), "the direction"),
        (changed(["question", "preferences", 0, "expression"], "x +"), "cannot be read"),
        (changed(["window", "kind"], "last"), "the kinds are last_rows, last_time"),
        (changed(["window", "length_ns"], 1.5), "not a whole number"),
        (changed(["window", "length_ns"], 0), "longer than zero"),
        (changed(["window", "on"], 7), "the time column"),
        (changed(["window", "history"], "no"), "True or False"),
        (changed(["keys"], "symbol"), "give a list"),
        (changed(["keys"], ["a", "a"]), "named twice"),
    ],
)
def test_dicts_that_are_no_query(plain, says):
    with pytest.raises(QueryError) as caught:
        query_from_dict(plain)
    assert says in str(caught.value)
