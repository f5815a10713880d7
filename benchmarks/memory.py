"""What an engine holds in memory: it follows the rows kept, not the rows of the window.

An engine of the last N rows takes 1.2 N rows in batches of 100,000, made on the fly so that nothing
else holds the stream.  A row has the preferences, a string and a struct of two numbers.  Each case
runs in a process of its own.  What the engine says of itself (``stats().bytes``) stands beside what
was in fact allocated: the growth of Python's and numpy's memory (tracemalloc) and of Arrow's, and
of the whole process.  The last includes what allocators do not give back.

Target: from N to 10 N the engine's bytes grow no more than twice as much as the rows kept (arrays
double when full, and useless rows may be half) where that is more than a small engine's bare
minimum; and what it says is what was allocated.
"""

from __future__ import annotations

import gc
import os
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import harness as h
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import skytide as st
from skytide.data import stream

BATCH = 100_000
CASES = (
    ("correlated", 3),
    ("independent", 2),
    ("independent", 3),
    ("independent", 5),
    ("anti-correlated", 3),
    ("anti-correlated", 4),
)
BARE = 1_000_000  # bytes: an engine of so few is small
PAGE = os.sysconf("SC_PAGE_SIZE")


def whole_rows(values, first):
    """A table of rows: preferences, a string, a struct."""
    at = pa.array(np.arange(first, first + len(values)))
    name = pc.binary_join_element_wise("row number ", at.cast(pa.string()), "")
    place = pa.StructArray.from_arrays([at, pa.array(values.sum(axis=1))], ["at", "total"])
    columns = {f"x{j}": pa.array(column.copy()) for j, column in enumerate(values.T)}
    return pa.table({**columns, "name": name, "place": place})


def engine(dims, length):
    """An engine with that many preferences."""
    return st.skyline(*(st.low(f"x{j}") for j in range(dims))).over(st.last(length)).open()


def resident():
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE


def settled():
    """Allocated by Python and numpy, by Arrow; resident: after all that can be was given back."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    return tracemalloc.get_traced_memory()[0], pa.total_allocated_bytes(), resident()


def one_case(distribution, dims, length):
    """Run one engine; to be called in a process of its own."""
    warm = engine(dims, 20_000)
    warm.push(whole_rows(next(stream("anti-correlated", dims, 2, 30_000)), 1))
    warm.answer()
    del warm
    tracemalloc.start()
    before = settled()
    live, peak, row_bytes = fed(distribution, dims, length)
    after = settled()
    grown = [b - a for a, b in zip(before, after, strict=True)]
    stats = live.stats()
    state = live._algorithm.stats()["bytes"]
    case = {"distribution": distribution, "dims": dims, "N": length, "kept": stats.kept}
    sizes = {"bytes": stats.bytes, "state": state, "rows": stats.bytes - state}
    measured = {"allocated": grown[0] + grown[1], "resident": grown[2], "peak": peak - before[2]}
    return {**case, **sizes, **measured, "window": round(row_bytes * length)}


def fed(distribution, dims, length):
    """An engine that has taken 1.2 N rows; the most ever resident; the bytes of one row."""
    live, peak, seen = engine(dims, length), 0, 0
    for values in stream(distribution, dims, seed=1, batch=BATCH):
        rows = whole_rows(values, seen + 1)
        live.push(rows)
        seen += len(values)
        peak = max(peak, resident())
        if seen >= 1.2 * length:
            return live, peak, rows.nbytes / len(values)


def alone(*case):
    """One case in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(one_case, *case).result()


def table(bench, runs):
    """Bytes, by who says so."""
    rows = []
    for run in runs:
        line = [run["distribution"], run["dims"], run["N"], run["kept"], run["state"] / 1e6]
        line += [run["rows"] / 1e6, run["bytes"] / 1e6, round(run["bytes"] / run["kept"])]
        line += [run[name] / 1e6 for name in ("allocated", "resident", "peak", "window")]
        rows.append([*line, h.times_as(run["window"] / run["bytes"])])
    header = ["rows", "d", "N", "|R_N|", "state", "rows kept", "engine", "bytes a kept row"]
    header += ["allocated", "resident", "peak", "the N rows", "N rows/engine"]
    bench.table("Memory in MB; engine = state + rows kept, as it says of itself", header, rows)


def growth(bench, runs, lengths):
    """From N to 10 N."""
    rows = []
    for distribution, dims in CASES:
        few, many = (
            next(
                r for r in runs if (r["distribution"], r["dims"], r["N"]) == (distribution, dims, n)
            )
            for n in lengths
        )
        kept, size = many["kept"] / few["kept"], many["bytes"] / few["bytes"]
        met = size <= 2 * kept or many["bytes"] < BARE
        said = max(
            abs(run["allocated"] - run["bytes"]) / max(run["bytes"], BARE) for run in (few, many)
        )
        line = [distribution, dims, h.times_as(kept), h.times_as(size), h.met(met)]
        rows.append([*line, f"{100 * said:.0f} %", h.met(said < 0.5)])
    header = ["rows", "d", "|R_N| grows", "engine grows", "within 2x, or < 1 MB"]
    title = f"From N = {lengths[0]:,} to {lengths[1]:,}: the window's rows grow tenfold"
    bench.table(title, [*header, "engine says / allocated: off by", "< 50 %"], rows)


def draw(runs):
    """Bytes against rows kept, and against N."""
    figure, (left, right) = h.panels(2)
    for name, colour in h.COLOURS.items():
        own = [run for run in runs if run["distribution"] == name]
        kept = [run["kept"] for run in own]
        left.plot(kept, [run["bytes"] / 1e6 for run in own], "o", color=colour, label=name)
        left.plot(kept, [run["allocated"] / 1e6 for run in own], "x", color=colour)
        for dims in dict.fromkeys(run["dims"] for run in own):
            line = [run for run in own if run["dims"] == dims]
            sizes = [run["N"] for run in line]
            right.plot(sizes, [run["bytes"] / 1e6 for run in line], "o-", color=colour)
            right.plot(sizes, [run["window"] / 1e6 for run in line], ":", color=h.LINES[4], lw=1)
            right.annotate(f"d = {dims}", (sizes[-1], line[-1]["bytes"] / 1e6), fontsize=7)
    h.label(left, "By rows kept (x: allocated)", "rows kept, $|R_N|$", "MB", log="xy")
    h.label(right, "By N (dotted: the N rows themselves)", "N", "MB", log="xy")
    h.legend(left)
    return figure


def main():
    """Measure, compare, draw."""
    bench = h.Bench(__file__, __doc__)
    lengths = bench.pick((1_000_000, 10_000_000), (100_000, 1_000_000))
    runs = [alone(*case, length) for case in CASES for length in lengths]
    table(bench, runs)
    growth(bench, runs, lengths)
    bench.picture(draw(runs))
    bench.finish({"N": lengths, "batch": BATCH, "seed": 1}, runs)


if __name__ == "__main__":
    main()
