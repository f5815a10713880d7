"""Sort-filter-skyline: sort by a monotone score, then no row can beat an earlier one.

J. Chomicki, P. Godfrey, J. Gryz and D. Liang, "Skyline with presorting" (ICDE 2003).  Ours differs
in what surrounds the sort: the strongest rows of a sample filter before it, so that little is left
to sort, and then the front is scanned 64 rows at a time, most of it skipped by boxes.  The scan is
the pruning of ``dominance``, for which "later" now means "with a better score".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skytide.dominance import as_points, mark_survivors, new_pivots, prune, sieve
from skytide.structures.blocks import Bytes, Floats, Ints

SAMPLE = 2048  # rows among which the pivots are sought


def skyline_sfs(values: npt.ArrayLike, k: int = 1, newest: bool = False) -> Ints:
    """The rows, ascending, that fewer than ``k`` rows beat: the skyline, or k-skyband.

    Equal rows do not beat each other; with ``newest`` a later row beats the earlier ones equal to
    it.  O(n d) for the filter, O(m log m + m f d) for the m rows it spares and the f of the answer.

    >>> skyline_sfs([[1, 4], [2, 2], [3, 3], [2, 2], [4, 1]])
    array([0, 1, 3, 4])
    >>> skyline_sfs([[1, 4], [2, 2], [3, 3], [2, 2], [4, 1]], newest=True)
    array([0, 3, 4])
    >>> skyline_sfs([[1, 4], [2, 2], [3, 3], [2, 2], [4, 1]], k=3)
    array([0, 1, 2, 3, 4])
    """
    points = as_points(values)
    if len(points) <= 2 * SAMPLE:
        rows = np.arange(len(points))
    else:
        rows = _spared_by_pivots(points, k)
        points = points[rows]
    order = worst_first(points)
    kept: Bytes = mark_survivors(points[order], k, newest)
    return rows[np.sort(order[kept.view(np.bool_)])]


def _spared_by_pivots(points: Floats, k: int) -> Ints:
    """The rows that fewer than k of a few strong rows of a sample beat."""
    sample = points[:: len(points) // SAMPLE].copy()
    pivots = new_pivots(k, points.shape[1])
    prune(sample[worst_first(sample)], k, False, pivots)
    spared: Ints = sieve(points, k, pivots)
    return spared


def worst_first(points: Floats) -> Ints:
    """An order in which every row comes after all the rows it beats, and after older equal ones.

    The score is a sum of coordinates clipped to what can be added and scaled to [0, 1].  Each step
    of computing it is monotone, rounding included, so a row's score is never above that of a row it
    beats.  It may be equal: then the lexicographic order decides.
    """
    if len(points) == 0:
        return np.empty(0, np.int64)
    huge = np.finfo(np.float64).max / 4
    clipped = np.clip(points, -huge, huge)
    low = clipped.min(axis=0)
    spread = clipped.max(axis=0) - low
    scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e-300)
    score = ((clipped - low) * scale).sum(axis=1)
    order = np.argsort(score)[::-1]
    _order_ties(points, score, order)
    return order


def _order_ties(points: Floats, score: Floats, order: Ints) -> None:
    """Put rows of equal score into lexicographic order.

    Only them: to sort all rows by all columns took 8 times as long as to sort them by score.
    """
    ranked = score[order]
    tie = np.zeros(len(order) + 1, np.bool_)
    tie[1:-1] = ranked[1:] == ranked[:-1]
    places = np.flatnonzero(tie[1:] | tie[:-1])
    if len(places):
        rows = order[places]
        keys = (-rows, *points[rows].T[::-1], score[rows])
        order[places] = rows[np.lexsort(keys)[::-1]]
