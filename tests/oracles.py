"""The brute-force truth: for every window the rows it holds, for every question its answer.

Rows are known by their position, the arrival number from 1; row p is ``values[p - 1]``.  Smaller is
better.  A *window* is a list of positions, ascending; an *answer* is a sorted list of positions.
Nothing here is clever, and nothing here comes from skytide.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T", bound=Hashable)
Window = list[int]
Answer = list[int]

# --------------------------------------------------------------------------------------
# Windows: which rows count


def everything(m: int) -> Window:
    """All of the m rows seen.

    >>> everything(3)
    [1, 2, 3]
    """
    return list(range(1, m + 1))


def last(n: int, m: int) -> Window:
    """The last n of the m rows seen.

    >>> last(2, m=5)
    [4, 5]
    """
    return [p for p in everything(m) if p > m - n]


def between(n1: int, n2: int, m: int) -> Window:
    """The n1-th to the n2-th most recent of the m rows seen; the 1st is the newest.

    >>> between(2, 3, m=5)
    [3, 4]
    """
    return [p for p in everything(m) if n1 <= m - p + 1 <= n2]


def recent(times: Sequence[Any], length: Any, now: Any) -> Window:
    """The rows that have come by now and are younger than ``length``.

    >>> recent([10, 12, 12, 15, 19], length=5, now=15)
    [2, 3, 4]
    """
    return [p for p, time in enumerate(times, 1) if now - length < time <= now]


def recent_between(times: Sequence[Any], n1: Any, n2: Any, now: Any) -> Window:
    """The rows whose age is n1 or more, but less than n2.

    >>> recent_between([10, 12, 12, 15, 19], 3, 9, now=19)
    [2, 3, 4]
    """
    return [p for p, time in enumerate(times, 1) if n1 <= now - time < n2]


def slide(clock: int, every: int) -> int:
    """What a window that slides by ``every`` takes for the clock: the last multiple of it.

    >>> slide(17, every=5)
    15
    """
    return clock // every * every


def on_time(times: Sequence[Any]) -> Window:
    """The rows that are not late: no row before them is younger.

    >>> on_time([3, 5, 4, 5, 6])
    [1, 2, 4, 5]
    """
    return [p for p, time in enumerate(times, 1) if time >= max(times[:p])]


def alive(spans: Sequence[tuple[Any, Any]], now: Any) -> Window:
    """The rows with start <= now < end; start None: from arrival, end None: for ever.

    >>> alive([(1, 4), (3, 9), (4, None), (None, 3)], now=3)
    [1, 2]
    """
    return [
        p
        for p, (start, end) in enumerate(spans, 1)
        if (start is None or start <= now) and (end is None or now < end)
    ]


def latest(keys: Sequence[Hashable], deleted: Mapping[Any, int] | None = None) -> Window:
    """The last row of each key, unless the key was deleted after it.

    ``deleted`` says how many rows had been seen when a key was deleted.

    >>> latest(["a", "b", "a", "c"], deleted={"b": 2, "c": 3})
    [3, 4]
    """
    rows = {key: p for p, key in enumerate(keys, 1)}
    return sorted(p for key, p in rows.items() if p > (deleted or {}).get(key, 0))


# --------------------------------------------------------------------------------------
# Questions: which of them are the answer


def beats(values: npt.ArrayLike, newest: bool = False) -> npt.NDArray[np.bool_]:
    """Does row q beat row p, for all q and p of rows in arrival order?

    It does if it is no worse in every dimension and better in one; with ``newest``, also if the two
    are equal and it is the younger.

    >>> beats([[1, 2], [1, 3], [1, 2]], newest=True).astype(int)
    array([[0, 1, 0],
           [0, 0, 0],
           [1, 1, 0]])
    """
    rows = np.asarray(values)
    rows = rows.reshape(len(rows), -1) if rows.size else np.empty((0, 1))
    q, p = rows[:, None, :], rows[None, :, :]
    no_worse, better = (q <= p).all(axis=2), (q < p).any(axis=2)
    younger = np.tri(len(rows), k=-1, dtype=bool)
    return no_worse & (better | younger if newest else better)


def skyband(
    values: npt.ArrayLike, window: Sequence[int], k: int = 1, newest: bool = False
) -> Answer:
    """The rows of the window that fewer than k rows of the window beat.

    >>> skyband([[1, 2], [1, 3], [1, 4]], window=[2, 3], k=1)
    [2]
    """
    chosen = np.asarray(window, dtype=int)
    times_beaten = beats(np.asarray(values)[chosen - 1], newest).sum(axis=0)
    return [int(p) for p in chosen[times_beaten < k]]


def skyline(values: npt.ArrayLike, window: Sequence[int], newest: bool = False) -> Answer:
    """The rows of the window that no row of the window beats.

    >>> skyline([[1, 2], [2, 1], [1, 2], [2, 2]], window=[1, 2, 3, 4])
    [1, 2, 3]
    """
    return skyband(values, window, 1, newest)


def top(scores: Sequence[float], window: Sequence[int], k: int, newest: bool = True) -> Answer:
    """The k lowest scores, of equal ones the youngest; not ``newest``: and all equal to the k-th.

    >>> top([3, 1, 1, 1], window=[1, 2, 3, 4], k=2)
    [3, 4]
    >>> top([3, 1, 1, 1], window=[1, 2, 3, 4], k=2, newest=False)
    [2, 3, 4]
    """
    ranking = sorted(window, key=lambda p: (scores[p - 1], -p))
    if newest or len(ranking) <= k:
        return sorted(ranking[:k])
    return [p for p in window if scores[p - 1] <= scores[ranking[k - 1] - 1]]


def top_pairs(
    score: Callable[[Any, Any], float], rows: Sequence[Any], window: Sequence[int], k: int
) -> list[tuple[int, int]]:
    """The k pairs (older, younger) of lowest score(older row, younger row), sorted by position.

    Of equal scores the pair with the younger older member, then with the younger younger one.

    >>> top_pairs(lambda a, b: abs(a - b), [1, 5, 6, 9, 8], window=[1, 2, 3, 4, 5], k=2)
    [(2, 3), (4, 5)]
    """

    def rank(pair: tuple[int, int]) -> tuple[float, int, int]:
        older, younger = pair
        return score(rows[older - 1], rows[younger - 1]), -older, -younger

    return sorted(sorted(combinations(sorted(window), 2), key=rank)[:k])


# --------------------------------------------------------------------------------------
# What must be remembered, and what has changed


def kept(values: npt.ArrayLike, window: Sequence[int], k: int = 1, newest: bool = False) -> Answer:
    """The rows of the window that fewer than k *younger* rows of the window beat.

    Only they can be in the answer of some window that ends now or later.

    >>> kept([[1, 1], [2, 2], [1, 3]], window=[1, 2, 3])
    [1, 2, 3]
    >>> kept([[1, 3], [2, 2], [1, 1]], window=[1, 2, 3])
    [3]
    """
    chosen = np.asarray(window, dtype=int)
    by_younger = np.tril(beats(np.asarray(values)[chosen - 1], newest))
    return [int(p) for p in chosen[by_younger.sum(axis=0) < k]]


def kept_of_fixed_window(
    values: npt.ArrayLike,
    ends: Sequence[float],
    window: Sequence[int],
    k: int = 1,
    newest: bool = False,
) -> Answer:
    """The rows of the window that fewer than k rows beat which end no earlier, younger or not.

    Only they can be in the answer of the whole window, now or later.  Less than ``kept``: of rows
    that end together, one that is beaten never comes into an answer.

    >>> kept_of_fixed_window([[1, 1], [2, 2], [1, 3]], ends=[5, 5, 9], window=[1, 2, 3])
    [1, 3]
    """
    chosen = np.asarray(window, dtype=int)
    end = np.asarray(ends)[chosen - 1]
    by_outliving = beats(np.asarray(values)[chosen - 1], newest) & (end[:, None] >= end[None, :])
    return [int(p) for p in chosen[by_outliving.sum(axis=0) < k]]


def changes(before: Sequence[T], after: Sequence[T]) -> tuple[list[T], list[T]]:
    """What was inserted into an answer and what was deleted from it, net.

    >>> changes([1, 2, 5], [2, 5, 7, 8])
    ([7, 8], [1])
    """
    inserted = [row for row in after if row not in set(before)]
    deleted = [row for row in before if row not in set(after)]
    return inserted, deleted
