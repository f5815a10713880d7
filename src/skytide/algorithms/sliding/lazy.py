"""The lazy baseline: do the work when a skyline row expires.

Y. Tao and D. Papadias, "Maintaining Sliding Window Skylines on Data Streams" (TKDE 18(3), 2006),
the lazy strategy.  Two sets of rows: DB_sky, the skyline, and DB_rest, the rows that may still
become part of it.  A row that a younger row dominates is in neither.

- *Arrival.*  The new row discards what it dominates in DB_rest.  If a row of DB_sky dominates it,
  it joins DB_rest (and can itself dominate nothing in DB_sky); else it discards what it dominates
  in DB_sky and joins that.  Two or three scans.
- *Expiry* of a row of DB_sky.  Of the rows in DB_rest that it dominates, those that no row of
  DB_sky dominates now move up.  They are tried in arrival order: whatever else dominates one of
  them is older, hence has moved up before it, or lies below a row of DB_sky that dominates both.

Every row of DB_rest has an older row of DB_sky above it.  So the oldest row of all is in DB_sky: the
rows expire in arrival order, one by one, however far the clock jumps.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from skytide.algorithms.sliding.n_of_n import PRUNE_FROM, nbytes
from skytide.dominance import survivors
from skytide.kernel import direct, kernel, part, rows_for_kernels
from skytide.structures import flat
from skytide.structures.blocks import Floats, Ints
from skytide.structures.flat import LIVE, TAIL, Flat, empty_flat

ENDS = 0  # the slot that closes the chain of arrivals to a ring; never a row's
FREE = 0  # what ``sizes`` counts: slots that are free
EVERY_BLOCK = 1 << 62
NO_LENGTH = 0  # of a window from which nothing expires
FIRST_SLOTS = 256


class State(NamedTuple):
    """Rows by *slot*; ``older`` and ``younger`` chain them in arrival order."""

    sky: Flat  # in order of entry, with no labels
    rest: Flat  # in arrival order
    points: Floats  # (slots, dims)
    positions: Ints  # (slots,)
    labels: Ints  # (slots,)
    in_sky: Ints  # (slots,): 1 in DB_sky, 0 in DB_rest
    older: Ints  # (slots,)
    younger: Ints  # (slots,)
    free: Ints  # (slots,): stack of unused slots
    found: Ints  # (slots,): scratch: what a search has found
    above: Ints  # (1,): scratch: one row of DB_sky that dominates
    sizes: Ints  # FREE


def empty_state(dims: int, slots: int) -> State:
    """Room for ``slots`` - 1 rows."""
    return State(
        empty_flat(dims, slots),
        empty_flat(dims, slots),
        np.zeros((slots, dims)),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.arange(slots - 1, -1, -1, dtype=np.int64),
        np.zeros(slots, np.int64),
        np.zeros(1, np.int64),
        np.array([slots - 1], np.int64),
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
    for i in range(flat.report_dominated(state.rest, point, newest, state.found)):
        _forget(state, state.found[i])
    dominated = _below_sky(state, point)
    if dominated and forever:  # what dominates it will never expire
        return
    if not dominated:
        for i in range(flat.report_dominated(state.sky, point, newest, state.found)):
            _forget(state, state.found[i])
    slot = _take_slot(state)
    for j in range(point.shape[0]):
        state.points[slot, j] = point[j]
    state.positions[slot] = position
    state.labels[slot] = label
    state.in_sky[slot] = not dominated
    if dominated:
        flat.insert(state.rest, slot, label, point)
    else:
        flat.insert(state.sky, slot, 0, point)


@part
def _below_sky(state: State, point: Floats) -> bool:
    return flat.youngest_dominators(state.sky, point, 1, EVERY_BLOCK, state.above) > 0


@kernel
def expire(state: State, horizon: int) -> None:
    """Drop the rows with label <= horizon."""
    while True:
        oldest = state.younger[ENDS]
        if oldest == ENDS or state.labels[oldest] > horizon:
            return
        point = state.points[oldest]
        _forget(state, oldest)
        count = flat.report_dominated(state.rest, point, False, state.found)
        _move_up(state, count, horizon)


@part
def _move_up(state: State, count: int, horizon: int) -> None:
    """Of the first ``count`` slots found in DB_rest, in arrival order, move up those that may."""
    for i in range(count):
        slot = state.found[i]
        if state.labels[slot] <= horizon:  # it expires as well: no use in trying it
            _forget(state, slot)
        elif not _below_sky(state, state.points[slot]):
            flat.remove(state.rest, slot)
            flat.insert(state.sky, slot, 0, state.points[slot])
            state.in_sky[slot] = 1


@part
def _take_slot(state: State) -> int:
    """A free slot, chained in as the youngest."""
    state.sizes[FREE] -= 1
    slot = state.free[state.sizes[FREE]]
    before = state.older[ENDS]
    state.younger[before] = slot
    state.older[slot] = before
    state.younger[slot] = ENDS
    state.older[ENDS] = slot
    return slot


@part
def _forget(state: State, slot: int) -> None:
    flat.remove(state.sky if state.in_sky[slot] else state.rest, slot)
    before, after = state.older[slot], state.younger[slot]
    state.younger[before] = after
    state.older[after] = before
    state.free[state.sizes[FREE]] = slot
    state.sizes[FREE] += 1


def grown(state: State) -> State:
    """The same rows, all slots in use, with twice the room."""
    slots, dims = state.points.shape
    larger = empty_state(dims, 2 * slots)
    copy_arrays(state, larger)
    larger.free[:slots] = np.arange(2 * slots - 1, slots - 1, -1)
    larger.sizes[FREE] = slots
    return larger


def copy_arrays(source: Any, target: Any) -> None:
    """Copy tuples of arrays into the fore part of larger ones."""
    for one, other in zip(source, target, strict=True):
        if isinstance(one, np.ndarray):
            other[tuple(map(slice, one.shape))] = one
        else:
            copy_arrays(one, other)


_push, _expire = direct(push), direct(expire)


class OneLength:
    """What both of Tao and Papadias' strategies share: the skyline of a window of one length."""

    any_length: ClassVar[bool] = False
    any_k: ClassVar[bool] = False
    history: ClassVar[bool] = False

    def __init__(self, dims: int, k: int, newest: bool, length: int | None) -> None:
        if k != 1:
            raise ValueError(f"{type(self).__name__} finds skylines, k = 1, not k = {k}")
        self._newest, self._length = newest, length
        self._horizon = np.iinfo(np.int64).min  # the youngest label that has expired

    def advance(self, clock: int) -> None:
        """Move the clock and expire."""
        if self._length is not None:
            self._horizon = clock - self._length
            self._expire(self._horizon)

    def push(self, values: Floats, positions: Ints, labels: Ints) -> Ints:
        """Add a batch, pruned against itself first: what a younger row of the batch beats would be
        discarded before anyone can ask for it."""
        values, positions, labels = rows_for_kernels(values, positions, labels)
        expired = int(np.searchsorted(labels, self._horizon, side="right"))
        chosen = np.arange(expired, len(labels))
        if len(chosen) >= PRUNE_FROM:
            chosen = expired + survivors(values[expired:], 1, self._newest)
        self._push(values[chosen], positions[chosen], labels[chosen], False)
        return chosen

    def push_each(self, values: Floats, positions: Ints, labels: Ints) -> None:
        """Add rows one by one, the clock moving with each: the strategy as printed."""
        self._push(*rows_for_kernels(values, positions, labels), True)
        if self._length is not None and len(labels):
            self._horizon = int(labels[-1]) - self._length

    def _push(self, values: Floats, positions: Ints, labels: Ints, each: bool) -> None:
        done = 0
        while done < len(labels):
            done += self._insert(values[done:], positions[done:], labels[done:], each)
            if done < len(labels):
                self._grow()

    def answer(self, length: int | None) -> Ints:
        """DB_sky, in arrival order; ``length`` can only be the window's own."""
        if length != self._length:
            raise ValueError(f"the window has length {self._length}, it cannot answer {length}")
        return self._skyline()

    def __len__(self) -> int:
        return len(self.kept())

    def kept(self) -> Ints:
        """DB_sky and DB_rest, in arrival order."""
        raise NotImplementedError

    def _expire(self, horizon: int) -> None:
        raise NotImplementedError

    def _insert(self, values: Floats, positions: Ints, labels: Ints, each: bool) -> int:
        raise NotImplementedError

    def _grow(self) -> None:
        raise NotImplementedError

    def _skyline(self) -> Ints:
        raise NotImplementedError


