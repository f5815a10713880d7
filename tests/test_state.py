"""Saved states: whole ones go on as if nothing had happened, all others are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import skytide as st
from skytide.state import MAGIC, State, pack, unpack

WINDOWS: list[Any] = [
    st.last(50),
    st.last(50, every=8),
    st.last(50, history=True),
    st.everything(),
    st.last("20 seconds"),
    st.last("20 seconds", every="3 seconds", history=True),
]


def rows(start: int, count: int) -> pa.Table:
    rng = np.random.default_rng(start)
    seconds = np.datetime64("2024-01-01", "ns") + np.arange(start, start + count) * 10**9
    return pa.table({"ts": seconds, "x": rng.integers(0, 9, count), "y": rng.random(count)})


def an_engine(window: Any = WINDOWS[0]) -> Any:
    live = st.skyband(2, st.low("x"), st.high("y")).over(window).open()
    live.push(rows(0, 101))
    return live


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_a_loaded_engine_goes_on_like_the_first(window: Any) -> None:
    first = an_engine(window)
    second = st.load(first.save())
    watches = first.watch(snapshot=False), second.watch(snapshot=False)
    for start in range(101, 200, 13):
        assert first.answer().equals(second.answer())
        assert first.save() == second.save()
        for live in (first, second):
            live.push(rows(start, 13))
        assert watches[0].changes().equals(watches[1].changes())
    assert first.stats().seen == second.stats().seen


BLOB = an_engine().save()


@settings(max_examples=60, deadline=None)
@given(place=some.integers(0, len(BLOB) - 1), bit=some.integers(0, 7))
def test_an_altered_state_is_refused(place: int, bit: int) -> None:
    altered = bytearray(BLOB)
    altered[place] ^= 1 << bit
    with pytest.raises(st.StateError, match=r"Hint:"):
        st.load(bytes(altered))


@settings(max_examples=40, deadline=None)
@given(length=some.integers(0, len(BLOB) - 1))
def test_a_truncated_state_is_refused(length: int) -> None:
    with pytest.raises(st.StateError, match=r"truncated|no state"):
        st.load(BLOB[:length])


def test_what_is_no_state_is_refused() -> None:
    for other in (b"", b"PK\x03\x04", MAGIC, b"x" * 1000):
        with pytest.raises(st.StateError):
            st.load(other)
    with pytest.raises(st.StateError, match="not str"):
        st.load("state")  # type: ignore[arg-type]


def test_a_state_of_another_format_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skytide.state.VERSION", 99)
    newer = pack(unpack_current(BLOB))
    monkeypatch.undo()
    with pytest.raises(st.StateError, match="format 99"):
        st.load(newer)


def unpack_current(blob: bytes) -> State:
    import skytide.state as module

    version, module.VERSION = module.VERSION, 1
    try:
        return unpack(blob)
    finally:
        module.VERSION = version


@pytest.mark.parametrize(
    "facts",
    [
        {"seen": 3},
        {"query": {"question": 5}},
        {"algorithm": "os.system"},
        {"newest": "yesterday"},
        {"seen": "many"},
    ],
)
def test_a_state_that_contradicts_itself_is_refused(facts: dict[str, Any]) -> None:
    state = unpack(BLOB)
    with pytest.raises(st.StateError, match="contradicts itself"):
        st.load(pack(state._replace(facts=state.facts | facts)))


def test_positions_that_do_not_match_are_refused() -> None:
    state = unpack(BLOB)
    for positions in (state.positions[:-1], state.positions[::-1], state.positions + 1_000):
        with pytest.raises(st.StateError):
            st.load(pack(state._replace(positions=positions)))


def test_a_keyed_state() -> None:
    live = st.top(2, st.high("y")).over(st.last(5)).per("x").open()
    live.push(rows(0, 60))
    again = st.load(live.save())
    assert again.answer().equals(live.answer())
    for each in (live, again):
        each.push(rows(60, 40))
    assert again.answer().sort_by("y").equals(live.answer().sort_by("y"))
