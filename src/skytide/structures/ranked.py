"""The k-skyband of scores: rows from best to worst, each with the number of younger rows that beat it.

A sorted list in blocks, as ``sortedcontainers`` has it: an entry is moved within its block only.  A new
row beats all rows from its own place on to the end of the list, being the youngest: those of its block
are counted one by one, whole blocks behind it by a *debt* that is added to all their counts.  Only a
block that may hold a row beaten k times is looked through.  Rows also hang together by age, so that the
oldest is known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skytide.kernel import inlined, part
from skytide.structures.blocks import Floats, Ints

WIDTH = 128
"""Entries of a block.  From 64 to 256 it makes little difference for k from 10 to 10,000."""

POSITION, LABEL, OLDER, YOUNGER = 0, 1, 2, 3  # columns of ``rows``
SIZE, DEBT, MOST = 0, 1, 2  # columns of ``facts``
BLOCKS, LIVE, OLDEST, YOUNGEST = 0, 1, 2, 3  # what ``sizes`` holds


class Ranked(NamedTuple):
    """Blocks in ``order``, best first; behind the first BLOCKS of them the unused ones."""

    scores: Floats  # (blocks, WIDTH): ascending, smaller is better
    slots: Ints  # (blocks, WIDTH): whose score it is
    beaten: Ints  # (blocks, WIDTH): younger rows that beat it, less the debt of the block
    facts: Ints  # (blocks, 3): SIZE; DEBT; MOST, no less than the greatest of ``beaten``
    order: Ints  # (blocks,)
    rows: Ints  # (slots, 4): by slot; OLDER and YOUNGER are slots, or -1
    marks: Floats  # (slots,): scores by slot
    free: Ints  # (slots,): slots; those from LIVE on are unused
    sizes: Ints  # see above


def empty_ranked(slots: int) -> Ranked:
    """Room for so many rows.

    >>> empty_ranked(64).rows.shape
    (64, 4)
    """
    blocks = 4 * slots // WIDTH + 4  # two neighbours are more than half a block, see ``close_up``
    return Ranked(
        np.empty((blocks, WIDTH)),
        np.empty((blocks, WIDTH), np.int64),
        np.empty((blocks, WIDTH), np.int64),
        np.zeros((blocks, 3), np.int64),
        np.arange(blocks),
        np.empty((slots, 4), np.int64),
        np.empty(slots),
        np.arange(slots),
        np.array([0, 0, -1, -1], np.int64),
    )


@inlined
def full(ranked: Ranked) -> bool:
    """Is there no room for another row?"""
    return ranked.sizes[LIVE] == ranked.free.shape[0]


@inlined
def insert(ranked: Ranked, score: float, position: int, label: int, k: int) -> None:
    """Add a row younger than all; forget those that k younger ones beat by now.

    O(log rows + WIDTH + blocks behind it), and WIDTH for each row forgotten.
    """
    rank = first_block_down_to(ranked, score)
    block = ranked.order[rank]
    if ranked.facts[block, SIZE] == WIDTH:
        split(ranked, rank)
        if ranked.scores[block, ranked.facts[block, SIZE] - 1] < score:
            rank += 1
            block = ranked.order[rank]
    at = first_at_least(ranked, block, score)
    for place in range(at, ranked.facts[block, SIZE]):
        ranked.beaten[block, place] += 1
    note_most(ranked, block, at)
    put(ranked, block, at, score, plant(ranked, score, position, label))
    for behind in range(rank + 1, ranked.sizes[BLOCKS]):
        ranked.facts[ranked.order[behind], DEBT] += 1
    for behind in range(ranked.sizes[BLOCKS] - 1, rank - 1, -1):
        facts = ranked.facts[ranked.order[behind]]
        if facts[MOST] + facts[DEBT] >= k:
            sweep(ranked, behind, k)


@inlined
def expire(ranked: Ranked, start: int) -> int:
    """Forget the rows with labels up to ``start``; how many.  O(log rows + WIDTH) each."""
    gone = 0
    while ranked.sizes[OLDEST] >= 0 and ranked.rows[ranked.sizes[OLDEST], LABEL] <= start:
        remove_oldest(ranked)
        gone += 1
    return gone


@inlined
def remove_oldest(ranked: Ranked) -> None:
    """Forget the oldest row.  Of equal scores it is the last, being the oldest of them too."""
    slot = ranked.sizes[OLDEST]
    score = ranked.marks[slot]
    rank = last_block_up_to(ranked, score)
    block = ranked.order[rank]
    at = first_at_least(ranked, block, score)
    while ranked.slots[block, at] != slot:
        at += 1
    for place in range(at + 1, ranked.facts[block, SIZE]):
        shift(ranked, block, place, place - 1)
    ranked.facts[block, SIZE] -= 1
    uproot(ranked, slot)
    close_up(ranked, rank)


@part
def cut(ranked: Ranked, rows: int) -> None:
    """Forget all but so many of the best rows.  O(1) for each row forgotten."""
    while ranked.sizes[LIVE] > rows:
        last = ranked.sizes[BLOCKS] - 1
        block = ranked.order[last]
        stop = max(0, ranked.facts[block, SIZE] - (ranked.sizes[LIVE] - rows))
        for place in range(stop, ranked.facts[block, SIZE]):
            uproot(ranked, ranked.slots[block, place])
        ranked.facts[block, SIZE] = stop
        close_up(ranked, last)


@inlined
def slot_at(ranked: Ranked, rank: int) -> int:
    """The slot of the row of this rank, from 0, or of the last row; -1 if there are none.

    O(rank / WIDTH).
    """
    for at in range(ranked.sizes[BLOCKS]):
        block = ranked.order[at]
        if rank < ranked.facts[block, SIZE]:
            return ranked.slots[block, rank]
        rank -= ranked.facts[block, SIZE]
    if ranked.sizes[BLOCKS] == 0:
        return -1
    return ranked.slots[block, ranked.facts[block, SIZE] - 1]


@part
def best_after(ranked: Ranked, start: int, most: int, out: Ints) -> int:
    """Write the positions of the best rows with labels above ``start``, best first; how many."""
    found = 0
    for at in range(ranked.sizes[BLOCKS]):
        block = ranked.order[at]
        for place in range(ranked.facts[block, SIZE]):
            row = ranked.rows[ranked.slots[block, place]]
            if found < most and row[LABEL] > start:
                out[found] = row[POSITION]
                found += 1
        if found == most:
            break
    return found


# --------------------------------------------------------------------------------------
# Where an entry belongs


@inlined
def first_block_down_to(ranked: Ranked, score: float) -> int:
    """The rank of the first block with an entry no better than ``score``, or of the last block."""
    if ranked.sizes[BLOCKS] == 0:
        open_block(ranked, 0)
    low, high = 0, ranked.sizes[BLOCKS] - 1
    while low < high:
        middle = (low + high) // 2
        block = ranked.order[middle]
        if ranked.scores[block, ranked.facts[block, SIZE] - 1] < score:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def last_block_up_to(ranked: Ranked, score: float) -> int:
    """The rank of the last block with an entry no worse than ``score``."""
    low, high = 0, ranked.sizes[BLOCKS] - 1
    while low < high:
        middle = (low + high + 1) // 2
        if ranked.scores[ranked.order[middle], 0] > score:
            high = middle - 1
        else:
            low = middle
    return low


@inlined
def first_at_least(ranked: Ranked, block: int, score: float) -> int:
    """The first place in a block with a score no better than this; its size if there is none."""
    low, high = 0, ranked.facts[block, SIZE]
    while low < high:
        middle = (low + high) // 2
        if ranked.scores[block, middle] < score:
            low = middle + 1
        else:
            high = middle
    return low


# --------------------------------------------------------------------------------------
# Entries within a block


@inlined
def shift(ranked: Ranked, block: int, place: int, to: int) -> None:
    """Move an entry within its block."""
    ranked.scores[block, to] = ranked.scores[block, place]
    ranked.slots[block, to] = ranked.slots[block, place]
    ranked.beaten[block, to] = ranked.beaten[block, place]


@part
def put(ranked: Ranked, block: int, at: int, score: float, slot: int) -> None:
    """Insert an entry that nobody beats yet; the block has room."""
    facts = ranked.facts[block]
    for place in range(facts[SIZE] - 1, at - 1, -1):
        shift(ranked, block, place, place + 1)
    ranked.scores[block, at] = score
    ranked.slots[block, at] = slot
    ranked.beaten[block, at] = -facts[DEBT]
    facts[MOST] = max(facts[MOST], -facts[DEBT]) if facts[SIZE] else -facts[DEBT]
    facts[SIZE] += 1


@part
def note_most(ranked: Ranked, block: int, start: int) -> None:
    """Raise MOST to what the entries from ``start`` on have become."""
    most = ranked.facts[block, MOST]
    for place in range(start, ranked.facts[block, SIZE]):
        most = max(most, ranked.beaten[block, place])
    ranked.facts[block, MOST] = most


@part
def sweep(ranked: Ranked, rank: int, k: int) -> None:
    """Forget the rows of a block that k younger ones beat."""
    block = ranked.order[rank]
    facts = ranked.facts[block]
    bar = k - facts[DEBT]
    left, most = 0, -facts[DEBT]
    for place in range(facts[SIZE]):
        if ranked.beaten[block, place] >= bar:
            uproot(ranked, ranked.slots[block, place])
        else:
            most = max(most, ranked.beaten[block, place])
            shift(ranked, block, place, left)
            left += 1
    facts[SIZE], facts[MOST] = left, most
    close_up(ranked, rank)


# --------------------------------------------------------------------------------------
# Blocks


@part
def open_block(ranked: Ranked, rank: int) -> int:
    """Put an empty block at this rank; which it is."""
    block = ranked.order[ranked.sizes[BLOCKS]]
    for at in range(ranked.sizes[BLOCKS], rank, -1):
        ranked.order[at] = ranked.order[at - 1]
    ranked.order[rank] = block
    ranked.sizes[BLOCKS] += 1
    ranked.facts[block, SIZE] = 0
    ranked.facts[block, DEBT] = 0
    ranked.facts[block, MOST] = 0
    return block


@part
def close_block(ranked: Ranked, rank: int) -> None:
    """Take away the block at this rank."""
    block = ranked.order[rank]
    ranked.sizes[BLOCKS] -= 1
    for at in range(rank, ranked.sizes[BLOCKS]):
        ranked.order[at] = ranked.order[at + 1]
    ranked.order[ranked.sizes[BLOCKS]] = block


@part
def split(ranked: Ranked, rank: int) -> None:
    """Move the worse half of a full block to a new block behind it."""
    block, half = ranked.order[rank], WIDTH // 2
    new = open_block(ranked, rank + 1)
    ranked.facts[block, SIZE] = half
    ranked.facts[new, DEBT] = ranked.facts[block, DEBT]
    ranked.facts[new, MOST] = ranked.facts[block, MOST]
    ranked.facts[new, SIZE] = WIDTH - half
    for place in range(half, WIDTH):
        ranked.scores[new, place - half] = ranked.scores[block, place]
        ranked.slots[new, place - half] = ranked.slots[block, place]
        ranked.beaten[new, place - half] = ranked.beaten[block, place]


@part
def close_up(ranked: Ranked, rank: int) -> None:
    """Take away a block that has become empty, or merge it with a neighbour if both are small."""
    if ranked.facts[ranked.order[rank], SIZE] == 0:
        close_block(ranked, rank)
        rank = max(0, rank - 1)
    if rank + 1 < ranked.sizes[BLOCKS] and small(ranked, rank):
        merge(ranked, rank)
    if rank > 0 and rank < ranked.sizes[BLOCKS] and small(ranked, rank - 1):
        merge(ranked, rank - 1)


@inlined
def small(ranked: Ranked, rank: int) -> bool:
    """Do this block and the next one together fill no more than half a block?"""
    one, other = ranked.order[rank], ranked.order[rank + 1]
    return ranked.facts[one, SIZE] + ranked.facts[other, SIZE] <= WIDTH // 2


@part
def merge(ranked: Ranked, rank: int) -> None:
    """Move the entries of the next block to the end of this one."""
    block, other = ranked.order[rank], ranked.order[rank + 1]
    facts, others = ranked.facts[block], ranked.facts[other]
    gap = others[DEBT] - facts[DEBT]
    for place in range(others[SIZE]):
        to = facts[SIZE] + place
        ranked.scores[block, to] = ranked.scores[other, place]
        ranked.slots[block, to] = ranked.slots[other, place]
        ranked.beaten[block, to] = ranked.beaten[other, place] + gap
    facts[SIZE] += others[SIZE]
    facts[MOST] = max(facts[MOST], others[MOST] + gap)
    close_block(ranked, rank + 1)


# --------------------------------------------------------------------------------------
# Rows by age


@inlined
def plant(ranked: Ranked, score: float, position: int, label: int) -> int:
    """Give the youngest row a slot."""
    slot = ranked.free[ranked.sizes[LIVE]]
    ranked.sizes[LIVE] += 1
    older = ranked.sizes[YOUNGEST]
    row = ranked.rows[slot]
    row[POSITION], row[LABEL], row[OLDER], row[YOUNGER] = position, label, older, -1
    ranked.marks[slot] = score
    ranked.sizes[YOUNGEST] = slot
    if older < 0:
        ranked.sizes[OLDEST] = slot
    else:
        ranked.rows[older, YOUNGER] = slot
    return slot


@inlined
def uproot(ranked: Ranked, slot: int) -> None:
    """Take a row out of the order of age; its slot is unused."""
    older, younger = ranked.rows[slot, OLDER], ranked.rows[slot, YOUNGER]
    if older < 0:
        ranked.sizes[OLDEST] = younger
    else:
        ranked.rows[older, YOUNGER] = younger
    if younger < 0:
        ranked.sizes[YOUNGEST] = older
    else:
        ranked.rows[younger, OLDER] = older
    ranked.sizes[LIVE] -= 1
    ranked.free[ranked.sizes[LIVE]] = slot
