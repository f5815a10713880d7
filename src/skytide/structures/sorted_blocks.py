"""A set of scored rows in order, in blocks: cheap at both ends, and wherever else a row may belong.

It is a list of blocks, each a stretch of an array with the worst row first.  A row that is better than
all others goes to the end of the last block, and the worst leaves at the start of the first, without
moving another row; so rows that come in order cost some 5 ns each, where a heap of a thousand sinks ten
levels.  Elsewhere the block, among a few, and the place in it are found by counting, which becomes SIMD
(by binary search alone a row took three times as long), and the shorter side of the block makes room.
A full block is split, so that all but the outer two are at least half full.

Smaller scores are better; a row that comes in is taken to be younger than all others, and so better
than those of the same score.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skytide.kernel import inlined, part
from skytide.structures.blocks import Floats, Ints

BEGIN, END = 0, 1  # columns of ``spans``
ROWS, LOW, HIGH, FREE = 0, 1, 2, 3
"""What ``sizes`` holds: rows; where the blocks are in ``order``; how many are not in use."""
WIDE, NARROW = 64, 16  # rows a block, for large sets and small ones
AT_ONCE = 64  # blocks among which the right one is found by counting


class SortedBlocks(NamedTuple):
    """All of it."""

    scores: Floats  # (blocks, width)
    positions: Ints  # (blocks, width)
    spans: Ints  # (blocks, 2): the part of each block that is in use
    order: Ints  # (room,): blocks, the worst first, around the middle
    worst: Floats  # (room,): the score of the worst row of each
    free: Ints  # (blocks,): blocks not in use
    sizes: Ints


def empty_blocks(rows: int) -> SortedBlocks:
    """An empty set with room for so many rows.

    >>> empty_blocks(100).scores.shape
    (15, 16)
    """
    width = WIDE if rows > 4 * WIDE else NARROW
    blocks = 2 * rows // width + 3
    return SortedBlocks(
        np.zeros((blocks, width)),
        np.zeros((blocks, width), np.int64),
        np.zeros((blocks, 2), np.int64),
        np.zeros(2 * blocks, np.int64),
        np.zeros(2 * blocks),
        np.arange(blocks),
        np.array([0, blocks, blocks, blocks]),
    )


@part
def clear(blocks: SortedBlocks) -> None:
    """Forget all rows.  O(blocks)."""
    sizes = blocks.sizes
    for at in range(sizes[LOW], sizes[HIGH]):
        _give_back(blocks, blocks.order[at])
    sizes[ROWS] = 0
    sizes[LOW] = sizes[HIGH] = blocks.order.shape[0] // 2


# --------------------------------------------------------------------------------------
# Both ends


@inlined
def worst_score(blocks: SortedBlocks) -> float:
    """The score of the worst row of a set that is not empty."""
    return blocks.worst[blocks.sizes[LOW]]


@inlined
def worst_position(blocks: SortedBlocks) -> int:
    """Its position."""
    block = blocks.order[blocks.sizes[LOW]]
    return blocks.positions[block, blocks.spans[block, BEGIN]]


@inlined
def best_score(blocks: SortedBlocks) -> float:
    """The score of the best row of a set that is not empty."""
    block = blocks.order[blocks.sizes[HIGH] - 1]
    return blocks.scores[block, blocks.spans[block, END] - 1]


@inlined
def push_best(blocks: SortedBlocks, score: float, position: int) -> None:
    """Add a row that is better than all others.  O(1)."""
    sizes, width = blocks.sizes, blocks.scores.shape[1]
    if sizes[ROWS] == 0 or blocks.spans[blocks.order[sizes[HIGH] - 1], END] == width:
        _open_best(blocks, score)
    block = blocks.order[sizes[HIGH] - 1]
    at = blocks.spans[block, END]
    blocks.scores[block, at], blocks.positions[block, at] = score, position
    blocks.spans[block, END] = at + 1
    sizes[ROWS] += 1


@inlined
def push_worst(blocks: SortedBlocks, score: float, position: int) -> None:
    """Add a row that is worse than all others.  O(1)."""
    sizes = blocks.sizes
    if sizes[ROWS] == 0 or blocks.spans[blocks.order[sizes[LOW]], BEGIN] == 0:
        _open_worst(blocks)
    block = blocks.order[sizes[LOW]]
    at = blocks.spans[block, BEGIN] - 1
    blocks.scores[block, at], blocks.positions[block, at] = score, position
    blocks.spans[block, BEGIN] = at
    blocks.worst[sizes[LOW]] = score
    sizes[ROWS] += 1


@inlined
def pop_worst(blocks: SortedBlocks) -> None:
    """Drop the worst row.  O(1)."""
    sizes = blocks.sizes
    block = blocks.order[sizes[LOW]]
    at = blocks.spans[block, BEGIN] + 1
    blocks.spans[block, BEGIN] = at
    sizes[ROWS] -= 1
    if at == blocks.spans[block, END]:
        _give_back(blocks, block)
        sizes[LOW] += 1
    else:
        blocks.worst[sizes[LOW]] = blocks.scores[block, at]


# --------------------------------------------------------------------------------------
# Many at either end


@part
def replace_by_better(
    blocks: SortedBlocks, scores: Floats, positions: Ints, start: int, stop: int
) -> None:
    """Drop as many of the worst rows as there are new ones, each of these better than all before it.

    Of more new rows than there are rows the last remain.  O(1 + new rows / 8).
    """
    start = max(start, stop - blocks.sizes[ROWS])
    _drop_worst(blocks, stop - start)
    width, sizes = blocks.scores.shape[1], blocks.sizes
    while start < stop:
        if sizes[ROWS] == 0 or blocks.spans[blocks.order[sizes[HIGH] - 1], END] == width:
            _open_best(blocks, scores[start])
        block = blocks.order[sizes[HIGH] - 1]
        at = blocks.spans[block, END]
        some = min(width - at, stop - start)
        for i in range(some):
            blocks.scores[block, at + i] = scores[start + i]
        for i in range(some):
            blocks.positions[block, at + i] = positions[start + i]
        blocks.spans[block, END] = at + some
        sizes[ROWS] += some
        start += some


@inlined
def _drop_worst(blocks: SortedBlocks, rows: int) -> None:
    """Drop so many of the worst rows."""
    sizes = blocks.sizes
    sizes[ROWS] -= rows
    while rows > 0:
        block = blocks.order[sizes[LOW]]
        some = blocks.spans[block, END] - blocks.spans[block, BEGIN]
        if some > rows:
            at = blocks.spans[block, BEGIN] + rows
            blocks.spans[block, BEGIN], blocks.worst[sizes[LOW]] = at, blocks.scores[block, at]
        else:
            _give_back(blocks, block)
            sizes[LOW] += 1
        rows -= some


# --------------------------------------------------------------------------------------
# Anywhere


@inlined
def insert(blocks: SortedBlocks, score: float, position: int) -> None:
    """Add a row where it belongs, before those of the same score.  O(log blocks + width)."""
    if blocks.sizes[ROWS] == 0 or score <= best_score(blocks):
        push_best(blocks, score, position)
    elif score > worst_score(blocks):
        push_worst(blocks, score, position)
    else:
        _insert_inside(blocks, score, position)


@part
def _insert_inside(blocks: SortedBlocks, score: float, position: int) -> None:
    """Add a row that is neither the best nor the worst."""
    rank = _rank_of_block(blocks, score)
    block = blocks.order[rank]
    if blocks.spans[block, BEGIN] == 0 and blocks.spans[block, END] == blocks.scores.shape[1]:
        _split(blocks, rank)
        block = blocks.order[_rank_of_block(blocks, score)]
    at = _place(blocks, block, score)
    begin, end = blocks.spans[block, BEGIN], blocks.spans[block, END]
    scores, positions = blocks.scores[block], blocks.positions[block]
    if end == scores.shape[0] or (begin > 0 and at - begin < end - at):
        for i in range(begin, at):
            scores[i - 1] = scores[i]
        for i in range(begin, at):
            positions[i - 1] = positions[i]
        blocks.spans[block, BEGIN] = begin - 1
        at -= 1
    else:
        for i in range(end, at, -1):
            scores[i] = scores[i - 1]
        for i in range(end, at, -1):
            positions[i] = positions[i - 1]
        blocks.spans[block, END] = end + 1
    scores[at], positions[at] = score, position
    blocks.sizes[ROWS] += 1


@inlined
def _rank_of_block(blocks: SortedBlocks, score: float) -> int:
    """Where in ``order`` the last block is whose worst row is no better than the score."""
    low, high, found = blocks.sizes[LOW], blocks.sizes[HIGH], 0
    while high - low > AT_ONCE:
        middle = (low + high) // 2
        if blocks.worst[middle] >= score:
            low = middle
        else:
            high = middle
    for at in range(low, high):
        found += blocks.worst[at] >= score
    return low + found - 1


@inlined
def _place(blocks: SortedBlocks, block: int, score: float) -> int:
    """The place behind all rows of a block that are no better than the score."""
    at, row, found = blocks.spans[block, BEGIN], blocks.scores[block], 0
    for i in range(at, blocks.spans[block, END]):
        found += row[i] >= score
    return at + found


# --------------------------------------------------------------------------------------
# Blocks


@part
def _split(blocks: SortedBlocks, rank: int) -> None:
    """Move the better half of a full block to a new block behind it."""
    rank += _center(blocks)
    sizes, order, worst = blocks.sizes, blocks.order, blocks.worst
    block, new, width = order[rank], _taken(blocks), blocks.scores.shape[1]
    for at in range(sizes[HIGH] - 1, rank, -1):
        order[at + 1], worst[at + 1] = order[at], worst[at]
    sizes[HIGH] += 1
    for i in range(width // 2, width):
        blocks.scores[new, i] = blocks.scores[block, i]
        blocks.positions[new, i] = blocks.positions[block, i]
    order[rank + 1], worst[rank + 1] = new, blocks.scores[new, width // 2]
    blocks.spans[new, BEGIN], blocks.spans[new, END] = width // 2, width
    blocks.spans[block, END] = width // 2


@part
def _open_best(blocks: SortedBlocks, score: float) -> None:
    """A new block behind all others, for a row of this score."""
    new = _taken(blocks)
    _center(blocks)
    sizes = blocks.sizes
    at = 0 if sizes[ROWS] > 0 else blocks.scores.shape[1] // 2
    blocks.spans[new, BEGIN], blocks.spans[new, END] = at, at
    blocks.order[sizes[HIGH]], blocks.worst[sizes[HIGH]] = new, score
    sizes[HIGH] += 1


@part
def _open_worst(blocks: SortedBlocks) -> None:
    """A new block before all others."""
    new = _taken(blocks)
    _center(blocks)
    sizes, at = blocks.sizes, blocks.scores.shape[1]
    if sizes[ROWS] == 0:
        at //= 2
    blocks.spans[new, BEGIN], blocks.spans[new, END] = at, at
    sizes[LOW] -= 1
    blocks.order[sizes[LOW]] = new


@inlined
def _taken(blocks: SortedBlocks) -> int:
    """A block that was not in use."""
    blocks.sizes[FREE] -= 1
    return blocks.free[blocks.sizes[FREE]]


@inlined
def _give_back(blocks: SortedBlocks, block: int) -> None:
    blocks.free[blocks.sizes[FREE]] = block
    blocks.sizes[FREE] += 1


@part
def _center(blocks: SortedBlocks) -> int:
    """See that the list can grow by a block at either end; by how much its blocks were moved."""
    sizes, order, worst = blocks.sizes, blocks.order, blocks.worst
    low, high, room = sizes[LOW], sizes[HIGH], order.shape[0]
    if low > 0 and high < room:
        return 0
    by = (room - (high - low)) // 2 - low
    for i in range(high - low):
        at = low + i if by < 0 else high - 1 - i
        order[at + by], worst[at + by] = order[at], worst[at]
    sizes[LOW], sizes[HIGH] = low + by, high + by
    return by
