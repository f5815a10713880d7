"""SAP: a window cut into partitions, of which only the best rows are looked at until they are oldest.

R. Zhu, B. Wang, X. Yang, B. Zheng and G. Wang, "SAP: Improving Continuous Top-K Queries over
Streaming Data" (TKDE 29(6), 2017).  The window is cut into partitions P_0 (the front) to P_m, each of
whole slides.  The k best rows of each are candidates, C.  The others can be in an answer only when
some of those have expired, so only of the front partition the *meaningful* ones are kept at hand, M_0:
the answer R is drawn from C ∪ M_0 (Lemma 1).  If k candidates of younger partitions beat the k-th best
of P_i (its group dominance number ρ is k), M_i is empty, and the rows of P_i can be let go.

    sap_window      the window slides (Algorithm 1)
    sap_state       what there is; the answer, the k best of it all
    sap_unit        rows come in; nearly all cost one comparison (Algorithm 2, TBUI)
    sap_partition   a unit is complete: the three partitioners, C merged and refined (Section 4)
    sap_meaningful  M by scanning a partition backwards (Section 5), on an S-AVL
    sap_room        more room for it all

The paper ranks from the top, we from the bottom: its "higher score" is a smaller one here.  What is
added to it: the rows of partitions are kept only while a scan may need them, not the whole window; the
units of windows of time are told by how many rows there are, see ``unit_length``; TBUI's τ is a guess
that is checked, and of long slides only rows are stored that may be among their k best, see
``sap_unit``; and where scores rise no heap is touched, see ``sap_state``.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from skytide.algorithms.sliding.protocol import Floats, Ints
from skytide.algorithms.topk.ranking import Ranking, bytes_of
from skytide.algorithms.topk.sap_check import check
from skytide.algorithms.topk.sap_room import empty_state, grown
from skytide.algorithms.topk.sap_state import (
    ANSWER,
    BAR,
    BEST,
    BUILDS,
    DYNAMIC,
    ENHANCED,
    EQUAL,
    FRONT,
    LEFT,
    MERGES,
    NEEDLESS,
    OLDEST,
    OPEN,
    OUT,
    PART,
    RESCANS,
    REST,
    RIGHT,
    RISEN,
    ROWS,
    SCANNED,
    UNIT,
    Sap,
    candidates,
    label_of,
    part_at,
    place,
    position_of,
    unit_at,
)
from skytide.algorithms.topk.sap_window import feed
from skytide.kernel import direct, kernel, rows_for_kernels
from skytide.structures import savl

_feed = direct(feed)


def zeta_of(k: int) -> int:
    """ζ* = ηk, the solution of (ζ - k) / sqrt(ζ) = 3, rounded up (Theorems 1 and 3).

    >>> zeta_of(100)
    135
    """
    return int(np.ceil(((3 + np.sqrt(9 + 4 * k)) / 2) ** 2))


def rank_sum_bounds(k: int, most: int) -> Floats:
    """T_up, for m from 0 on: the ranks of k rows among k + m have no greater sum, with chance 0.975.

    >>> [float(x) for x in rank_sum_bounds(3, 6)[4:]]
    [18.0, 20.0, 22.0]
    """
    ways = np.zeros((k + 1, (k + most) * k + 1))  # of choosing so many ranks with this sum
    ways[0, 0], bounds = 1, np.zeros(most + 1)
    for rank in range(1, k + most + 1):
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank]
        if rank >= k:
            chances = np.cumsum(ways[k]) / ways[k].sum()
            bounds[rank - k] = np.searchsorted(chances, 0.975)
    return bounds


MOST_CULLED = 1 << 15
"""The greatest k for which the best rows of a slide are looked out for as it comes in."""


class SapEnhanced(Ranking):
    """SAP with the enhanced dynamic partition: k-units by TBUI, their M by UBSA.

    A row costs O(1) amortised while it is not among the best of its unit, O(log k) if it is; M_0
    another O(log k) for each row of it.  |C ∪ M_0| is O(k sqrt(n / max(s, k))).  Equal scores: the
    younger row is better.

    >>> sap = SapEnhanced(dims=1, k=2, newest=True, length=3)
    >>> sap.advance(4)
    >>> rows = np.array([[5.0], [2.0], [2.0], [7.0]])
    >>> taken = sap.push(rows, np.arange(1, 5), np.arange(1, 5))
    >>> sap.answer(3)
    array([2, 3])
    """

    _kind: ClassVar[int] = ENHANCED
    _delays: ClassVar[bool] = True
    _stacked: ClassVar[bool] = True
    partitions: ClassVar[int | None] = None
    """How many units the window is to have, instead of m* = ceil(sqrt(n / max(s, k)))."""

    def __len__(self) -> int:
        return len(self.kept())

    def kept(self) -> Ints:
        """The rows that a scan may still need, and the candidates of partitions that need none."""
        return np.unique(held(self._state))

    def stats(self) -> dict[str, Any]:
        """``partitions`` and ``units`` in the window; how often M was built, rows ``scanned`` for it;
        how often C was merged, and a guess of τ proved wrong."""
        s = self._state
        n, found = s.n, int(meaningful(s))
        collected = min(self._k, int(n[BEST] + n[REST] + n[RISEN]))
        return {
            "candidates": int(n[LEFT] + len(s.kept.scores) - n[RIGHT]) + collected + found,
            "meaningful": found,
            "partitions": int(n[PART] - n[FRONT] + 1),
            "units": int(n[UNIT] - n[OLDEST]),
            "builds": int(n[BUILDS]),
            "scanned": int(n[SCANNED]),
            "merges": int(n[MERGES]),
            "rescans": int(n[RESCANS]),
            "bytes": bytes_of(s),
        }

    def check(self) -> None:
        """Walk all invariants, the paper's bounds among them; AssertionError if one does not hold."""
        check(self._state)

    def _empty(self) -> Sap:
        zeta = zeta_of(self._k)
        limit = max(2 * zeta, int(np.ceil(zeta + 3 * np.sqrt(zeta))))
        asked = [self._k, self._length or 0, self._every, self._kind, zeta, limit]
        culls = self._k <= MOST_CULLED and (self._length is None or self._every >= 2 * self._k)
        asked += [self._delays, self._stacked, self.partitions or 0, culls]
        upper = rank_sum_bounds(self._k, zeta) if self._k <= 10 else np.zeros(1)
        return empty_state(np.array(asked, np.int64), upper)

    def _feed(
        self, scores: Floats, positions: Ints, labels: Ints, clocks: Ints, *told: Ints
    ) -> int:
        rows = rows_for_kernels(scores, positions, labels)
        return _feed(self._state, *rows, np.ascontiguousarray(clocks, np.int64), *told)

    def _grow(self, need: int) -> None:
        self._state = grown(self._state, need)

    def _best(self) -> Ints:
        return answer(self._state)


