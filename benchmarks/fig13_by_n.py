"""Figure 13 of "Stabbing the Sky": what a query for the last n of N rows costs, by n.

A thousand random n, sorted, in 33 groups of neighbours; a group's cost is the average over its
queries.  Beside it the least any query can cost: copying s positions out of an array, s being the
size of the answer.  Target: a query takes at most twice as long as that, plus 2 µs.  Both are
called from Python in the same way; in a second table both run inside one compiled loop.
"""

from __future__ import annotations

import harness as h
import numba
import numpy as np

from skytide.algorithms.sliding.n_of_n import NofN
from skytide.algorithms.static.sfs import skyline_sfs
from skytide.structures import interval_tree

GROUPS = 33
ALLOWED = 2e-6
QUERY, COPY = "query", "copy"


@numba.njit
def copy_first(resident, count, out):
    """Copy so many positions."""
    for i in range(count):
        out[i] = resident[i]
    return count


@numba.njit
def copy_all(resident, counts, out, times):
    """For every count, inside one loop."""
    total = 0
    for _ in range(times):
        for count in counts:
            total += copy_first(resident, count, out)
    return total


@numba.njit
def stab_all(tree, cuts, out, times):
    """Stab at every cut, inside one loop."""
    total = 0
    for _ in range(times):
        for cut in cuts:
            total += interval_tree.stab(tree, cut, out)
    return total


class Copier:
    """Answers a query of known size as fast as can be, called as the algorithm is."""

    def __init__(self, positions):
        self.resident, self.out = positions.copy(), np.empty(len(positions) + 1, np.int64)

    def stab(self, count):
        """So many positions, in an array that the next call overwrites."""
        return self.out[: copy_first(self.resident, count, self.out)]


def groups_of(lengths):
    """Neighbouring lengths together."""
    return np.array_split(np.sort(lengths), GROUPS)


def race(feed, lengths, repeats, rounds):
    """Seconds a query, and a copy, for one group: from Python, and in a compiled loop."""
    algorithm, copier = feed.algorithm, Copier(feed.algorithm.kept())
    counts = np.array([len(algorithm.stab(int(n))) for n in lengths])
    asked, sizes = lengths.tolist() * repeats, counts.tolist() * repeats
    tree, cuts, out = algorithm._kept.intervals, algorithm.clock - lengths, copier.out
    works = {
        QUERY: lambda: [algorithm.stab(n) for n in asked],
        COPY: lambda: [copier.stab(s) for s in sizes],
        "query, compiled loop": lambda: stab_all(tree, cuts, out, repeats),
        "copy, compiled loop": lambda: copy_all(copier.resident, counts, out, repeats),
    }
    times = h.interleaved(works, rounds)
    each = {name: [t / len(asked) for t in taken] for name, taken in times.items()}
    return {"n": int(np.mean(lengths)), "answer": float(counts.mean()), "seconds": each}


def within_target(times, query, copying):
    """Is the query within twice the copy and 2 µs, by the medians?"""
    return h.middle(times[query]) <= 2 * h.middle(times[copying]) + ALLOWED


def measure(bench, length, dims, distribution):
    """All groups of one kind of rows."""
    feed = h.Feed(NofN, h.rows_of(distribution, dims, length), length).fill()
    rng = np.random.default_rng(13)
    lengths = rng.integers(1_000, length, bench.pick(1_000, 330), endpoint=True)
    for n in (1_000, length // 3, length):
        truth = skyline_sfs(feed.window(n)) + length - n + 1
        h.check_agree({"recompute": truth, QUERY: feed.algorithm.answer(n)}, f"last {n}")
    repeats, rounds = bench.pick((20, 7), (5, 3))
    race(feed, lengths[:9], 1, 1)
    runs = [race(feed, group, repeats, rounds) for group in groups_of(lengths)]
    kept = len(feed.algorithm)
    return [{"distribution": distribution, "dims": dims, "kept": kept, **run} for run in runs]


def summary(runs, query, copying):
    """One line: averages over the groups, and in how many the target is met."""
    mine = [1e6 * h.middle(run["seconds"][query]) for run in runs]
    least = [1e6 * h.middle(run["seconds"][copying]) for run in runs]
    met = sum(within_target(run["seconds"], query, copying) for run in runs)
    first = runs[0]
    line = [first["distribution"], first["dims"], first["kept"]]
    line += [np.mean([run["answer"] for run in runs]), np.mean(mine), np.mean(least)]
    allowed = [m / (2 * c + 1e6 * ALLOWED) for m, c in zip(mine, least, strict=True)]
    line += [h.times_as(np.sum(mine) / np.sum(least)), f"{100 * max(allowed):.0f} %"]
    return [*line, f"{met} of {len(runs)}"]


def draw(results):
    """The paper's two panels: d = 2 and d = 5."""
    figure, all_axes = h.panels(len({runs[0]["dims"] for runs in results}))
    for axes, dims in zip(all_axes, sorted({runs[0]["dims"] for runs in results}), strict=True):
        for runs in (runs for runs in results if runs[0]["dims"] == dims):
            name, places = runs[0]["distribution"], [run["n"] for run in runs]
            for what, style in ((QUERY, "o-"), (COPY, ":")):
                costs = [1e6 * h.middle(run["seconds"][what]) for run in runs]
                shown = name if what == QUERY else None
                axes.plot(places, costs, style, color=h.COLOURS[name], label=shown)
        h.label(axes, f"d = {dims} (dotted: copying the answer)", "n", "µs a query", log="y")
        axes.ticklabel_format(axis="x", style="plain")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g}M")
        h.legend(axes)
    return figure


def main():
    """Measure, compare, draw."""
    bench = h.Bench(__file__, __doc__)
    length = bench.pick(1_000_000, 100_000)
    results = [measure(bench, length, d, name) for d in (2, 5) for name in h.DISTRIBUTIONS]
    header = ["rows", "d", "|R_N|", "answer", "query µs", "copy µs", "query/copy"]
    header += ["worst share of allowed", "groups within"]
    title = f"Queries for the last n of N = {length:,} rows; allowed: 2 copies + 2 µs"
    bench.table(title, header, [summary(runs, QUERY, COPY) for runs in results])
    inside = ("query, compiled loop", "copy, compiled loop")
    bench.table(f"{title}; in a compiled loop", header, [summary(r, *inside) for r in results])
    bench.picture(draw(results))
    bench.finish({"N": length, "groups": GROUPS, "seed": 1}, results)


if __name__ == "__main__":
    main()
