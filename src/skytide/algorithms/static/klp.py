"""Divide and conquer, the asymptotically best: Kung, Luccio and Preparata.

H. T. Kung, F. Luccio and F. P. Preparata, "On finding the maxima of a set of vectors" (Journal of
the ACM 22(4), 1975), section 4.  Rows in lexicographic order are halved; each half gives its
skyline; then the halves are *married*: what the first half's skyline beats is removed from the
second's, which is a question of one dimension less.

Equal values are the trap.  Equal rows are made one beforehand; of two different rows only the
lexicographically first can beat the other, and it does if it is no more in the dimensions after
the one that was halved.  So a marriage asks for "no more in all of these dimensions" and nothing
else, and where it halves in turn, what equals the median goes with both sides of it.

The last three dimensions are swept in one go, as the paper does: in the order of the first of them
rows enter a staircase of the other two.  Ours is a Fenwick tree of least values, over the ranks in
the second dimension, which needs no rebalancing.  All lists of rows are in sweep order from the
start and are only ever split and merged, so that no marriage sorts anything.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skytide.algorithms.static.sfs import order_by
from skytide.dominance import as_points
from skytide.kernel import kernel, part
from skytide.structures.blocks import Bytes, Floats, Ints

LEAF = 64  # so many rows are compared one with one; 16 to 128 differ by a tenth
PAIRS = 1024  # marriages of no more pairs than this are made by comparing them all


class Rows(NamedTuple):
    """Different rows in lexicographic order; where a row is named, it is by its place here."""

    points: Floats  # (rows, dims)
    ranks: Ints  # (rows,): from 1, in the last dimension but one
    stairs: (
        Floats  # (rows + 1,): a Fenwick tree by these ranks, of the last dimension; NaN is empty
    )
    beaten: Bytes  # (rows,)


class Marriages(NamedTuple):
    """Marriages yet to be made: a stack, and two more of what takes part in them."""

    tasks: Ints  # (depth, 5): where its killers begin and end, where its victims do, its dimension
    killers: Ints  # (room,)
    victims: Ints  # (room,)
    spare: Ints  # (rows,)


def skyline_klp(values: npt.ArrayLike, newest: bool = False) -> Ints:
    """The rows, ascending, that no row beats: the skyline.

    Equal rows do not beat each other; with ``newest`` a later row beats the earlier ones equal to
    it.  O(n log n) in two and three dimensions, O(n log^(d-2) n) in d > 3.

    >>> skyline_klp([[1, 4], [2, 2], [3, 3], [2, 2], [4, 1]])
    array([0, 1, 3, 4])
    >>> skyline_klp([[1, 4], [2, 2], [3, 3], [2, 2], [4, 1]], newest=True)
    array([0, 3, 4])
    """
    points = as_points(values)
    order = order_by(points[:, 0], points)
    different, first = without_twins(points, order)
    in_skyline = ~mark_beaten(different).view(np.bool_)
    if newest:
        return np.sort(order[first[in_skyline]])
    return np.sort(order[np.repeat(in_skyline, np.diff(first, append=len(order)))])


@kernel
def without_twins(points: Floats, order: Ints) -> tuple[Floats, Ints]:
    """The different rows in this order, and where in it each comes first: there it is youngest."""
    rows, dims = points.shape
    different = np.empty((rows, dims))
    first = np.empty(rows, np.int64)
    count = 0
    for i in range(rows):
        new = count == 0
        for j in range(dims):
            value = points[order[i], j]
            new |= value != different[count - 1, j]
            different[count, j] = value
        first[count] = i
        count += new
    return different[:count], first[:count]


def mark_beaten(points: Floats) -> Bytes:
    """1 for every row that another beats; rows are different and in lexicographic order."""
    dims = points.shape[1]
    beaten = np.zeros(len(points), np.uint8)
    if dims == 1:
        beaten[1:] = 1
    elif dims == 2:
        least = np.minimum.accumulate(points[:, 1])
        beaten[1:] = points[1:, 1] >= least[:-1]
    else:
        ranks = _ranks(points[:, dims - 2])
        rows = Rows(points, ranks, np.full(len(points) + 1, np.nan), beaten)
        if dims == 3:
            sweep_all(rows)
        else:
            conquer(rows)
    return beaten


def _ranks(column: Floats) -> Ints:
    """The rank of each value, from 1, equal values having the same."""
    order = np.argsort(column)
    ranked = column[order]
    ranks = np.empty(len(column), np.int64)
    ranks[order] = np.cumsum(np.concatenate(([True], ranked[1:] != ranked[:-1])))
    return ranks


# --------------------------------------------------------------------------------------
# The staircase and its sweeps


@part
def climb(rows: Rows, row: int) -> None:
    """Enter a row into the staircase.  O(log n)."""
    points, ranks, stairs, _ = rows
    value = points[row, points.shape[1] - 1]
    step = ranks[row]
    # What holds for a node holds for those above it: once there is no more to improve, stop.
    while step < stairs.shape[0] and not stairs[step] <= value:
        stairs[step] = value
        step += step & -step


@part
def is_under(rows: Rows, row: int) -> bool:
    """Is some row of the staircase no more than this one in the last two dimensions?  O(log n)."""
    points, ranks, stairs, _ = rows
    value = points[row, points.shape[1] - 1]
    step = ranks[row]
    while step > 0:
        if stairs[step] <= value:
            return True
        step -= step & -step
    return False


@part
def clear(rows: Rows, row: int) -> None:
    """Empty whatever of the staircase the row may have entered.  O(log n)."""
    stairs = rows.stairs
    step = rows.ranks[row]
    while step < stairs.shape[0] and not np.isnan(stairs[step]):
        stairs[step] = np.nan
        step += step & -step


@kernel
def sweep_all(rows: Rows) -> None:
    """Three dimensions: in lexicographic order only earlier rows can beat.  O(n log n)."""
    for row in range(rows.points.shape[0]):
        if is_under(rows, row):
            rows.beaten[row] = 1
        else:
            climb(rows, row)


@part
def sweep(rows: Rows, killers: Ints, victims: Ints) -> None:
    """A marriage in the last three dimensions.  O((killers + victims) log n)."""
    points = rows.points
    dim = points.shape[1] - 3
    entered = 0
    for v in range(victims.shape[0]):
        victim = victims[v]
        while entered < killers.shape[0] and (points[killers[entered], dim] <= points[victim, dim]):
            climb(rows, killers[entered])
            entered += 1
        if is_under(rows, victim):
            rows.beaten[victim] = 1
    for i in range(entered):
        clear(rows, killers[i])


# --------------------------------------------------------------------------------------
# Divide, conquer, marry


@part
def no_more(points: Floats, row: int, other: int, dim: int) -> bool:
    """Is a row no more than another in this dimension and all behind it?"""
    for j in range(dim, points.shape[1]):
        if points[row, j] > points[other, j]:
            return False
    return True


@part
def compare_all(rows: Rows, killers: Ints, victims: Ints, dim: int) -> None:
    """A marriage of few.  O(killers * victims * d)."""
    for i in range(victims.shape[0]):
        victim = victims[i]
        for j in range(killers.shape[0]):
            if no_more(rows.points, killers[j], victim, dim):
                rows.beaten[victim] = 1
                break


@kernel
def no_marriages(rows: int, dims: int) -> Marriages:
    """Room for the largest marriage; pages never written cost nothing."""
    room = rows * max(1, dims - 3)  # what is set aside in a dimension is no more than came to it
    return Marriages(
        np.empty((2 * (64 + dims), 5), np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(rows, np.int64),
    )


@kernel
def marry(rows: Rows, todo: Marriages, killers: Ints, victims: Ints) -> None:
    """Mark the victims that some killer does not exceed in any dimension but the first.

    Both lists are in sweep order.  With the killers' median m: killers of m or less meet victims of
    m or more in the dimensions behind; killers and victims below m, and those above m, meet among
    themselves, which halves the killers each time.  This is no recursion because numba loads those
    from its cache only to crash (its issue 6061).
    """
    todo.killers[: killers.shape[0]] = killers
    todo.victims[: victims.shape[0]] = victims
    todo.tasks[0] = 0, killers.shape[0], 0, victims.shape[0], 1
    count = 1
    while count > 0:
        count -= 1
        start, end, first, last, dim = todo.tasks[count]
        last = unbeaten(rows, todo.victims, first, last)
        own, others = todo.killers[start:end], todo.victims[first:last]
        if own.shape[0] * others.shape[0] <= PAIRS:
            compare_all(rows, own, others, dim)
        elif dim == rows.points.shape[1] - 3:
            sweep(rows, own, others)
        else:
            todo.tasks[count, 3] = last
            halve(rows, todo, count)
            count += 3


@part
def unbeaten(rows: Rows, places: Ints, start: int, end: int) -> int:
    """Move what is not beaten of a list to its front; where it then ends."""
    for i in range(start, end):
        places[start], start = places[i], start + 1 - rows.beaten[places[i]]
    return start


@kernel
def halve(rows: Rows, todo: Marriages, task: int) -> None:
    """Put three smaller marriages in the place of one; the last of them is the first to be made."""
    tasks, killers, victims, spare = todo
    start, end, first, last, dim = tasks[task]
    column = rows.points[:, dim]
    half = (end - start) // 2
    median = np.partition(column[killers[start:end]], half)[half]
    over, under, meet = split(column, killers, start, end, median, spare, False)
    above, below, face = split(column, victims, first, last, median, spare, True)
    tasks[task] = start, over, first, above, dim
    tasks[task + 1] = over, under, above, below, dim
    tasks[task + 2] = end, meet, last, face, dim + 1


@part
def split(
    column: Floats, places: Ints, start: int, end: int, median: float, spare: Ints, up: bool
) -> tuple[int, int, int]:
    """Reorder a list: what is above the median, then what is below.

    Behind its end comes a copy of what is the median or, if ``up``, above it, and if not, below.
    Returns where these three end.  No branches, for they could not be foreseen.
    """
    above, below, copied = start, 0, end
    for i in range(start, end):
        place = places[i]
        value = column[place]
        is_above, is_below = value > median, value < median
        places[copied] = place
        copied += 1 - (is_below if up else is_above)
        spare[below] = place
        below += is_below
        places[above] = place
        above += is_above
    for i in range(below):
        places[above + i] = spare[i]
    return above, above + below, copied


@part
def settle(rows: Rows, order: Ints, start: int, end: int) -> int:
    """Write the skyline of a few rows to ``order[start:]``, in sweep order; how many they are."""
    points = rows.points
    dim = points.shape[1] - 3
    count = 0
    for row in range(start, end):
        for i in range(start, start + count):
            if no_more(points, order[i], row, 1):
                rows.beaten[row] = 1
                break
        if rows.beaten[row] == 0:
            i = start + count
            while i > start and points[order[i - 1], dim] > points[row, dim]:
                order[i] = order[i - 1]
                i -= 1
            order[i] = row
            count += 1
    return count


@part
def merge(rows: Rows, first: Ints, second: Ints, out: Ints) -> int:
    """Merge two lists in sweep order, without what is beaten of the second; how many are left."""
    points = rows.points
    dim = points.shape[1] - 3
    i = count = 0
    for j in range(second.shape[0]):
        row = second[j]
        if rows.beaten[row]:
            continue
        while i < first.shape[0] and points[first[i], dim] <= points[row, dim]:
            out[count] = first[i]
            i += 1
            count += 1
        out[count] = row
        count += 1
    while i < first.shape[0]:
        out[count] = first[i]
        i += 1
        count += 1
    return count


@kernel
def conquer(rows: Rows) -> None:
    """Four dimensions and more: skylines of 64 rows, of 128, of 256, and so on."""
    total = rows.points.shape[0]
    order = np.empty(total, np.int64)  # from the start of every part: its skyline, in sweep order
    merged = np.empty(total, np.int64)
    counts = np.empty(total // LEAF + 1, np.int64)
    todo = no_marriages(total, rows.points.shape[1])
    for start in range(0, total, LEAF):
        counts[start // LEAF] = settle(rows, order, start, min(start + LEAF, total))
    size = LEAF
    while size < total:
        for start in range(0, total - size, 2 * size):
            middle = start + size
            first = order[start : start + counts[start // LEAF]]
            second = order[middle : middle + counts[middle // LEAF]]
            marry(rows, todo, first, second)
            count = merge(rows, first, second, merged)
            order[start : start + count] = merged[:count]
            counts[start // LEAF] = count
        size *= 2
