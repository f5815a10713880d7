"""What a Python user would write instead: the skyline of the last 10,000 rows, after every row.

Peers recompute it after every row (moocore, paretoset, numpy, polars, DuckDB, our own static
algorithm) or keep the non-redundant rows in a Python list, which is our idea in plain Python.
Against them: the engine, a push and an answer for every row; the algorithm beneath it, a call for
the row and one for the answer; and the algorithm told of many rows in one call while a watch tells
every change.  The anti-joins of polars and DuckDB also run over 1,000 rows only, where a user might
still think of them.

CPU seconds of all threads; polars and DuckDB are told to use one.  All must agree before the clock
runs.
"""

from __future__ import annotations

import os

os.environ["POLARS_MAX_THREADS"] = "1"

import time
from operator import le

import duckdb
import harness as h
import moocore
import numpy as np
import paretoset
import polars as pl

import skytide as st
from skytide.algorithms.sliding.n_of_n import NofN
from skytide.algorithms.static.sfs import skyline_sfs

WORKLOADS = (("independent", 2), ("independent", 5), ("anti-correlated", 5))
FAIR = "skytide, a call a row"  # what the ratios are taken against
ENOUGH = 200_000  # rows, for the fastest


# -- peers: the rows of a window in, the indexes of its skyline out ------------------------------


def by_moocore(rows):
    """The library for multi-objective optimisation."""
    return np.flatnonzero(moocore.is_nondominated(rows, keep_weakly=True))


def by_paretoset(rows):
    """The library for Pareto fronts."""
    return np.flatnonzero(paretoset.paretoset(rows, distinct=False))


def by_numpy_all_pairs(rows):
    """Broadcasting, a hundred rows against all at a time."""
    beaten = [_any_beats(rows, rows[i : i + 100]) for i in range(0, len(rows), 100)]
    return np.flatnonzero(~np.concatenate(beaten))


def _any_beats(rows, some):
    others = rows[:, None]
    return ((others <= some).all(axis=2) & (others < some).any(axis=2)).any(axis=0)


def by_numpy_filter(rows):
    """The well-known loop: each row that is left throws out those that it beats."""
    left, here = np.arange(len(rows)), 0
    while here < len(rows):
        stay = (rows < rows[here]).any(axis=1) | (rows == rows[here]).all(axis=1)
        here = 1 + int(stay[:here].sum())
        left, rows = left[stay], rows[stay]
    return left


def by_polars(rows):
    """An anti-join: the rows for which no other is better."""
    names = [f"x{j}" for j in range(rows.shape[1])]
    table = pl.DataFrame(rows, schema=names).with_row_index("i").lazy()
    others = table.rename({name: f"other_{name}" for name in ["i", *names]})
    no_worse = [pl.col(f"other_{name}") <= pl.col(name) for name in names]
    better = pl.any_horizontal(pl.col(f"other_{name}") < pl.col(name) for name in names)
    beaten = table.join_where(others, *no_worse).filter(better).select("i").unique()
    return table.join(beaten, on="i", how="anti").select("i").collect()["i"].sort().to_numpy()


class ByDuckdb:
    """NOT EXISTS in SQL."""

    def __init__(self):
        self.connection = duckdb.connect(config={"threads": 1})

    def __call__(self, rows):
        """The rows for which no other is better."""
        names = [f"x{j}" for j in range(rows.shape[1])]
        table = pl.DataFrame(rows, schema=names).with_row_index("i").to_arrow()
        self.connection.register("rows", table)
        no_worse = " AND ".join(f"b.{name} <= a.{name}" for name in names)
        better = " OR ".join(f"b.{name} < a.{name}" for name in names)
        sql = f"SELECT i FROM rows a WHERE NOT EXISTS (FROM rows b WHERE {no_worse} AND ({better}))"
        return np.sort(self.connection.execute(sql).fetchnumpy()["i"])


# -- contenders: each takes rows one by one and knows the answer after every one -----------------


class Recomputed:
    """A window that is looked at anew after every row."""

    def __init__(self, values, length, find):
        self.values, self.length, self.seen, self.find = values, length, length, find

    def each(self, rows):
        """Take rows."""
        for _ in range(rows):
            self.seen += 1
            self.found = self.find(self.values[self.seen - self.length : self.seen])

    def answer(self):
        """Positions."""
        return self.found + self.seen - self.length + 1


class PythonList:
    """The non-redundant rows, each with the youngest older one that beats it, in a list."""

    def __init__(self, values, length):
        self.values, self.length, self.seen = values.tolist(), length, 0
        self.rows = []
        self.each(length)

    def each(self, rows):
        """Take rows; know the answer after each."""
        for _ in range(rows):
            self._take(self.values[self.seen])
            self.found = self._find()

    def _take(self, point):
        self.seen += 1
        start, ancestor, stay = self.seen - self.length, 0, []
        for row in self.rows:
            position, other, _ = row
            if position <= start or (all(map(le, point, other)) and point != other):
                continue
            stay.append(row)
            if all(map(le, other, point)) and point != other:
                ancestor = position
        self.rows = [*stay, (self.seen, point, ancestor)]

    def _find(self):
        start = self.seen - self.length
        return [position for position, _, ancestor in self.rows if ancestor <= start]

    def answer(self):
        """Positions."""
        return np.array(self.found)


class Algorithm:
    """The algorithm: a call for every row and one for its answer."""

    def __init__(self, values, length):
        self.feed = h.Feed(NofN, values, length).fill()

    def each(self, rows):
        """Take rows; ask after each."""
        for _ in range(rows):
            self.feed.each()
            self.found = self.feed.algorithm.answer(self.feed.length)

    def answer(self):
        """Positions."""
        return self.found


