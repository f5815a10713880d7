"""Streams and contenders of the top-k benchmarks.

Real files are named by option and never needed: what is generated in their place looks like them.

STOCK: trades with price and size (or volume) columns, such as the sample data of QuantConnect/Lean on
GitHub (Apache-2.0).  TRIP: taxi trips, from the NYC TLC's public trip records.  PLANET, whose score is
the distance to a point: anything with lat and lng columns, such as Microsoft's GeoLife trajectories;
the paper took the Minor Planet Center's observations.
"""

from __future__ import annotations

import statistics

import harness as h
import numpy as np

from skytide.choices import ALGORITHMS, default_algorithm
from skytide.data import DistanceTo, read_rows, scores, speed, trades, turnover
from skytide.query import high, last, top

FILES = {
    "stock": "trades with price and size, Parquet or CSV; score: price x size",
    "trip": "taxi trips of the NYC TLC; score: distance / duration",
    "planet": "points with lat and lng; score: distance to one of them",
}
ALL = (
    *("two-stacks-linked", "two-stacks-culled", "two-stacks", "sap-enhanced", "sap-dynamic"),
    *("sap-equal", "mintopk", "k-skyband", "sma", "lazy-heap"),
)


def streams_of(bench, rows):
    """Scores by the names of the paper, smaller being better; files are repeated where they end."""
    made = {"TIME^U": scores("uniform-time", rows), "TIME^R": scores("sin-time", rows)}
    found = {
        "STOCK": _stock(bench.options["stock"]),
        "TRIP": _trip(bench.options["trip"]),
        "PLANET": _planet(bench.options["planet"]),
    }
    names = {"STOCK": "stock", "TRIP": "trip", "PLANET": "planet"}
    for name, values in found.items():
        kind = "file" if bench.options[names[name]] else "generated"
        bench.say(f"{name}: {len(values):,} rows, {kind}; {len(np.unique(values)):,} scores")
        made[name] = np.resize(values, rows)
    return {name: -values for name, values in made.items()}


def _stock(path):
    if path is None:
        table = trades(1_000_000, seed=1)
        return turnover(table["price"].to_numpy(), table["volume"].to_numpy())
    table = read_rows(path)
    volume = "size" if "size" in table.column_names else "volume"
    return turnover(table["price"].to_numpy(), table[volume].to_numpy())


def _trip(path):
    if path is None:  # speeds of many drivers, slower when all are on the road
        random, rows = np.random.default_rng(2), 1_000_000
        hour = np.arange(rows) / 20_000
        pace = random.lognormal(2.4, 0.5, rows) * (1.2 + np.cos(2 * np.pi * hour / 24) / 3)
        return np.round(pace, 1)
    table = read_rows(path)
    names = ["trip_distance", "lpep_pickup_datetime", "lpep_dropoff_datetime"]
    return speed(*(table[name].to_numpy() for name in names))


def _planet(path):
    if path is None:  # a walk, and the distance from where it began
        steps = np.random.default_rng(3).normal(0, 1e-4, (2, 1_000_000)).cumsum(axis=1)
        return DistanceTo(0.0, 0.0)(*np.round(steps, 6))
    table = read_rows(path, ["lat", "lng"])
    x, y = (table[name].to_numpy() for name in ("lat", "lng"))
    return DistanceTo(float(x[0]), float(y[0]))(x, y)


def default_of(n, k, s):
    """The algorithm that a query of this shape gets."""
    return default_algorithm(top(k, high("score")).over(last(n, every=s)))


class Slides:
    """An algorithm over the last n rows, its answer kept current at every slide."""

    def __init__(self, name, values, n, k, s, make=None):
        self.live = (make or ALGORITHMS[name].load())(1, k, True, n, s)
        self.values, self.n, self.s, self.seen = values, n, s, 0
        self.told = self.coming = None

    def fill(self):
        """Fill the window at one go, then read a fifth of it slide by slide."""
        self.seen = self.n // self.s * self.s
        self.live.advance(self.seen)
        self.live.push(*self._rows(0))
        return self.each(max(self.s, self.n // 5 // self.s * self.s))

    def each(self, rows):
        """Read so many rows."""
        self.prepare(rows)
        return self.read()

    def prepare(self, rows):
        """Have the next rows ready, so that only reading them is timed."""
        before, self.seen = self.seen, self.seen + rows
        self.coming = *self._rows(before), np.arange(before + self.s, self.seen + 1, self.s)

    def read(self):
        """Read them."""
        self.told = self.live.each(*self.coming)
        return self

    def _rows(self, start):
        positions = np.arange(start + 1, self.seen + 1)
        values = np.take(self.values, positions - 1, mode="wrap")
        return values.reshape(-1, 1), positions, positions


def race(values, n, k, s, names=ALL, *, rows=40_000, rounds=3):
    """Seconds a row, candidates and bytes of each contender; they must agree at every slide."""
    block = max(s, rows // s * s)
    feeds = {name: Slides(name, values, n, k, s).fill() for name in names}
    sizes = {name: [] for name in names}

    def before(name):
        stats = feeds[name].live.stats()
        sizes[name].append((stats["candidates"], stats["bytes"]))
        feeds[name].prepare(block)

    works = {name: feed.read for name, feed in feeds.items()}
    times = h.interleaved(works, rounds, before=before)
    first, *others = names
    for name in others:
        if not np.array_equal(feeds[first].told, feeds[name].told):
            raise SystemExit(f"{name} and {first} disagree at n={n} k={k} s={s}")
    return {
        name: {
            "ns": [1e9 * t / block for t in times[name]],
            "candidates": statistics.fmean(size[0] for size in sizes[name]),
            "bytes": statistics.fmean(size[1] for size in sizes[name]),
        }
        for name in names
    }


def ns(result, name):
    """Nanoseconds a row, the median of the rounds."""
    return h.middle(result[name]["ns"])


def times_of(result, slow, fast):
    """How many times as long one takes as another: median of the rounds' ratios."""
    pairs = zip(result[slow]["ns"], result[fast]["ns"], strict=True)
    return h.middle(a / b for a, b in pairs)
