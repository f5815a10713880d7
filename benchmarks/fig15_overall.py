"""Figure 15 of "Stabbing the Sky": a stream with a random query for every row.

The window is full, N = 1,000,000, and slides on by as many rows again.  At moments along the way a
thousand rows are taken one by one, each followed by a query for the last n of N rows, n at random:
the average cost of row and query.  Both are calls from Python, whose share is printed.
"""

from __future__ import annotations

import harness as h
import numpy as np
from load import call_cost, queried_rows

from skytide.algorithms.sliding.n_of_n import NofN
from skytide.algorithms.static.sfs import skyline_sfs


def measure(distribution, dims, length, moments, group):
    """Average cost of a row and its query, at every moment."""
    feed = h.Feed(NofN, h.rows_of(distribution, dims, 2 * length), length).fill()
    at = np.linspace(length, 2 * length - group, moments).astype(int)
    ages = np.random.default_rng(15).integers(1, length, (moments, group), endpoint=True).tolist()
    costs = queried_rows(feed, feed.algorithm.stab, ages, at)
    for n in ages[0][:3]:
        truth = skyline_sfs(feed.window(n)) + feed.seen - n + 1
        h.check_agree({"recompute": truth, "query": feed.algorithm.answer(n)}, f"last {n}")
    call = call_cost(feed)
    run = {"distribution": distribution, "dims": dims, "kept": len(feed.algorithm), "call": call}
    return {**run, "at": at, "seconds": costs}


def table(bench, title, results):
    """Average, extremes and rows a second."""
    rows = []
    for run in results:
        costs = run["seconds"]
        line = [run["distribution"], run["dims"], run["kept"], 1e6 * h.middle(costs)]
        rows.append([*line, 1e6 * max(costs), 1e6 * run["call"], round(1 / h.middle(costs))])
    header = [
        "rows",
        "d",
        "|R_N|",
        "µs a row",
        "worst thousand",
        "of these, a call",
        "rows a second",
    ]
    bench.table(title, header, rows)


def draw(results):
    """Cost by elements read, one panel for each distribution."""
    names = list(dict.fromkeys(run["distribution"] for run in results))
    figure, all_axes = h.panels(len(names))
    for axes, name in zip(all_axes, names, strict=True):
        for i, run in enumerate(run for run in results if run["distribution"] == name):
            places = [place / 1e6 for place in run["at"]]
            costs = [1e6 * seconds for seconds in run["seconds"]]
            axes.plot(
                places, costs, h.MARKERS[i] + "-", color=h.LINES[i], label=f"d = {run['dims']}"
            )
        h.label(axes, name, "rows read (millions)", "µs for a row and a query", log="y")
        h.legend(axes, ncols=2)
    return figure


def main():
    """Measure and draw."""
    bench = h.Bench(__file__, __doc__)
    length, moments = bench.pick(1_000_000, 100_000), bench.pick(25, 8)
    results = [
        measure(distribution, dims, length, moments, bench.pick(1_000, 500))
        for distribution in ("independent", "anti-correlated")
        for dims in (1, 2, 3, 4, 5)
    ]
    table(bench, f"A row and a query for the last n of N = {length:,}", results)
    bench.picture(draw(results))
    bench.finish({"N": length, "moments": moments, "seed": 1}, results)


if __name__ == "__main__":
    main()
