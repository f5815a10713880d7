"""Figure 18 of "Stabbing the Sky": what keeping all N rows costs a row (mn12N), by N, beside mnN.

As in figure 14.  The paper found that both cost about the same.
"""

from __future__ import annotations

import harness as h
from fig14_maintenance import draw, measure, sizes_of, table

from skytide.algorithms.sliding.n12_of_n import N12ofN
from skytide.algorithms.sliding.n_of_n import NofN

STYLE = {"NofN": h.LINES[0], "N12ofN": h.LINES[1]}


def compare(bench, results):
    """mn12N / mnN at every N."""
    lines = {(r["algorithm"], r["distribution"], r["dims"]): r["runs"] for r in results}
    rows = []
    for (name, distribution, dims), runs in lines.items():
        if name == "N12ofN":
            base = lines["NofN", distribution, dims]
            pairs = list(zip(runs, base, strict=True))
            more = [h.times_as(a["average"] / b["average"]) for a, b in pairs]
            worst = h.times_as(max(a["maximum"] for a in runs) / max(b["maximum"] for b in base))
            rows.append([distribution, dims, *more, worst])
    sizes = [f"N = {run['N']:,}" for run in results[0]["runs"]]
    header = ["rows", "d", *sizes, "maximum over all N"]
    bench.table("mn12N / mnN, average cost a row", header, rows)


def main():
    """Measure and draw."""
    bench = h.Bench(__file__, __doc__)
    much = {"blocks": bench.pick(15, 5), "rows": 1_000, "singles": bench.pick(2_000, 500)}
    lengths = sizes_of(bench)[:: bench.pick(3, 2)]
    results = [
        measure(make, distribution, dims, lengths, **much)
        for dims in (2, 5)
        for distribution in ("independent", "anti-correlated")
        for make in (NofN, N12ofN)
    ]
    table(bench, "CPU time a row", results)
    compare(bench, results)
    bench.picture(draw(results, STYLE))
    bench.finish({"N": lengths, "seed": 1, **much}, results)


if __name__ == "__main__":
    main()
