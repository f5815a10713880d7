"""An in-memory R-tree of points with wide nodes (Lin et al., "Stabbing the Sky", section 3.3).

The paper's tree and its two searches, rethought for SIMD: a node holds up to 64 boxes, dimension by
dimension, so that one pass of straight compares tests them all, and the tree is two or three levels
high where nodes of four would need nine.  A leaf is a node whose boxes are points (lo = hi), so that
searches, splits and merges are written once for all levels.

- *Dominance reporting*: depth first into the boxes whose upper corner the point does not exceed.
- *Youngest dominator*: best first on the greatest age key under a node, kept beside every box.
- Removal leaves boxes and fill alone; :func:`settle` tightens and merges once, after a whole set of
  points has gone (the paper's deferred rebalancing, its modified boxes of Figure 8).

Differences from the paper: full nodes are split on the way down (so that a split never cascades);
a subtree that is dominated whole is still walked, because its points must be named one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skytide.kernel import kernel, part
from skytide.structures import heap
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

COUNT, LEVEL, PARENT, SEAT, IS_TOUCHED = 0, 1, 2, 3, 4  # columns of ``nodes``
REF, AGE = 0, 1  # rows of ``entries``
FREE, TOUCHED, ROOT, LIVE = 0, 1, 2, 3  # what ``sizes`` holds; the first two also rows of ``lists``
UNDERFULL = LANES // 4
SPARE = 16  # free nodes that an insertion may need at most: two a level


class RTree(NamedTuple):
    """Entries by node and lane; a *slot* is the caller's name of a point.

    Few arrays with many columns, because numba's compile time grows with the number of arrays.
    """

    boxes: Blocks  # lower corners of node n's entries in block 2n, upper corners in 2n + 1
    entries: Ints  # (nodes, 2, LANES): REF: child node, or slot in a leaf; AGE: greatest age key
    #                under the entry, greater is younger
    nodes: (
        Ints  # (nodes, 5): COUNT of entries, always the first lanes; LEVEL, 0 for a leaf; PARENT,
    )
    #              -1 for the root; SEAT: lane in the parent; IS_TOUCHED: in that list
    lists: Ints  # (2, nodes): FREE: unused nodes; TOUCHED: leaves that lost points lately
    places: Ints  # (slots,): node * LANES + lane of a slot's point
    sizes: Ints  # lengths of the FREE and TOUCHED lists; ROOT node; LIVE points
    scale: Floats  # (dims,): 1 / extent of the tree, so that no dimension's unit matters
    visits: Ints  # (2, nodes): scratch: nodes to visit, a heap or in its ITEMs a stack
    best: Ints  # (k,): scratch: age keys of the youngest dominators so far
    costs: Floats  # (LANES,): scratch


def empty_rtree(dims: int, slots: int, k: int, nodes: int = 0) -> RTree:
    """A tree with room for ``slots`` points, however they fall, and searches for the k youngest.

    >>> int(empty_rtree(dims=2, slots=100, k=1).sizes[LIVE])
    0
    """
    nodes = nodes or slots // UNDERFULL + 2 * SPARE
    tree = RTree(
        empty_blocks(2 * nodes, dims),
        np.zeros((nodes, 2, LANES), np.int64),
        np.zeros((nodes, 5), np.int64),
        np.zeros((2, nodes), np.int64),
        np.full(slots, -1, np.int64),
        np.array([nodes, 0, 0, 0], np.int64),
        np.ones(dims),
        np.zeros((2, nodes), np.int64),
        np.zeros(k, np.int64),
        np.zeros(LANES),
    )
    tree.lists[FREE] = np.arange(nodes - 1, -1, -1)
    tree.sizes[ROOT] = _take_node(tree, 0)
    return tree


@kernel
def _take_node(tree: RTree, level: int) -> int:
    tree.sizes[FREE] -= 1
    node = tree.lists[FREE, tree.sizes[FREE]]
    tree.nodes[node, LEVEL] = level
    tree.nodes[node, COUNT] = 0
    tree.nodes[node, PARENT] = -1
    return node


@part
def _give_node(tree: RTree, node: int) -> None:
    for lane in range(tree.nodes[node, COUNT]):
        wipe(tree.boxes, 2 * node, lane)
        wipe(tree.boxes, 2 * node + 1, lane)
    tree.nodes[node, COUNT] = 0
    tree.lists[FREE, tree.sizes[FREE]] = node
    tree.sizes[FREE] += 1


@part
def _link(tree: RTree, node: int, lane: int) -> None:
    """Tell the child, or the slot, of an entry where it now stands."""
    ref = tree.entries[node, REF, lane]
    if tree.nodes[node, LEVEL] == 0:
        tree.places[ref] = node * LANES + lane
    else:
        tree.nodes[ref, PARENT] = node
        tree.nodes[ref, SEAT] = lane


@part
def _move_entry(tree: RTree, node: int, lane: int, to_node: int, to_lane: int) -> None:
    move(tree.boxes, 2 * node, lane, 2 * to_node, to_lane)
    move(tree.boxes, 2 * node + 1, lane, 2 * to_node + 1, to_lane)
    tree.entries[to_node, REF, to_lane] = tree.entries[node, REF, lane]
    tree.entries[to_node, AGE, to_lane] = tree.entries[node, AGE, lane]
    _link(tree, to_node, to_lane)


@part
def _drop_entry(tree: RTree, node: int, lane: int) -> None:
    """Fill the lane with the node's last entry and empty that."""
    last = tree.nodes[node, COUNT] - 1
    if lane != last:
        _move_entry(tree, node, last, node, lane)
    wipe(tree.boxes, 2 * node, last)
    wipe(tree.boxes, 2 * node + 1, last)
    tree.nodes[node, COUNT] = last


