"""The flat blocked scan: points in arrival order, compared 64 at a time.

No index at all, which below a few thousand points nothing beats.  A removed point leaves a NaN hole;
holes are squeezed out when they are more than a fifth of the places.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skytide.kernel import part
from skytide.structures.blocks import (
    LANES,
    Blocks,
    Floats,
    Ints,
    empty_blocks,
    lane_equals,
    mark_at_least,
    mark_at_most,
    move,
    put,
    wipe,
)

HEAD, TAIL, LIVE = 0, 1, 2  # what ``sizes`` holds


class Flat(NamedTuple):
    """Points by place = block * LANES + lane; a *slot* is the caller's name of a point."""

    blocks: Blocks
    slots: Ints  # (places,): whose point this is; -1 in a hole
    labels: Ints  # (places,): never decreasing; a hole keeps the label of what was there
    places: Ints  # (slots,): where a slot's point is
    sizes: Ints  # HEAD: holes only before it; TAIL: the next free place; LIVE: points


def empty_flat(dims: int, slots: int) -> Flat:
    """A flat scan with room for ``slots`` points, and as much again for holes.

    >>> empty_flat(dims=2, slots=64).blocks.points.shape
    (3, 2, 64)
    """
    blocks = 2 * -(-slots // LANES) + 1
    return Flat(
        empty_blocks(blocks, dims),
        np.full(blocks * LANES, -1, np.int64),
        np.zeros(blocks * LANES, np.int64),
        np.full(slots, -1, np.int64),
        np.zeros(3, np.int64),
    )


@part
def insert(flat: Flat, slot: int, label: int, point: Floats) -> None:
    """Append a point, its label no less than any before.  O(d), squeezing amortised."""
    if flat.sizes[TAIL] > LANES + flat.sizes[LIVE] + flat.sizes[LIVE] // 4:
        squeeze(flat)
    place = flat.sizes[TAIL]
    put(flat.blocks, place // LANES, place % LANES, point)
    flat.slots[place] = slot
    flat.labels[place] = label
    flat.places[slot] = place
    flat.sizes[TAIL] += 1
    flat.sizes[LIVE] += 1


@part
def remove(flat: Flat, slot: int) -> None:
    """Leave a hole where the slot's point was.  O(d)."""
    place = flat.places[slot]
    wipe(flat.blocks, place // LANES, place % LANES)
    flat.slots[place] = -1
    flat.sizes[LIVE] -= 1


@part
def squeeze(flat: Flat) -> None:
    """Move all points down over the holes, in order.  O(places * d)."""
    free = 0
    for place in range(flat.sizes[TAIL]):
        slot = flat.slots[place]
        if slot < 0:
            continue
        if free < place:
            move(flat.blocks, place // LANES, place % LANES, free // LANES, free % LANES)
            wipe(flat.blocks, place // LANES, place % LANES)
            flat.slots[place] = -1
            flat.slots[free] = slot
            flat.labels[free] = flat.labels[place]
            flat.places[slot] = free
        free += 1
    flat.sizes[HEAD], flat.sizes[TAIL] = 0, free


@part
def oldest(flat: Flat) -> int:
    """The slot that arrived first, or -1.  O(1) amortised."""
    while flat.sizes[HEAD] < flat.sizes[TAIL]:
        slot = flat.slots[flat.sizes[HEAD]]
        if slot >= 0:
            return slot
        flat.sizes[HEAD] += 1
    return -1


@part
def first_place_after(flat: Flat, label: int) -> int:
    """The first place, hole or not, with a greater label; TAIL if there is none.  O(log places)."""
    low, high = flat.sizes[HEAD], flat.sizes[TAIL]
    while low < high:
        middle = (low + high) // 2
        if flat.labels[middle] > label:
            high = middle
        else:
            low = middle + 1
    return low


@part
def report_dominated(flat: Flat, point: Floats, equals: bool, out: Ints) -> int:
    """Write the slots that ``point`` dominates (with ``equals``: or equals) to ``out``; how many."""
    found = 0
    for block in range(flat.sizes[HEAD] // LANES, (flat.sizes[TAIL] + LANES - 1) // LANES):
        if mark_at_least(flat.blocks, block, point):
            for lane in range(LANES):
                if flat.blocks.mask[lane] and (
                    equals or not lane_equals(flat.blocks, block, lane, point)
                ):
                    out[found] = flat.slots[block * LANES + lane]
                    found += 1
    return found


@part
def youngest_dominators(flat: Flat, point: Floats, k: int, blocks: int, out: Ints) -> int:
    """Write the k youngest slots that dominate ``point``, youngest first; how many there were.

    Looks at the youngest ``blocks`` blocks only.
    """
    found = 0
    end = (flat.sizes[TAIL] + LANES - 1) // LANES
    for block in range(end - 1, max(flat.sizes[HEAD] // LANES, end - blocks) - 1, -1):
        if mark_at_most(flat.blocks, block, point):
            for lane in range(LANES - 1, -1, -1):
                if flat.blocks.mask[lane] and not lane_equals(flat.blocks, block, lane, point):
                    out[found] = flat.slots[block * LANES + lane]
                    found += 1
                    if found == k:
                        return found
    return found
