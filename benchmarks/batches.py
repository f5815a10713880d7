"""Batches against single rows: the last million rows, read 1 to 100,000 at a time.

A batch is pruned against itself before it enters, so that most of its rows never meet the index.
Target: batches of 10,000 at least 5 times as fast as single rows for independent rows of three
dimensions, for correlated rows and in two dimensions.
"""

from __future__ import annotations

from harness import (
    DISTRIBUTIONS,
    LINES,
    MARKERS,
    Bench,
    Feed,
    check_agree,
    interleaved,
    label,
    legend,
    middle,
    panels,
    ratio,
    rows_of,
    times_as,
)

from skytide.algorithms.sliding.n_of_n import NofN

TARGET = 5.0
SINGLE = "single rows"


def wanted(distribution, dims):
    """Is there a target for these rows?"""
    return dims == 2 or distribution == "correlated" or (distribution, dims) == ("independent", 3)


def in_batches(feed, count, size):
    """Read so many rows, so many at a time."""
    for _ in range(count // size):
        feed.batch(size)


def race(values, length, sizes, rounds):
    """Seconds a row for every batch size, and for single rows."""
    feeds = {SINGLE: Feed(NofN, values, length).fill()}
    for size in sizes:
        feeds[f"batches of {size:,}"] = Feed(NofN, values, length).refill(feeds[SINGLE])
    block = (len(values) - length) // (rounds + 2) // max(sizes) * max(sizes)
    works = {SINGLE: lambda: feeds[SINGLE].each(block)}
    for size, name in zip(sizes, list(feeds)[1:], strict=True):
        works[name] = lambda feed=feeds[name], size=size: in_batches(feed, block, size)
    for work in works.values():
        work()
    times = interleaved(works, rounds)
    check_agree({n: f.algorithm.answer(length) for n, f in feeds.items()}, "batches")
    return {name: [t / block for t in taken] for name, taken in times.items()}


def measure(bench, length, rounds):
    """All distributions: the batch of 10,000 alone, with many rounds."""
    raw, rows = [], []
    for distribution in DISTRIBUTIONS:
        for dims in (2, 3, 5):
            values = rows_of(distribution, dims, length + 20_000 * (rounds + 2))
            times = race(values, length, (10_000,), rounds)
            raw.append({"distribution": distribution, "dims": dims, "seconds": times})
            gain = ratio(times, SINGLE, "batches of 10,000")
            aim = TARGET if wanted(distribution, dims) else None
            met = None if aim is None else ("yes" if gain >= aim else "NO")
            each, batch = (1e6 * middle(times[name]) for name in times)
            rows.append([distribution, dims, each, batch, times_as(gain), aim, met])
    header = ["rows", "d", "single µs", "batch µs", "single/batch", "target", "met"]
    bench.table(f"Batches of 10,000 against single rows, N = {length:,}", header, rows)
    return raw


def sweep(bench, length):
    """Independent rows: by size of the batch."""
    raw = []
    sizes = bench.pick((10, 100, 1_000, 10_000, 100_000), (10, 100, 1_000, 10_000))
    for dims in (2, 3, 5):
        values = rows_of("independent", dims, length + 7 * max(sizes))
        raw.append({"dims": dims, "seconds": race(values, length, sizes, 5)})
    header = ["d", SINGLE, *(f"{size:,}" for size in sizes)]
    rows = [
        [run["dims"], *(times_as(ratio(run["seconds"], SINGLE, n)) for n in run["seconds"])]
        for run in raw
    ]
    bench.table("Independent rows: single / batch, by size of the batch", header, rows)
    return raw


def draw_sweep(axes, raw):
    """Cost a row by batch size."""
    for i, run in enumerate(raw):
        sizes = [1, *(int(n.split()[-1].replace(",", "")) for n in list(run["seconds"])[1:])]
        costs = [1e6 * middle(taken) for taken in run["seconds"].values()]
        axes.plot(sizes, costs, MARKERS[i] + "-", color=LINES[i], label=f"d = {run['dims']}")
    label(axes, "Independent rows", "rows a batch (1: single rows)", "µs a row", log="xy")
    legend(axes)


def draw_gains(axes, raw):
    """The ratio for every distribution and dimension."""
    names = [f"{run['distribution']}\nd = {run['dims']}" for run in raw]
    gains = [ratio(run["seconds"], SINGLE, "batches of 10,000") for run in raw]
    colours = [LINES[0] if wanted(r["distribution"], r["dims"]) else "#b9c4d3" for r in raw]
    axes.barh(names[::-1], gains[::-1], color=colours[::-1])
    axes.axvline(TARGET, color="black", lw=0.8)
    label(axes, "Batches of 10,000 (line: target of the dark ones)", "single / batch", "", log="x")


def main():
    """Run both and draw them."""
    bench = Bench(__file__, __doc__)
    length, rounds = bench.pick(1_000_000, 100_000), bench.pick(15, 5)
    raw = {"by_distribution": measure(bench, length, rounds), "by_size": sweep(bench, length)}
    figure, axes = panels(2, 5.2, 4.2)
    draw_sweep(axes[0], raw["by_size"])
    draw_gains(axes[1], raw["by_distribution"])
    bench.picture(figure)
    bench.finish({"N": length, "rounds": rounds, "seed": 1}, raw)


if __name__ == "__main__":
    main()
