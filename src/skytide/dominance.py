"""Who beats whom: a batch of rows pruned against itself.

Rows are float64 points, smaller is better.  Row q *beats* row p if q <= p in every dimension and
q < p in one; with ``newest`` it also beats an older equal row.  Infinities are legal, NaN is not.

Rows are judged from the last to the first against the *front* of those that survived.  To scan it
for every row would be slow in two ways, and most of this file is about them.  Where few rows
survive, nearly all are killed by the same few others: these become *pivots*, and whole chunks of
rows are compared with them first.  Where many survive, the front is long: it is sorted into boxes
of 64 rows, most of which cannot hold a killer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import uint64

from skytide.kernel import direct, kernel, part
from skytide.structures.blocks import LANES, Bytes, Floats, Ints

Words = npt.NDArray[np.uint64]

CHUNK = 1024  # rows filtered together: 1024 x 3 dims x 8 bytes fit the L1 cache
SPARE_PIVOTS = 12  # beyond the k - 1 that cannot yet kill; 4 to 24 differ by less than a third
MOST_PIVOTS = 64  # when so many would be needed there are none
WORTH_A_PIVOT = 4  # a pivot costs 0.1 ns a row and dimension; to find a killer in the front 15 ns
BARRED = -(2**62)  # the hits of what has been a pivot: for k > 1 none must count twice
PACK_MIN, PACK_PART = 256, 3  # pack when so many rows, and such a part of the front, are loose

ROWS, PACKED, CORNERS = 0, 1, 2  # ``Front.sizes``: rows; rows when last packed; first corner block
USED, NEXT = 0, 1  # ``Pivots.sizes``: how many there are; which one is replaced next

NONE, ONE, ALL = uint64(0), uint64(1), ~uint64(0)
BIT_OF = np.zeros(67, np.int64)  # of 2**i its i: modulo 67 they all differ
BIT_OF[[2**i % 67 for i in range(64)]] = np.arange(64)


class Front(NamedTuple):
    """The rows that survived so far, 64 to a block.

    Behind the blocks of rows come blocks of *corners*: lane i of corner block g holds the least
    coordinates of the rows in block 64 g + i, or -inf while that block is not packed.
    """

    points: Floats  # (blocks, dims, LANES)
    hits: Ints  # (places,): how many rows of the current chunk each of them killed
    sizes: Ints  # ROWS, PACKED, CORNERS


class Pivots(NamedTuple):
    """A few strong rows of the front, against which whole chunks are filtered first."""

    points: Floats  # (pivots, dims)
    sizes: Ints  # USED, NEXT


class Chunk(NamedTuple):
    """Consecutive rows of the batch, transposed for the filter."""

    points: Floats  # (CHUNK / LANES, dims, LANES)
    beaten: Words  # (k,): the lanes of one block that 1, 2, ... k pivots beat, as bits
    rows: (
        Ints  # (CHUNK,): the rows that the pivots spared; once judged, the places of their killers
    )


@kernel
def new_front(rows: int, dims: int) -> Front:
    """An empty front with room for so many rows; pages never written cost nothing."""
    corners = (rows + LANES - 1) // LANES
    blocks = corners + (corners + LANES - 1) // LANES
    front = Front(
        np.empty((blocks, dims, LANES)),
        np.zeros(corners * LANES, np.int64),
        np.array([0, 0, corners]),
    )
    front.points[corners:] = -np.inf
    return front


@part
def lanes_at_most(points: Floats, block: int, rows: Floats, row: int) -> uint64:
    """The lanes of a block that are ``rows[row]`` or less in every dimension, as bits.

    Bits made by shifts, because they become compare masks of the processor: 1.7 times as fast as a
    byte for each lane.
    """
    lanes, point = points[block], rows[row]
    found = ALL
    j = 0
    while found != NONE and j < point.shape[0]:
        value, at = point[j], lanes[j]
        match = NONE
        for i in range(LANES):
            match |= uint64(value >= at[i]) << uint64(i)
        found &= match
        j += 1
    return found


@part
def lanes_at_least(points: Floats, block: int, rows: Floats, row: int) -> uint64:
    """The lanes of a block that are ``rows[row]`` or more in every dimension, as bits."""
    lanes, point = points[block], rows[row]
    found = ALL
    j = 0
    while found != NONE and j < point.shape[0]:
        value, at = point[j], lanes[j]
        match = NONE
        for i in range(LANES):
            match |= uint64(value <= at[i]) << uint64(i)
        found &= match
        j += 1
    return found


@part
def lowest(bits: uint64) -> int:
    """The number of the lowest bit that is set; there must be one."""
    return BIT_OF[(bits ^ (bits & (bits - ONE))) % uint64(67)]


@part
def highest(bits: uint64) -> int:
    """The number of the highest bit that is set; there must be one."""
    bits |= bits >> uint64(1)
    bits |= bits >> uint64(2)
    bits |= bits >> uint64(4)
    bits |= bits >> uint64(8)
    bits |= bits >> uint64(16)
    bits |= bits >> uint64(32)
    return BIT_OF[(bits ^ (bits >> ONE)) % uint64(67)]


@part
def first_lanes(lanes: int) -> uint64:
    """So many lanes of a block, all if there are more, as bits."""
    return ALL if lanes >= LANES else (ONE << uint64(lanes)) - ONE


@part
def same(points: Floats, block: int, lane: int, rows: Floats, row: int) -> bool:
    """Is the point in this lane ``rows[row]`` itself?"""
    for j in range(rows.shape[1]):
        if points[block, j, lane] != rows[row, j]:
            return False
    return True


@part
def killer(front: Front, values: Floats, row: int, k: int, newest: bool) -> int:
    """The place of the k-th row of the front that beats a row; -1 if fewer do.

    O(front * d / 64) vector steps.  Corners share an array with rows because two calls of
    ``lanes_at_most`` would no longer be inlined, which made short fronts 1.6 times as slow.
    """
    points = front.points
    corners = front.sizes[CORNERS]
    blocks = (front.sizes[ROWS] + LANES - 1) // LANES
    group, todo = -1, NONE  # 64 blocks; those of them that may hold a killer, as bits
    while True:
        if todo != NONE:
            block = group * LANES + lowest(todo)
            todo &= todo - ONE
        else:
            group += 1
            if group * LANES >= blocks:
                return -1
            todo = first_lanes(blocks - group * LANES)
            if front.sizes[PACKED] == 0:
                continue
            block = corners + group
        found = lanes_at_most(points, block, values, row)
        if block >= corners:
            todo &= found
            continue
        while found != NONE:
            lane = lowest(found)
            if newest or not same(points, block, lane, values, row):
                k -= 1
                if k == 0:
                    return block * LANES + lane
            found &= found - ONE


@part
def append(front: Front, values: Floats, row: int) -> None:
    """Let a row into the front.  O(d)."""
    place = front.sizes[ROWS]
    block, lane = place // LANES, place % LANES
    if lane == 0:
        front.points[block] = np.nan
    for j in range(values.shape[1]):
        front.points[block, j, lane] = values[row, j]
    front.sizes[ROWS] = place + 1


@part
def judge(front: Front, values: Floats, rows: Ints, kept: Bytes, k: int, newest: bool) -> None:
    """Let each of ``rows``, youngest first, into the front unless k rows there beat it.

    ``rows`` is overwritten with the place of the last of the k killers, or -1.
    """
    for i in range(rows.shape[0]):
        row = rows[i]
        place = killer(front, values, row, k, newest)
        rows[i] = place
        if place >= 0:
            front.hits[place] += 1
        else:
            append(front, values, row)
            kept[row] = 1


@part
def select(keys: Floats, order: Ints, low: int, high: int, middle: int) -> None:
    """Reorder ``order[low:high]`` so that no key before ``middle`` is above one behind it.

    Hoare's quickselect.  O(high - low) expected.
    """
    high -= 1
    while low < high:
        pivot = keys[order[(low + high) // 2]]
        i, j = low, high
        while i <= j:
            while keys[order[i]] < pivot:
                i += 1
            while keys[order[j]] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@kernel
def leaf_order(columns: Floats) -> Ints:
    """An order of the points that makes every 64 of them a leaf of a k-d tree.  O(n log n)."""
    dims, rows = columns.shape
    order = np.arange(rows)
    stack = np.empty((64, 3), np.int64)
    stack[0] = 0, rows, 0
    tasks = 1
    while tasks > 0:
        tasks -= 1
        low, high, dim = stack[tasks]
        if high - low <= LANES:
            continue
        middle = low + ((high - low + LANES - 1) // LANES + 1) // 2 * LANES
        select(columns[dim], order, low, high, middle)
        stack[tasks] = low, middle, (dim + 1) % dims
        stack[tasks + 1] = middle, high, (dim + 1) % dims
        tasks += 2
    return order


@kernel
def pack(front: Front) -> None:
    """Sort the front into tight boxes, so that most blocks can be skipped by their corner."""
    rows, dims = front.sizes[ROWS], front.points.shape[1]
    columns = np.empty((dims, rows))
    for place in range(rows):
        for j in range(dims):
            columns[j, place] = front.points[place // LANES, j, place % LANES]
    order = leaf_order(columns)
    hits = front.hits[:rows].copy()
    for place in range(rows):
        row = order[place]
        for j in range(dims):
            front.points[place // LANES, j, place % LANES] = columns[j, row]
        front.hits[place] = hits[row]
    for block in range(rows // LANES):
        for j in range(dims):
            corner = front.points[block, j].min()
            front.points[front.sizes[CORNERS] + block // LANES, j, block % LANES] = corner
    front.sizes[PACKED] = rows


@part
def fill(chunk: Chunk, values: Floats, first: int, end: int) -> None:
    """Transpose rows first..end - 1 into the chunk; the lanes behind them are left as they are.

    Slices, because they start at 0: numba then knows that no index is negative, which makes this
    3 times as fast.
    """
    for start in range(first, end, LANES):
        lanes = chunk.points[(start - first) // LANES]
        rows = values[start : min(start + LANES, end)]
        for j in range(values.shape[1]):
            for i in range(rows.shape[0]):
                lanes[j, i] = rows[i, j]


@part
def sift(chunk: Chunk, first: int, end: int, pivots: Pivots, k: int) -> int:
    """List the rows of the chunk that fewer than k pivots beat, the last one first; how many."""
    beaten = chunk.beaten
    spared = 0
    for start in range(first + (end - first - 1) // LANES * LANES, first - 1, -LANES):
        beaten[:] = NONE
        for pivot in range(pivots.sizes[USED]):
            found = lanes_at_least(chunk.points, (start - first) // LANES, pivots.points, pivot)
            for times in range(k - 1, 0, -1):
                beaten[times] |= beaten[times - 1] & found
            beaten[0] |= found
            if beaten[k - 1] == ALL:
                break
        alive = first_lanes(end - start) & ~beaten[k - 1]
        while alive != NONE:
            lane = highest(alive)
            alive ^= ONE << uint64(lane)
            chunk.rows[spared] = start + lane
            spared += 1
    return spared


@part
def next_above(value: float) -> float:
    """The least that is more than ``value``; NaN if nothing is."""
    return float(np.nextafter(value, np.inf)) if value < np.inf else np.nan


@part
def promote(front: Front, killers: Ints, pivots: Pivots, newest: bool, most: int) -> None:
    """Make pivots of the ``most`` rows of the front that killed most in this chunk, if it pays.

    A pivot kills what is at least the pivot in every dimension.  So that it spares its equals, it is
    a hair larger in the first: it then also spares what differs from it only in the others, which
    is left to the front.
    """
    hits = front.hits
    for _ in range(most):
        best, place = 0, -1
        for i in range(killers.shape[0]):
            killer = killers[i]
            if killer >= 0 and hits[killer] > best:
                best, place = hits[killer], killer
        if best < WORTH_A_PIVOT:
            break
        hits[place] = BARRED
        pivot = pivots.sizes[NEXT]
        for j in range(pivots.points.shape[1]):
            pivots.points[pivot, j] = front.points[place // LANES, j, place % LANES]
        if not newest:
            pivots.points[pivot, 0] = next_above(pivots.points[pivot, 0])
        pivots.sizes[NEXT] = (pivot + 1) % pivots.points.shape[0]
        pivots.sizes[USED] = max(pivots.sizes[USED], pivot + 1)
    for i in range(killers.shape[0]):
        if killers[i] >= 0:
            hits[killers[i]] = min(hits[killers[i]], 0)


@kernel
def mark_survivors(values: Floats, k: int, newest: bool) -> Bytes:
    """1 for every row that fewer than k later rows beat: see :func:`survivors`."""
    rows, dims = values.shape
    kept = np.zeros(rows, np.uint8)
    front = new_front(rows, dims)
    pivots = new_pivots(k, dims)
    chunk = new_chunk(k, dims)
    end, size = rows, LANES  # chunks grow, for there are no pivots yet
    while end > 0:
        first = max(0, end - size)
        fill(chunk, values, first, end)
        spared = chunk.rows[: sift(chunk, first, end, pivots, k)]
        judge(front, values, spared, kept, k, newest)
        promote(front, spared, pivots, newest, min(k + 2, pivots.points.shape[0]))
        packed = front.sizes[PACKED]
        if front.sizes[ROWS] - packed > max(PACK_MIN, packed // PACK_PART):
            pack(front)
        end = first
        size = min(2 * size, CHUNK)
    return kept


@kernel
def new_pivots(k: int, dims: int) -> Pivots:
    """Room for as many pivots as pay."""
    most = k - 1 + SPARE_PIVOTS
    return Pivots(np.empty((most if most <= MOST_PIVOTS else 0, dims)), np.zeros(2, np.int64))


@kernel
def new_chunk(k: int, dims: int) -> Chunk:
    """Room for a chunk of rows."""
    return Chunk(
        np.zeros((CHUNK // LANES, dims, LANES)),
        np.zeros(k, np.uint64),
        np.empty(CHUNK, np.int64),
    )


_mark_survivors = direct(mark_survivors)


def as_points(values: npt.ArrayLike) -> Floats:
    """What the kernels take: float64, row after row, writable."""
    points = np.ascontiguousarray(values, np.float64)
    if not points.flags.writeable:
        points = points.copy()
    if points.ndim != 2:
        raise ValueError(f"expected rows of numbers, got {points.ndim} dimensions")
    return points


def survivors(values: npt.ArrayLike, k: int = 1, newest: bool = False) -> Ints:
    """The rows, ascending, that fewer than k *later* rows of the batch beat.

    >>> survivors([[1, 1], [2, 2], [0, 3], [2, 2]])
    array([0, 1, 2, 3])
    >>> survivors([[2, 2], [1, 1], [2, 2]], newest=True)
    array([1, 2])
    """
    points = as_points(values)
    return np.flatnonzero(_mark_survivors(points, k, newest).view(np.bool_))
