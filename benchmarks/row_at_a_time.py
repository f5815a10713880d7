"""One row at a time: the engine against the flat scan, the R-tree, eager and lazy.

Two experiments:

1. The last million rows, 2 to 5 dimensions, three distributions.  Every contender holds a full
   window and takes the same rows, one by one.  Targets: the engine's default is never slower than
   the flat scan, and at least twice as fast where more than 20,000 rows are kept.
2. Where flat scan and R-tree cross over, by the number of rows kept: streams of 2 to 5 dimensions,
   independent, anti-correlated, and thick and thin clouds along the plane sum = 1, with which any
   number of rows kept can be had in any dimension.  This sets ``NofN.tree_from``.

Eager and lazy answer for the whole window only, keep no dominance graph and serve no watches.
"""

from __future__ import annotations

import harness as h
import numpy as np

from skytide.algorithms.sliding.eager import Eager
from skytide.algorithms.sliding.lazy import Lazy
from skytide.algorithms.sliding.n_of_n import NofN, NofNFlat, NofNTree

CONTENDERS = {"default": NofN, "flat": NofNFlat, "tree": NofNTree, "eager": Eager, "lazy": Lazy}
MANY = 20_000  # kept rows, from which on the target is twice the flat scan
SETTLE = 500  # rows taken one by one before the clock runs
SPARE = 400_000  # rows generated behind the first window
NOISE = 0.97  # as fast, but for noise


def full_windows(values, length, names):
    """Feeds of the same full window.

    Those with an R-tree have seen it grow and shrink; to the others only the rows kept matter, so
    that two that do the same start from the same state.
    """
    feeds = {"default": h.Feed(NofN, values, length).fill()}
    if feeds["default"].algorithm.stats()["index"] == "flat":
        feeds["default"] = h.Feed(NofN, values, length).refill(feeds["default"])
    for name in names:
        if name == "tree":
            feeds[name] = h.Feed(NofNTree, values, length).fill()
        elif name != "default":
            feeds[name] = h.Feed(CONTENDERS[name], values, length).refill(feeds["default"])
    for feed in feeds.values():
        feed.each(SETTLE)
    return feeds


