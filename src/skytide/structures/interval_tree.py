"""An interval tree for stabbing: which intervals (left, right] hold a given number?

Rethought for streams and wide machines.  Intervals arrive by ascending right end, so the tree is an
array of leaves in arrival order, 64 to a leaf, augmented with the least left end of each leaf (two
levels: at 100,000 intervals the upper one is 2,000 numbers, read faster than a third level could
steer).  A leaf that may hold a hit is filtered eight intervals at a time, without a branch
(``compress``); only in the leaf in which the number itself falls are right ends looked at.  So
what a stab reports is in arrival order and need not be sorted, which would take four times as long
as the stab.

Stab: O(m / 64 + hit leaves), for m intervals a nanosecond a leaf and 16 a leaf that is hit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skytide.kernel import kernel, part
from skytide.structures.blocks import LANES, Ints
from skytide.structures.compress import EIGHT, append_eight

LEFT, RIGHT, TAG, SLOT = 0, 1, 2, 3  # rows of ``lanes``
COUNT, LEAST, LAST = 0, 1, 2  # columns of ``leaves``
LEAVES, LIVE = 0, 1  # what ``sizes`` holds
NEVER = np.iinfo(np.int64).max  # left end of no interval
ALWAYS = np.iinfo(np.int64).min  # left end of an interval that is open to the left


class IntervalTree(NamedTuple):
    """Intervals by leaf and lane; a *slot* is the caller's name of an interval."""

    lanes: Ints  # (leaves, 4, LANES): LEFT and RIGHT end, the TAG that a stab reports, SLOT; in an
    #              empty lane LEFT is NEVER
    leaves: Ints  # (leaves, 3): COUNT of intervals, always the first lanes; LEAST left end, NEVER
    #               when empty; LAST: the greatest right end that ever was in it
    leaf_of: Ints  # (slots,): the leaf of a slot's interval
    sizes: Ints  # LEAVES in use, LIVE intervals


