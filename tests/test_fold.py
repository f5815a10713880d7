"""Changes lead back to the answer, equal rows counted."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import skytide as st


def change_table(changes):
    kinds = ["insert" if sign > 0 else "delete" for sign, _ in changes]
    a = pa.array([row[0] for _, row in changes], pa.int64())
    b = pa.array([row[1] for _, row in changes], pa.string())
    at = pa.array(range(len(changes)), pa.int64())
    types = pa.array(kinds, pa.string())
    return pa.table({"_change_type": types, "_change_at": at, "a": a, "b": b})


@settings(max_examples=60, deadline=None)
@given(some.data())
def test_what_is_left_is_what_was_not_taken_back(data):
    """Rows with nulls and many equals come and go."""
    there, changes = Counter(), []
    rows = some.tuples(some.sampled_from([None, 1, 2]), some.sampled_from([None, "x", "y"]))
    for _ in range(data.draw(some.integers(0, 12))):
        present = sorted((+there).elements(), key=repr)
        if present and data.draw(some.booleans()):
            row, sign = data.draw(some.sampled_from(present)), -1
        else:
            row, sign = data.draw(rows), 1
        there[row] += sign
        changes.append((sign, row))
    left = st.fold(change_table(changes)).to_pylist()
    assert Counter((row["a"], row["b"]) for row in left) == +there


@settings(max_examples=20, deadline=None)
@given(prices=some.lists(some.lists(some.integers(0, 4), max_size=6), min_size=1, max_size=6))
def test_the_changes_of_an_engine_lead_to_its_answer(prices):
    query = st.skyline(st.low("a"), st.high("b")).over(st.last(5))
    batches = [
        pa.table({"a": pa.array(batch, pa.int64()), "b": pa.array(batch[::-1], pa.int64())})
        for batch in prices
    ]
    live = query.open()
    for batch in batches:
        live.push(batch)
    folded, answer = st.fold(query.changes(batches)), live.answer()
    assert sorted(map(str, folded.to_pylist())) == sorted(map(str, answer.to_pylist()))


def test_nested_values_are_compared_too():
    rows = [{"tags": ["x", "y"]}, {"tags": ["x"]}, {"tags": ["x", "y"]}]
    kinds = ["insert", "insert", "delete"]
    both = [{"_change_type": k, "_change_at": 1, **row} for k, row in zip(kinds, rows, strict=True)]
    assert st.fold(both).to_pylist() == [{"tags": ["x"]}]


def test_no_changes_leave_no_rows():
    empty = st.fold(change_table([]))
    assert empty.num_rows == 0
    assert empty.column_names == ["a", "b"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"a": [1]}, "_change_type and _change_at is missing.*\n?.*Hint: fold what"),
        ([], "no change table"),
        ({"_change_type": ["update"], "_change_at": [1], "a": [1]}, "_change_type is 'update'"),
        ({"_change_type": ["delete"], "_change_at": [1], "a": [7]}, "more often.*'a': 7"),
    ],
)
def test_what_cannot_be_folded_is_named(changes, message):
    with pytest.raises(st.SchemaError, match=message):
        st.fold(changes)
