"""MinTopK: predict the answer of every future window, and keep a row only while it is in one of them.

Section 2.1 of "SAP: Improving Continuous Top-K Queries over Streaming Data" (Zhu, Wang, Yang, Zheng,
Wang, TKDE 2017), after its reference [25].  The predicted result of a future window is the k best of
the rows at hand that will still count then.  The candidates are the union of all predicted results, in
one list from best to worst; each window has a lower-bound pointer, lbp, to the worst row of its result.
A new row is compared with the lbp of the last window first.  It enters the results of all windows whose
lbp it beats, which are the last so many, for lbps do not get better with time; each of these lbps moves
up one row, and a row that has left the result of its own last window is a candidate no more.

Windows between which no row ends have the same result, so there is one pointer for each *end* that
rows of the window have, n / s of them.  A row costs one comparison, or O(log |C| + lbps moved + rows
passed on the way).  What makes these costs small:

- Rows that end together are compared with the lbp of their window 16 at a time.
- Of rows that end together only the k best can become candidates.  Where there are many more, the k-th
  best is looked for first, and those behind it are not tried.
- A row's place in the list is found by binary search among the lbps, then by walking between two of
  them, from both sides.  While that proves long, as it does where k is large and windows are few,
  there is an index of the list in blocks (``structures.sorted_slots``), in which it is O(log |C|).
- Windows with fewer than k rows, which are the last so many, have no pointer yet: all rows enter them.
- Neighbouring windows often have the same lbp, and then it is moved for all of them alike.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from skytide.algorithms.sliding.protocol import Floats, Ints
from skytide.algorithms.topk.ranking import NEVER, ROW, TURN, Ranking, bytes_of, start_of
from skytide.algorithms.topk.slides import end
from skytide.kernel import inlined, kernel, part
from skytide.structures import sorted_slots
from skytide.structures.scored import Scored, push, sink
from skytide.structures.search import first_after, first_up_to, last_under
from skytide.structures.sorted_slots import SortedSlots, empty_sorted_slots

POSITION, END, BETTER, WORSE, MATE, FELLOW = 0, 1, 2, 3, 4, 5  # columns of ``rows``
ENDS, LBP, BEFORE, FIRST_ROW = 0, 1, 2, 3  # lines of ``windows``
LIVE, BEST, WORST, TAKEN = 0, 1, 2, 3  # what ``sizes`` holds of rows,
FIRST, SHORT, STOP = 4, 5, 6  # of windows,
WALKED, INDEXED = 7, 8  # and of finding places
NEED_SLOTS, NEED_WINDOWS, NEED_ROOM, NEED_INDEX = 1, 2, 3, 4

STEPS = 24
"""So many steps of a walk, on the average, cost no more than an index.

