"""MinTopK: predict the answer of every future window, and keep a row only while it is in one of them.

Section 2.1 of "SAP: Improving Continuous Top-K Queries over Streaming Data" (Zhu, Wang, Yang, Zheng,
Wang, TKDE 2017), after its reference [25].  The predicted result of a future window is the k best of
the rows at hand that will still count then.  The candidates are the union of all predicted results, in
one list from best to worst; each window has a lower-bound pointer, lbp, to the worst row of its result.
A new row is compared with the lbp of the last window first.  It enters the results of all windows whose
lbp it beats, which are the last so many, for lbps do not get better with time; each of these lbps moves
up one row, and a row that has left the result of its own last window is a candidate no more.

Windows between which no row ends have the same result, so there is one pointer for each *end* that
rows of the window have, n / s of them.  A row costs one comparison, or O(lbps moved + rows passed on
the way); its place in the list is found by binary search among the lbps, then by walking between two
of them, from both sides.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from skytide.algorithms.sliding.kept import enlarged
from skytide.algorithms.sliding.protocol import Floats, Ints
from skytide.algorithms.topk.ranking import NEVER, ROW, TURN, Ranking, bytes_of, start_of
from skytide.algorithms.topk.slides import end
from skytide.kernel import kernel, part

POSITION, END, BETTER, WORSE, MATE, FELLOW = 0, 1, 2, 3, 4, 5  # columns of ``rows``
ENDS, LBP, COUNT, FIRST_ROW = 0, 1, 2, 3  # columns of ``windows``
LIVE, BEST, WORST, FIRST, STOP = 0, 1, 2, 3, 4  # what ``sizes`` holds
NEED_SLOTS, NEED_WINDOWS = 1, 2


class Predicted(NamedTuple):
    """The candidates in a list from BEST to WORST, and the windows FIRST to STOP that expect them."""

    rows: Ints  # (slots, 6): slots of the neighbours in the list, and of those that end together; or -1
    scores: Floats  # (slots,)
    free: Ints  # (slots,): slots; those from LIVE on are unused
    windows: (
        Ints  # (windows, 4): ENDS, the clock at which its oldest rows end; LBP, a slot; COUNT, the
    )
    # rows of its result; FIRST_ROW, one of the candidates that end at ENDS
    sizes: Ints
    asked: Ints  # k, the length of the window or 0, the slide


def _empty(slots: int, windows: int, k: int, length: int, every: int) -> Predicted:
    return Predicted(
        np.zeros((slots, 6), np.int64),
        np.zeros(slots),
        np.arange(slots),
        np.zeros((windows, 4), np.int64),
        np.array([0, -1, -1, 0, 0]),
        np.array([k, length, every]),
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
        windows = self._state.windows[self._state.sizes[FIRST] : self._state.sizes[STOP]]
        return {
            int(ends): expected(self._state, ends, self._k).tolist() for ends in windows[:, ENDS]
        }

    def stats(self) -> dict[str, Any]:
        """``pointers``: the windows that have one."""
        pointers = int(self._state.sizes[STOP] - self._state.sizes[FIRST])
        return {"candidates": len(self), "pointers": pointers, "bytes": bytes_of(self._state)}

    def check(self) -> None:
        """Raise AssertionError unless pointers, counts and candidates are what they should be."""
        state, union = self._state, set()
        for window in state.windows[state.sizes[FIRST] : state.sizes[STOP]]:
            result = expected(state, window[ENDS], self._k)
            assert window[COUNT] == len(result)
            assert len(result) == 0 or state.rows[window[LBP], POSITION] == result[-1]
            union.update(result.tolist())
        assert union == set(self.kept().tolist())

    def _empty(self) -> Predicted:
        return _empty(64, 16, self._k, self._length or 0, self._every)

    def _feed(self, *arrays: Any) -> int:
        return feed(self._state, *arrays)

    def _grow(self, need: int) -> None:
        old = self._state
        slots, windows = len(old.free), len(old.windows)
        if need == NEED_SLOTS:
            new = enlarged(old, _empty(2 * slots, windows, *old.asked))
            new.free[slots:] = np.arange(slots, 2 * slots)
        else:
            new = enlarged(old, _empty(slots, 2 * windows, *old.asked))
        self._state = new

    def _best(self) -> Ints:
        return expected(self._state, NEVER, self._k)


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
    length, every, sizes = state.asked[1], state.asked[2], state.sizes
    for turn in range(done[TURN], clocks.shape[0]):
        done[TURN] = turn
        start = start_of(clocks[turn], length)
        slide(state, clocks[turn])
        last = state.windows[sizes[STOP] - 1, ENDS] if sizes[STOP] > sizes[FIRST] else NEVER
        for row in range(done[ROW], scores.shape[0]):
            if labels[row] > clocks[turn]:
                break
            if labels[row] > start:
                if labels[row] > last - length:  # else it ends with the row before
                    last = end(labels[row], length, every) if length > 0 else -NEVER
                    if not open_window(state, last):
                        return NEED_WINDOWS
                if qualifies(state, scores[row]):
                    if sizes[LIVE] == state.free.shape[0]:
                        return NEED_SLOTS
                    insert(state, scores[row], positions[row], last)
            done[ROW] = row + 1
        if sizes[STOP] > sizes[FIRST]:
            told[turn] = state.rows[state.windows[sizes[FIRST], LBP], POSITION]
    return 0


@part
def slide(state: Predicted, clock: int) -> None:
    """Drop the windows that are past, with the candidates that ended with them."""
    sizes = state.sizes
    while sizes[FIRST] < sizes[STOP] and state.windows[sizes[FIRST], ENDS] <= clock:
        slot = state.windows[sizes[FIRST], FIRST_ROW]
        while slot >= 0:
            fellow = state.rows[slot, FELLOW]
            leave_list(state, slot)
            slot = fellow
        sizes[FIRST] += 1


@part
def open_window(state: Predicted, ends: int) -> bool:
    """A window after all others; False if there is no room."""
    sizes, windows = state.sizes, state.windows
    if sizes[STOP] > sizes[FIRST] and windows[sizes[STOP] - 1, ENDS] == ends:
        return True
    if sizes[STOP] == windows.shape[0]:
        if sizes[FIRST] <= sizes[STOP] // 2:
            return False
        for at in range(sizes[FIRST], sizes[STOP]):
            for column in range(4):
                windows[at - sizes[FIRST], column] = windows[at, column]
        sizes[STOP] -= sizes[FIRST]
        sizes[FIRST] = 0
    window = windows[sizes[STOP]]
    window[ENDS], window[LBP], window[COUNT], window[FIRST_ROW] = ends, -1, 0, -1
    sizes[STOP] += 1
    return True


@part
def qualifies(state: Predicted, score: float) -> bool:
    """Is a new row of the last window in its result?  Of equal scores the younger is better."""
    window = state.windows[state.sizes[STOP] - 1]
    return window[COUNT] < state.asked[0] or score <= state.scores[window[LBP]]


@part
def insert(state: Predicted, score: float, position: int, ends: int) -> None:
    """Make a row a candidate, and move the pointers of all windows that it enters."""
    better = place_of(state, score)
    slot = state.free[state.sizes[LIVE]]
    state.sizes[LIVE] += 1
    state.scores[slot] = score
    state.rows[slot, POSITION], state.rows[slot, END] = position, ends
    enter_list(state, slot, better)
    leaving = -1
    for at in range(state.sizes[STOP] - 1, state.sizes[FIRST] - 1, -1):
        window = state.windows[at]
        lbp = window[LBP]
        if leaving >= 0 and lbp != leaving:
            leave(state, leaving)
            leaving = -1
        if window[COUNT] < state.asked[0]:
            window[COUNT] += 1
            if lbp < 0 or state.scores[lbp] < score:
                window[LBP] = slot
        elif state.scores[lbp] < score:
            break
        else:
            if state.rows[lbp, END] == window[ENDS]:
                leaving = lbp  # once no earlier window points to it either
            window[LBP] = next_better(state, lbp, window[ENDS])
    if leaving >= 0:
        leave(state, leaving)


@part
def next_better(state: Predicted, slot: int, ends: int) -> int:
    """The next better candidate that does not end before this."""
    slot = state.rows[slot, BETTER]
    while state.rows[slot, END] < ends:
        slot = state.rows[slot, BETTER]
    return slot


@part
def place_of(state: Predicted, score: float) -> int:
    """The last candidate that is better than a new row of this score, or -1."""
    better, worse = pointers_around(state, score)
    while True:
        after = state.rows[better, WORSE] if better >= 0 else state.sizes[BEST]
        if after < 0 or state.scores[after] >= score:
            return better
        before = state.rows[worse, BETTER] if worse >= 0 else state.sizes[WORST]
        if state.scores[before] < score:
            return before
        better, worse = after, before


@part
def pointers_around(state: Predicted, score: float) -> tuple[int, int]:
    """The lbps next to a score, of windows with k rows: a better one and one that is not, or -1."""
    sizes, windows = state.sizes, state.windows
    low, high = sizes[FIRST], sizes[STOP]  # lbps before low are better; windows from high on are
    better, worse = -1, -1  # short of rows, or have an lbp that is no better
    while low < high:
        middle = (low + high) // 2
        if windows[middle, COUNT] < state.asked[0]:
            high = middle
        elif state.scores[windows[middle, LBP]] < score:
            better, low = windows[middle, LBP], middle + 1
        else:
            worse, high = windows[middle, LBP], middle
    return better, worse


# --------------------------------------------------------------------------------------
# The list of candidates


@part
def enter_list(state: Predicted, slot: int, better: int) -> None:
    """Put a row right behind another, or with -1 before all; and to those that end with it."""
    rows, sizes = state.rows, state.sizes
    worse = rows[better, WORSE] if better >= 0 else sizes[BEST]
    rows[slot, BETTER], rows[slot, WORSE] = better, worse
    if better >= 0:
        rows[better, WORSE] = slot
    else:
        sizes[BEST] = slot
    if worse >= 0:
        rows[worse, BETTER] = slot
    else:
        sizes[WORST] = slot
    window = state.windows[sizes[STOP] - 1]
    rows[slot, MATE], rows[slot, FELLOW] = -1, window[FIRST_ROW]
    if window[FIRST_ROW] >= 0:
        rows[window[FIRST_ROW], MATE] = slot
    window[FIRST_ROW] = slot


@part
def leave(state: Predicted, slot: int) -> None:
    """Take a row from those that end with it, and from the list."""
    mate, fellow = state.rows[slot, MATE], state.rows[slot, FELLOW]
    if fellow >= 0:
        state.rows[fellow, MATE] = mate
    if mate >= 0:
        state.rows[mate, FELLOW] = fellow
    else:
        state.windows[window_of(state, state.rows[slot, END]), FIRST_ROW] = fellow
    leave_list(state, slot)


@part
def window_of(state: Predicted, ends: int) -> int:
    """The window that is no more at this clock."""
    low, high = state.sizes[FIRST], state.sizes[STOP] - 1
    while low < high:
        middle = (low + high) // 2
        if state.windows[middle, ENDS] < ends:
            low = middle + 1
        else:
            high = middle
    return low


@part
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
