"""What ``answer(last=n)`` costs on the algorithm, by the size s of the answer.

Beside it the least that any answer can cost: copying s positions out of an array.  Both are called
from Python, many times in a loop, and both give a sorted array of the caller's own.  To see where
the time goes, also ``stab``: the same positions, neither sorted nor the caller's own.

Windows of the last million rows, 2 to 5 dimensions, three distributions, a dozen n between 10 and N.
Target: an answer takes at most twice as long as the copy, plus 2 µs.
"""

from __future__ import annotations

import harness as h
import numpy as np

from skytide.algorithms.sliding.n_of_n import NofN
from skytide.algorithms.static.sfs import skyline_sfs

ALLOWED = 2e-6
ANSWER, COPY, STAB = "answer", "copy", "stab"


def lengths_of(length, count):
    """The n, evenly spread on a logarithmic scale."""
    return np.unique(np.geomspace(10, length, count).astype(int)).tolist()


def race(feed, n, seconds, rounds):
    """Seconds a call, for one n."""
    algorithm = feed.algorithm
    positions = algorithm.kept()
    size = len(algorithm.answer(n))
    times = h.sized(lambda count: [algorithm.answer(n) for _ in range(count)], 20, seconds, 5_000)
    works = {
        ANSWER: lambda: [algorithm.answer(n) for _ in range(times)] and None,
        COPY: lambda: [positions[:size].copy() for _ in range(times)] and None,
        STAB: lambda: [algorithm.stab(n) for _ in range(times)] and None,
    }
    taken = h.interleaved(works, rounds)
    each = {name: [t / times for t in values] for name, values in taken.items()}
    return {"n": n, "answer": size, "seconds": each}


def measure(distribution, dims, length, count, seconds, rounds):
    """All n of one kind of rows."""
    feed = h.Feed(NofN, h.rows_of(distribution, dims, length), length).fill()
    for n in (10, length // 3, length):
        truth = skyline_sfs(feed.window(n)) + length - n + 1
        h.check_agree({"recompute": truth, ANSWER: feed.algorithm.answer(n)}, f"last {n}")
    where = {"distribution": distribution, "dims": dims, "kept": len(feed.algorithm)}
    race(feed, 10, seconds, 1)
    return [{**where, **race(feed, n, seconds, rounds)} for n in lengths_of(length, count)]


def medians(run):
    """Median microseconds of the three."""
    return tuple(1e6 * h.middle(run["seconds"][name]) for name in (ANSWER, COPY, STAB))


def share(run):
    """The part of what is allowed that an answer takes."""
    answer, copying, _ = medians(run)
    return answer / (2 * copying + 1e6 * ALLOWED)


def summary(runs):
    """One line: the largest answer; and over all n, how many are within the target."""
    first, largest = runs[0], max(runs, key=lambda run: run["answer"])
    answer, copying, stab = medians(largest)
    within = sum(share(run) <= 1 for run in runs)
    line = [first["distribution"], first["dims"], first["kept"], largest["answer"]]
    line += [answer, stab, copying, 2 * copying + 1e6 * ALLOWED]
    return [*line, f"{within} of {len(runs)}", h.met(within == len(runs))]


def by_size(bench, runs):
    """How answers of every size fare."""
    rows = []
    for low, high in ((0, 10), (10, 100), (100, 1_000), (1_000, 10_000), (10_000, 100_000)):
        own = [run for run in runs if low < run["answer"] <= high]
        if own:
            answer, copying, stab = (
                h.middle(part) for part in zip(*map(medians, own), strict=True)
            )
            worst = max(map(share, own))
            line = [f"{low:,}..{high:,}", len(own), answer, stab, copying, f"{100 * worst:.0f} %"]
            rows.append([*line, h.met(worst <= 1)])
    header = ["s", "runs", "answer µs", "stab µs", "copy µs", "worst share of allowed", "met"]
    bench.table("By the size of the answer, medians; allowed: 2 copies + 2 µs", header, rows)


def draw(runs):
    """Cost by size, and what is allowed."""
    figure, (axes,) = h.panels(1, 7, 4.4)
    for name, colour in h.COLOURS.items():
        own = [run for run in runs if run["distribution"] == name]
        sizes = [run["answer"] for run in own]
        axes.plot(sizes, [medians(run)[0] for run in own], "o", color=colour, label=name)
    ordered = sorted(runs, key=lambda run: run["answer"])
    sizes = [run["answer"] for run in ordered]
    stabs, copies = ([medians(run)[i] for run in ordered] for i in (2, 1))
    axes.plot(sizes, stabs, "+", color=h.LINES[4], label="stab: unsorted, not one's own")
    axes.plot(sizes, copies, "-", color=h.LINES[4], lw=1, label="copying s positions")
    axes.plot(sizes, [2 * c + 1e6 * ALLOWED for c in copies], "k:", lw=1, label="allowed")
    h.label(axes, "answer(last=n), d = 2 to 5", "rows in the answer, s", "µs a call", log="xy")
    h.legend(axes)
    return figure


def main():
    """Measure and draw."""
    bench = h.Bench(__file__, __doc__)
    length, count = bench.pick(1_000_000, 100_000), bench.pick(12, 8)
    seconds, rounds = bench.pick((0.01, 11), (0.003, 5))
    results = [
        measure(distribution, dims, length, count, seconds, rounds)
        for dims in (2, 3, 4, 5)
        for distribution in h.DISTRIBUTIONS
    ]
    header = ["rows", "d", "|R_N|", "largest s", "answer µs", "stab µs", "copy µs", "allowed µs"]
    title = f"answer(last=n) on the last N = {length:,} rows: the largest answer, and all n"
    bench.table(title, [*header, "n within", "met"], [summary(runs) for runs in results])
    runs = [run for part in results for run in part]
    by_size(bench, runs)
    bench.picture(draw(runs))
    bench.finish({"N": length, "rounds": rounds, "seed": 1}, runs)


if __name__ == "__main__":
    main()
