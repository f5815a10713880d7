"""The baseline without ideas: keep the window's rows, work the answer out anew when asked.

It costs nothing to maintain and can be asked anything.  What it is worth depends on the static
algorithm: ``RecomputeSFS`` takes the fastest we have, ``RecomputeKLP`` the asymptotically best.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from skytide.algorithms.static.klp import skyline_klp
from skytide.algorithms.static.sfs import skyline_sfs
from skytide.structures.blocks import Floats, Ints

FIRST_ROOM = 1024


class RecomputeSFS:
    """All rows of the window, and sort-filter-skyline over those that are asked about.

    A push copies the rows in and, when the room is used up, moves what is left of the window to the
    front of an array at least twice as large as that: O(d) a row.  An answer costs what
    ``skyline_sfs`` does.

    >>> recent = RecomputeSFS(dims=2, k=1, newest=False, length=3)
    >>> rows = np.array([[1.0, 3.0], [3.0, 2.0], [2.0, 4.0], [4.0, 4.0]])
    >>> recent.advance(4)
    >>> recent.push(rows, np.arange(1, 5), np.arange(1, 5))
    array([1, 2, 3])
    >>> recent.answer(3), recent.answer(2), recent.answer_between(0, 3)
    (array([2, 3]), array([3]), array([2, 3]))
    """

    any_length: ClassVar[bool] = True
    any_k: ClassVar[bool] = True
    history: ClassVar[bool] = True

    def __init__(self, dims: int, k: int, newest: bool, length: int | None) -> None:
        self._k, self._newest, self._length = k, newest, length
        self._values = np.empty((FIRST_ROOM, dims))
        self._facts = np.empty((2, FIRST_ROOM), np.int64)  # positions, labels
        self._rows = slice(0, 0)
        self._clock = 0

    def advance(self, clock: int) -> None:
        """Move the clock and leave behind what it has passed."""
        self._clock = clock
        if self._length is not None:
            self._rows = slice(self._first_after(clock - self._length), self._rows.stop)

    def push(self, values: Floats, positions: Ints, labels: Ints) -> Ints:
        """Add the rows that the clock has not yet passed."""
        horizon = None if self._length is None else self._clock - self._length
        passed = 0 if horizon is None else int(np.searchsorted(labels, horizon, side="right"))
        end = self._rows.stop + len(labels) - passed
        if end > len(self._values):
            self._make_room(len(labels))
            end = self._rows.stop + len(labels) - passed
        self._values[self._rows.stop : end] = values[passed:]
        self._facts[:, self._rows.stop : end] = positions[passed:], labels[passed:]
        self._rows = slice(self._rows.start, end)
        return np.arange(passed, len(labels))

    def _make_room(self, more: int) -> None:
        """Move the window to the front of arrays with room for it twice, and for what comes."""
        values, facts = self._values[self._rows], self._facts[:, self._rows]
        size = len(values)
        room = max(FIRST_ROOM, 2 * size + more)
        self._values, self._facts = np.empty((room, values.shape[1])), np.empty((2, room), np.int64)
        self._values[:size], self._facts[:, :size] = values, facts
        self._rows = slice(0, size)

    def answer(self, length: int | None) -> Ints:
        """The positions, ascending, of the answer over rows with ``label > clock - length``."""
        start = self._rows.start if length is None else self._first_after(self._clock - length)
        return self._among(slice(start, self._rows.stop))

    def answer_between(self, after: int, upto: int) -> Ints:
        """The positions, ascending, of the answer over rows with ``after < label <= upto``."""
        return self._among(slice(self._first_after(after), self._first_after(upto)))

    def _first_after(self, label: int) -> int:
        labels = self._facts[1, self._rows]
        return self._rows.start + int(np.searchsorted(labels, label, side="right"))

    def _among(self, rows: slice) -> Ints:
        return self._facts[0, rows][self._skyline(self._values[rows])]

    def _skyline(self, values: Floats) -> Ints:
        return skyline_sfs(values, self._k, self._newest)

    def __len__(self) -> int:
        return int(self._rows.stop - self._rows.start)

    def kept(self) -> Ints:
        """The positions of all rows of the window."""
        return self._facts[0, self._rows].copy()

    def stats(self) -> dict[str, Any]:
        """How much memory the window takes."""
        return {"kept": len(self), "bytes": self._values.nbytes + self._facts.nbytes}


class RecomputeKLP(RecomputeSFS):
    """The same with Kung, Luccio and Preparata's divide and conquer; skylines only."""

    any_k: ClassVar[bool] = False

    def __init__(self, dims: int, k: int, newest: bool, length: int | None) -> None:
        if k != 1:
            raise ValueError(f"{type(self).__name__} finds skylines, k = 1, not k = {k}")
        super().__init__(dims, k, newest, length)

    def _skyline(self, values: Floats) -> Ints:
        return skyline_klp(values, self._newest)
