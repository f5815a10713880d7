"""Table 2 of "SAP": the equal partition by how many partitions m, with and without delay and S-AVL.

n = 100,000, k = 100, s = 0.1 % n, as the paper's defaults are shares.  *non-delay* builds the rows that
matter of every partition when it is complete, *Algo 1* only when they are needed, by scanning and
sorting, *Algo 1+S-AVL* by the stacks of Section 5.1.
"""

from __future__ import annotations

import math

import harness as h
import topk_load as load

from skytide.choices import ALGORITHMS

N, K, S = 100_000, 100, 100
VARIANTS = {"non-delay": "sap-non-delay", "Algo 1": "sap-rescan", "Algo 1+S-AVL": "sap-equal"}


def cost(name, m, values, rows, rounds):
    """Nanoseconds a row in each round of a variant with m partitions."""
    made = ALGORITHMS[name].load()
    fixed = type(made.__name__, (made,), {"partitions": m})
    feed = load.Slides(name, values, N, K, S, make=fixed).fill()
    costs = []
    for _ in range(rounds):
        feed.prepare(rows)
        costs.append(1e9 * h.cost(feed.read) / rows)
    return costs


def main():
    """Measure and draw."""
    bench = h.Bench(__file__, __doc__, load.FILES)
    streams = load.streams_of(bench, 1_000_000)
    counts = bench.pick((5, 11, 17, 23, 29, 35), (5, 33))
    rows, best = bench.pick(40_000, 20_000), math.ceil(math.sqrt(N / max(S, K)))
    raw, lines = [], []
    for stream, values in streams.items():
        for label, name in VARIANTS.items():
            times = [cost(name, m, values, rows, 3) for m in counts]
            raw.append({"stream": stream, "variant": label, "m": counts, "ns": times})
            lines.append([stream, label, *map(h.middle, times)])
    bench.table(f"ns a row by m; m* = {best}", ["stream", "", *(f"m = {m}" for m in counts)], lines)
    cells = {(line[0], line[1]): h.mean(line[2:]) for line in lines}
    for stream in streams:
        delay = cells[stream, "non-delay"] / cells[stream, "Algo 1"]
        stacks = cells[stream, "Algo 1"] / cells[stream, "Algo 1+S-AVL"]
        bench.say(f"{stream}: delay saves {h.times_as(delay)}, S-AVL {h.times_as(stacks)}")
    figure, panels = h.panels(len(streams), width=3)
    for axes, stream in zip(panels, streams, strict=True):
        for line in (line for line in raw if line["stream"] == stream):
            axes.plot(line["m"], [h.middle(t) for t in line["ns"]], "o-", label=line["variant"])
        h.label(axes, stream, "m", "ns a row")
    h.legend(panels[0])
    bench.picture(figure)
    bench.finish({"n": N, "k": K, "s": S, "rows": rows}, raw)


if __name__ == "__main__":
    main()