def race(feeds, rounds, seconds, what):
    """Let all feeds take the same rows, block by block in turns: seconds a row."""
    slowest = "flat" if "flat" in feeds else "default"
    block = h.sized(lambda n: feeds[slowest].each(n), 200, seconds, SPARE // rounds - SETTLE)
    for name, feed in feeds.items():
        feed.each(200 if name != slowest else 0)
    h.check_agree({n: f.algorithm.answer(f.length) for n, f in feeds.items()}, what)
    works = {name: lambda feed=feed: feed.each(block) for name, feed in feeds.items()}
    times = h.interleaved(works, rounds)
    h.check_agree({n: f.algorithm.answer(f.length) for n, f in feeds.items()}, what)
    return {name: [t / block for t in taken] for name, taken in times.items()}


# -- 1 -------------------------------------------------------------------------------------------


def against_all(bench, length, rounds):
    """Experiment 1."""
    raw, rows = [], []
    for distribution in h.DISTRIBUTIONS:
        for dims in bench.pick((2, 3, 4, 5), (2, 5)):
            values = h.rows_of(distribution, dims, length + SPARE)
            feeds = full_windows(values, length, CONTENDERS)
            kept = len(feeds["default"].algorithm)
            times = race(feeds, rounds, 0.02, f"{distribution} d={dims}")
            index = feeds["default"].algorithm.stats()["index"]
            raw.append({"distribution": distribution, "dims": dims, "kept": kept, "seconds": times})
            rows.append(summary(distribution, dims, kept, index, times))
            print(" ", *map(h.shown, rows[-1]), flush=True)
    header = ["rows", "d", "|R_N|", "default uses", "default µs", "flat/default"]
    header += ["tree/default", "eager/default", "lazy/default", "target", "met"]
    bench.table(f"One row at a time, N = {length:,}: CPU time a row, ratios", header, rows)
    return raw


def summary(distribution, dims, kept, index, times):
    """One line of the table."""
    over = {name: h.ratio(times, name, "default") for name in times if name != "default"}
    target = 2.0 if kept > MANY else 1.0
    met = h.met(over["flat"] >= (target if kept > MANY else NOISE))
    line = [distribution, dims, kept, index, 1e6 * h.middle(times["default"])]
    return [*line, *(h.times_as(over[n]) for n in over), f">={target:g}x", met]


def draw_all(axes, raw):
    """Cost a row of every contender against the rows kept."""
    for i, name in enumerate(CONTENDERS):
        points = sorted((run["kept"], 1e6 * h.middle(run["seconds"][name])) for run in raw)
        axes.plot(*zip(*points, strict=True), h.MARKERS[i], color=h.LINES[i], label=name, alpha=0.8)
    h.label(axes, "All contenders, all distributions", "rows kept, $|R_N|$", "µs a row", log="xy")
    h.legend(axes)


# -- 2 -------------------------------------------------------------------------------------------


WHERE = (500, 16_000)  # rows kept, between which the crossing is looked for
THRESHOLDS = (1_024, 2_048, 3_072, 4_096, 5_120, 6_144, 8_192, 12_288)


def cloud(count, dims, thickness, seed=7):
    """Rows near the plane sum = 1: the thinner, the fewer beat each other."""
    rng = np.random.default_rng((seed, dims))
    on_plane = rng.dirichlet(np.ones(dims), count)
    return on_plane + thickness * rng.random((count, dims))


def streams(bench, dims):
    """Streams of different shapes and windows: name, window, rows."""
    spare = SPARE // 4
    for length in bench.pick((2_000, 6_000, 20_000, 60_000, 200_000), (2_000, 20_000)):
        for thickness in bench.pick((0.3, 0.03, 0.003), (0.3, 0.003)):
            yield f"cloud {thickness}", length, cloud(length + spare, dims, thickness)
    for length in bench.pick((30_000, 100_000, 300_000, 1_000_000), (20_000, 100_000)):
        for name in ("independent", "anti-correlated"):
            yield name, length, h.rows_of(name, dims, length + spare)


def crossover(bench, rounds):
    """Experiment 2."""
    raw = []
    for dims in bench.pick((2, 3, 4, 5), (2, 5)):
        for name, length, values in streams(bench, dims):
            kept = len(h.Feed(NofNFlat, values, length).fill().algorithm)
            if WHERE[0] <= kept <= WHERE[1]:
                feeds = full_windows(values, length, ("flat", "tree"))
                feeds.pop("default")
                times = race(feeds, rounds, 0.01, f"{name} d={dims}")
                run = {"rows": name, "dims": dims, "N": length, "kept": kept}
                raw.append({**run, "seconds": times})
    tell_crossover(bench, raw)
    return raw


def tell_crossover(bench, raw):
    """All runs; where the lines cross; what each threshold would win and lose."""
    header = ["d", "rows", "N", "|R_N|", "flat/tree"]
    found = sorted(raw, key=lambda run: (run["dims"], run["kept"]))
    rows = [[r["dims"], r["rows"], r["N"], r["kept"], h.times_as(gain_of(r))] for r in found]
    bench.table("Flat scan / R-tree, by rows kept", header, rows)
    dims = sorted({run["dims"] for run in raw})
    bench.table(
        "Where they cross over", ["d", "|R_N|"], [[d, crossing(gains(raw, d))] for d in dims]
    )
    rows = [[threshold, *outcome(gains(raw), threshold)] for threshold in THRESHOLDS]
    header = ["tree_from", "worst flat/default", "runs below 0.97", "most forgone below it"]
    bench.table("One threshold for all dimensions", header, rows)


def outcome(points, threshold):
    """The least ratio where the tree is used; how many are losses; the greatest where it is not."""
    above = [gain for kept, gain in points if kept >= threshold]
    below = [gain for kept, gain in points if kept < threshold]
    losses = sum(gain < NOISE for gain in above)
    return h.times_as(min(above, default=1.0)), losses, h.times_as(max(1.0, *below, 1.0))


def gain_of(run):
    """Flat scan / R-tree."""
    return h.ratio(run["seconds"], "flat", "tree")


def gains(raw, dims=None):
    """Rows kept, and flat scan / R-tree, of all runs, or those of so many dimensions."""
    runs = (run for run in raw if dims in (None, run["dims"]))
    return sorted((run["kept"], gain_of(run)) for run in runs)


def crossing(points):
    """Where log ratio, fitted as a line over log rows kept near the crossing, is zero."""
    kept, gain = np.log(np.array(points, float)).T
    near = np.abs(gain) < np.log(2)
    if near.sum() < 2 or np.ptp(kept[near]) == 0:
        return "none seen"
    slope, base = np.polyfit(kept[near], gain[near], 1)
    return round(float(np.exp(-base / slope))) if slope > 0 else "none seen"


def draw_crossover(axes, raw):
    """The ratio by rows kept, one colour a dimension; and the threshold in use."""
    for i, dims in enumerate(sorted({run["dims"] for run in raw})):
        points = zip(*gains(raw, dims), strict=True)
        axes.plot(*points, h.MARKERS[i], color=h.LINES[i], label=f"d = {dims}", alpha=0.8)
    axes.axhline(1, color="black", lw=0.8)
    axes.axvline(NofN.tree_from, color="black", lw=0.8, ls=":", label="tree_from")
    h.label(axes, "Where the R-tree pays", "rows kept, $|R_N|$", "flat scan / R-tree", log="xy")
    h.legend(axes)


def main():
    """Run both and draw them."""
    bench = h.Bench(__file__, __doc__)
    length, rounds = bench.pick(1_000_000, 100_000), bench.pick(15, 5)
    raw = {
        "against_all": against_all(bench, length, rounds),
        "crossover": crossover(bench, bench.pick(9, 5)),
    }
    figure, axes = h.panels(2)
    draw_all(axes[0], raw["against_all"])
    draw_crossover(axes[1], raw["crossover"])
    bench.picture(figure)
    bench.finish({"N": length, "rounds": rounds, "seed": 1}, raw)


if __name__ == "__main__":
    main()
