"""Batches against single rows: the last million rows, read 1 to 100,000 at a time.

A batch is pruned against itself before it enters, so that most of its rows never meet the index.
Target: batches of 10,000 at least 5 times as fast as single rows for independent rows of three
dimensions, for correlated rows and in two dimensions.
"""

from __future__ import annotations

import harness as h

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
    feeds = {SINGLE: h.Feed(NofN, values, length).fill()}
    for size in sizes:
        feeds[f"batches of {size:,}"] = h.Feed(NofN, values, length).refill(feeds[SINGLE])
    block = (len(values) - length) // (rounds + 2) // max(sizes) * max(sizes)
    works = {SINGLE: lambda: feeds[SINGLE].each(block)}
    for size, name in zip(sizes, list(feeds)[1:], strict=True):
        works[name] = lambda feed=feeds[name], size=size: in_batches(feed, block, size)
    for work in works.values():
        work()
    times = h.interleaved(works, rounds)
    h.check_agree({n: f.algorithm.answer(length) for n, f in feeds.items()}, "batches")
    return {name: [t / block for t in taken] for name, taken in times.items()}


def measure(bench, length, rounds):
    """All distributions: the batch of 10,000 alone, with many rounds."""
    raw, rows = [], []
    for distribution in h.DISTRIBUTIONS:
        for dims in (2, 3, 5):
            values = h.rows_of(distribution, dims, length + 20_000 * (rounds + 2))
            times = race(values, length, (10_000,), rounds)
            raw.append({"distribution": distribution, "dims": dims, "seconds": times})
            gain = h.ratio(times, SINGLE, "batches of 10,000")
            aim = TARGET if wanted(distribution, dims) else None
            met = None if aim is None else ("yes" if gain >= aim else "NO")
            each, batch = (1e6 * h.middle(times[name]) for name in times)
            rows.append([distribution, dims, each, batch, h.times_as(gain), aim, met])
    header = ["rows", "d", "single µs", "batch µs", "single/batch", "target", "met"]
    bench.table(f"Batches of 10,000 against single rows, N = {length:,}", header, rows)
    return raw


def sweep(bench, length):
    """Independent rows: by size of the batch."""
    raw = []
    sizes = bench.pick((10, 100, 1_000, 10_000, 100_000), (10, 100, 1_000, 10_000))
    for dims in (2, 3, 5):
        values = h.rows_of("independent", dims, length + 7 * max(sizes))
        raw.append({"dims": dims, "seconds": race(values, length, sizes, 5)})
    header = ["d", SINGLE, *(f"{size:,}" for size in sizes)]
    rows = [
        [run["dims"], *(h.times_as(h.ratio(run["seconds"], SINGLE, n)) for n in run["seconds"])]
        for run in raw
    ]
    bench.table("Independent rows: single / batch, by size of the batch", header, rows)
    return raw


def draw_sweep(axes, raw):
    """Cost a row by batch size."""
    for i, run in enumerate(raw):
        single, *batches = (1e6 * h.middle(taken) for taken in run["seconds"].values())
        sizes = [int(name.split()[-1].replace(",", "")) for name in list(run["seconds"])[1:]]
        axes.plot(sizes, batches, h.MARKERS[i] + "-", color=h.LINES[i], label=f"d = {run['dims']}")
        axes.axhline(single, color=h.LINES[i], ls=":", lw=1)
    h.label(axes, "Independent rows (dotted: single rows)", "rows a batch", "µs a row", log="xy")
    h.legend(axes)


def draw_gains(axes, raw):
    """The ratio for every distribution and dimension."""
    names = [f"{run['distribution']}\nd = {run['dims']}" for run in raw]
    gains = [h.ratio(run["seconds"], SINGLE, "batches of 10,000") for run in raw]
    colours = [h.LINES[0] if wanted(r["distribution"], r["dims"]) else "#b9c4d3" for r in raw]
    axes.barh(names[::-1], gains[::-1], color=colours[::-1])
    axes.axvline(TARGET, color="black", lw=0.8)
    h.label(
        axes, "Batches of 10,000 (line: target of the dark ones)", "single / batch", "", log="x"
    )
    axes.grid(False, axis="y")


def main():
    """Run both and draw them."""
    bench = h.Bench(__file__, __doc__)
    length, rounds = bench.pick(1_000_000, 100_000), bench.pick(15, 5)
    raw = {"by_distribution": measure(bench, length, rounds), "by_size": sweep(bench, length)}
    figure, axes = h.panels(2, 5.2, 4.2)
    draw_sweep(axes[0], raw["by_size"])
    draw_gains(axes[1], raw["by_distribution"])
    bench.picture(figure)
    bench.finish({"N": length, "rounds": rounds, "seed": 1}, raw)


if __name__ == "__main__":
    main()