@part
def _tighten(tree: RTree, node: int) -> None:
    """Shrink the boxes above a node to what is under them, as far up as that changes anything."""
    while tree.nodes[node, PARENT] >= 0:
        parent, seat, changed = tree.nodes[node, PARENT], tree.nodes[node, SEAT], False
        for j in range(tree.scale.shape[0]):
            low, high = np.inf, -np.inf
            for lane in range(tree.nodes[node, COUNT]):
                low = min(low, tree.boxes.points[2 * node, j, lane])
                high = max(high, tree.boxes.points[2 * node + 1, j, lane])
            changed |= low != tree.boxes.points[2 * parent, j, seat]
            changed |= high != tree.boxes.points[2 * parent + 1, j, seat]
            tree.boxes.points[2 * parent, j, seat] = low
            tree.boxes.points[2 * parent + 1, j, seat] = high
        age = tree.entries[node, AGE, 0]
        for lane in range(1, tree.nodes[node, COUNT]):
            age = max(age, tree.entries[node, AGE, lane])
        changed |= age != tree.entries[parent, AGE, seat]
        tree.entries[parent, AGE, seat] = age
        if not changed:
            return
        node = parent


@part
def _adopt(tree: RTree, parent: int, child: int) -> None:
    """Give a node a further child, its box still to be tightened."""
    lane = tree.nodes[parent, COUNT]
    tree.nodes[parent, COUNT] = lane + 1
    tree.entries[parent, REF, lane] = child
    _link(tree, parent, lane)


@part
def _rescale(tree: RTree) -> None:
    """Measure the tree's extent anew; infinite and empty extents count as 1."""
    root = tree.sizes[ROOT]
    for j in range(tree.scale.shape[0]):
        low, high = np.inf, -np.inf
        for lane in range(tree.nodes[root, COUNT]):
            low = min(low, tree.boxes.points[2 * root, j, lane])
            high = max(high, tree.boxes.points[2 * root + 1, j, lane])
        extent = high - low
        tree.scale[j] = 1.0 / extent if 0.0 < extent < np.inf else 1.0


@part
def _widest(tree: RTree, node: int) -> int:
    """The dimension in which the entries of a node lie furthest apart, in units of the tree."""
    best, widest = 0, -1.0
    for j in range(tree.scale.shape[0]):
        low, high = np.inf, -np.inf
        for lane in range(tree.nodes[node, COUNT]):
            low = min(low, tree.boxes.points[2 * node + 1, j, lane])
            high = max(high, tree.boxes.points[2 * node, j, lane])
        width = (high - low) * tree.scale[j]
        if width > widest:
            best, widest = j, width
    return best


@part
def _order_entries(tree: RTree, node: int, j: int) -> None:
    """Order the entries of a full node by their centres in one dimension.  O(LANES ** 2) at worst."""
    low, high = tree.boxes.points[2 * node, j], tree.boxes.points[2 * node + 1, j]
    for lane in range(1, LANES):
        here = lane
        while here > 0 and low[here] + high[here] < low[here - 1] + high[here - 1]:
            _swap_entries(tree, node, here)
            here -= 1


@part
def _swap_entries(tree: RTree, node: int, lane: int) -> None:
    """Exchange an entry with the one before it."""
    points = tree.boxes.points
    for block in range(2 * node, 2 * node + 2):
        for j in range(points.shape[1]):
            value = points[block, j, lane]
            points[block, j, lane] = points[block, j, lane - 1]
            points[block, j, lane - 1] = value
    for row in range(2):
        entry = tree.entries[node, row, lane]
        tree.entries[node, row, lane] = tree.entries[node, row, lane - 1]
        tree.entries[node, row, lane - 1] = entry
    _link(tree, node, lane)
    _link(tree, node, lane - 1)


