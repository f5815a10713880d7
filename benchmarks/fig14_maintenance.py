"""Figure 14 of "Stabbing the Sky": what keeping R_N costs a row (mnN), by N.

Average: blocks of rows handed over in one call, each row entering and sliding the window on its own.
Maximum: rows handed over one a call; what the call itself costs is included and printed beside it.
"""

from __future__ import annotations

import harness as h
from load import call_cost, upkeep

from skytide.algorithms.sliding.n_of_n import NofN
from skytide.algorithms.static.sfs import skyline_sfs


def sizes_of(bench):
    """The values of N."""
    return [i * 100_000 for i in bench.pick(range(1, 11), (1, 2, 3))]


def measure(make, distribution, dims, lengths, *, blocks, rows, singles):
    """One line of the figure: costs by N."""
    runs = []
    for length in lengths:
        values = h.rows_of(distribution, dims, length + blocks * rows + singles + 99)
        feed = h.Feed(make, values, length).fill()
        overhead = call_cost(feed.each(99))
        costs = upkeep(feed, blocks, rows, singles)
        truth = skyline_sfs(feed.window()) + feed.seen - length + 1
        h.check_agree({"recompute": truth, make.__name__: feed.algorithm.answer(length)}, "upkeep")
        kept = len(feed.algorithm)
        runs.append({"N": length, "kept": kept, "call": overhead, **costs})
    return {"algorithm": make.__name__, "distribution": distribution, "dims": dims, "runs": runs}


def table(bench, title, results):
    """The figure's lines at its smallest and largest N."""
    header = ["algorithm", "rows", "d", "N", "|R_N|", "average µs", "maximum µs", "99.9 % µs"]
    rows = []
    for line in results:
        for run in (line["runs"][0], line["runs"][-1]):
            costs = [1e6 * run[name] for name in ("average", "maximum", "99.9 %", "call")]
            where = [line["algorithm"], line["distribution"], line["dims"], run["N"], run["kept"]]
            rows.append([*where, *costs])
    bench.table(title, [*header, "of these, the call"], rows)


def draw(results, style=None):
    """The paper's panels, one for each number of dimensions: dashed the maximum."""
    dims = sorted({line["dims"] for line in results})
    figure, all_axes = h.panels(len(dims))
    for axes, d in zip(all_axes, dims, strict=True):
        for line in (line for line in results if line["dims"] == d):
            colour = (style or h.COLOURS)[line["algorithm"] if style else line["distribution"]]
            name = line["algorithm"] if style else line["distribution"]
            places = [run["N"] / 1e5 for run in line["runs"]]
            average = [1e6 * run["average"] for run in line["runs"]]
            maximum = [1e6 * run["maximum"] for run in line["runs"]]
            axes.plot(places, average, "o-", color=colour, label=name)
            axes.plot(places, maximum, "^:", color=colour, alpha=0.7)
        h.label(axes, f"d = {d} (dotted: maximum)", "N / 100,000", "µs a row", log="y")
        h.legend(axes)
    return figure


def main():
    """Measure and draw."""
    bench = h.Bench(__file__, __doc__)
    much = {"blocks": bench.pick(15, 5), "rows": 1_000, "singles": bench.pick(3_000, 1_000)}
    lengths = sizes_of(bench)
    results = [
        measure(NofN, distribution, dims, lengths, **much)
        for dims in (2, 5)
        for distribution in h.DISTRIBUTIONS
    ]
    table(bench, "mnN: CPU time a row", results)
    bench.picture(draw(results))
    bench.finish({"N": lengths, "seed": 1, **much}, results)


if __name__ == "__main__":
    main()