class Told(Algorithm):
    """The algorithm under watch: many rows in one call, every change told."""

    def __init__(self, values, length):
        super().__init__(values, length)
        self.feed.algorithm.watch(length)

    def each(self, rows):
        """Take rows, then hear what has changed."""
        self.feed.each(rows)
        self.events = self.feed.algorithm.events()

    def answer(self):
        """Positions."""
        return self.feed.algorithm.answer(self.feed.length)


class Engine:
    """The engine: a push and an answer, whole rows of Arrow, for every row."""

    def __init__(self, values, length):
        self.values, self.seen = values, length
        self.names = [f"x{j}" for j in range(values.shape[1])]
        query = st.skyline(*map(st.low, self.names)).over(st.last(length))
        self.live = query.open()
        self.live.push(self._table(slice(0, length)))

    def _table(self, rows):
        columns = dict(zip(self.names, self.values[rows].T, strict=True))
        return {**columns, "at": np.arange(rows.start + 1, rows.stop + 1)}

    def each(self, rows):
        """Take rows; ask after each."""
        for _ in range(rows):
            self.live.push(self._table(slice(self.seen, self.seen + 1)))
            self.seen += 1
            self.found = self.live.answer()

    def answer(self):
        """Positions."""
        return self.found["at"].to_numpy()


# -- the race ------------------------------------------------------------------------------------


RECOMPUTE = {
    "skytide's own sfs, anew": skyline_sfs,
    "paretoset, anew": by_paretoset,
    "moocore, anew": by_moocore,
    "numpy filter, anew": by_numpy_filter,
    "numpy all pairs, anew": by_numpy_all_pairs,
    "polars anti-join, anew": by_polars,
    "DuckDB anti-join, anew": ByDuckdb(),
}
KEEP = {
    "skytide, watched, in one call": Told,
    FAIR: Algorithm,
    "skytide Engine, push and answer": Engine,
    "Python list": PythonList,
}


def contenders(values, length):
    """All, with the window full."""
    keep = {name: make(values, length) for name, make in KEEP.items()}
    again = {name: Recomputed(values, length, find) for name, find in RECOMPUTE.items()}
    return {**keep, **again}


def race(distribution, dims, length, seconds, rounds):
    """Seconds a row for all contenders, after they agreed on the first rows."""
    values = h.rows_of(distribution, dims, length + ENOUGH)
    running = contenders(values, length)
    for contender in running.values():
        contender.each(1)
    answers = {name: contender.answer() for name, contender in running.items()}
    h.check_agree(answers, f"{distribution} d={dims}")
    times = {name: _rate(one, seconds, rounds) for name, one in running.items()}
    size = len(answers[FAIR])
    run = {"distribution": distribution, "dims": dims, "W": length, "answer": size}
    return {**run, "kept": len(running[FAIR].feed.algorithm), "seconds": times}


def _rate(contender, seconds, rounds):
    """Seconds a row; a contender slower than its time is measured on one row a round."""
    first = h.cost(lambda: contender.each(1), time.process_time)
    most = ENOUGH // (rounds + 2)
    if first > seconds:
        rows, rounds = 1, min(rounds, 3)
    else:
        rows = h.sized(contender.each, max(1, round(0.01 / max(first, 1e-4))), seconds, most)
    return [h.cost(lambda: contender.each(rows), time.process_time) / rows for _ in range(rounds)]


def table(bench, runs):
    """Rows a second, and how many times as long as skytide with a call a row."""
    names = [f"{run['distribution']} d={run['dims']}" for run in runs]
    rows = []
    for contender in runs[0]["seconds"]:
        line = [contender]
        for run in runs:
            taken = h.middle(run["seconds"][contender])
            line += [1 / taken, h.times_as(taken / h.middle(run["seconds"][FAIR]))]
        rows.append(line)
    header = ["contender", *(part for name in names for part in (name, "time"))]
    title = f"Rows a second with an answer after each, W = {runs[0]['W']:,}; time against {FAIR!r}"
    bench.table(title, header, rows)
    sizes = [[name, run["answer"], run["kept"]] for name, run in zip(names, runs, strict=True)]
    bench.table("Sizes", ["rows", "s", "|R_W|"], sizes)


def draw(runs):
    """Bars: rows a second."""
    figure, (axes,) = h.panels(1, 8, 5)
    names = list(runs[0]["seconds"])[::-1]
    for i, run in enumerate(runs):
        rates = [1 / h.middle(run["seconds"][name]) for name in names]
        places = np.arange(len(names)) + 0.27 * (1 - i)
        label = f"{run['distribution']}, d = {run['dims']}"
        axes.barh(places, rates, 0.25, color=h.LINES[i], label=label)
    axes.set_yticks(np.arange(len(names)), names)
    axes.grid(False, axis="y")
    title = f"The skyline of the last {runs[0]['W']:,} rows, after every row"
    h.label(axes, title, "rows a second", "", log="x")
    h.legend(axes, loc="lower right")
    return figure


def main():
    """Measure and draw."""
    bench = h.Bench(__file__, __doc__)
    seconds, rounds = bench.pick((0.2, 7), (0.05, 3))
    raw = {}
    for length in bench.pick((1_000, 10_000), (1_000,)):
        raw[length] = [race(name, dims, length, seconds, rounds) for name, dims in WORKLOADS]
        table(bench, raw[length])
    bench.picture(draw(raw[max(raw)]))
    bench.finish({"W": list(raw), "rounds": rounds, "seed": 1}, raw)


if __name__ == "__main__":
    main()
