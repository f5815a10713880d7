"""Tables 3 and 6 to 9, Figures 9 and 10 of "SAP": time, candidates and memory by n, k and s.

All algorithms in one run, the answer kept current at every slide, on TIME^U, TIME^R and three streams
that real files can be given for.  Table 5 is the high-speed setting: larger k and s.  Targets:
sap-enhanced at most a third of MinTopK's time at s = 0.1 % n and no more than 1.1 times at s = 10 % n,
at most a fifth of k-skyband's and SMA's; TIME^R within 4 times TIME^U.
"""

from __future__ import annotations

import harness as h
import topk_load as load

N, K = 100_000, 100
SHARES = (0.0001, 0.0005, 0.001, 0.01, 0.05, 0.1)  # the slide, of n
COLOURS = dict(zip(load.ALL, (*h.LINES, "#111111", "#d0669b", "#4fb0b5", "#999933"), strict=True))


def points_of(bench):
    """What is varied, one thing at a time: name, value, n, k, s."""
    sizes = bench.pick((10_000, 50_000, 100_000, 500_000, 1_000_000), (10_000, 100_000))
    most = bench.pick((10, 50, 100, 500, 1_000), (10, 1_000))
    shares = bench.pick(SHARES, (0.001, 0.1))
    points = [("n", n, n, K, max(1, n // 1_000)) for n in sizes]
    points += [("k", k, N, k, N // 1_000) for k in most]
    return points + [("s", share, N, K, int(N * share)) for share in shares]


def fast_points_of(bench):
    """The high-speed setting of Table 5, scaled to what one machine reads in a minute."""
    n = bench.pick(500_000, 50_000)
    points = [("k", k, n, k, n // 50) for k in bench.pick((500, 1_000, 5_000, 10_000), (500,))]
    return points + [("s", share, n, 1_000, int(n * share)) for share in (0.001, 0.02, 0.1)]


def measure(streams, points, names, rows):
    """Every contender at every point of every stream."""
    runs = []
    for stream, values in streams.items():
        for what, value, n, k, s in points:
            result = load.race(values, n, k, s, names, rows=max(rows, 10 * s))
            where = {"stream": stream, "vary": what, "value": value, "n": n, "k": k, "s": s}
            runs.append(where | {"of": result})
    return runs


def table(bench, title, runs, names, cell):
    """Rows: stream and what is varied; columns: contenders."""
    rows = []
    for run in runs:
        cells = (cell(run["of"], name) for name in names)
        rows.append([run["stream"], f"{run['vary']} = {h.shown(run['value'])}", *cells])
    bench.table(title, ["stream", "", *names], rows)


def targets(bench, runs):
    """The paper's claims, as ratios within rounds."""
    rows = []
    for run in (run for run in runs if run["vary"] == "s" and run["value"] in (0.001, 0.1)):
        bars = {"mintopk": 3.0 if run["value"] == 0.001 else 1 / 1.1, "k-skyband": 5.0, "sma": 5.0}
        for other, bar in bars.items():
            gain = load.times_of(run["of"], other, "sap-enhanced")
            where = run["stream"], f"s = {run['value']:.1%} n", other
            rows.append([*where, h.times_as(gain), h.times_as(bar), h.met(gain >= bar)])
    bench.table(
        "Other / sap-enhanced", ["stream", "slide", "other", "ratio", "target", "met"], rows
    )
    at = {run["stream"]: run["of"] for run in runs if run["vary"] == "s" and run["value"] == 0.001}
    rows = [[name, load.ns(at["TIME^R"], name) / load.ns(at["TIME^U"], name)] for name in load.ALL]
    bench.table("TIME^R / TIME^U, s = 0.1 % n (target for sap-enhanced: 4)", ["", "ratio"], rows)


def draw(runs):
    """Figures 9 and 10: running time by s."""
    streams = list(dict.fromkeys(run["stream"] for run in runs))
    figure, panels = h.panels(len(streams), width=3.4)
    for axes, stream in zip(panels, streams, strict=True):
        mine = [run for run in runs if run["stream"] == stream and run["vary"] == "s"]
        for name in load.ALL:
            costs = [load.ns(run["of"], name) for run in mine]
            axes.plot(
                [100 * run["value"] for run in mine], costs, "o-", color=COLOURS[name], label=name
            )
        h.label(axes, stream, "s, % of n", "ns a row", log="xy")
    h.legend(panels[0])
    return figure


def main():
    """Measure and draw."""
    bench = h.Bench(__file__, __doc__, load.FILES)
    streams = load.streams_of(bench, bench.pick(2_500_000, 300_000))
    if bench.quick:
        streams = {name: streams[name] for name in ("TIME^U", "TIME^R", "STOCK")}
    rows = bench.pick(30_000, 10_000)
    runs = measure(streams, points_of(bench), load.ALL, rows)
    table(bench, "Table 3, Figures 9 and 10: ns a row", runs, load.ALL, load.ns)
    kept = lambda result, name: result[name]["candidates"]  # noqa: E731
    size = lambda result, name: result[name]["bytes"] / 1024  # noqa: E731
    table(bench, "Table 6: candidates, on average", runs, load.ALL, kept)
    table(bench, "Table 8: memory, KB", runs, load.ALL, size)
    targets(bench, runs)
    names = ("two-stacks-linked", "two-stacks-culled", "two-stacks", "sap-enhanced", "mintopk")
    fast = measure(streams, fast_points_of(bench), names, rows)
    table(bench, "Table 5, high speed: ns a row", fast, names, load.ns)
    table(bench, "Table 7, high speed: candidates", fast, names, kept)
    table(bench, "Table 9, high speed: memory, KB", fast, names, size)
    bench.picture(draw(runs))
    bench.finish({"n": N, "k": K, "rows": rows, "seed": 0}, [*runs, *fast])


if __name__ == "__main__":
    main()