class Lazy(OneLength):
    """Tao and Papadias' lazy strategy, over a window of one length.

    Of equal rows all are kept, or with ``newest`` the youngest.  With a length of None nothing ever
    expires, so a row that is dominated on arrival is dropped at once.

    An arrival costs O((|DB_sky| + |DB_rest|) d), an expiry O(|DB_rest| d) and O(|DB_sky| d) for
    each candidate, all of it scanned 64 rows at a time; the answer O(|DB_sky| log |DB_sky|).

    >>> lazy = Lazy(dims=2, k=1, newest=False, length=3)
    >>> rows = np.array([[1.0, 3.0], [3.0, 2.0], [2.0, 4.0], [4.0, 4.0]])
    >>> lazy.advance(3)
    >>> taken = lazy.push(rows[:3], np.arange(1, 4), np.arange(1, 4))
    >>> lazy.answer(3)
    array([1, 2])
    >>> lazy.advance(4)
    >>> taken = lazy.push(rows[3:], np.array([4]), np.array([4]))
    >>> lazy.answer(3)
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
        return np.sort(self._positions(self._state.sky))

    def kept(self) -> Ints:
        """DB_sky and DB_rest, in arrival order."""
        both = self._positions(self._state.sky), self._positions(self._state.rest)
        return np.sort(np.concatenate(both))

    def stats(self) -> dict[str, Any]:
        """Sizes of the two sets."""
        return {
            "skyline": int(self._state.sky.sizes[LIVE]),
            "rest": int(self._state.rest.sizes[LIVE]),
            "bytes": nbytes(self._state),
        }

    def _positions(self, rows: Flat) -> Ints:
        slots = rows.slots[: rows.sizes[TAIL]]
        return self._state.positions[slots[slots >= 0]]
