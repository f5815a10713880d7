"""One row at a time: the engine against the flat scan, the R-tree, eager, lazy and recomputing.

Three experiments:

1. The last million rows, 2 to 5 dimensions, three distributions.  Every contender holds a full
   window and takes the same rows, one by one.  Targets: the engine's default is never slower than
   the flat scan, and at least twice as fast where more than 20,000 rows are kept.
2. Where flat scan and R-tree cross over, by the number of rows kept.  From thick and thin clouds
   along the plane sum = 1 that number can be had in any dimension: this sets ``NofN.tree_from``.
3. Recomputing with the best static skyline over the last 100,000 rows of three dimensions, after
   every row and once in a thousand rows.  Target: 100 times as fast.

Eager and lazy answer for the whole window only, keep no dominance graph and serve no watches.
"""

from __future__ import annotations

import numpy as np
from harness import (
    DISTRIBUTIONS,
    LINES,
    MARKERS,
    Bench,
    Feed,
    check_agree,
    cost,
    interleaved,
    label,
    legend,
    middle,
    panels,
    ratio,
    rows_of,
    shown,
    sized,
    times_as,
)

from skytide.algorithms.sliding.eager import Eager
from skytide.algorithms.sliding.lazy import Lazy
from skytide.algorithms.sliding.n_of_n import NofN, NofNFlat, NofNTree
from skytide.algorithms.static.sfs import skyline_sfs

CONTENDERS = {"default": NofN, "flat": NofNFlat, "tree": NofNTree, "eager": Eager, "lazy": Lazy}
MANY = 20_000  # kept rows, from which on the target is twice the flat scan
SETTLE = 500  # rows taken one by one before the clock runs
SPARE = 400_000  # rows generated behind the first window


def full_windows(values, length, names):
    """Feeds of the same full window.

    Those with an R-tree have seen it grow and shrink; to the others only the rows kept matter.
    """
    feeds = {"default": Feed(NofN, values, length).fill()}
    for name in names:
        if name == "tree":
            feeds[name] = Feed(NofNTree, values, length).fill()
        elif name != "default":
            feeds[name] = Feed(CONTENDERS[name], values, length).refill(feeds["default"])
    for feed in feeds.values():
        feed.each(SETTLE)
    return feeds