class SapDynamic(SapEnhanced):
    """SAP with the dynamic partition of Section 4.2: units join if the rank test finds them proper."""

    _kind = DYNAMIC


class SapEqual(SapEnhanced):
    """SAP with the equal partition of Section 4.1: ``partitions`` of them, or m*."""

    _kind = EQUAL


class SapNonDelay(SapEqual):
    """Table 2's *non-delay*: equal partition, M_i built as soon as P_i is complete."""

    _delays = False


class SapRescan(SapEqual):
    """Table 2's *Algo 1* without S-AVL: equal partition, M_i scanned and sorted when it is needed."""

    _stacked = False


@kernel
def answer(s: Sap) -> Ints:
    """The positions of R."""
    out, found = np.empty(s.n[ANSWER], np.int64), 0
    for i in range(s.n[LEFT]):
        if s.kept.labels[i] > s.n[BAR]:
            out[found] = s.kept.positions[i]
            found += 1
    at = unit_at(s, s.n[UNIT])
    first = s.units.first[at]
    for i in range(s.n[BEST]):
        out[found] = position_of(s, at, first - s.best.rows[i])
        found += 1
    for i in range(s.n[OUT], s.n[RISEN]):
        out[found] = position_of(s, at, first + s.rising.rows[i])
        found += 1
    return out


@kernel
def held(s: Sap) -> Ints:
    """The positions of all rows that are needed, some twice."""
    n, out, found = s.n, np.empty(s.n[ROWS] + candidates(s), np.int64), 0
    for unit in range(n[OLDEST], n[UNIT] + n[OPEN]):
        at = unit_at(s, unit)
        closed = unit < n[UNIT]
        number = part_at(s, s.units.part[at])
        if closed and s.parts.state[number] == NEEDLESS:
            continue
        for row in range(s.units.first[at], s.units.end[at] if closed else n[ROWS]):
            out[found] = position_of(s, at, row)
            found += label_of(s, at, row) > n[BAR]
    for i in range(candidates(s)):
        c = place(s, i)
        out[found] = s.kept.positions[c]
        found += s.kept.labels[c] > n[BAR]
    return out[:found]


@kernel
def meaningful(s: Sap) -> int:
    """|M_0|, rows that have expired but still lie on a stack left out."""
    found = 0
    for i in range(s.stacks.sizes[savl.TOPS]):
        node = s.stacks.tops[i]
        while node != savl.NONE:
            found += s.stacks.labels[node] > s.n[BAR]
            node = s.stacks.below[node]
    return found
