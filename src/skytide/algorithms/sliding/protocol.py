"""What every sliding-window algorithm gives, so that engines, tests and benchmarks can swap them.

Rows are float64 points, *smaller is better* in every dimension.  A row ``beats`` another if it is no
worse in every dimension and better in one; with ``newest`` a row also beats an older equal row.  The
answer over a set of rows is those that fewer than ``k`` of them beat (k = 1: the skyline).

Every row has a *position*, its arrival number, and a *label*, what the window is measured in: the
position itself for the last N rows, its time for the last hour.  Labels never decrease with
position.  At clock c, a row is in the window of length n while ``label > c - n``.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Watcher(Protocol):
    """An algorithm that keeps watch over standing queries itself."""

    def watch(self, length: int | None) -> int:
        """Watch the answer over rows with ``label > clock - length`` from now on; its name."""

    def unwatch(self, name: int) -> None:
        """Stop a watch."""

    def events(self) -> tuple[Ints, Ints, Ints]:
        """Since last asked, in order: watch, position, 1 (entered) or -1 (left)."""


class SlidingAlgorithm(Protocol):
    """The face of one algorithm over one window.

    ``length`` is N, the longest window it can be asked for, in units of labels; None: all rows ever.
    """

    any_length: ClassVar[bool]
    """``answer(n)`` works for every n up to ``length``; else only for ``length`` itself."""
    any_k: ClassVar[bool]
    """Skybands of k > 1 are supported; else only skylines."""
    history: ClassVar[bool]
    """``answer_between`` works."""

    def __init__(self, dims: int, k: int, newest: bool, length: int | None) -> None: ...

    def advance(self, clock: int) -> None:
        """Move the clock, never back; rows with ``label <= clock - length`` are forgotten."""

    def push(self, values: Floats, positions: Ints, labels: Ints) -> Ints:
        """Add rows in arrival order, C-contiguous (m, dims), after ``advance`` to a clock that is no
        less than the last label.  Rows that the clock has already passed are ignored.

        Returns the indices, ascending, of the rows that may ever be in an answer: who keeps the rows
        themselves may forget the others."""

    def answer(self, length: int | None) -> Ints:
        """The positions, ascending, of the answer over rows with ``label > clock - length``."""

    def __len__(self) -> int:
        """How many rows are kept."""

    def kept(self) -> Ints:
        """The positions, ascending, of all rows that may still be in some answer."""

    def stats(self) -> dict[str, Any]:
        """Figures of its own: sizes of its structures, counters."""