More are put down to WALKED.  When that is what building the index costs, it is built; after so many new
candidates that this was well spent, walking is tried again.  Keeping the index at all times took twice
as long on falling scores, which walk nowhere, and half as long again at k = s = 100 on uniform ones.
"""


class Predicted(NamedTuple):
    """The candidates in a list from BEST to WORST, and the windows FIRST to STOP that expect them.

    Windows from SHORT on have fewer than k rows; TAKEN counts the rows that became candidates.  INDEXED
    is for how many more of them the index is kept; 0: there is none."""

    rows: Ints  # (slots, 6): slots of the neighbours in the list, and of those that end together; or -1
    scores: Floats  # (slots,)
    places: SortedSlots  # the list once more, while INDEXED
    free: Ints  # (slots,): slots; those from LIVE on are unused
    # ENDS, the clock at which its oldest rows end; LBP, a slot, if it has k rows; BEFORE, how many had
    # been TAKEN before its own; FIRST_ROW, one of the candidates that end at ENDS
    windows: Ints  # (4, windows)
    best: Scored  # room for a heap of the k best rows of a slide, negated, once there was need
    sizes: Ints
    asked: Ints  # k, the length of the window or 0, the slide


def _heap(rows: int) -> Scored:
    return Scored(np.zeros(rows), np.zeros(rows, np.int64))


def _empty(slots: int, windows: int, asked: Ints) -> Predicted:
    return Predicted(
        np.zeros((slots, 6), np.int64),
        np.zeros(slots),
        empty_sorted_slots(0),
        np.arange(slots),
        np.zeros((4, windows), np.int64),
        _heap(0),
        np.array([0, -1, -1, 0, 0, 0, 0, 0, 0]),
        asked,
    )


class MinTopK(Ranking):
    """The predicted results of all windows to come.

    >>> recent = MinTopK(dims=1, k=2, newest=True, length=4)
    >>> recent.advance(5)
    >>> recent.push(np.array([[1.0], [5.0], [2.0], [3.0], [4.0]]), *2 * [np.arange(1, 6)])
    array([1, 2, 3, 4])
    >>> recent.answer(4), recent.kept()
    (array([3, 4]), array([3, 4, 5]))
    """

    any_length: ClassVar[bool] = False
    _state: Predicted

    def __len__(self) -> int:
        return int(self._state.sizes[LIVE])

    def kept(self) -> Ints:
        """All candidates."""
        return np.sort(expected(self._state, NEVER, len(self)))

    def predicted(self) -> dict[int, list[int]]:
        """The results of the windows to come, best first, by the clock at which each is no more."""
        state = self._state
        windows = state.windows[ENDS, state.sizes[FIRST] : state.sizes[STOP]]
        return {int(ends): expected(state, ends, self._k).tolist() for ends in windows}

    def stats(self) -> dict[str, Any]:
        """``pointers``: the windows that have one, or will when they have k rows."""
        pointers = int(self._state.sizes[STOP] - self._state.sizes[FIRST])
        return {"candidates": len(self), "pointers": pointers, "bytes": bytes_of(self._state)}

    def check(self) -> None:
        """Raise AssertionError unless pointers, counts, candidates, index are what they should be."""
        state, union = self._state, set()
        for at in range(state.sizes[FIRST], state.sizes[STOP]):
            result = expected(state, state.windows[ENDS, at], self._k)
            if at < state.sizes[SHORT]:
                assert len(result) == self._k
                assert state.rows[state.windows[LBP, at], POSITION] == result[-1]
            else:
                assert len(result) == state.sizes[TAKEN] - state.windows[BEFORE, at] < self._k
            union.update(result.tolist())
        assert union == set(self.kept().tolist())
        if state.sizes[INDEXED] > 0:
            slots = state.places.slots[state.places.order[: state.places.used[0]]].reshape(-1)
            in_order = state.rows[slots[slots >= 0], POSITION]
            assert in_order.tolist() == expected(state, NEVER, len(self)).tolist()

    def _empty(self) -> Predicted:
        return _empty(64, 16, np.array([self._k, self._length or 0, self._every]))

    def _feed(self, *arrays: Any) -> int:
        return feed(self._state, *arrays)

    def _grow(self, need: int) -> None:
        old, slots = self._state, len(self._state.free)
        if need == NEED_SLOTS:
            self._state = old._replace(
                rows=doubled(old.rows),
                scores=doubled(old.scores),
                places=empty_sorted_slots(0),
                free=np.concatenate([old.free, np.arange(slots, 2 * slots)]),
            )
            if old.sizes[INDEXED] > 0:  # there is to be an index again at once
                old.sizes[INDEXED], old.sizes[WALKED] = 0, -NEVER
        elif need == NEED_WINDOWS:
            self._state = old._replace(windows=doubled(old.windows, axis=1))
        elif need == NEED_ROOM:
            self._state = old._replace(best=_heap(self._k))
        else:
            self._state = old._replace(places=empty_sorted_slots(slots))

    def _best(self) -> Ints:
        return expected(self._state, NEVER, self._k)


def doubled(array: Any, axis: int = 0) -> Any:
    """The same, and as many zeros behind it."""
    return np.concatenate([array, np.zeros_like(array)], axis)


@kernel
def feed(
    state: Predicted,
    scores: Floats,
    positions: Ints,
    labels: Ints,
    clocks: Ints,
    told: Ints,
    done: Ints,
) -> int:
    """See ``ranking``."""
    return go_on(state, scores, positions, labels, clocks, told, done)


@part
def go_on(
    state: Predicted,
    scores: Floats,
    positions: Ints,
    labels: Ints,
    clocks: Ints,
    told: Ints,
    done: Ints,
) -> int:
    """The work of ``feed``: a part, or references to arrays would be counted for each row."""
    length = state.asked[1]
    for turn in range(done[TURN], clocks.shape[0]):
        done[TURN] = turn
        start = start_of(clocks[turn], length)
        slide(state, clocks[turn])
        stop = first_after(labels, done[ROW], clocks[turn])
        if done[ROW] < stop and labels[done[ROW]] <= start:
            done[ROW] = first_after(labels, done[ROW], start)
        while done[ROW] < stop:
            row = done[ROW]
            if not open_window(state, labels[row]):
                return NEED_WINDOWS
            after = stop  # the first row that does not end with this one
            final = last_end(state) - length
            if labels[stop - 1] > final:
                after = first_after(labels, row, final)
            need = offer(state, scores, positions, row, after, done)
            if need:
                return need
        if state.sizes[LIVE] > 0:
            told[turn] = state.rows[worst(state), POSITION]
    return 0


@inlined
def worst(state: Predicted) -> int:
    """The slot of the worst row of the answer."""
    sizes = state.sizes
    if sizes[FIRST] < sizes[SHORT]:
        return state.windows[LBP, sizes[FIRST]]
    return sizes[WORST]


# --------------------------------------------------------------------------------------
# Windows


@inlined
def slide(state: Predicted, clock: int) -> None:
    """Drop the windows that are past, with the candidates that ended with them."""
    sizes = state.sizes
    while sizes[FIRST] < sizes[STOP] and state.windows[ENDS, sizes[FIRST]] <= clock:
        slot = state.windows[FIRST_ROW, sizes[FIRST]]
        while slot >= 0:
            fellow = state.rows[slot, FELLOW]
            leave_list(state, slot)
            slot = fellow
        sizes[FIRST] += 1
    sizes[SHORT] = max(sizes[SHORT], sizes[FIRST])


@inlined
def last_end(state: Predicted) -> int:
    """The clock at which the last window is no more, and so are the rows that came last."""
    sizes = state.sizes
    return state.windows[ENDS, sizes[STOP] - 1] if sizes[STOP] > sizes[FIRST] else NEVER


@inlined
def open_window(state: Predicted, label: int) -> bool:
    """See that the last window is that of the rows of this label; False if there is no room."""
    length, sizes, windows = state.asked[1], state.sizes, state.windows
    if label <= last_end(state) - length:
        return True
    if sizes[STOP] == windows.shape[1]:
        if sizes[FIRST] <= sizes[STOP] // 2:
            return False
        close_up(state)
    at = sizes[STOP]
    windows[ENDS, at] = end(label, length, state.asked[2]) if length > 0 else -NEVER
    windows[BEFORE, at], windows[FIRST_ROW, at] = sizes[TAKEN], -1
    sizes[STOP] += 1
    return True


@part
def close_up(state: Predicted) -> None:
    """Move all windows to the front."""
    sizes, windows = state.sizes, state.windows
    gone = sizes[FIRST]
    for at in range(gone, sizes[STOP]):
        for line in range(4):
            windows[line, at - gone] = windows[line, at]
    sizes[FIRST] = 0
    sizes[SHORT] -= gone
    sizes[STOP] -= gone


# --------------------------------------------------------------------------------------
# New rows


@inlined
def offer(
    state: Predicted, scores: Floats, positions: Ints, row: int, stop: int, done: Ints
) -> int:
    """Try rows that end together, those of the last window; what is lacking, or 0."""
    k, sizes = state.asked[0], state.sizes
    cut, at_cut = np.inf, row  # no row that is worse can be among the k best
    if stop - row >= 2 * k and sizes[SHORT] < sizes[STOP]:
        if state.best.rows.shape[0] == 0:
            return NEED_ROOM
        row, at_cut = kth_best(state.best, scores, row, stop, k)
        cut = scores[at_cut]
    while True:
        bar = cut
        if sizes[SHORT] == sizes[STOP]:
            bar = min(cut, state.scores[state.windows[LBP, sizes[STOP] - 1]])
        row = first_up_to(scores, row, stop, bar)
        done[ROW] = row
        if row == stop:
            return 0
        if scores[row] < cut or row >= at_cut:
            need = lacks(state)
            if need:
                return need
            insert(state, scores[row], positions[row])
        row += 1


@part
def kth_best(best: Scored, scores: Floats, start: int, stop: int, k: int) -> tuple[int, int]:
    """A row before which none of a stretch is among its k best, and which row is the k-th best.

    O(m + a log k) for m rows, a of which are better than the k-th best of those gone through before,
    k ln(m / k) in random order.  It begins at the end that looks better, so that sorted rows cost
    0.4-0.7 ns; to keep 2 k rows and select from them was no faster unless k is in the thousands.
    """
    if scores[stop - 1] <= scores[start]:
        for i in range(k):
            push(best, i, -scores[stop - 1 - i], 1 + i - stop)
        first, row = stop - k, last_under(scores, start, stop - k, -best.scores[0])
        while row >= start:
            sink(best, k, 0, -scores[row], -row)
            first, row = row, last_under(scores, start, row, -best.scores[0])
        return first, -best.rows[0]
    for i in range(k):
        push(best, i, -scores[start + i], -start - i)
    row = first_up_to(scores, start + k, stop, -best.scores[0])
    while row < stop:
        sink(best, k, 0, -scores[row], -row)
        row = first_up_to(scores, row + 1, stop, -best.scores[0])
    return start, -best.rows[0]


@inlined
def lacks(state: Predicted) -> int:
    """What is lacking for another candidate, or 0; the index is built if it is due."""
    sizes = state.sizes
    if sizes[LIVE] == state.free.shape[0]:
        return NEED_SLOTS
    if sizes[INDEXED] == 0 and sizes[WALKED] > sizes[LIVE]:
        if state.places.home.shape[0] == 0:
            return NEED_INDEX
        fill_index(state)
        sizes[INDEXED], sizes[WALKED] = 4 * sizes[LIVE], 0
    return 0


@inlined
def insert(state: Predicted, score: float, position: int) -> None:
    """Make a row a candidate, and move the pointers of all windows that it enters."""
    sizes, windows = state.sizes, state.windows
    last = sizes[STOP] - 1
    slot = state.free[sizes[LIVE]]
    sizes[LIVE] += 1
    sizes[TAKEN] += 1
    state.scores[slot] = score
    state.rows[slot, POSITION], state.rows[slot, END] = position, windows[ENDS, last]
    enter_list(state, slot, place_of(state, slot, score))
    at = sizes[SHORT] - 1
    while at >= sizes[FIRST]:
        lbp = windows[LBP, at]
        if state.scores[lbp] < score:
            break
        leaves = state.rows[lbp, END] == windows[ENDS, at]  # no earlier window has it either, then
        at = move_up(state, at, lbp)
        if leaves:
            leave(state, lbp)
    short = sizes[SHORT]
    if short <= last and sizes[TAKEN] - windows[BEFORE, short] == state.asked[0]:
        windows[LBP, short] = sizes[WORST]
        sizes[SHORT] += 1


@inlined
def move_up(state: Predicted, at: int, lbp: int) -> int:
    """Move the pointers to this lbp, of window ``at`` and those before it; the first other window.

    Each moves to the next better row that does not end before the window.  Where that is the very next
    row, it is so for all earlier windows too: 0.4 ns each, 16 at a time, where there are many, but
    for a few alone the test of 16 would cost more than it saves.
    """
    ends, lbps, first = state.windows[ENDS], state.windows[LBP], state.sizes[FIRST]
    better = state.rows[lbp, BETTER]
    reach = state.rows[better, END]
    while at >= first and lbps[at] == lbp and ends[at] > reach:
        slot = state.rows[better, BETTER]
        while state.rows[slot, END] < ends[at]:
            slot = state.rows[slot, BETTER]
        lbps[at] = slot
        at -= 1
    near = max(first, at - 7)
    while at >= near and lbps[at] == lbp:
        lbps[at] = better
        at -= 1
    if at >= near:
        return at
    while at - 15 >= first:
        same = True
        for i in range(16):
            same &= lbps[at - i] == lbp
        if not same:
            break
        for i in range(16):
            lbps[at - i] = better
        at -= 16
    while at >= first and lbps[at] == lbp:
        lbps[at] = better
        at -= 1
    return at


# --------------------------------------------------------------------------------------
# Places in the list


@inlined
def place_of(state: Predicted, slot: int, score: float) -> int:
    """The best candidate that is no better than a new row of this score, or -1."""
    sizes = state.sizes
    if sizes[INDEXED] == 0:
        return walk(state, score)
    if sorted_slots.full(state.places):
        fill_index(state)
    sizes[INDEXED] -= 1
    return sorted_slots.insert(state.places, slot, score)


@inlined
def walk(state: Predicted, score: float) -> int:
    """``place_of`` without the index."""
    rows, sizes = state.rows, state.sizes
    at = first_no_better(state, score)
    better = state.windows[LBP, at - 1] if at > sizes[FIRST] else -1
    worse = state.windows[LBP, at] if at < sizes[SHORT] else -1
    steps = 0
    while True:
        after = rows[better, WORSE] if better >= 0 else sizes[BEST]
        if after < 0 or state.scores[after] >= score:
            worse = after
            break
        before = rows[worse, BETTER] if worse >= 0 else sizes[WORST]
        if state.scores[before] < score:
            break
        better, worse = after, before
        steps += 1
    sizes[WALKED] = max(0, sizes[WALKED] + steps - STEPS)
    return worse


@inlined
def first_no_better(state: Predicted, score: float) -> int:
    """The first window whose lbp is no better than a score, or SHORT.

    Looked for from the last, by galloping: O(log of how many windows the row enters).
    """
    lbps, low, high, step = state.windows[LBP], state.sizes[FIRST], state.sizes[SHORT], 1
    while high - step >= low and state.scores[lbps[high - step]] >= score:
        high -= step
        step *= 2
    low = max(low, high - step)
    while low < high:
        middle = (low + high) // 2
        if state.scores[lbps[middle]] < score:
            low = middle + 1
        else:
            high = middle
    return low


@part
def fill_index(state: Predicted) -> None:
    """Put the whole list into the index.  O(|C|)."""
    sorted_slots.clear(state.places)
    slot = state.sizes[BEST]
    while slot >= 0:
        sorted_slots.append(state.places, slot, state.scores[slot])
        slot = state.rows[slot, WORSE]


# --------------------------------------------------------------------------------------
# The list of candidates


@inlined
def enter_list(state: Predicted, slot: int, worse: int) -> None:
    """Put a row right before another, or with -1 behind all; and to those that end with it."""
    rows, sizes = state.rows, state.sizes
    better = rows[worse, BETTER] if worse >= 0 else sizes[WORST]
    rows[slot, BETTER], rows[slot, WORSE] = better, worse
    if better >= 0:
        rows[better, WORSE] = slot
    else:
        sizes[BEST] = slot
    if worse >= 0:
        rows[worse, BETTER] = slot
    else:
        sizes[WORST] = slot
    last = sizes[STOP] - 1
    fellow = state.windows[FIRST_ROW, last]
    rows[slot, MATE], rows[slot, FELLOW] = -1, fellow
    if fellow >= 0:
        rows[fellow, MATE] = slot
    state.windows[FIRST_ROW, last] = slot


@inlined
def leave(state: Predicted, slot: int) -> None:
    """Take a row from those that end with it, and from the list."""
    mate, fellow = state.rows[slot, MATE], state.rows[slot, FELLOW]
    if fellow >= 0:
        state.rows[fellow, MATE] = mate
    if mate >= 0:
        state.rows[mate, FELLOW] = fellow
    else:
        state.windows[FIRST_ROW, window_of(state, state.rows[slot, END])] = fellow
    leave_list(state, slot)


@inlined
def window_of(state: Predicted, ends: int) -> int:
    """The window that is no more at this clock."""
    low, high = state.sizes[FIRST], state.sizes[STOP] - 1
    while low < high:
        middle = (low + high) // 2
        if state.windows[ENDS, middle] < ends:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def leave_list(state: Predicted, slot: int) -> None:
    """Take a row from the list; its slot is unused."""
    rows, sizes = state.rows, state.sizes
    better, worse = rows[slot, BETTER], rows[slot, WORSE]
    if better >= 0:
        rows[better, WORSE] = worse
    else:
        sizes[BEST] = worse
    if worse >= 0:
        rows[worse, BETTER] = better
    else:
        sizes[WORST] = better
    if sizes[INDEXED] > 0:
        sorted_slots.remove(state.places, slot)
    sizes[LIVE] -= 1
    state.free[sizes[LIVE]] = slot


@kernel
def expected(state: Predicted, ends: int, most: int) -> Ints:
    """The positions of so many of the best candidates that do not end before this, best first."""
    out = np.empty(min(most, state.sizes[LIVE]), np.int64)
    found, slot = 0, state.sizes[BEST]
    while slot >= 0 and found < most:
        if state.rows[slot, END] >= ends:
            out[found] = state.rows[slot, POSITION]
            found += 1
        slot = state.rows[slot, WORSE]
    return out[:found].copy()
