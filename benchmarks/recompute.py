"""One row at a time against recomputing with the best static skyline, N = 100,000 and d = 3.

After every row and once in a thousand rows.  Target: 100 times as fast, the answer being wanted after
every row: whether changes are told by a watch, or rows and answers are calls of their own.
"""

from __future__ import annotations

import harness as h
import numpy as np

from skytide.algorithms.sliding.n_of_n import NofN
from skytide.algorithms.static.sfs import skyline_sfs

TOLD, CALLS = "watched rows, changes", "rows and answers, a call each"
EACH, BATCH, ONCE = "rows, answer", "batch, answer", "recompute"
FEW = 50  # rows that are calls of their own
AIM = 100  # times as fast as recomputing after every row


def against_recompute(bench, length, dims, every, rounds):
    """Experiment 3."""
    raw, costs, ratios = [], [], []
    for distribution in h.DISTRIBUTIONS:
        values = h.rows_of(distribution, dims, length + (rounds + 2) * every)
        times = race_recompute(values, length, every, rounds)
        raw.append({"distribution": distribution, "seconds": times})
        costs.append([distribution, *(1e3 * h.middle(taken) for taken in times.values())])
        each_row = [every * h.ratio(times, ONCE, name) for name in (TOLD, CALLS)]
        line = [part for gain in each_row for part in (h.times_as(gain), h.met(gain >= AIM))]
        once = (h.times_as(h.ratio(times, ONCE, name)) for name in (EACH, BATCH))
        ratios.append([distribution, *line, *once])
    bench.table(f"ms for {every:,} rows, N = {length:,}, d = {dims}", ["rows", *times], costs)
    header = ["rows", "A: told by a watch", f">={AIM}x", "B: calls", f">={AIM}x", "C: once, rows"]
    bench.table("Recompute / engine", [*header, "D: once, batch"], ratios)
    bench.say(
        "A: the answer is wanted after every row; the rows are handed over in one call, each slides\n"
        "the window, and a watch tells every change.  B: the same, but every row and every answer\n"
        "is a call from Python of its own.  Both against as many recomputations as rows.\n"
        f"C and D: the answer is wanted once in {every:,} rows, and one recomputation does."
    )
    return raw


def race_recompute(values, length, every, rounds):
    """Seconds for so many rows and their answers, and for one recomputation."""
    works, ask = recompute_contenders(values, length, every)
    for work in works.values():
        work()
    h.check_agree({name: answer() for name, answer in ask.items()}, "recompute")
    times = h.interleaved(works, rounds)
    times[CALLS] = [taken * every / FEW for taken in times[CALLS]]
    return times


def recompute_contenders(values, length, every):
    """What is measured; and all answers for the rows read so far, to be compared."""
    told, one, many = (h.Feed(NofN, values, length).fill() for _ in range(3))
    calls = one.twin()
    told.algorithm.watch(length)
    works = {
        TOLD: lambda: told.each(every).algorithm.events(),
        CALLS: lambda: [calls.each().algorithm.answer(length) for _ in range(FEW)],
        EACH: lambda: one.each(every).algorithm.answer(length),
        BATCH: lambda: many.batch(every).algorithm.answer(length),
        ONCE: lambda: skyline_sfs(one.window()),
    }
    ask = {ONCE: lambda: skyline_sfs(one.window()) + one.seen - length + 1}
    for name, feed in ((TOLD, told), (EACH, one), (BATCH, many)):
        ask[name] = lambda feed=feed: feed.algorithm.answer(length)
    return works, ask


def draw_recompute(axes, raw):
    """Milliseconds for a thousand rows, and for one recomputation."""
    names = (TOLD, CALLS, EACH, BATCH, ONCE)
    for i, name in enumerate(names):
        heights = [1e3 * h.middle(run["seconds"][name]) for run in raw]
        axes.bar(np.arange(len(raw)) + 0.16 * i, heights, 0.15, color=h.LINES[i], label=name)
    axes.set_xticks(np.arange(len(raw)) + 0.32, [run["distribution"] for run in raw])
    axes.grid(False, axis="x")
    h.label(axes, "N = 100,000, d = 3", "", "ms for 1,000 rows; one recompute", log="y")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * 30)
    h.legend(axes)


def main():
    """Measure and draw."""
    bench = h.Bench(__file__, __doc__)
    length, every, rounds = 100_000, 1_000, bench.pick(25, 9)
    raw = against_recompute(bench, length, 3, every, rounds)
    figure, (axes,) = h.panels(1, 5.5)
    draw_recompute(axes, raw)
    bench.picture(figure)
    bench.finish({"N": length, "d": 3, "rows a round": every, "rounds": rounds, "seed": 1}, raw)


if __name__ == "__main__":
    main()