def empty_interval_tree(slots: int) -> IntervalTree:
    """A tree with room for ``slots`` intervals.

    >>> empty_interval_tree(100).sizes
    array([1, 0])
    """
    leaves = 2 * -(-slots // LANES) + 4
    tree = IntervalTree(
        np.zeros((leaves, 4, LANES), np.int64),
        np.zeros((leaves, 3), np.int64),
        np.full(slots, -1, np.int64),
        np.array([1, 0], np.int64),
    )
    tree.leaves[:, LEAST] = NEVER
    tree.lanes[:, LEFT] = NEVER
    return tree


@part
def insert(tree: IntervalTree, slot: int, left: int, right: int, tag: int) -> None:
    """Add an interval whose right end is no less than any before.  O(1), O(LANES) amortised."""
    leaf = tree.sizes[LEAVES] - 1
    if tree.leaves[leaf, COUNT] == LANES and leaf > 2 * (tree.sizes[LIVE] // LANES):
        squeeze(tree)
    _append(tree, slot, left, right, tag)


@part
def _append(tree: IntervalTree, slot: int, left: int, right: int, tag: int) -> None:
    leaf = tree.sizes[LEAVES] - 1
    if tree.leaves[leaf, COUNT] == LANES:
        leaf = _next_leaf(tree)
    lane = tree.leaves[leaf, COUNT]
    tree.lanes[leaf, LEFT, lane] = left
    tree.lanes[leaf, RIGHT, lane] = right
    tree.lanes[leaf, TAG, lane] = tag
    tree.lanes[leaf, SLOT, lane] = slot
    tree.leaf_of[slot] = leaf
    tree.leaves[leaf, COUNT] = lane + 1
    tree.leaves[leaf, LEAST] = min(tree.leaves[leaf, LEAST], left)
    tree.leaves[leaf, LAST] = right
    tree.sizes[LIVE] += 1


@part
def _next_leaf(tree: IntervalTree) -> int:
    """Start a new youngest leaf."""
    leaf = tree.sizes[LEAVES]
    tree.leaves[leaf, COUNT] = 0
    tree.leaves[leaf, LEAST] = NEVER
    tree.sizes[LEAVES] = leaf + 1
    return leaf


@part
def _lane_of(tree: IntervalTree, slot: int) -> int:
    leaf = tree.leaf_of[slot]
    for lane in range(tree.leaves[leaf, COUNT]):
        if tree.lanes[leaf, SLOT, lane] == slot:
            return lane
    return -1


@part
def remove(tree: IntervalTree, slot: int) -> None:
    """Take an interval out; those behind it move up.  O(LANES)."""
    leaf = tree.leaf_of[slot]
    last = tree.leaves[leaf, COUNT] - 1
    for lane in range(_lane_of(tree, slot), last):
        for row in range(4):
            tree.lanes[leaf, row, lane] = tree.lanes[leaf, row, lane + 1]
    tree.lanes[leaf, LEFT, last] = NEVER
    tree.leaves[leaf, COUNT] = last
    tree.sizes[LIVE] -= 1
    _measure(tree, leaf)


@part
def raise_left(tree: IntervalTree, slot: int, left: int) -> None:
    """Give an interval a greater left end.  O(LANES)."""
    leaf, lane = tree.leaf_of[slot], _lane_of(tree, slot)
    tree.lanes[leaf, LEFT, lane] = left
    _measure(tree, leaf)


@part
def _measure(tree: IntervalTree, leaf: int) -> None:
    """Find the least left end of a leaf anew."""
    least = NEVER
    for lane in range(tree.leaves[leaf, COUNT]):
        least = min(least, tree.lanes[leaf, LEFT, lane])
    tree.leaves[leaf, LEAST] = least


@part
def squeeze(tree: IntervalTree) -> None:
    """Move all intervals down, in order of right ends, into full leaves; amortised over as many
    insertions.  An interval never moves up, so this works in place."""
    used, place = tree.sizes[LEAVES], 0
    for leaf in range(used):
        count = tree.leaves[leaf, COUNT]
        tree.leaves[leaf, COUNT], tree.leaves[leaf, LEAST] = 0, NEVER
        for lane in range(count):
            _move(tree, leaf, lane, place // LANES, place % LANES)
            place += 1
    tree.sizes[LEAVES] = max(1, (place + LANES - 1) // LANES)


@part
def _move(tree: IntervalTree, leaf: int, lane: int, to_leaf: int, to_lane: int) -> None:
    if leaf != to_leaf or lane != to_lane:
        for row in range(4):
            tree.lanes[to_leaf, row, to_lane] = tree.lanes[leaf, row, lane]
        tree.lanes[leaf, LEFT, lane] = NEVER
    tree.leaf_of[tree.lanes[to_leaf, SLOT, to_lane]] = to_leaf
    tree.leaves[to_leaf, COUNT] = to_lane + 1
    tree.leaves[to_leaf, LEAST] = min(
        tree.leaves[to_leaf, LEAST], tree.lanes[to_leaf, LEFT, to_lane]
    )
    tree.leaves[to_leaf, LAST] = tree.lanes[to_leaf, RIGHT, to_lane]


@part
def first_leaf_after(tree: IntervalTree, point: int) -> int:
    """The first leaf with a right end beyond ``point``, or the number of leaves."""
    low, high = 0, tree.sizes[LEAVES] - 1
    while low < high:
        middle = (low + high) // 2
        if tree.leaves[middle, LAST] > point:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def stab(tree: IntervalTree, point: int, out: Ints) -> int:
    """Write the tags of all intervals with ``left <= point < right``, ascending; how many.

    ``out`` must have room for EIGHT more.
    """
    lanes, leaves, found = tree.lanes, tree.leaves, 0
    first = first_leaf_after(tree, point)
    for lane in range(leaves[first, COUNT]):
        out[found] = lanes[first, TAG, lane]
        found += (lanes[first, LEFT, lane] <= point) & (point < lanes[first, RIGHT, lane])
    for leaf in range(first + 1, tree.sizes[LEAVES]):
        if leaves[leaf, LEAST] <= point:
            left, tag = (4 * leaf + LEFT) * LANES, (4 * leaf + TAG) * LANES
            for lane in range(0, leaves[leaf, COUNT], EIGHT):
                found = append_eight(lanes, left + lane, tag + lane, point, out, found)
    return found
