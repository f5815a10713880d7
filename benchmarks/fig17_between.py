"""Figure 17 of "Stabbing the Sky": queries for the n1th to the n2th most recent row (n12N).

(a) Random n1, n2 with n2 - n1 >= 500 on a full window, beside a query for the last n2 rows on the
same data.  (b) A stream of anti-correlated rows with such a query after every row.
"""

from __future__ import annotations

import harness as h
import numpy as np
from fig15_overall import table as load_table
from load import call_cost, queried_rows

from skytide.algorithms.sliding.n12_of_n import N12ofN
from skytide.algorithms.sliding.n_of_n import NofN
from skytide.algorithms.static.sfs import skyline_sfs

APART = 500
BETWEEN, LAST = "n12N", "nN"


def spans(length, count, seed=17):
    """Random (n1, n2), 1 <= n1, n1 + APART <= n2 <= N."""
    rng = np.random.default_rng(seed)
    pairs = np.sort(rng.integers(1, length, (4 * count, 2), endpoint=True), axis=1)
    return pairs[pairs[:, 1] - pairs[:, 0] >= APART][:count].tolist()


def ask(feed, span):
    """The positions of one answer."""
    (younger, older), clock = span, feed.seen
    return feed.algorithm.answer_between(clock - older, clock - younger + 1)


def check(feed, pairs):
    """Do the answers equal recomputed ones?"""
    for n1, n2 in pairs:
        first = feed.seen - n2
        truth = 1 + first + skyline_sfs(feed.values[first : feed.seen - n1 + 1])
        h.check_agree({"recompute": truth, BETWEEN: ask(feed, (n1, n2))}, f"({n1}, {n2})")


def queries(distribution, dims, length, count, rounds):
    """(a): seconds a query on a full window."""
    values = h.rows_of(distribution, dims, 2 * length)
    feed, plain = (h.Feed(make, values, length).fill() for make in (N12ofN, NofN))
    pairs = spans(length, count)
    check(feed, pairs[:5])
    groups = [pairs[i::rounds] for i in range(rounds)]
    works = {
        BETWEEN: lambda group: [ask(feed, pair) for pair in group],
        LAST: lambda group: [plain.algorithm.stab(n2) for _, n2 in group],
    }
    times = {BETWEEN: [], LAST: []}
    for group in groups:
        turn = {name: lambda work=work, group=group: work(group) for name, work in works.items()}
        for name, taken in h.interleaved(turn, 1).items():
            times[name].append(taken[0] / len(group))
    answer = float(np.mean([len(ask(feed, pair)) for pair in groups[0]]))
    run = {"distribution": distribution, "dims": dims, "N": length, "answer": answer}
    return feed, {**run, "seconds": times}


def load(feed, distribution, dims, moments, group):
    """(b): seconds for a row and a query, as the window slides on."""
    length = feed.length
    at = np.linspace(length, 1.2 * length - group, moments).astype(int)
    pairs = spans(length, moments * group, seed=18)
    groups = [pairs[i * group : (i + 1) * group] for i in range(moments)]
    costs = queried_rows(feed, lambda pair: ask(feed, pair), groups, at)
    check(feed, pairs[:3])
    run = {"distribution": distribution, "dims": dims, "kept": len(feed.algorithm)}
    return {**run, "at": at, "seconds": costs, "call": call_cost(feed)}


def draw(asked, loaded):
    """The paper's two panels."""
    figure, (left, right) = h.panels(2)
    for distribution, colour in h.COLOURS.items():
        own = [run for run in asked if run["distribution"] == distribution]
        dims = [run["dims"] for run in own]
        for name, style in ((BETWEEN, "o-"), (LAST, "x:")):
            costs = [1e6 * h.middle(run["seconds"][name]) for run in own]
            shown = distribution if name == BETWEEN else None
            left.plot(dims, costs, style, color=colour, label=shown)
    left.set_xticks(sorted({run["dims"] for run in asked}))
    h.label(left, "(a) a query (dotted: nN for n2)", "dimensions", "µs a query", log="y")
    for i, run in enumerate(loaded):
        places = [place / 1e6 for place in run["at"]]
        costs = [1e6 * seconds for seconds in run["seconds"]]
        right.plot(places, costs, h.MARKERS[i] + "-", color=h.LINES[i], label=f"d = {run['dims']}")
    title = "(b) anti-correlated: a row and a query"
    h.label(right, title, "rows read (millions)", "µs for a row and a query", log="y")
    h.legend(left)
    h.legend(right)
    return figure


def main():
    """Measure both and draw them."""
    bench = h.Bench(__file__, __doc__)
    length, count = bench.pick((1_000_000, 600), (50_000, 60))
    asked, loaded, rows = [], [], []
    for distribution in h.DISTRIBUTIONS:
        for dims in (2, 3, 4, 5):
            feed, run = queries(distribution, dims, length, count, bench.pick(15, 3))
            asked.append(run)
            costs = [1e6 * h.middle(run["seconds"][name]) for name in (BETWEEN, LAST)]
            more = h.times_as(h.ratio(run["seconds"], BETWEEN, LAST))
            rows.append([distribution, dims, run["answer"], *costs, more])
            if distribution == "anti-correlated":
                moments, group = bench.pick((15, 400), (4, 100))
                loaded.append(load(feed, distribution, dims, moments, group))
    header = ["rows", "d", "answer", "n12N µs", "nN µs", "n12N/nN"]
    bench.table(f"(a) Queries between n1 and n2, N = {length:,}", header, rows)
    load_table(bench, f"(b) A row and a query, N = {length:,}", loaded)
    bench.picture(draw(asked, loaded))
    bench.finish({"N": length, "queries": count, "seed": 1}, {"asked": asked, "loaded": loaded})


if __name__ == "__main__":
    main()
