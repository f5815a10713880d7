"""Sort-filter-skyline: sort by a monotone score, then no row can beat an earlier one.

J. Chomicki, P. Godfrey, J. Gryz and D. Liang, "Skyline with presorting" (ICDE 2003).  The filter is
the pruning of ``dominance``, for which "later" now means "with a better score".  Ours differs in what
goes before the sort: where few rows survive, the same pruning in the given order leaves so few that
the sort, which for a million rows takes ten times as long, does not matter.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skytide.dominance import as_points, mark_survivors
from skytide.kernel import kernel
from skytide.structures.blocks import Bytes, Floats, Ints

HUGE, TINY = (
    np.finfo(np.float64).max / 4,
    1e-300,
)  # differences of what lies between do not overflow
SAMPLE, THIN = 1024, 0.5


def skyline_sfs(values: npt.ArrayLike, k: int = 1, newest: bool = False) -> Ints:
    """The rows, ascending, that fewer than ``k`` rows beat: the skyline, or k-skyband.

    Equal rows do not beat each other; with ``newest`` a later row beats the earlier ones equal to
    it.  At worst O(n log n + n f d) for f rows in the answer; at best, most rows being beaten by the
    same few, O(n d).

    >>> skyline_sfs([[1, 4], [2, 2], [3, 3], [2, 2], [4, 1]])
    array([0, 1, 3, 4])
    >>> skyline_sfs([[1, 4], [2, 2], [3, 3], [2, 2], [4, 1]], newest=True)
    array([0, 3, 4])
    >>> skyline_sfs([[1, 4], [2, 2], [3, 3], [2, 2], [4, 1]], k=3)
    array([0, 1, 2, 3, 4])
    """
    points = as_points(values)
    if _is_thin(points, k):
        rows = _chosen(mark_survivors(points, k, newest))
        points = points[rows]
    else:
        rows = np.arange(len(points))
    order = worst_first(points)
    return rows[np.sort(order[_chosen(mark_survivors(points[order], k, newest))])]


def _is_thin(points: Floats, k: int) -> bool:
    """Would pruning in the given order leave few rows?  Guessed from a sample."""
    sample = points[:: max(1, len(points) // SAMPLE)].copy()
    return len(_chosen(mark_survivors(sample, k, False))) < THIN * len(sample)


def _chosen(mask: Bytes) -> Ints:
    return np.flatnonzero(mask.view(np.bool_))


def worst_first(points: Floats) -> Ints:
    """An order in which every row comes after all the rows it beats, and after older equal ones."""
    return order_by(scores(points), points)[::-1]


@kernel
def scores(points: Floats) -> Floats:
    """The sum of every row's coordinates, clipped to what can be added and scaled to [0, 1].  O(n d).

    Each step of computing it is monotone, rounding included, so no row has a higher score than a
    row it beats.  It may have the same.
    """
    rows, dims = points.shape
    score = np.zeros(rows)
    for j in range(dims):
        low, high = HUGE, -HUGE
        for row in range(rows):
            value = min(max(points[row, j], -HUGE), HUGE)
            low = min(low, value)
            high = max(high, value)
        scale = 1.0 / (high - low) if high - low > TINY else 0.0
        for row in range(rows):
            score[row] += (min(max(points[row, j], -HUGE), HUGE) - low) * scale
    return score


def order_by(score: Floats, points: Floats) -> Ints:
    """The order by score, then by the columns, then the younger first.

    Only equal scores are ordered by the columns: to sort all rows by all columns took 8 times as
    long as to sort them by score.
    """
    order = np.argsort(score)
    ranked = score[order]
    same = np.zeros(len(order) + 1, np.bool_)  # as the one before
    same[1:-1] = ranked[1:] == ranked[:-1]
    tied = np.flatnonzero(same[1:] | same[:-1])
    if len(tied):
        rows = order[tied]
        order[tied] = rows[np.lexsort((-rows, *points[rows].T[::-1], score[rows]))]
    return order
