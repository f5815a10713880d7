"""SMA: index the window by a grid, keep the best rows beyond those asked for, and recompute when short.

Section 2.1 of "SAP: Improving Continuous Top-K Queries over Streaming Data" (Zhu, Wang, Yang, Zheng and
Wang, TKDE 2017), after its references [17] and [26].  Every row of the window hangs in a cell of a grid
over the scores, cells holding about equally many rows when they are laid out, and being laid out anew
when they no longer do.  The candidates are the k-skyband of the rows that are no worse than a *bar*:
new rows under the bar join it, counting for the rows they beat, and nothing else has to be done while k
rows are left.  When fewer are, the k_max = 2 k best rows of the window are looked up in the grid, cell
by cell from the best, and the bar is the last of them.  If candidates become more than 2 k_max, the bar
is lowered instead to the k_max-th.

A row costs O(log cells) for the grid and, under the bar, a place in the skyband; recomputing costs what
the best cells hold.  Falling scores make that necessary every k rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skytide.algorithms.sliding.protocol import Floats, Ints
from skytide.algorithms.topk.kskyband import with_more_slots
from skytide.algorithms.topk.ranking import NEVER, ROW, TURN, Ranking, bytes_of, start_of
from skytide.kernel import kernel, part
from skytide.structures import ranked, scored
from skytide.structures.ranked import LIVE, POSITION, Ranked, empty_ranked
from skytide.structures.scored import Scored

ROWS_A_CELL = 32
# What ``sizes`` holds: rows so far that ended, that came, that came since the cells were laid out; how
# often candidates were looked up, and how many so far.
HEAD, TAIL, SINCE, RECOMPUTED, FOUND = 0, 1, 2, 3, 4
FIRST, LAST = 0, 1  # columns of ``cells``
NEED_ROWS, NEED_SLOTS, NEED_CELLS = 1, 2, 3


class Window(NamedTuple):
    """All rows, in a ring: row number r, counting from 0, stands at r modulo the room."""

    scores: Floats
    positions: Ints
    labels: Ints
    next: Ints  # the number of the next row of its cell, or -1
    cells: Ints  # (cells, 2): numbers of the oldest and the youngest row, or -1
    bounds: Floats  # (cells - 1,): where cells end, ascending; equal scores go to the better cell
    sizes: Ints


class Grid(NamedTuple):
    """All of it."""

    window: Window
    ranked: Ranked
    best: (
        Scored  # the k_max best rows while they are looked up: a heap of negated scores and numbers
    )
    bar: Floats  # (1,): rows no worse than this are candidates
    asked: Ints  # k, the length of the window or 0


def _window(room: int) -> Window:
    cells = room // ROWS_A_CELL + 2
    positions, labels, following = (np.zeros(room, np.int64) for _ in range(3))
    lists, bounds = np.full((cells, 2), -1), np.full(cells - 1, np.inf)
    sizes = np.zeros(5, np.int64)
    return Window(np.zeros(room), positions, labels, following, lists, bounds, sizes)


class SMA(Ranking):
    """A grid over the window, and the best rows of it.

    >>> recent = SMA(dims=1, k=2, newest=True, length=4)
    >>> recent.advance(5)
    >>> recent.push(np.array([[1.0], [5.0], [2.0], [3.0], [4.0]]), *2 * [np.arange(1, 6)])
    array([1, 2, 3, 4])
    >>> recent.answer(4), recent.kept()
    (array([3, 4]), array([2, 3, 4, 5]))
    """

    _state: Grid

    def __len__(self) -> int:
        sizes = self._state.window.sizes
        return int(sizes[TAIL] - sizes[HEAD])

    def kept(self) -> Ints:
        """The window."""
        window = self._state.window
        rows = np.arange(window.sizes[HEAD], window.sizes[TAIL]) % len(window.scores)
        return window.positions[rows]

    def stats(self) -> dict[str, Any]:
        """``cells`` of the grid, and how often candidates were ``recomputed``."""
        state = self._state
        return {
            "candidates": int(state.ranked.sizes[LIVE]),
            "cells": len(state.window.cells),
            "recomputed": int(state.window.sizes[RECOMPUTED]),
            "bytes": bytes_of(state),
        }

    def _empty(self) -> Grid:
        asked = np.array([self._k, self._length or 0])
        slots = empty_ranked(4 * self._k + 64)
        best = Scored(np.zeros(2 * self._k), np.zeros(2 * self._k, np.int64))
        return Grid(_window(64), slots, best, np.full(1, np.inf), asked)

    def _feed(self, *arrays: Any) -> int:
        return feed(self._state, *arrays)

    def _grow(self, need: int) -> None:
        if need == NEED_SLOTS:
            self._state = self._state._replace(ranked=with_more_slots(self._state.ranked))
            return
        old = self._state.window
        room = len(old.scores) * (2 if need == NEED_ROWS else 1)
        head, tail = old.sizes[HEAD], old.sizes[TAIL]
        new, rows = _window(room), np.arange(head, tail) % len(old.scores)
        for name in ("scores", "positions", "labels"):
            getattr(new, name)[: tail - head] = getattr(old, name)[rows]
        new.sizes[TAIL] = tail - head
        sample = np.sort(new.scores[: tail - head])
        if len(sample):
            new.bounds[:] = sample[np.arange(1, len(new.cells)) * len(sample) // len(new.cells)]
        hang_all(new)
        new.sizes[RECOMPUTED] = old.sizes[RECOMPUTED]
        self._state = self._state._replace(window=new)

    def _best(self) -> Ints:
        return best(self._state)


@kernel
def feed(
    grid: Grid,
    scores: Floats,
    positions: Ints,
    labels: Ints,
    clocks: Ints,
    told: Ints,
    done: Ints,
) -> int:
    """See ``ranking``."""
    return go_on(grid, scores, positions, labels, clocks, told, done)


@part
def go_on(
    grid: Grid,
    scores: Floats,
    positions: Ints,
    labels: Ints,
    clocks: Ints,
    told: Ints,
    done: Ints,
) -> int:
    """The work of ``feed``: a part, or references to arrays would be counted for each row."""
    window, sizes = grid.window, grid.window.sizes
    for turn in range(done[TURN], clocks.shape[0]):
        done[TURN] = turn
        start = start_of(clocks[turn], grid.asked[1])
        expire(window, start)
        ranked.expire(grid.ranked, start)
        for row in range(done[ROW], scores.shape[0]):
            if labels[row] > clocks[turn]:
                break
            if labels[row] > start:
                if sizes[TAIL] - sizes[HEAD] == window.scores.shape[0]:
                    return NEED_ROWS
                if ranked.full(grid.ranked):
                    return NEED_SLOTS
                hang(window, scores[row], positions[row], labels[row])
                if scores[row] <= grid.bar[0]:
                    join(grid, scores[row], positions[row], labels[row])
            done[ROW] = row + 1
        if grid.ranked.sizes[LIVE] < min(grid.asked[0], sizes[TAIL] - sizes[HEAD]):
            need = recompute(grid)
            if need:
                return need
        worst = ranked.slot_at(grid.ranked, grid.asked[0] - 1)
        told[turn] = grid.ranked.rows[worst, POSITION] if worst >= 0 else -1
    return 0


# --------------------------------------------------------------------------------------
# Candidates


@part
def join(grid: Grid, score: float, position: int, label: int) -> None:
    """Make a new row a candidate; lower the bar if there are far too many."""
    most = 2 * grid.asked[0]
    ranked.insert(grid.ranked, score, position, label, grid.asked[0])
    if grid.ranked.sizes[LIVE] > 2 * most:
        ranked.cut(grid.ranked, most)
        grid.bar[0] = grid.ranked.marks[ranked.slot_at(grid.ranked, most - 1)]


@part
def recompute(grid: Grid) -> int:
    """Make the k_max best rows of the window the candidates; what is lacking, or 0."""
    window, best_rows, most = grid.window, grid.best, grid.best.scores.shape[0]
    ranked.cut(grid.ranked, 0)
    window.sizes[FOUND] = 0
    looked_at = 0
    for cell in range(window.cells.shape[0]):
        if window.sizes[FOUND] == most:
            break
        looked_at += look_through(window, cell, best_rows)
    if looked_at > 4 * most + 8 * ROWS_A_CELL and crowded(window):
        return NEED_CELLS
    window.sizes[RECOMPUTED] += 1
    found = window.sizes[FOUND]
    grid.bar[0] = -best_rows.scores[0] if found == most else np.inf
    for i in range(found):
        best_rows.rows[i] = -best_rows.rows[i]
    sort_ages(best_rows.rows, found)
    for i in range(found):
        at = best_rows.rows[i] % window.scores.shape[0]
        ranked.insert(
            grid.ranked, window.scores[at], window.positions[at], window.labels[at], grid.asked[0]
        )
    return 0


@part
def look_through(window: Window, cell: int, best_rows: Scored) -> int:
    """Offer the rows of a cell to the best so far; how many they were."""
    number, count, sizes = window.cells[cell, FIRST], 0, window.sizes
    while number >= 0:
        at = number % window.scores.shape[0]
        score = window.scores[at]
        if sizes[FOUND] < best_rows.scores.shape[0]:
            sizes[FOUND] = scored.push(best_rows, sizes[FOUND], -score, -number)
        elif score <= -best_rows.scores[0]:  # within a cell the younger come later
            scored.sink(best_rows, sizes[FOUND], 0, -score, -number)
        number = window.next[at]
        count += 1
    return count


@part
def crowded(window: Window) -> bool:
    """Have enough rows come since the cells were laid out for it to be worth doing again?"""
    return 2 * window.sizes[SINCE] >= window.sizes[TAIL] - window.sizes[HEAD]


@part
def sort_ages(ages: Ints, count: int) -> None:
    """Shell sort."""
    gap = count // 2
    while gap > 0:
        for i in range(gap, count):
            age, at = ages[i], i
            while at >= gap and ages[at - gap] > age:
                ages[at] = ages[at - gap]
                at -= gap
            ages[at] = age
        gap //= 2


# --------------------------------------------------------------------------------------
# The grid


@part
def cell_of(window: Window, score: float) -> int:
    """The cell a score belongs to.  O(log cells)."""
    low, high = 0, window.bounds.shape[0]
    while low < high:
        middle = (low + high) // 2
        if window.bounds[middle] < score:
            low = middle + 1
        else:
            high = middle
    return low


@part
def hang(window: Window, score: float, position: int, label: int) -> None:
    """Add a row to the window."""
    number = window.sizes[TAIL]
    at = number % window.scores.shape[0]
    window.scores[at], window.positions[at], window.labels[at] = score, position, label
    window.sizes[TAIL] += 1
    window.sizes[SINCE] += 1
    hang_up(window, number)


@part
def hang_up(window: Window, number: int) -> None:
    """Make a row the youngest of its cell."""
    room = window.scores.shape[0]
    cell = window.cells[cell_of(window, window.scores[number % room])]
    window.next[number % room] = -1
    if cell[FIRST] < 0:
        cell[FIRST] = number
    else:
        window.next[cell[LAST] % room] = number
    cell[LAST] = number


@kernel
def hang_all(window: Window) -> None:
    """Put all rows into cells, none of which holds any."""
    for number in range(window.sizes[HEAD], window.sizes[TAIL]):
        hang_up(window, number)


@part
def expire(window: Window, start: int) -> None:
    """Forget the rows with labels up to ``start``, each the oldest of its cell."""
    sizes, room = window.sizes, window.scores.shape[0]
    while sizes[HEAD] < sizes[TAIL] and window.labels[sizes[HEAD] % room] <= start:
        at = sizes[HEAD] % room
        cell = window.cells[cell_of(window, window.scores[at])]
        cell[FIRST] = window.next[at]
        if cell[FIRST] < 0:
            cell[LAST] = -1
        sizes[HEAD] += 1


@kernel
def best(grid: Grid) -> Ints:
    """The positions of the answer."""
    out = np.empty(min(grid.asked[0], grid.ranked.sizes[LIVE]), np.int64)
    return out[: ranked.best_after(grid.ranked, NEVER, grid.asked[0], out)].copy()
