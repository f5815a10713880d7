"""Thousands of standing queries on one engine: what a row costs, by how many watch and what changes.

Windows of the last 100,000 rows of three dimensions are watched by 0 to 5,000 watches, their n
spread evenly over 1..N, and by as many whose n is in the older half of it: their answers are as
large but change more seldom.  Rows are taken one by one, a hundred in a call; then the events of
all watches are collected.  Contender: after every row, asking every watched n anew and comparing
with the answer before, measured on a sample of the watches and extrapolated.

Target: the cost of a row grows with the changes that are told, not with watches times answers.  It
is met if over all runs with a change a row or more the cost of a change varies less than threefold,
whatever the watches and their answers.  Where less than that is told, finding that out is all that
a row costs: two binary searches among the watches.
"""

from __future__ import annotations

import harness as h
import numpy as np

from skytide.algorithms.sliding.n_of_n import NofN

EVERYWHERE, OLD = "1..N", "N/2..N"
SAMPLE = 50  # watches that are asked anew, and whose events are checked
CALL = 100  # rows in a call
ENOUGH = 1  # changes a row, from which on their cost can be told from noise
STEADY = 3.0  # the cost of a change may vary so much


class Watched:
    """A feed under watch, and all it told."""

    def __init__(self, plain, lengths):
        self.feed = h.Feed(NofN, plain.values, plain.length).refill(plain)
        self.lengths = {}
        self.opening = h.cost(lambda: self._open(lengths))
        self.before = {name: self.feed.algorithm.answer(n) for name, n in self.sample().items()}
        self.told, self.fresh, self.count = [], [], 0

    def _open(self, lengths):
        self.lengths = {self.feed.algorithm.watch(int(n)): int(n) for n in lengths}

    def sample(self):
        """Some of the watches, evenly spread."""
        return dict(list(self.lengths.items())[:: max(1, len(self.lengths) // SAMPLE)])

    def each(self, rows):
        """Rows one by one, a hundred in a call, and the events after each call."""
        self.fresh = [self._call() for _ in range(rows // CALL)]

    def _call(self):
        self.feed.each(CALL)
        return self.feed.algorithm.events()

    def note(self):
        """Keep the events of the sample, not to hold them all; not part of what is measured."""
        fresh, self.fresh = np.concatenate([np.stack(told) for told in self.fresh], axis=1), []
        self.count += fresh.shape[1]
        self.told.append(fresh[:, np.isin(fresh[0], list(self.before))])

    def watched(self):
        """The sizes of all watched answers together."""
        return sum(len(self.feed.algorithm.stab(n)) for n in self.lengths.values())

    def check(self):
        """Do the answers before and the events give the answers now?"""
        who, what, sign = np.concatenate(self.told, axis=1)
        for name, n in self.sample().items():
            moved = np.concatenate([self.before[name], what[who == name]])
            by = np.concatenate([np.ones(len(self.before[name]), int), sign[who == name]])
            positions, inverse = np.unique(moved, return_inverse=True)
            left = np.bincount(inverse, by, len(positions))
            now = {"asked": self.feed.algorithm.answer(n), "told": positions[left > 0]}
            h.check_agree(now, f"watch {n}")


def spread(count, length, where):
    """The n of so many watches."""
    least = 0 if where == EVERYWHERE else length // 2
    return np.unique(np.linspace(least, length, count + 1).astype(int)[1:]) if count else []


def asked_anew(plain, lengths, rows):
    """Seconds a row and watch: the answer again, and what has changed in it."""
    answers = {n: plain.algorithm.answer(n) for n in lengths.tolist()}
    return h.middle(h.cost(lambda: _ask(plain, answers)) for _ in _each(plain, rows)) / len(answers)


def _each(feed, rows):
    return (feed.each() for _ in range(rows))


def _ask(feed, answers):
    for n, before in answers.items():
        now = feed.algorithm.answer(n)
        if len(now) != len(before) or (now != before).any():
            np.setdiff1d(now, before, assume_unique=True)
            np.setdiff1d(before, now, assume_unique=True)
            answers[n] = now


def race(distribution, dims, length, counts, rounds, rows):
    """One run for every number of watches, all on the same rows."""
    values = h.rows_of(distribution, dims, length + (rounds + 1) * rows + 300)
    plain = h.Feed(NofN, values, length).fill()
    kinds = [(0, EVERYWHERE), *((c, EVERYWHERE) for c in counts), (max(counts), OLD)]
    watched = {kind: Watched(plain, spread(kind[0], length, kind[1])) for kind in kinds}
    works = {kind: lambda one=one: one.each(rows) for kind, one in watched.items()}
    taken = {kind: [] for kind in kinds}
    for turn in range(rounds + 1):
        for kind, seconds in h.interleaved(works, 1).items():
            taken[kind] += [seconds[0] / rows] if turn else []
            watched[kind].note()
    anew = {kind: _anew(plain, length, *kind) for kind in kinds[1:]}
    row = h.middle(taken[kinds[0]])
    all_rows = (rounds + 1) * rows
    return [
        _run(distribution, kind, one, taken[kind], all_rows, row, anew.get(kind))
        for kind, one in watched.items()
    ]


def _anew(plain, length, count, where):
    lengths = spread(min(count, SAMPLE), length, where)
    return count * asked_anew(plain.twin(), lengths, 20)


def _run(distribution, kind, one, taken, rows, row, anew):
    one.check()
    count, where = kind
    run = {"distribution": distribution, "watches": count, "n": where, "watched": one.watched()}
    seconds = h.middle(taken)
    times = {"seconds": seconds, "more": seconds - row, "anew": anew and anew + row}
    run |= {"changes": one.count / rows, "opening": one.opening}
    return {**run, **times, "rounds": taken}


def table(bench, length, dims, raw):
    """All runs."""
    rows = []
    for run in raw:
        line = [run["distribution"], run["watches"], run["n"], run["watched"], run["changes"]]
        line += [1e6 * run["seconds"], 1e9 * a_change(run) if told_enough(run) else None]
        anew, opening = run["anew"], 1e3 * run["opening"] / max(1, run["watches"])
        line += [anew and 1e6 * anew, anew and h.times_as(anew / run["seconds"])]
        rows.append([*line, opening if run["watches"] else None])
    header = ["rows", "watches", "n", "watches × s", "changes a row", "µs a row", "ns a change"]
    title = f"Watches over N = {length:,}, d = {dims}; rows one by one, {CALL} in a call"
    bench.table(title, [*header, "asked anew µs", "anew/watched", "ms to open one"], rows)


def told_enough(run):
    """Is what the changes cost more than noise?"""
    return run["changes"] >= ENOUGH


def a_change(run):
    """Seconds for each change that is told."""
    return run["more"] / run["changes"]


def verdict(bench, raw):
    """How much do the cost of a change, of a row in a watched answer and of a watch vary?"""
    runs = [run for run in raw if told_enough(run)]
    rows = [
        spread_of("for a change told", [a_change(run) for run in runs], STEADY),
        spread_of("for a row in a watched answer", [r["more"] / r["watched"] for r in runs]),
        spread_of("for a watch", [run["more"] / run["watches"] for run in runs]),
    ]
    header = ["what a row costs more", "least ns", "most ns", "varies", "target", "met"]
    bench.table(f"What the cost follows: {len(runs)} runs with a change a row", header, rows)
    few = [1e6 * run["more"] for run in raw if run["watches"] and not told_enough(run)]
    bench.say(f"With less than a change a row, watching costs at most {max(few):.2f} µs a row.")


def spread_of(name, costs, most=None):
    """One line: extremes, and is their ratio within the target?"""
    varies = max(costs) / min(costs)
    line = [name, 1e9 * min(costs), 1e9 * max(costs), h.times_as(varies)]
    return [*line, most and f"<{most:g}x", most and h.met(varies < most)]


def draw(raw, length):
    """Cost by watches, and what it follows."""
    figure, (left, right) = h.panels(2, 5.2)
    for name, colour in h.COLOURS.items():
        own = [
            r for r in raw if r["distribution"] == name and r["n"] == EVERYWHERE and r["watches"]
        ]
        counts = [run["watches"] for run in own]
        left.plot(counts, [1e6 * run["seconds"] for run in own], "o-", color=colour, label=name)
        left.plot(counts, [1e6 * run["anew"] for run in own], "x:", color=colour)
        own = [r for r in raw if r["distribution"] == name and told_enough(r)]
        right.plot([r["changes"] for r in own], [1e6 * r["more"] for r in own], "o", color=colour)
    title = f"N = {length:,} (dotted: asking all anew)"
    h.label(left, title, "watches", "µs a row", log="xy")
    h.label(right, "What watching costs, all runs", "changes a row", "µs a row more", log="xy")
    h.legend(left)
    return figure


def main():
    """Measure and draw."""
    bench = h.Bench(__file__, __doc__)
    length, dims = 100_000, 3
    counts, (rounds, rows) = (10, 100, 1_000, 5_000), bench.pick((15, 2_000), (5, 1_000))
    raw = [
        run for name in h.DISTRIBUTIONS for run in race(name, dims, length, counts, rounds, rows)
    ]
    table(bench, length, dims, raw)
    verdict(bench, raw)
    bench.picture(draw(raw, length))
    bench.finish({"N": length, "d": dims, "rounds": rounds, "rows a round": rows, "seed": 1}, raw)


if __name__ == "__main__":
    main()