def race(feeds, rounds, seconds, what):
    """Let all feeds take the same rows, block by block in turns: seconds a row."""
    slowest = "flat" if "flat" in feeds else "default"
    block = sized(lambda n: feeds[slowest].each(n), 200, seconds, SPARE // rounds - SETTLE)
    for name, feed in feeds.items():
        feed.each(200 if name != slowest else 0)
    check_agree({n: f.algorithm.answer(f.length) for n, f in feeds.items()}, what)
    works = {name: lambda feed=feed: feed.each(block) for name, feed in feeds.items()}
    times = interleaved(works, rounds)
    check_agree({n: f.algorithm.answer(f.length) for n, f in feeds.items()}, what)
    return {name: [t / block for t in taken] for name, taken in times.items()}


# -- 1 -------------------------------------------------------------------------------------------


def against_all(bench, length, rounds):
    """Experiment 1."""
    raw, rows = [], []
    for distribution in DISTRIBUTIONS:
        for dims in bench.pick((2, 3, 4, 5), (2, 5)):
            values = rows_of(distribution, dims, length + SPARE)
            feeds = full_windows(values, length, CONTENDERS)
            kept = len(feeds["default"].algorithm)
            times = race(feeds, rounds, 0.02, f"{distribution} d={dims}")
            index = feeds["default"].algorithm.stats()["index"]
            raw.append({"distribution": distribution, "dims": dims, "kept": kept, "seconds": times})
            rows.append(summary(distribution, dims, kept, index, times))
            print(" ", *map(shown, rows[-1]), flush=True)
    header = ["rows", "d", "|R_N|", "default uses", "default µs", "flat/default"]
    header += ["tree/default", "eager/default", "lazy/default", "target", "met"]
    bench.table(f"One row at a time, N = {length:,}: CPU time a row, ratios", header, rows)
    return raw


def summary(distribution, dims, kept, index, times):
    """One line of the table."""
    over = {name: ratio(times, name, "default") for name in times if name != "default"}
    target = 2.0 if kept > MANY else 1.0
    # Default and flat scan run the same code while few rows are kept: 3 % is noise.
    met = "yes" if over["flat"] >= (target if kept > MANY else 0.97) else "NO"
    line = [distribution, dims, kept, index, 1e6 * middle(times["default"])]
    return [*line, *(times_as(over[n]) for n in over), f">={target:g}x", met]


def draw_all(axes, raw):
    """Cost a row of every contender against the rows kept."""
    for i, name in enumerate(CONTENDERS):
        points = sorted((run["kept"], 1e6 * middle(run["seconds"][name])) for run in raw)
        axes.plot(*zip(*points, strict=True), MARKERS[i], color=LINES[i], label=name, alpha=0.8)
    label(axes, "All contenders, all distributions", "rows kept, |R_N|", "µs a row", log="xy")
    legend(axes)


# -- 2 -------------------------------------------------------------------------------------------


def cloud(count, dims, thickness, seed=7):
    """Rows near the plane sum = 1: the thinner, the fewer beat each other."""
    rng = np.random.default_rng((seed, dims))
    on_plane = rng.dirichlet(np.ones(dims), count)
    return on_plane + thickness * rng.random((count, dims))


def crossover(bench, rounds):
    """Experiment 2."""
    raw, rows, advice = [], [], []
    lengths = bench.pick((2_000, 10_000, 50_000, 250_000), (2_000, 20_000))
    for dims in bench.pick((2, 3, 4, 5), (2, 5)):
        for thickness in bench.pick((0.3, 0.03, 0.003), (0.3, 0.003)):
            for length in lengths:
                values = cloud(length + SPARE // 4, dims, thickness)
                feeds = full_windows(values, length, ("flat", "tree"))
                feeds.pop("default")
                kept = len(feeds["tree"].algorithm)
                if kept > 3 * MANY:
                    continue
                times = race(feeds, rounds, 0.01, f"cloud d={dims}")
                run = {"dims": dims, "thickness": thickness, "N": length, "kept": kept}
                raw.append({**run, "seconds": times})
        own = gains(raw, dims)
        rows += [[dims, kept, times_as(gain)] for kept, gain in own]
        advice.append([dims, crossing(own)])
    bench.table("Flat scan / R-tree, by rows kept", ["d", "|R_N|", "flat/tree"], rows)
    bench.table("Where they cross over", ["d", "|R_N|"], advice)
    return raw


def gains(raw, dims):
    """Rows kept, and flat scan / R-tree, of all runs of so many dimensions."""
    runs = (run for run in raw if run["dims"] == dims)
    return sorted((run["kept"], ratio(run["seconds"], "flat", "tree")) for run in runs)


def crossing(points):
    """Where log ratio, fitted as a line over log rows kept near the crossing, is zero."""
    kept, gain = np.log(np.array(points, float)).T
    near = np.abs(gain) < np.log(3)
    if near.sum() < 2 or np.ptp(kept[near]) == 0:
        return "none seen"
    slope, base = np.polyfit(kept[near], gain[near], 1)
    return round(float(np.exp(-base / slope))) if slope > 0 else "none seen"


def draw_crossover(axes, raw):
    """The ratio by rows kept, one line a dimension."""
    for i, dims in enumerate(sorted({run["dims"] for run in raw})):
        points = zip(*gains(raw, dims), strict=True)
        axes.plot(*points, MARKERS[i] + "-", color=LINES[i], label=f"d = {dims}")
    axes.axhline(1, color="black", lw=0.8)
    label(axes, "Where the R-tree pays", "rows kept, |R_N|", "flat scan / R-tree", log="xy")
    legend(axes)


# -- 3 -------------------------------------------------------------------------------------------


EACH, BATCH, ONCE = "single rows, answer", "one batch, answer", "recompute"


def against_recompute(bench, length, dims, every, rounds):
    """Experiment 3."""
    raw, rows = [], []
    for distribution in DISTRIBUTIONS:
        values = rows_of(distribution, dims, length + (rounds + 2) * every)
        run = {"distribution": distribution, **race_recompute(values, length, every, rounds)}
        raw.append(run)
        times = run["seconds"]
        line = [distribution, *(1e3 * middle(times[name]) for name in times)]
        line += [times_as(middle(run["every_row"]))]
        rows.append([*line, *(times_as(ratio(times, ONCE, name)) for name in (EACH, BATCH))])
    header = ["rows", *(f"ms: {name}" for name in (EACH, BATCH, ONCE))]
    header += ["A: after every row", "B: once, single rows", "C: once, batch"]
    bench.table(f"Recompute / engine for {every:,} rows, N = {length:,}, d = {dims}", header, rows)
    bench.say(
        "Reading A: the answer is wanted after every row; a thousand rows cost a thousand\n"
        "recomputations by sort-filter-skyline.  The target of 100x is meant so.\n"
        "Readings B and C: it is wanted once in a thousand rows, and one recomputation does."
    )
    return raw


def race_recompute(values, length, every, rounds):
    """Seconds for so many rows and one answer; and recompute / engine with an answer a row."""
    one, many = Feed(NofN, values, length).fill(), Feed(NofN, values, length).fill()
    works = {
        EACH: lambda: one.each(every).algorithm.answer(length),
        BATCH: lambda: many.batch(every).algorithm.answer(length),
        ONCE: lambda: skyline_sfs(one.window()),
    }
    for work in works.values():
        work()
    truth = skyline_sfs(one.window()) + one.seen - length + 1
    answers = {"engine": one.algorithm.answer(length), "batch": many.algorithm.answer(length)}
    check_agree({"recompute": truth, **answers}, "recompute")
    times = interleaved(works, rounds)
    asking = every * cost(lambda: [one.algorithm.answer(length) for _ in range(99)]) / 99
    pairs = zip(times[EACH], times[ONCE], strict=True)
    return {"seconds": times, "every_row": [every * r / (e + asking) for e, r in pairs]}


def draw_recompute(axes, raw):
    """Milliseconds for a thousand rows."""
    for i, name in enumerate(raw[0]["seconds"]):
        heights = [1e3 * middle(run["seconds"][name]) for run in raw]
        axes.bar(np.arange(len(raw)) + 0.25 * i, heights, 0.25, color=LINES[i], label=name)
    axes.set_xticks(np.arange(len(raw)) + 0.25, [run["distribution"] for run in raw])
    label(axes, "N = 100,000, d = 3", "", "ms for 1,000 rows", log="y")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * 5)
    legend(axes)


def main():
    """Run the three and draw them."""
    bench = Bench(__file__, __doc__)
    length, rounds = bench.pick(1_000_000, 100_000), bench.pick(15, 5)
    raw = {
        "against_all": against_all(bench, length, rounds),
        "crossover": crossover(bench, bench.pick(9, 5)),
        "recompute": against_recompute(bench, 100_000, 3, 1_000, bench.pick(25, 9)),
    }
    figure, axes = panels(3)
    draw_all(axes[0], raw["against_all"])
    draw_crossover(axes[1], raw["crossover"])
    draw_recompute(axes[2], raw["recompute"])
    bench.picture(figure)
    bench.finish({"N": length, "rounds": rounds, "seed": 1}, raw)


if __name__ == "__main__":
    main()
