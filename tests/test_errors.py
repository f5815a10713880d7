"""Errors say what happened, where, and what to do; and survive a trip between processes."""

import pickle

import pytest

from skytide import errors
from skytide.errors import BadRows, MissingExtra, SkytideError, did_you_mean

KINDS = [getattr(errors, name) for name in errors.__all__ if name != "did_you_mean"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not BadRows])
def test_every_kind_is_ours_and_keeps_its_hint(kind):
    error = pickle.loads(pickle.dumps(kind("it broke", "mend it")))
    assert isinstance(error, SkytideError)
    assert type(error) is kind
    assert str(error) == "it broke\nHint: mend it"


def test_an_error_without_hint_is_its_message():
    assert str(SkytideError("it broke")) == "it broke"


def test_kinds_are_also_what_python_calls_them():
    assert issubclass(MissingExtra, ImportError)
    assert issubclass(BadRows, ValueError)


def test_bad_rows_counts_all_and_shows_the_first():
    rows = [*range(1000, 1007), 3]
    error = BadRows(rows, ["price"] * 7 + ["volume"], ["null"] * 7 + ["NaN"])
    assert error.rows == rows
    assert str(error).splitlines() == [
        "8 bad cells in 8 rows; nothing of this push was taken in",
        "  price: 7 null (rows 1000, 1001, 1002, 1003, 1004, ...)",
        "  volume: 1 NaN (row 3)",
        "Hint: drop these rows, or fill their cells, before the push",
    ]


def test_bad_rows_can_be_pickled():
    error = BadRows((1,), ("price",), ("null",), "fill it")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.rows, copy.columns, copy.reasons) == ([1], ["price"], ["null"])
    assert str(copy) == str(error)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Price", "price"), ("pric", "price"), ("volum", "volume"), ("", None), ("zzz", None)],
)
def test_did_you_mean_offers_the_closest_or_nothing(name, expected):
    offer = f' Did you mean "{expected}"?' if expected else ""
    assert did_you_mean(name, ["price", "volume"]) == offer
