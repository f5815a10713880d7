"""Slots in the order of their scores, in blocks of 64: a score's place is found in a few looks.

As ``sortedcontainers`` has it, entries are moved within their block only, and there the shorter side
makes room.  *Fences*, one for each block, stand side by side: a binary search among them finds the
block.  The place in it is found by counting smaller scores, all 64, which SIMD does in a few steps and
without a branch that could be mispredicted.

A fence may stay where it is though the entry it was taken from is gone.  So removing a slot concerns
its block only, which may become empty.  When no block is left to be opened, the caller, who knows the
order, fills all anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skytide.kernel import inlined, part
from skytide.structures.blocks import Floats, Ints

WIDTH = 64
"""Entries of a block.  Half as many or twice as many took 5-20 % longer with 1,500 to 45,000 slots."""

FILLED = 48
"""Entries of a block that was filled anew."""

START, STOP = 0, 1  # columns of ``bounds``


class SortedSlots(NamedTuple):
    """Blocks in ``order``, the least first; behind the first USED of them the unused ones.

    No entry is greater than the fence of its block, and none is less than the fence before."""

    scores: Floats  # (blocks, WIDTH): ascending; -inf before the first entry, inf behind the last
    slots: Ints  # (blocks, WIDTH): whose score it is; -1 where there is no entry
    bounds: Ints  # (blocks, 2): entries stand from START to STOP
    order: Ints  # (blocks,)
    fences: Floats  # (blocks,): by place in ``order``; the last one does not count
    home: Ints  # (slots,): the block that a slot is in
    used: Ints  # (1,): blocks in use, always one at least


def empty_sorted_slots(slots: int) -> SortedSlots:
    """Room for so many slots.

    >>> empty_sorted_slots(64).scores.shape
    (4, 64)
    """
    blocks = 2 * slots // WIDTH + 2  # filled anew, slots need two thirds of them at most
    return SortedSlots(
        np.full((blocks, WIDTH), np.inf),
        np.full((blocks, WIDTH), -1),
        np.zeros((blocks, 2), np.int64),
        np.arange(blocks),
        np.zeros(blocks),
        np.zeros(slots, np.int64),
        np.ones(1, np.int64),
    )


@inlined
def full(sorted_: SortedSlots) -> bool:
    """Is no block left, so that all have to be filled anew?  After O(slots) insertions."""
    return sorted_.used[0] == sorted_.order.shape[0]


@part
def clear(sorted_: SortedSlots) -> None:
    """Take all slots away."""
    sorted_.used[0] = 1
    trim(sorted_, sorted_.order[0], 0, 0)


@inlined
def append(sorted_: SortedSlots, slot: int, score: float) -> None:
    """Add a slot behind all others, none of which has a greater score, to fill blocks anew.

    They are left with room, or the next slots would split them all.
    """
    rank = sorted_.used[0] - 1
    block = sorted_.order[rank]
    if sorted_.bounds[block, STOP] == FILLED:
        sorted_.fences[rank] = sorted_.scores[block, FILLED - 1]
        block = open_block(sorted_, rank + 1)
        trim(sorted_, block, 0, 0)
    put(sorted_, block, sorted_.bounds[block, STOP], slot, score)


@inlined
def insert(sorted_: SortedSlots, slot: int, score: float) -> int:
    """Add a slot in front of all whose score is no less; the slot that is then right behind, or -1.

    O(log slots + WIDTH), but for opening a block, O(blocks), now and then.  Not to be called when full.
    """
    rank = rank_of(sorted_, score)
    block = sorted_.order[rank]
    if sorted_.bounds[block, STOP] - sorted_.bounds[block, START] == WIDTH:
        make_room(sorted_, rank, score)
        rank = rank_of(sorted_, score)
        block = sorted_.order[rank]
    at = put(sorted_, block, place_of(sorted_, block, score), slot, score) + 1
    while at == sorted_.bounds[block, STOP]:
        rank += 1
        if rank == sorted_.used[0]:
            return -1
        block = sorted_.order[rank]
        at = sorted_.bounds[block, START]
    return sorted_.slots[block, at]


@inlined
def rank_of(sorted_: SortedSlots, score: float) -> int:
    """The first block with a fence no less than a score, or the last block.

    The same steps whichever half is gone on with: a branch would be mispredicted every other time.
    """
    low, left = 0, sorted_.used[0] - 1
    while left > 0:
        half = (left + 1) >> 1
        low += half * (sorted_.fences[low + half - 1] < score)
        left -= half
    return low


@inlined
def place_of(sorted_: SortedSlots, block: int, score: float) -> int:
    """The first place in a block with a score no less."""
    at = 0
    for place in range(WIDTH):
        at += sorted_.scores[block, place] < score
    return max(at, sorted_.bounds[block, START])  # were the score -inf, it would be less


@inlined
def put(sorted_: SortedSlots, block: int, at: int, slot: int, score: float) -> int:
    """Insert an entry in front of a place, the block has room; where it stands then."""
    start, stop = sorted_.bounds[block, START], sorted_.bounds[block, STOP]
    if start > 0 and (at - start < stop - at or stop == WIDTH):
        at -= 1
        for place in range(start, at + 1):
            shift(sorted_, block, place, place - 1)
        sorted_.bounds[block, START] = start - 1
    else:
        for place in range(stop - 1, at - 1, -1):
            shift(sorted_, block, place, place + 1)
        sorted_.bounds[block, STOP] = stop + 1
    sorted_.scores[block, at], sorted_.slots[block, at] = score, slot
    sorted_.home[slot] = block
    return at


@inlined
def remove(sorted_: SortedSlots, slot: int) -> None:
    """Take a slot away.  O(WIDTH)."""
    block = sorted_.home[slot]
    start, last = sorted_.bounds[block, START], sorted_.bounds[block, STOP] - 1
    at = 0
    for place in range(WIDTH):
        at += place * (sorted_.slots[block, place] == slot)
    if at - start < last - at:
        for place in range(at - 1, start - 1, -1):
            shift(sorted_, block, place, place + 1)
        sorted_.scores[block, start], sorted_.slots[block, start] = -np.inf, -1
        sorted_.bounds[block, START] = start + 1
    else:
        for place in range(at + 1, last + 1):
            shift(sorted_, block, place, place - 1)
        sorted_.scores[block, last], sorted_.slots[block, last] = np.inf, -1
        sorted_.bounds[block, STOP] = last


@inlined
def shift(sorted_: SortedSlots, block: int, place: int, to: int) -> None:
    """Move an entry within its block."""
    sorted_.scores[block, to] = sorted_.scores[block, place]
    sorted_.slots[block, to] = sorted_.slots[block, place]


# --------------------------------------------------------------------------------------
# Whole blocks


@part
def make_room(sorted_: SortedSlots, rank: int, score: float) -> None:
    """The block of this rank is full, and this score belongs to it: open another one.

    Beside it, if the score belongs at an end of it, so that scores in order fill blocks; else split it.
    """
    block = sorted_.order[rank]
    if score <= sorted_.scores[block, 0]:
        trim(sorted_, open_block(sorted_, rank), WIDTH, WIDTH)
        sorted_.fences[rank] = sorted_.scores[block, 0]
        return
    new, left = open_block(sorted_, rank + 1), WIDTH
    if score > sorted_.scores[block, WIDTH - 1]:
        trim(sorted_, new, 0, 0)
    else:
        left = WIDTH // 2
        for place in range(left, WIDTH):
            move(sorted_, block, place, new, place)
        trim(sorted_, block, 0, left)
        trim(sorted_, new, left, WIDTH)
    sorted_.fences[rank + 1] = sorted_.fences[rank]
    sorted_.fences[rank] = sorted_.scores[block, left - 1]


@part
def open_block(sorted_: SortedSlots, rank: int) -> int:
    """Make an unused block the one of this rank, and move those behind up; which it is."""
    new = sorted_.order[sorted_.used[0]]
    for at in range(sorted_.used[0], rank, -1):
        sorted_.order[at] = sorted_.order[at - 1]
        sorted_.fences[at] = sorted_.fences[at - 1]
    sorted_.order[rank] = new
    sorted_.used[0] += 1
    return new


@part
def move(sorted_: SortedSlots, block: int, place: int, to_block: int, to: int) -> None:
    """Copy an entry to where it is to be from now on."""
    slot = sorted_.slots[block, place]
    sorted_.scores[to_block, to] = sorted_.scores[block, place]
    sorted_.slots[to_block, to] = slot
    sorted_.home[slot] = to_block


@part
def trim(sorted_: SortedSlots, block: int, start: int, stop: int) -> None:
    """Leave the entries of a block that stand from ``start`` to ``stop``."""
    for place in range(start):
        sorted_.scores[block, place], sorted_.slots[block, place] = -np.inf, -1
    for place in range(stop, WIDTH):
        sorted_.scores[block, place], sorted_.slots[block, place] = np.inf, -1
    sorted_.bounds[block, START], sorted_.bounds[block, STOP] = start, stop
