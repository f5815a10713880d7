"""The eager baseline: work out on arrival when a row will be in the skyline.

Y. Tao and D. Papadias, "Maintaining Sliding Window Skylines on Data Streams" (TKDE 18(3), 2006),
the eager strategy.  A new row discards all older rows that it dominates.  Whatever dominates the
new row is older, and can be discarded only by a row that discards the new row too.  So the moment
the row enters the skyline is known at once: its *skyline influence time*, when the youngest of its
dominators expires.  An event list says when rows enter DB_sky, and when they leave it by expiry.

A row has one event at a time, kept as the *label awaited*: once rows of that label expire, the row
enters (the label of its youngest dominator) or leaves (its own).  The event list is a heap.  The
event of a discarded row stays there until its turn comes or the heap is full, and does no harm:
what happens to a slot depends only on the label it awaits now.  For the same reason the order of
events that fall due together does not matter, however far the clock jumps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skytide.algorithms.sliding.lazy import (
    EVERY_BLOCK,
    FIRST_SLOTS,
    NO_LENGTH,
    OneLength,
    copy_arrays,
)
from skytide.algorithms.sliding.n_of_n import nbytes
from skytide.kernel import direct, kernel, part
from skytide.structures import flat, heap
from skytide.structures.blocks import Floats, Ints
from skytide.structures.flat import LIVE, TAIL, Flat, empty_flat
from skytide.structures.heap import ITEM, KEY

FREE, EVENTS = 0, 1  # what ``sizes`` counts: slots that are free, events in the heap
NEVER = np.iinfo(np.int64).max


class State(NamedTuple):
    """Rows by *slot*."""

    rows: Flat  # all that are kept, in arrival order
    positions: Ints  # (slots,)
    labels: Ints  # (slots,)
    in_sky: Ints  # (slots,): 1 in DB_sky, 0 in DB_rest
    awaited: Ints  # (slots,): the label whose expiry brings it in, or takes it out; NEVER if free
    events: Ints  # (2, 2 * slots): a heap of slots; the key is minus the label awaited
    free: Ints  # (slots,): stack of unused slots
    found: Ints  # (slots,): scratch: what a search has found
    sizes: Ints  # FREE, EVENTS


def empty_state(dims: int, slots: int) -> State:
    """Room for ``slots`` rows, and as many events of discarded ones."""
    return State(
        empty_flat(dims, slots),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.full(slots, NEVER, np.int64),
        np.zeros((2, 2 * slots), np.int64),
        np.arange(slots - 1, -1, -1, dtype=np.int64),
        np.zeros(slots, np.int64),
        np.array([slots, 0], np.int64),
    )


@kernel
def push(
    state: State,
    values: Floats,
    positions: Ints,
    labels: Ints,
    newest: bool,
    length: int,
    each: bool,
) -> int:
    """Add rows until all are in or the slots are used up; how many are in.

    With ``each`` the clock moves to the label of each row before it.
    """
    for i in range(positions.shape[0]):
        if each and length != NO_LENGTH:
            expire(state, labels[i] - length)
        if state.sizes[FREE] == 0:
            return i
        _arrive(state, values[i], positions[i], labels[i], newest, length == NO_LENGTH)
    return positions.shape[0]


@part
def _arrive(
    state: State, point: Floats, position: int, label: int, newest: bool, forever: bool
) -> None:
    for i in range(flat.report_dominated(state.rows, point, newest, state.found)):
        _forget(state, state.found[i])
    awaited, in_sky = label, 1
    if flat.youngest_dominators(state.rows, point, 1, EVERY_BLOCK, state.found) > 0:
        awaited, in_sky = state.labels[state.found[0]], 0
        if forever or awaited == label:  # it will not outlive its dominator
            return
    state.sizes[FREE] -= 1
    slot = state.free[state.sizes[FREE]]
    state.positions[slot] = position
    state.labels[slot] = label
    state.in_sky[slot] = in_sky
    flat.insert(state.rows, slot, label, point)
    if not forever:
        _await(state, slot, awaited)


@part
def _await(state: State, slot: int, label: int) -> None:
    """Give a row its next event."""
    state.awaited[slot] = label
    if state.sizes[EVENTS] == state.events.shape[1]:
        _renew_events(state)
        return
    state.sizes[EVENTS] = heap.push(state.events, state.sizes[EVENTS], -label, slot)


@part
def _renew_events(state: State) -> None:
    """Build the heap anew without the events of discarded rows: at least half of it."""
    size = 0
    for slot in range(state.awaited.shape[0]):
        if state.awaited[slot] != NEVER:
            size = heap.push(state.events, size, -state.awaited[slot], slot)
    state.sizes[EVENTS] = size


@kernel
def expire(state: State, horizon: int) -> None:
    """Handle the events that fall due now that rows with label <= horizon expire."""
    events = state.events
    while state.sizes[EVENTS] > 0 and -events[KEY, 0] <= horizon:
        slot = events[ITEM, 0]
        state.sizes[EVENTS] = heap.pop(events, state.sizes[EVENTS])
        if state.awaited[slot] > horizon:
            continue  # the event was that of a row now discarded
        if state.labels[slot] <= horizon:
            _forget(state, slot)
        else:
            state.in_sky[slot] = 1
            _await(state, slot, state.labels[slot])


@part
def _forget(state: State, slot: int) -> None:
    flat.remove(state.rows, slot)
    state.awaited[slot] = NEVER
    state.free[state.sizes[FREE]] = slot
    state.sizes[FREE] += 1


def grown(state: State) -> State:
    """The same rows, all slots in use, with twice the room."""
    slots, dims = len(state.labels), state.rows.blocks.points.shape[1]
    larger = empty_state(dims, 2 * slots)
    copy_arrays(state, larger)
    larger.free[:slots] = np.arange(2 * slots - 1, slots - 1, -1)
    larger.sizes[FREE] = slots
    return larger


_push, _expire = direct(push), direct(expire)


class Eager(OneLength):
    """Tao and Papadias' eager strategy, over a window of one length.

    Of equal rows all are kept, or with ``newest`` the youngest.  With a length of None nothing ever
    expires, so a row that is dominated on arrival is dropped at once, as is one that expires
    together with its youngest dominator.

    An arrival costs two scans of the kept rows, O(|R_N| d), 64 rows at a time; an event
    O(log |R_N|); the answer is read off the kept rows in O(|R_N|).

    >>> eager = Eager(dims=2, k=1, newest=False, length=3)
    >>> rows = np.array([[1.0, 3.0], [3.0, 2.0], [2.0, 4.0], [4.0, 4.0]])
    >>> eager.advance(3)
    >>> taken = eager.push(rows[:3], np.arange(1, 4), np.arange(1, 4))
    >>> eager.answer(3)
    array([1, 2])
    >>> eager.advance(4)
    >>> taken = eager.push(rows[3:], np.array([4]), np.array([4]))
    >>> eager.answer(3)
    array([2, 3])
    """

    def __init__(self, dims: int, k: int, newest: bool, length: int | None) -> None:
        super().__init__(dims, k, newest, length)
        self._state = empty_state(dims, FIRST_SLOTS)

    def _expire(self, horizon: int) -> None:
        _expire(self._state, horizon)

    def _insert(self, values: Floats, positions: Ints, labels: Ints, each: bool) -> int:
        length = NO_LENGTH if self._length is None else self._length
        return _push(self._state, values, positions, labels, self._newest, length, each)

    def _grow(self) -> None:
        self._state = grown(self._state)

    def _skyline(self) -> Ints:
        kept = self._kept_slots()
        return self._state.positions[kept[self._state.in_sky[kept] == 1]]

    def kept(self) -> Ints:
        """DB_sky and DB_rest, in arrival order."""
        return self._state.positions[self._kept_slots()]

    def stats(self) -> dict[str, Any]:
        """Sizes of the two sets, and of the event list with the events of discarded rows."""
        skyline = len(self._skyline())
        return {
            "skyline": skyline,
            "rest": int(self._state.rows.sizes[LIVE]) - skyline,
            "events": int(self._state.sizes[EVENTS]),
            "bytes": nbytes(self._state),
        }

    def _kept_slots(self) -> Ints:
        slots = self._state.rows.slots[: self._state.rows.sizes[TAIL]]
        return slots[slots >= 0]
