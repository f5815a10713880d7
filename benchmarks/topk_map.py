"""Who wins where: the fastest top-k algorithm by k, s and stream, and the default against it.

Also what the default costs a row by n and by k, and a batch of a million rows against the physical
limit, one pass that compares with a constant and copies what passes.  Targets: the default never slower
than 0.95 of the best; cost a row does not grow with n, and at most with log k; a batch within 3 times
the limit.
"""

from __future__ import annotations

import math

import harness as h
import numpy as np
import pyarrow as pa
import topk_load as load

import skytide as st
from skytide.data import scores
from skytide.kernel import kernel

N = 100_000
STREAMS = ("uniform-time", "sin-time", "decreasing", "increasing", "constant", "bursts")
NAMES = (
    *("two-stacks-linked", "two-stacks-culled", "two-stacks", "sap-enhanced", "sap-dynamic"),
    *("mintopk", "k-skyband"),
)


def able(k, s):
    """All but those that would take gigabytes, or minutes: lists of k, windows of n / s."""
    too_much = {"two-stacks": N * k // s > 10_000_000, "mintopk": N // s > 10_000}
    return [name for name in NAMES if not too_much.get(name)]


def explore(bench, streams):
    """Every contender at every point of the map."""
    runs = []
    for k in bench.pick((10, 100, 1_000), (10, 1_000)):
        for s in bench.pick((1, 10, 100, 300, 1_000, 10_000), (1, 100, 10_000)):
            for name, values in streams.items():
                rows = bench.pick(N, 10_000)  # all that happens in the life of a window
                result = load.race(values, N, k, s, able(k, s), rows=rows, rounds=bench.pick(7, 3))
                chosen = load.default_of(N, k, s)
                fastest = min(result, key=lambda one, result=result: load.ns(result, one))
                share = load.times_of(result, fastest, chosen)  # 1: as fast as the fastest
                where = {"k": k, "s": s, "stream": name, "default": chosen, "fastest": fastest}
                runs.append(where | {"share": share, "of": result})
    return runs


def tables(bench, runs, streams):
    """The map, and how near the default comes."""
    cells = {(run["k"], run["s"], run["stream"]): run for run in runs}
    points = list(dict.fromkeys((run["k"], run["s"]) for run in runs))
    header = ["k", "s", *streams]

    def winner(run):
        return f"{run['fastest']} {h.shown(load.ns(run['of'], run['fastest']))}"

    def share(run):
        return min(1.0, run["share"])

    grid = [[k, s, *(winner(cells[k, s, name]) for name in streams)] for k, s in points]
    bench.table(f"The fastest, and its ns a row; n = {N:,}", header, grid)
    rows = []
    for k, s in points:
        mine = [cells[k, s, name] for name in streams]
        rows.append([k, s, *map(share, mine), mine[0]["default"]])
    bench.table("Speed of the default, as a share of the fastest's", [*header, "default"], rows)
    met = sum(run["share"] >= 0.95 for run in runs)
    bench.say(f"the default is at least 0.95 of the fastest in {met} of {len(runs)} cases")
    average = math.exp(h.mean(math.log(run["share"]) for run in runs))
    bench.say(f"on (geometric) average it is {h.shown(average)} of the fastest")
    for name in NAMES:
        shared = [run for run in runs if name in run["of"]]
        logs = [
            math.log(load.ns(run["of"], name) / load.ns(run["of"], run["default"]))
            for run in shared
        ]
        bench.say(f"{name}: {h.shown(math.exp(h.mean(logs)))} times the default's time on average")


def by_size(bench):
    """The default's cost by n and by k."""
    sizes = bench.pick((100_000, 1_000_000, 10_000_000), (10_000, 100_000))
    raw, rows = [], []
    for kind in ("uniform-time", "sin-time", "decreasing"):
        values = -scores(kind, sizes[-1] + 1_000_000)
        for s in (1, 1_000):
            costs = [_cost(values, n, 100, s) for n in sizes]
            raw.append({"stream": kind, "s": s, "n": sizes, "ns": costs})
            rows.append([kind, s, *costs, h.times_as(costs[-1] / costs[0])])
    bench.table("ns a row by n, k = 100", ["stream", "s", *(f"{n:,}" for n in sizes), ""], rows)
    most, rows = bench.pick((10, 100, 1_000, 10_000), (10, 1_000)), []
    for kind in ("uniform-time", "sin-time", "decreasing"):
        values = -scores(kind, 2_000_000)
        for s in (1, 1_000):
            costs = [_cost(values, sizes[-2], k, s) for k in most]
            raw.append({"stream": kind, "s": s, "k": most, "ns": costs})
            growth = math.log(most[-1]) / math.log(most[0])
            rows.append([kind, s, *costs, h.times_as(costs[-1] / costs[0]), h.times_as(growth)])
    header = ["stream", "s", *(f"k = {k:,}" for k in most), "", "log k"]
    bench.table(f"ns a row by k, n = {sizes[-2]:,}", header, rows)
    return raw


def _cost(values, n, k, s):
    feed = load.Slides(load.default_of(n, k, s), values, n, k, s).fill()
    times = h.interleaved({"": feed.read}, 5, before=lambda _: feed.prepare(100_000))
    return 1e9 * h.middle(times[""]) / 100_000


@kernel
def limit(values, bar, out):
    """One pass over the scores that compares with a constant and copies what passes."""
    found = 0
    for row in range(values.shape[0]):
        if values[row] > bar:
            out[found] = values[row]
            found += 1
    return found


def batches(bench):
    """A million rows a push, against the limit."""
    rows = 1_000_000
    made = [scores("uniform-time", rows, seed=seed) for seed in range(5)]
    tables = [pa.table({"x": one, "id": np.arange(rows)}) for one in made]
    out, raw, lines = np.empty(rows), [], []
    bar = 1 - 1e-3
    for k in (10, 100, 1_000):
        live = st.top(k, st.high("x")).over(st.last(10 * rows)).open()
        turns = {"limit": 0, "push": 0}

        def next_of(name, items, turns=turns):
            turns[name] += 1
            return items[turns[name] % len(items)]

        works = {
            "limit": lambda next_of=next_of: limit(next_of("limit", made), bar, out),
            "push": lambda live=live, next_of=next_of: live.push(next_of("push", tables)),
        }
        for work in works.values():
            work()
        times = h.interleaved(works, bench.pick(15, 7))
        ratio = h.ratio(times, "push", "limit")
        raw.append({"k": k, "seconds": times})
        mine = [1e3 * h.middle(times[name]) for name in works]
        lines.append([k, *mine, h.times_as(ratio), h.times_as(3.0), h.met(ratio <= 3)])
    header = ["k", "limit ms", "push ms", "push / limit", "target", "met"]
    bench.table("A batch of 1,000,000 rows with a payload column", header, lines)
    return raw


def draw(runs, streams):
    """The fastest, as colours."""
    figure, panels = h.panels(len(streams), width=2.6, height=3)
    points_k = sorted({run["k"] for run in runs})
    points_s = sorted({run["s"] for run in runs})
    colours = dict(zip(NAMES, (*h.LINES, "#111111"), strict=True))
    for axes, name in zip(panels, streams, strict=True):
        for run in (run for run in runs if run["stream"] == name):
            place = points_s.index(run["s"]), points_k.index(run["k"])
            axes.scatter(*place, s=320, marker="s", color=colours[run["fastest"]])
        axes.set_xticks(range(len(points_s)), [h.compact(s) for s in points_s])
        axes.set_yticks(range(len(points_k)), [h.compact(k) for k in points_k])
        h.label(axes, name, "s", "k")
    for name in dict.fromkeys(run["fastest"] for run in runs):
        panels[-1].scatter([], [], marker="s", color=colours[name], label=name)
    h.legend(panels[-1], loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def main():
    """Measure and draw."""
    bench = h.Bench(__file__, __doc__)
    streams = {name: -scores(name, 2_000_000) for name in STREAMS}
    runs = explore(bench, streams)
    tables(bench, runs, STREAMS)
    sizes, pushes = by_size(bench), batches(bench)
    bench.picture(draw(runs, STREAMS))
    bench.finish({"n": N, "seed": 0}, {"map": runs, "sizes": sizes, "batches": pushes})


if __name__ == "__main__":
    main()
