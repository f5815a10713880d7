"""What every top-k algorithm gives: the face of the sliding-window algorithms, of one dimension.

Scores are float64, *smaller is better* (a paper that ranks from the top is read upside down); of equal
scores the younger row is better, so the order of rows is total and answers are unique.  Whoever calls
turns ``high`` into a sign and evaluates expressions.

**Slides.** With ``every`` s the clock stands at multiples of s only (that is all that ``advance`` is
given), and a row counts from the first multiple that is not before its label on, from
``ceil(label / s) * s``, its *arrival*.  It counts while ``label > clock - length``, and is gone when
the clock stands at ``ceil((label + length) / s) * s``, its *end*.  A slide is the rows of one arrival.
If s divides ``length`` they also end together; if not, they end at two different clocks.  A row that is
beaten by k rows which end no earlier than it does, of its own slide or of later ones, is in no answer
of the whole window, now or ever.  For windows of time without ``every`` s is 1, a nanosecond: slides
are then the rows of one time, and of the multiples of s nearly all are empty, so nothing may cost time
or room for each multiple of s that passes.

**A push spans as many slides as it likes.** Labels tell which.  The clock is moved first, to the end
of the last of them; what stood at the clocks in between nobody can ask any more, and rows that the
clock has passed already are ignored.  So a push of a million rows is one call, not ten thousand.  Only
the last slide may be continued by another push, at the same clock: more rows of the same time.

**Gaps.** Positions and labels ascend, positions strictly, but need not be consecutive: rows that can
be in no answer may have been left out beforehand, as ``admission`` does with large batches and
``load`` with a saved state.  So the extent of a slide or partition is told by labels, never by
counting rows.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from skytide.algorithms.sliding.protocol import Floats, Ints


class TopKAlgorithm(Protocol):
    """The face of one algorithm over one window; see ``sliding.protocol`` for labels and positions.

    ``length`` is n in units of labels (None: all rows ever), ``every`` the slide s in the same units.
    ``dims`` is 1 and ``newest`` True: they are there so that engines and tests can open any
    algorithm alike; anything else raises ValueError.  Pickling keeps the whole state.
    """

    any_length: ClassVar[bool]
    """``answer(n)`` works for every n up to ``length``, whether or not s divides it: kept is each row
    that fewer than k *younger* rows beat.  Else only for ``length`` itself, others raise ValueError,
    and of rows that end together those that k others beat may be forgotten."""
    any_k: ClassVar[bool]
    """k > 1 is supported: True for all of these.  (A smaller k needs no support: the best of the
    answer are told by their scores.)"""
    history: ClassVar[bool]
    """``answer_between`` works: False for all of these."""
    ranking: ClassVar[bool]
    """Only one dimension, only ``newest``: True for all of these."""

    def __init__(
        self, dims: int, k: int, newest: bool, length: int | None, every: int = 1
    ) -> None: ...

    def advance(self, clock: int) -> None:
        """Move the clock, never back, to a multiple of ``every``; rows with
        ``label <= clock - length`` are forgotten."""

    def push(self, values: Floats, positions: Ints, labels: Ints) -> Ints:
        """Add rows in arrival order, C-contiguous (m, 1), of any number of slides, after ``advance``
        to a clock that is no less than the last label.  Rows that the clock has already passed are
        ignored.  The arrays are only lent: copy what stays.

        Returns the indices, ascending, of the rows that may ever be in an answer."""

    def each(self, values: Floats, positions: Ints, labels: Ints, clocks: Ints) -> Ints:
        """Go through slides one by one in one call: for each of the ``clocks``, ascending multiples
        of ``every``, move there, take in the rows with labels up to it, and find the answer.

        Returns for each clock the position of the *worst* row of the answer that stands there, the
        k-th best or, of fewer than k rows, the last; -1 if no row counts.  Knowing it is knowing the
        answer.  No label is greater than the last clock.  So benchmarks and tests have the answer kept
        current at every slide without a call from Python for each."""

    def answer(self, length: int | None) -> Ints:
        """The positions, ascending, of the k best rows with ``label > clock - length``."""

    def __len__(self) -> int:
        """How many rows are kept."""

    def kept(self) -> Ints:
        """The positions, ascending, of all rows that may still be in some answer."""

    def stats(self) -> dict[str, Any]:
        """Figures of its own: ``candidates``, the rows that its answers are drawn from (the papers'
        |C| or |C ∪ M0|); ``bytes``, all its memory; sizes of its structures, counters."""
