"""A query per key: a million rows over 10,000 keys, in batches of several sizes.

The engine of ``.per("symbol")`` sorts a batch once and keeps the rows of all keys together.  Beside
it what a user would write by hand: an engine for every key, which is given a table of its rows.  Of
the first batch most is the opening of engines, so it is counted apart; then as many rows again are
taken in the same turns, and the answers of all keys are asked for.
"""

from __future__ import annotations

import harness as h
import numpy as np
import pyarrow as pa

import skytide as st
from skytide.keys import grouped

QUESTION = st.skyline(st.low("price"), st.high("volume")).over(st.last(1_000))
TOGETHER, BY_HAND = "per key", "by hand"


class Together:
    """The engine of a query per key."""

    def __init__(self):
        self.live = QUESTION.per("symbol").open()

    def push(self, rows):
        """Take a batch."""
        self.live.push(rows)

    def answer(self):
        """The answers of all keys."""
        return self.live.answer()


class ByHand:
    """An engine for every key, and a table for each of them."""

    def __init__(self):
        self.engines = {}

    def push(self, rows):
        """Take a batch."""
        groups = grouped(rows, ["symbol"])
        for key, span in groups.spans():
            if key not in self.engines:
                self.engines[key] = QUESTION.open()
            self.engines[key].push(rows.take(groups.order[span]))

    def answer(self):
        """The answers of all keys."""
        return pa.concat_tables(engine.answer() for engine in self.engines.values())


CONTENDERS = {TOGETHER: Together, BY_HAND: ByHand}


def trades(rows, keys):
    """Rows of keys at random, with two columns that nobody asks about."""
    random = np.random.default_rng(1)
    names = pa.array([f"symbol {i}" for i in range(keys)])
    return pa.table(
        {
            "symbol": names.take(pa.array(random.integers(0, keys, rows))),
            "price": random.random(rows),
            "volume": random.random(rows),
            "venue": random.integers(0, 9, rows),
            "note": names.take(pa.array(random.integers(0, keys, rows))),
        }
    )


def race(rows, batch, first):
    """Seconds for the first batch, for a row after it, and for all answers."""
    lives = {name: make() for name, make in CONTENDERS.items()}
    head, tail = rows.slice(0, first), rows.slice(first)
    works = {name: lambda live=live: live.push(head) for name, live in lives.items()}
    opened = h.interleaved(works, 1)
    taken = {name: [] for name in lives}
    for turn, start in enumerate(range(0, tail.num_rows, batch)):
        part = tail.slice(start, batch)
        works = {name: lambda live=live, p=part: live.push(p) for name, live in lives.items()}
        order = dict(list(works.items())[:: 1 if turn % 2 else -1])
        for name, seconds in h.interleaved(order, 1).items():
            taken[name].append(seconds[0] / part.num_rows)
    asked = h.interleaved({name: live.answer for name, live in lives.items()}, 3)
    same(*(live.answer() for live in lives.values()))
    return {"batch": batch, "opening": opened, "row": taken, "answers": asked}


def same(one, other):
    """Stop unless both give the same rows."""
    columns = [(name, "ascending") for name in one.column_names]
    if not one.sort_by(columns).equals(other.sort_by(columns)):
        raise SystemExit("the two disagree")


def table(bench, raw, rows, keys):
    """All runs."""
    lines = []
    for run in raw:
        line = [run["batch"]]
        for name in CONTENDERS:
            line.append(1e6 * h.middle(run["row"][name]))
        line.append(h.times_as(h.ratio(run["row"], BY_HAND, TOGETHER)))
        for part, unit in (("opening", 1), ("answers", 1e3)):
            line += [unit * h.middle(run[part][TOGETHER])]
            line += [h.times_as(h.ratio(run[part], BY_HAND, TOGETHER))]
        lines.append(line)
    header = ["batch", "per key: µs a row", "by hand: µs a row", "by hand/per key"]
    header += ["opening s", "by hand/per key", "all answers ms", "by hand/per key"]
    bench.table(f"{rows:,} rows over {keys:,} keys, after as many to open them", header, lines)


def draw(raw):
    """Cost a row by size of the batch."""
    figure, (axes,) = h.panels(1, 5)
    for i, name in enumerate(CONTENDERS):
        costs = [1e6 * h.middle(run["row"][name]) for run in raw]
        axes.plot([run["batch"] for run in raw], costs, "o-", color=h.LINES[i], label=name)
    h.label(axes, "A query per key", "rows in a batch", "µs a row", log="xy")
    h.legend(axes)
    return figure


def main():
    """Measure and draw."""
    bench = h.Bench(__file__, __doc__)
    rows, keys = bench.pick((1_000_000, 10_000), (50_000, 1_000))
    data = trades(2 * rows, keys)
    warm = {name: make() for name, make in CONTENDERS.items()}
    for live in warm.values():
        live.push(data.slice(0, 1_000))
        live.answer()
    raw = [race(data, batch, rows) for batch in bench.pick((100_000, 1_000_000), (10_000, 50_000))]
    table(bench, raw, rows, keys)
    bench.picture(draw(raw))
    bench.finish({"rows": rows, "keys": keys, "seed": 1}, raw)


if __name__ == "__main__":
    main()
