"""Figure 16 of "Stabbing the Sky": ten standing queries (cnN), or ten asked after every row (nN).

N = 10,000 and 1,000,000; the queries ask for the last i N / 10 rows.  A row's delay is the time
until the next may come: taking it in, and knowing the ten answers (nN) or what changed in them
(cnN).  As in the paper, delays are averages over a thousand rows; the maximum is that of the
averages.
"""

from __future__ import annotations

import harness as h
import numpy as np

from skytide.algorithms.sliding.n_of_n import NofN

AGAIN, TOLD, TOLD_LATER = "nN", "cnN", "cnN, told once in 1,000 rows"


class Watched:
    """A feed with ten watches, and their answers as the events tell them."""

    def __init__(self, feed):
        self.feed, algorithm = feed, feed.algorithm
        lengths = [i * feed.length // 10 for i in range(1, 11)]
        self.lengths = {algorithm.watch(n): n for n in lengths}
        self.told = {name: set(algorithm.answer(n)) for name, n in self.lengths.items()}
        self.count = 0

    def each(self, rows):
        """Rows one by one, the events of each collected before the next."""
        for _ in range(rows):
            self.feed.each()
            self.note(self.feed.algorithm.events())

    def block(self, rows):
        """Rows one by one, the events of all collected in the end."""
        self.feed.each(rows)
        self.note(self.feed.algorithm.events())

    def note(self, events):
        """Bring the answers up to date: part of what is measured."""
        self.count += len(events[0])
        for name, position, sign in zip(*(part.tolist() for part in events), strict=True):
            if sign > 0:
                self.told[name].add(position)
            else:
                self.told[name].remove(position)

    def check(self):
        """Is what was told what is so?"""
        for name, n in self.lengths.items():
            told = np.fromiter(self.told[name], np.int64)
            h.check_agree({"asked": self.feed.algorithm.answer(n), "told": told}, f"watch {n}")


def ask_each(feed, lengths, rows):
    """Rows one by one, all ten queries again after each."""
    for _ in range(rows):
        feed.each()
        for n in lengths:
            feed.algorithm.stab(n)


def race(distribution, dims, length, rounds, rows):
    """Delays of nN, of cnN, and of cnN that collects events more seldom."""
    values = h.rows_of(distribution, dims, length + (rounds + 1) * rows)
    plain = h.Feed(NofN, values, length).fill()
    single, block = (Watched(h.Feed(NofN, values, length).refill(plain)) for _ in range(2))
    lengths = list(single.lengths.values())
    works = {
        AGAIN: lambda: ask_each(plain, lengths, rows),
        TOLD: lambda: single.each(rows),
        TOLD_LATER: lambda: block.block(rows),
    }
    for work in works.values():
        work()
    times = h.interleaved(works, rounds)
    for watched in (single, block):
        watched.check()
    changes = single.count / (rows * (rounds + 1))
    delays = {name: [t / rows for t in taken] for name, taken in times.items()}
    answer = h.mean(len(plain.algorithm.stab(n)) for n in lengths)
    run = {"distribution": distribution, "dims": dims, "N": length, "answer": answer}
    return {**run, "changes": changes, "seconds": delays}


def table(bench, results):
    """Average and maximum delay, and the ratios."""
    rows = []
    for run in results:
        delays = run["seconds"]
        line = [run["distribution"], run["dims"], run["N"], run["answer"], run["changes"]]
        for name in (AGAIN, TOLD):
            line += [1e6 * h.middle(delays[name]), 1e6 * max(delays[name])]
        rows.append([*line, *(h.times_as(h.ratio(delays, AGAIN, n)) for n in (TOLD, TOLD_LATER))])
    header = [
        "rows",
        "d",
        "N",
        "an answer",
        "changes a row",
        "nN µs",
        "nN max",
        "cnN µs",
        "cnN max",
    ]
    bench.table(
        "Ten queries: delay of a row", [*header, "nN/cnN", "nN/cnN, 1,000 rows a call"], rows
    )


def draw(results):
    """Bars as in the paper: one panel for each d and N."""
    kinds = list(dict.fromkeys((run["dims"], run["N"]) for run in results))
    figure, all_axes = h.panels(len(kinds), 3.4)
    for axes, (dims, length) in zip(all_axes, kinds, strict=True):
        own = [run for run in results if (run["dims"], run["N"]) == (dims, length)]
        for i, run in enumerate(own):
            for j, (name, alpha) in enumerate(((AGAIN, 0.45), (TOLD, 1.0))):
                delays = [1e6 * t for t in run["seconds"][name]]
                colour = h.COLOURS[run["distribution"]]
                axes.bar(i + 0.4 * j, h.middle(delays), 0.38, color=colour, alpha=alpha)
                axes.plot(i + 0.4 * j, max(delays), "k_", markersize=10)
        names = [run["distribution"].replace("correlated", "corr.") for run in own]
        axes.set_xticks(np.arange(len(own)) + 0.2, names)
        axes.grid(False, axis="x")
        title = f"d = {dims}, N = {length:,}\npale nN, dark cnN, line: maximum"
        h.label(axes, title, "", "µs a row", log="y")
    return figure


def main():
    """Measure and draw."""
    bench = h.Bench(__file__, __doc__)
    rounds, rows = bench.pick((11, 1_000), (3, 300))
    results = [
        race(distribution, dims, length, rounds, rows)
        for dims in (2, 5)
        for length in bench.pick((10_000, 1_000_000), (10_000, 100_000))
        for distribution in h.DISTRIBUTIONS
    ]
    table(bench, results)
    bench.picture(draw(results))
    bench.finish({"rounds": rounds, "rows a round": rows, "seed": 1}, results)


if __name__ == "__main__":
    main()
