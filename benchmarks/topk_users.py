"""Top k of a sliding window against what users write today: heapq, polars, DuckDB, pandas, numpy.

The last n rows, slide by slide, the answer wanted at each.  The lazy heap lives on from slide to slide;
the others sort or select anew over the window, which is all they offer.  skytide is timed twice: the
algorithm with its answer kept current, and the engine, with a push and a whole answer as an Arrow table
a slide.  Targets, for the algorithm at n = 100,000: 20 times the lazy heap, 100 times the others.
"""

from __future__ import annotations

import time
from functools import partial

import duckdb
import harness as h
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import topk_load as load

import skytide as st
from skytide.data import scores

OURS, ENGINE, HEAP = "algorithm", "engine", "lazy heap"


class Contender:
    """What goes on by slides."""

    def prepare(self, count):
        """Have the rows of so many slides ready, which is not timed; nothing if they are there."""


class Recompute(Contender):
    """Somebody's top k of the window, anew at each slide."""

    def __init__(self, ask, whole, n, s):
        self.ask, self.whole, self.n, self.s, self.seen = ask, whole, n, s, n
        self.answer = None

    def slides(self, count):
        """Go on by so many slides."""
        for _ in range(count):
            self.seen += self.s
            self.answer = self.ask(self.whole[self.seen - self.n : self.seen])


class Live(Contender):
    """The engine, pushed a slide and asked."""

    def __init__(self, table, n, k, s):
        self.engine = st.top(k, st.high("x")).over(st.last(n, every=s)).open()
        self.table, self.s, self.seen = table, s, n
        self.engine.push(table.slice(0, n))
        self.answer = None

    def slides(self, count):
        """Go on by so many slides."""
        for _ in range(count):
            self.engine.push(self.table.slice(self.seen, self.s))
            self.seen += self.s
            self.answer = self.engine.answer()["x"].to_numpy()


class Kept(Contender):
    """An algorithm, its answer kept current at every slide."""

    def __init__(self, name, values, n, k, s):
        self.feed = load.Slides(name, -values, n, k, s)
        self.feed.seen = n
        self.feed.live.advance(n)
        self.feed.live.push(*self.feed._rows(0))
        self.values, self.n, self.s = values, n, s

    def prepare(self, count):
        """Make the arrays that the rows are handed over in."""
        self.feed.prepare(count * self.s)

    def slides(self, count):
        """Go on by so many slides: those that were prepared."""
        self.feed.read()

    @property
    def answer(self):
        return self.values[self.feed.live.answer(self.n) - 1]


def others(values, k, s, n):
    """The contenders that recompute."""
    frame, polars, arrow = pd.Series(values), pl.Series("x", values), pa.table({"x": values})
    base = duckdb.connect()
    base.execute("SET threads = 1")

    def by_duckdb(part):
        base.register("part", part)
        query = f"SELECT x FROM part ORDER BY x DESC LIMIT {k}"
        return base.execute(query).fetchnumpy()["x"]

    class Arrow:
        """A table that is sliced by rows."""

        def __getitem__(self, rows):
            return arrow.slice(rows.start, rows.stop - rows.start)

    asks = {
        "numpy argpartition": (lambda part: np.partition(part, -k)[-k:], values),
        "pandas nlargest": (lambda part: part.nlargest(k).to_numpy(), frame),
        "polars top_k": (lambda part: part.top_k(k).to_numpy(), polars),
        "DuckDB": (by_duckdb, Arrow()),
    }
    return {name: Recompute(ask, whole, n, s) for name, (ask, whole) in asks.items()}


def measure(bench, kind, n, k, s):
    """Seconds a slide of each, in rounds; all must agree at the end of each round."""
    rounds, slides = 3, {OURS: max(200, 20_000 // s), ENGINE: 100, HEAP: max(40, 2_000 // s)}
    most = max(slides.values())
    values = scores(kind, n + s * most * (rounds + 1))
    contenders = {
        OURS: Kept(load.default_of(n, k, s), values, n, k, s),
        ENGINE: Live(pa.table({"x": values}), n, k, s),
        HEAP: Kept("lazy-heap", values, n, k, s),
        **others(values, k, s, n),
    }

    def prepare(name):
        contenders[name].prepare(slides.get(name, 10))

    for name, contender in contenders.items():
        prepare(name)
        contender.slides(slides.get(name, 10))
    works = {
        name: partial(contender.slides, slides.get(name, 10))
        for name, contender in contenders.items()
    }
    times = h.interleaved(works, rounds, clock=time.process_time, before=prepare)
    for name, contender in contenders.items():
        seen = n + (rounds + 1) * slides.get(name, 10) * s
        truth = np.sort(values[seen - n : seen])[-k:]
        h.check_agree({"sorting": truth, name: np.asarray(contender.answer)}, kind)
    return {name: [t / slides.get(name, 10) / s for t in times[name]] for name in times}


def main():
    """Measure."""
    bench = h.Bench(__file__, __doc__)
    raw, rows = [], []
    shapes = bench.pick(
        ((100_000, 100, 100), (100_000, 10, 1_000), (1_000_000, 100, 1_000), (100_000, 100, 1)),
        ((20_000, 100, 100),),
    )
    for kind in ("uniform-time", "sin-time"):
        for n, k, s in shapes:
            times = measure(bench, kind, n, k, s)
            raw.append({"stream": kind, "n": n, "k": k, "s": s, "seconds": times})
            for name in times:
                gain = h.ratio(times, name, OURS)
                aim = {OURS: None, ENGINE: None, HEAP: 20.0}.get(name, 100.0)
                met = None if aim is None else h.met(gain >= aim)
                cost = 1e9 * h.middle(times[name])
                shape = f"n={n:,} k={k} s={s}"
                rows.append([kind, shape, name, cost, h.times_as(gain), aim, met])
    header = ["stream", "", "contender", "ns a row", "/ algorithm", "target", "met"]
    bench.table("What a row costs, the answer wanted at every slide", header, rows)
    bench.finish({"seed": 0}, raw)


if __name__ == "__main__":
    main()
