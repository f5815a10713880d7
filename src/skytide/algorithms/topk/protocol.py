"""What every top-k algorithm gives: the face of the sliding-window algorithms, of one dimension.

Scores are float64, *smaller is better*; of equal scores the younger row is better, so answers are
unique.  The engine turns ``high`` into a sign, evaluates expressions and hands over whole slides: with
``every`` s the window moves by s labels at a time, and a push never crosses the end of a slide
without the clock having moved there.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from skytide.algorithms.sliding.protocol import Floats, Ints


class TopKAlgorithm(Protocol):
    """The face of one algorithm over one window; see ``sliding.protocol`` for labels and positions.

    ``length`` is n in units of labels (None: all rows ever), ``every`` the slide s in the same units.
    ``dims`` is 1 and ``newest`` True: they are there so that engines and tests can open any
    algorithm alike.
    """

    any_length: ClassVar[bool]
    """``answer(n)`` works for every n up to ``length``; else only for ``length`` itself."""
    any_k: ClassVar[bool]
    """k > 1 is supported: True for all of these."""
    history: ClassVar[bool]
    """``answer_between`` works: False for all of these."""
    ranking: ClassVar[bool]
    """Only one dimension, only ``newest``: True for all of these."""

    def __init__(
        self, dims: int, k: int, newest: bool, length: int | None, every: int = 1
    ) -> None: ...

    def advance(self, clock: int) -> None:
        """Move the clock, never back; rows with ``label <= clock - length`` are forgotten."""

    def push(self, values: Floats, positions: Ints, labels: Ints) -> Ints:
        """Add rows in arrival order, C-contiguous (m, 1), after ``advance`` to a clock that is no
        less than the last label.  Rows that the clock has already passed are ignored.

        Returns the indices, ascending, of the rows that may ever be in an answer."""

    def answer(self, length: int | None) -> Ints:
        """The positions, ascending, of the k best rows with ``label > clock - length``."""

    def __len__(self) -> int:
        """How many rows are kept."""

    def kept(self) -> Ints:
        """The positions, ascending, of all rows that may still be in some answer."""

    def stats(self) -> dict[str, Any]:
        """Figures of its own: sizes of its structures, counters."""
