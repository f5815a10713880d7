"""Figure 12 of "Stabbing the Sky": a query for the last n of N rows (nN) against recomputing it.

Random n between 1,000 and N = 1,000,000, on a full window.  Recomputing takes the last n rows and
runs Kung, Luccio and Preparata's divide and conquer over them (KLP), as in the paper, or our fastest
static skyline (SFS), which is the harder one to beat.  A thousand n are asked of the engine; of these
a sample, evenly spread, is recomputed, in the same rounds and checked.  The cost of keeping R_N is
that of figure 14, and is not part of a query.
"""

from __future__ import annotations

import harness as h
import numpy as np

from skytide.algorithms.sliding.n_of_n import NofN
from skytide.algorithms.static.klp import skyline_klp
from skytide.algorithms.static.sfs import skyline_sfs

QUERY, STAB, KLP, SFS = "nN, sorted", "nN", "KLP", "SFS"
STATIC = {KLP: skyline_klp, SFS: skyline_sfs}


def check(feed, n):
    """Do all give the same rows?"""
    rows = feed.window(n)
    answers = {name: find(rows) + feed.seen - n + 1 for name, find in STATIC.items()}
    h.check_agree({QUERY: feed.algorithm.answer(n), **answers}, f"last {n}")


def measure(distribution, dims, length, count, sample):
    """Seconds a query, round by round: many queries of the engine, one of each recomputation."""
    feed = h.Feed(NofN, h.rows_of(distribution, dims, length), length).fill()
    random = np.random.default_rng(12)
    lengths = np.sort(random.integers(1_000, length, count, endpoint=True))
    groups = np.array_split(lengths, sample)
    times = {name: [] for name in (STAB, QUERY, *STATIC)}
    for group in groups:
        n = int(group[len(group) // 2])
        check(feed, n)
        works = works_of(feed, group.tolist(), feed.window(n))
        for name, taken in h.interleaved(works, 3).items():
            each = len(group) if name in (STAB, QUERY) else 1
            times[name].append(h.middle(taken) / each)
    return {"distribution": distribution, "dims": dims, "seconds": times}


def works_of(feed, group, rows):
    """What is measured in one round."""
    live = feed.algorithm
    works = {
        STAB: lambda: [live.stab(n) for n in group] and None,
        QUERY: lambda: [live.answer(n) for n in group] and None,
    }
    return works | {name: lambda find=find: find(rows) for name, find in STATIC.items()}


def table(bench, length, raw):
    """Averages over all n, as in the paper, and the ratios."""
    rows = []
    for run in raw:
        mean = {name: h.mean(taken) for name, taken in run["seconds"].items()}
        line = [run["distribution"], run["dims"], 1e6 * mean[STAB], 1e6 * mean[QUERY]]
        line += [1e3 * mean[KLP], 1e3 * mean[SFS]]
        ratios = [h.times_as(mean[name] / mean[QUERY]) for name in STATIC]
        rows.append([*line, *ratios, h.times_as(mean[KLP] / mean[SFS])])
    header = ["rows", "d", "nN µs", "nN, sorted µs", "KLP ms", "SFS ms"]
    header += ["KLP/nN, sorted", "SFS/nN, sorted", "KLP/SFS"]
    bench.table(f"A query for the last n of N = {length:,}, average over n", header, rows)


def draw(raw, length):
    """The paper's picture: one panel for each distribution."""
    figure, all_axes = h.panels(len(h.DISTRIBUTIONS))
    for axes, name in zip(all_axes, h.DISTRIBUTIONS, strict=True):
        own = [run for run in raw if run["distribution"] == name]
        for i, what in enumerate((KLP, SFS, QUERY, STAB)):
            costs = [1e3 * h.mean(run["seconds"][what]) for run in own]
            dims = [run["dims"] for run in own]
            axes.plot(dims, costs, h.MARKERS[i] + "-", color=h.LINES[i], label=what)
        axes.set_xticks((2, 3, 4, 5))
        h.label(axes, f"{name}, N = {length:,}", "dimensions", "ms a query", log="y")
        h.legend(axes)
    return figure


def main():
    """Measure and draw."""
    bench = h.Bench(__file__, __doc__)
    length = bench.pick(1_000_000, 50_000)
    count, sample = bench.pick((1_000, 10), (200, 4))
    raw = [
        measure(name, dims, length, count, sample)
        for name in h.DISTRIBUTIONS
        for dims in (2, 3, 4, 5)
    ]
    table(bench, length, raw)
    bench.picture(draw(raw, length))
    bench.finish({"N": length, "queries": count, "recomputed": sample, "seed": 1}, raw)


if __name__ == "__main__":
    main()
