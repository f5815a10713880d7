"""Rows and queries taking turns: shared by the figures on whole loads and on maintenance."""

from __future__ import annotations

import statistics
import time

import numpy as np
from harness import cost, mean


def queried_rows(feed, ask, ages, at):
    """Seconds per row, averaged over the rows: take one, then ask about one of ``ages``.

    At each of the moments ``at`` (rows read) one such group of rows is taken.
    """
    points = []
    for moment, group in zip(at, ages, strict=True):
        feed.fill(moment)
        points.append(cost(lambda group=group: _take_turns(feed, ask, group)) / len(group))
    return points


def _take_turns(feed, ask, group):
    for age in group:
        feed.each()
        ask(age)


def call_cost(feed):
    """Seconds for a call of a kernel that finds nothing to do: numba takes the state's forty arrays
    out of their tuples and puts them back.  Part of every cost that is measured row by row."""
    stay = feed.algorithm.advance
    return min(cost(lambda: [stay(feed.seen) for _ in range(100)]) / 100 for _ in range(9))


def upkeep(feed, blocks, rows, singles, copies=3):
    """Seconds a row: averages over blocks of rows; and of single rows, in calls of their own.

    The single rows are taken by several copies of the algorithm and the least time of each row
    counts, so that a maximum is the algorithm's and not that of whoever shares the machine.
    """
    twins = [feed.twin() for _ in range(copies)]
    alone = np.min([_one_by_one(twin, singles) for twin in twins], axis=0)
    each = [cost(lambda: feed.each(rows)) / rows for _ in range(blocks)]
    return {
        "average": statistics.median(each),
        "averages": each,
        "maximum": float(alone.max()),
        "99.9 %": float(np.quantile(alone, 0.999)),
        "single": mean(alone),
    }


def _one_by_one(feed, rows):
    taken, clock = np.empty(rows), time.thread_time
    for i in range(rows):
        start = clock()
        feed.each()
        taken[i] = clock() - start
    return taken
