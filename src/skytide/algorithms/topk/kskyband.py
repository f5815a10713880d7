"""k-skyband: keep every row that fewer than k younger rows beat, best first.

The one-pass algorithm of Section 2.1 of "SAP: Improving Continuous Top-K Queries over Streaming Data"
(Zhu, Wang, Yang, Zheng and Wang, TKDE 2017; its reference [19]).  D(o), the number of younger rows that
beat o, is kept for every candidate; a row with D(o) = k goes.  The slide s is not made use of, and what
is kept answers for any n' <= n and any k' <= k on demand, which no faster algorithm does.

On rows whose scores know nothing of their order |C| is about k ln(n / k) + k.  A new row beats n_d
candidates; their counts are kept in blocks (``structures.ranked``), so that it costs
O(log |C| + n_d / 128) and not O(n_d).  Falling scores keep all n rows.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from skytide.algorithms.sliding.kept import enlarged
from skytide.algorithms.sliding.protocol import Floats, Ints
from skytide.algorithms.topk.ranking import NEVER, ROW, TURN, Ranking, bytes_of, start_of
from skytide.kernel import kernel, part
from skytide.structures import ranked
from skytide.structures.ranked import LIVE, POSITION, Ranked, empty_ranked


class Band(NamedTuple):
    """C in order, and the question."""

    ranked: Ranked
    asked: Ints  # k, and the length of the window or 0


class KSkyband(Ranking):
    """The k-skyband of the window.

    >>> recent = KSkyband(dims=1, k=2, newest=True, length=4)
    >>> recent.advance(5)
    >>> recent.push(np.array([[1.0], [5.0], [2.0], [3.0], [4.0]]), *2 * [np.arange(1, 6)])
    array([1, 2, 3, 4])
    >>> recent.answer(4), recent.answer(2), recent.kept()
    (array([3, 4]), array([4, 5]), array([3, 4, 5]))
    """

    any_length: ClassVar[bool] = True
    _state: Band

    def answer(self, length: int | None) -> Ints:
        """The k best rows with ``label > clock - length``.  O(|C|), for the whole window O(k)."""
        start = NEVER if length is None else self._clock - length
        return np.sort(best(self._state, start, self._k))

    def __len__(self) -> int:
        return int(self._state.ranked.sizes[LIVE])

    def kept(self) -> Ints:
        """All candidates."""
        return np.sort(best(self._state, NEVER, len(self)))

    def stats(self) -> dict[str, Any]:
        """Candidates, which are all that is kept."""
        return {"candidates": len(self), "bytes": bytes_of(self._state)}

    def _empty(self) -> Band:
        return Band(empty_ranked(64), np.array([self._k, self._length or 0]))

    def _feed(self, *arrays: Any) -> int:
        return feed(self._state, *arrays)

    def _grow(self, need: int) -> None:
        self._state = self._state._replace(ranked=with_more_slots(self._state.ranked))


def with_more_slots(old: Ranked) -> Ranked:
    """The same rows, and room for twice as many."""
    slots, blocks = len(old.free), len(old.order)
    new: Ranked = enlarged(old, empty_ranked(2 * slots))
    new.free[slots:] = np.arange(slots, 2 * slots)
    new.order[blocks:] = np.arange(blocks, len(new.order))
    return new


@kernel
def feed(
    band: Band,
    scores: Floats,
    positions: Ints,
    labels: Ints,
    clocks: Ints,
    told: Ints,
    done: Ints,
) -> int:
    """See ``ranking``; all it can lack is slots."""
    return go_on(band, scores, positions, labels, clocks, told, done)


@part
def go_on(
    band: Band,
    scores: Floats,
    positions: Ints,
    labels: Ints,
    clocks: Ints,
    told: Ints,
    done: Ints,
) -> int:
    """The work of ``feed``: a part, or references to arrays would be counted for each row."""
    k, length = band.asked[0], band.asked[1]
    for turn in range(done[TURN], clocks.shape[0]):
        start = start_of(clocks[turn], length)
        ranked.expire(band.ranked, start)
        for row in range(done[ROW], scores.shape[0]):
            if labels[row] > clocks[turn]:
                break
            if labels[row] > start:
                if ranked.full(band.ranked):
                    done[TURN] = turn
                    return 1
                ranked.insert(band.ranked, scores[row], positions[row], labels[row], k)
            done[ROW] = row + 1
        worst = ranked.slot_at(band.ranked, k - 1)
        told[turn] = band.ranked.rows[worst, POSITION] if worst >= 0 else -1
    return 0


@kernel
def best(band: Band, start: int, most: int) -> Ints:
    """The positions of so many of the best rows with labels above ``start``."""
    out = np.empty(min(most, band.ranked.sizes[LIVE]), np.int64)
    return out[: ranked.best_after(band.ranked, start, most, out)].copy()
