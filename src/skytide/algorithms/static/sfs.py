"""Sort-filter-skyline: sort by a monotone score, then no row can beat an earlier one.

J. Chomicki, P. Godfrey, J. Gryz and D. Liang, "Skyline with presorting" (ICDE 2003).  Ours differs
in what surrounds the sort: the strongest rows of a sample filter before it, so that little is left
to sort, and then the front is scanned 64 rows at a time, most of it skipped by boxes.  The scan is
the pruning of ``dominance``, for which "later" now means "with a better score".
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
    it.  O(n d) for the filter, O(m log m + m f d) for the m rows it spares and the f of the answer.

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
    """An order in which every row comes after all the rows it beats, and after older equal ones.

    The score is a sum of coordinates clipped to what can be added and scaled to [0, 1].  Each step
    of computing it is monotone, rounding included, so a row's score is never above that of a row it
    beats.  It may be equal: then the lexicographic order decides.
    """
    score = scores(points)
    order = np.argsort(score)[::-1]
    _order_ties(points, score, order)
    return order


@kernel
def scores(points: Floats) -> Floats:
    """A monotone score for every row: the sum of its clipped and scaled coordinates.  O(n d)."""
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
