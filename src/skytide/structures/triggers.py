"""Standing stabs: who must be told of which change, and when each must be looked at next.

Watch w stands for the window of length n_w.  Watches are sorted by length, so that whatever happens
to an interval (left, right] concerns one run of them: those with ``left <= clock - n_w < right``.
A heap of times says whose oldest row leaves next, so that a row that concerns nobody costs nothing,
however many watches there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skytide.kernel import kernel, part
from skytide.structures import heap
from skytide.structures.blocks import Ints

LENGTH, NAME, CUT = 0, 1, 2  # rows of ``table``
WHO, WHAT, SIGN = 0, 1, 2  # rows of ``events``
EVENTS, CLOCK = 0, 1  # what ``sizes`` holds
NEVER, ALWAYS = np.iinfo(np.int64).max, np.iinfo(np.int64).min


class Triggers(NamedTuple):
    """Watches by rank of their length, and the events since they were last collected."""

    table: Ints  # (3, watches): LENGTH, ascending; NAME; CUT: labels up to here were seen to leave
    alarms: (
        Ints  # a heap; key: minus the clock at which a watch may change by itself; item: its rank
    )
    events: Ints  # (3, events): WHO: a watch's name; WHAT: a row's tag; SIGN: 1 entered, -1 left
    sizes: Ints  # number of EVENTS; CLOCK


def triggers(lengths: Ints, names: Ints, clock: int, events: int = 64) -> Triggers:
    """Watches of these lengths, ascending, from this clock on; all are looked at next time.

    >>> nobody = np.zeros(0, np.int64)
    >>> triggers(nobody, nobody, clock=5).sizes
    array([0, 5])
    """
    alarms = np.zeros((2, len(lengths)), np.int64)
    alarms[heap.KEY] = -max(clock, ALWAYS + 1)
    alarms[heap.ITEM] = np.arange(len(lengths))
    return Triggers(
        np.stack(
            [lengths, names, np.array([before(clock, n) for n in lengths.tolist()], np.int64)]
        ),
        alarms,
        np.zeros((3, events), np.int64),
        np.array([0, clock], np.int64),
    )


@kernel
def before(clock: int, length: int) -> int:
    """Labels up to here are outside the window of this length."""
    return clock - length if clock >= ALWAYS + length else ALWAYS


@part
def after(label: int, length: int) -> int:
    """The clock at which a label leaves the window of this length."""
    return label + length if label <= NEVER - length else NEVER


@part
def next_alarm(watches: Triggers) -> int:
    """The clock at which a watch may change even if nothing arrives."""
    if watches.table.shape[1] == 0:
        return NEVER
    return -watches.alarms[heap.KEY, 0]


@part
def set_alarm(watches: Triggers, rank: int, clock: int) -> None:
    """Put off the first alarm, which must be this watch's.  O(log watches)."""
    size = heap.pop(watches.alarms, watches.table.shape[1])
    heap.push(watches.alarms, size, -clock, rank)


@part
def tell(watches: Triggers, rank: int, tag: int, sign: int) -> None:
    """Note that a row entered (1) or left (-1) the answer of one watch."""
    i = watches.sizes[EVENTS]
    watches.events[WHO, i] = watches.table[NAME, rank]
    watches.events[WHAT, i] = tag
    watches.events[SIGN, i] = sign
    watches.sizes[EVENTS] = i + 1


@part
def tell_stabbed(watches: Triggers, left: int, right: int, tag: int, sign: int) -> None:
    """Tell the watches whose cut is in ``left <= cut < right``.  O(log watches + told)."""
    if left >= right:
        return
    clock = watches.sizes[CLOCK]
    rank = 0 if right > clock else _first_before(watches, right)
    while rank < watches.table.shape[1] and left <= before(clock, watches.table[LENGTH, rank]):
        tell(watches, rank, tag, sign)
        rank += 1


@part
def _first_before(watches: Triggers, label: int) -> int:
    """The first watch whose cut is before a label; the number of watches, if none is."""
    clock = watches.sizes[CLOCK]
    low, high = 0, watches.table.shape[1]
    while low < high:
        middle = (low + high) // 2
        if before(clock, watches.table[LENGTH, middle]) < label:
            high = middle
        else:
            low = middle + 1
    return low


@part
def events_left(watches: Triggers) -> int:
    """Room for so many more events."""
    return watches.events.shape[1] - watches.sizes[EVENTS]
