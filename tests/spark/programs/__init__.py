"""Programs that tests start as users do, and what they must say."""

import json
from pathlib import Path

import pyarrow as pa

import skytide as st
from skytide import data

PROGRAM = Path(__file__).with_name("both_verbs.py")


def checked(output, kind):
    """What the program told is what an embedded engine says."""
    line = next(line for line in output.splitlines() if line.startswith("TOLD "))
    told = json.loads(line.removeprefix("TOLD "))
    assert told["kind"].startswith(kind)
    rows = pa.concat_tables(data.span("trades", 0, 50_000))
    best = st.skyline(st.low("price"), st.high("volume")).over(st.last(20_000)).answer(rows)
    top = st.top(3, st.high("volume")).over(st.last("1 minute")).per("venue").answer(rows)
    assert sorted(told["answer"]) == sorted(told["folded"]) == sorted(best["price"].to_pylist())
    assert told["per key"] == sorted(top["volume"].to_pylist())
    assert told["rows"] == 50_000
    return told