@part
def _split(tree: RTree, node: int) -> None:
    """Move the upper half of a full node, by its widest dimension, to a new sibling."""
    _rescale(tree)
    j = _widest(tree, node)
    _order_entries(tree, node, j)
    sibling, half = _take_node(tree, tree.nodes[node, LEVEL]), LANES // 2
    for lane in range(half, LANES):
        _move_entry(tree, node, lane, sibling, lane - half)
        wipe(tree.boxes, 2 * node, lane)
        wipe(tree.boxes, 2 * node + 1, lane)
    tree.nodes[node, COUNT] = half
    tree.nodes[sibling, COUNT] = LANES - half
    if tree.nodes[node, PARENT] < 0:
        tree.sizes[ROOT] = _take_node(tree, tree.nodes[node, LEVEL] + 1)
        _adopt(tree, tree.sizes[ROOT], node)
    _adopt(tree, tree.nodes[node, PARENT], sibling)
    _tighten(tree, node)
    _tighten(tree, sibling)


@part
def _nearest(tree: RTree, node: int, point: Floats) -> int:
    """The entry whose box grows least, in summed edges, to take the point in."""
    costs = tree.costs
    costs[:] = 0.0
    for j in range(point.shape[0]):
        value, scale = point[j], tree.scale[j]
        for lane in range(LANES):
            below = tree.boxes.points[2 * node, j, lane] - value
            above = value - tree.boxes.points[2 * node + 1, j, lane]
            costs[lane] += scale * (max(below, 0.0) + max(above, 0.0))
    best = 0
    for lane in range(1, tree.nodes[node, COUNT]):
        if costs[lane] < costs[best]:
            best = lane
    return best


@part
def _nearer_half(tree: RTree, node: int, lane: int, point: Floats) -> int:
    """After a split: the child that was split, or its new sibling in the last lane.

    Not any other child, even if it is nearer now: that one may be full.
    """
    _nearest(tree, node, point)
    sibling = tree.nodes[node, COUNT] - 1
    return lane if tree.costs[lane] <= tree.costs[sibling] else sibling


@part
def _enlarge(tree: RTree, node: int, lane: int, age: int, point: Floats) -> None:
    for j in range(point.shape[0]):
        tree.boxes.points[2 * node, j, lane] = min(tree.boxes.points[2 * node, j, lane], point[j])
        tree.boxes.points[2 * node + 1, j, lane] = max(
            tree.boxes.points[2 * node + 1, j, lane], point[j]
        )
    tree.entries[node, AGE, lane] = max(tree.entries[node, AGE, lane], age)


@part
def insert(tree: RTree, slot: int, age: int, point: Floats) -> None:
    """Add a point.  O(height * LANES * d); wants SPARE free nodes."""
    if tree.nodes[tree.sizes[ROOT], COUNT] == LANES:
        _split(tree, tree.sizes[ROOT])
    node = tree.sizes[ROOT]
    while tree.nodes[node, LEVEL] > 0:
        lane = _nearest(tree, node, point)
        if tree.nodes[tree.entries[node, REF, lane], COUNT] == LANES:
            _split(tree, tree.entries[node, REF, lane])
            lane = _nearer_half(tree, node, lane, point)
        _enlarge(tree, node, lane, age, point)
        node = tree.entries[node, REF, lane]
    lane = tree.nodes[node, COUNT]
    tree.nodes[node, COUNT] = lane + 1
    put(tree.boxes, 2 * node, lane, point)
    put(tree.boxes, 2 * node + 1, lane, point)
    tree.entries[node, REF, lane] = slot
    tree.entries[node, AGE, lane] = age
    tree.places[slot] = node * LANES + lane
    tree.sizes[LIVE] += 1


@part
def remove(tree: RTree, slot: int) -> None:
    """Take a point out; call :func:`settle` after the last of a set.  O(d)."""
    node = tree.places[slot] // LANES
    _drop_entry(tree, node, tree.places[slot] % LANES)
    tree.sizes[LIVE] -= 1
    if tree.nodes[node, IS_TOUCHED] == 0:
        tree.nodes[node, IS_TOUCHED] = 1
        tree.lists[TOUCHED, tree.sizes[TOUCHED]] = node
        tree.sizes[TOUCHED] += 1


@part
def settle(tree: RTree) -> None:
    """Tighten and, where they have become too empty, merge the leaves that lost points."""
    for i in range(tree.sizes[TOUCHED]):
        leaf = tree.lists[TOUCHED, i]
        tree.nodes[leaf, IS_TOUCHED] = 0
        if tree.nodes[leaf, COUNT] > 0:
            _tighten(tree, leaf)
        node = leaf
        while node >= 0 and tree.nodes[node, COUNT] < UNDERFULL:
            node = _relieve(tree, node)
    tree.sizes[TOUCHED] = 0


@part
def _relieve(tree: RTree, node: int) -> int:
    """Merge an underfull node into a sibling, or drop it when empty; who must be looked at next."""
    parent = tree.nodes[node, PARENT]
    if parent < 0:
        while (
            tree.nodes[node, LEVEL] > 0 and tree.nodes[node, COUNT] == 1
        ):  # a root of one child is no use
            child = tree.entries[node, REF, 0]
            _give_node(tree, node)
            tree.nodes[child, PARENT] = -1
            tree.sizes[ROOT] = child
            node = child
        return -1
    if tree.nodes[node, COUNT] > 0:
        sibling = _roomy_sibling(tree, node)
        if sibling < 0:
            return -1
        for lane in range(tree.nodes[node, COUNT]):
            _move_entry(tree, node, lane, sibling, tree.nodes[sibling, COUNT] + lane)
        tree.nodes[sibling, COUNT] += tree.nodes[node, COUNT]
        _tighten(tree, sibling)
    seat = tree.nodes[node, SEAT]
    _give_node(tree, node)
    _drop_entry(tree, parent, seat)
    if tree.nodes[parent, COUNT] > 0:
        _tighten(tree, parent)
    elif tree.nodes[parent, PARENT] < 0:  # the last point is gone: the root starts anew as a leaf
        tree.nodes[parent, LEVEL] = 0
        return -1
    return parent


@part
def _roomy_sibling(tree: RTree, node: int) -> int:
    """The sibling with the nearest centre that can take all entries of a node; -1 if none can."""
    parent, seat = tree.nodes[node, PARENT], tree.nodes[node, SEAT]
    best, nearest = -1, np.inf
    for lane in range(tree.nodes[parent, COUNT]):
        sibling = tree.entries[parent, REF, lane]
        if lane == seat or tree.nodes[sibling, COUNT] + tree.nodes[node, COUNT] > LANES * 3 // 4:
            continue
        distance = 0.0
        for j in range(tree.scale.shape[0]):
            here = (
                tree.boxes.points[2 * parent, j, seat] + tree.boxes.points[2 * parent + 1, j, seat]
            )
            there = (
                tree.boxes.points[2 * parent, j, lane] + tree.boxes.points[2 * parent + 1, j, lane]
            )
            distance += abs(here - there) * tree.scale[j]
        if best < 0 or distance < nearest:
            best, nearest = sibling, distance
    return best


@part
def report_dominated(tree: RTree, point: Floats, equals: bool, out: Ints) -> int:
    """Write the slots that ``point`` dominates (with ``equals``: or equals) to ``out``; how many."""
    found, top = 0, 1
    tree.visits[heap.ITEM, 0] = tree.sizes[ROOT]
    while top > 0:
        top -= 1
        node = tree.visits[heap.ITEM, top]
        if not mark_at_least(tree.boxes, 2 * node + 1, point):
            continue
        for lane in range(tree.nodes[node, COUNT]):
            if tree.boxes.mask[lane] == 0:
                continue
            if tree.nodes[node, LEVEL] > 0:
                tree.visits[heap.ITEM, top] = tree.entries[node, REF, lane]
                top += 1
            elif equals or not lane_equals(tree.boxes, 2 * node + 1, lane, point):
                out[found] = tree.entries[node, REF, lane]
                found += 1
    return found


@part
def youngest_dominators(tree: RTree, point: Floats, k: int, out: Ints) -> int:
    """Write the k youngest slots that dominate ``point``, youngest first; how many there were."""
    found, size = 0, 1
    tree.visits[heap.ITEM, 0] = tree.sizes[ROOT]
    tree.visits[heap.KEY, 0] = np.iinfo(np.int64).max
    while size > 0:
        node, key = tree.visits[heap.ITEM, 0], tree.visits[heap.KEY, 0]
        if found == k and key <= tree.best[k - 1]:
            break
        size = heap.pop(tree.visits, size)
        if not mark_at_most(tree.boxes, 2 * node, point):
            continue
        for lane in range(tree.nodes[node, COUNT]):
            age = tree.entries[node, AGE, lane]
            if tree.boxes.mask[lane] == 0 or (found == k and age <= tree.best[k - 1]):
                continue
            if tree.nodes[node, LEVEL] > 0:
                size = heap.push(tree.visits, size, age, tree.entries[node, REF, lane])
            elif not lane_equals(tree.boxes, 2 * node, lane, point):
                found = _remember(tree, found, k, age, tree.entries[node, REF, lane], out)
    return found


@part
def _remember(tree: RTree, found: int, k: int, age: int, slot: int, out: Ints) -> int:
    """Sort a dominator into the k youngest so far."""
    i = min(found, k - 1)
    while i > 0 and tree.best[i - 1] < age:
        tree.best[i] = tree.best[i - 1]
        out[i] = out[i - 1]
        i -= 1
    tree.best[i] = age
    out[i] = slot
    return min(found + 1, k)
