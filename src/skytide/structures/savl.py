"""The S-AVL: stacks of rows under an ordered set of their tops.

R. Zhu, B. Wang, X. Yang, B. Zheng and G. Wang, "SAP: Improving Continuous Top-K Queries over
Streaming Data" (TKDE 29(6), 2017), Section 5.1 and Figure 8.  Rows are added from the youngest to the
oldest.  The first ``limit`` of them open a stack each; after that a row goes on the stack with the best
top that it beats, and is forgotten if there is none: ``limit`` rows that outlive it, the tops, are
better.  So within a stack a row above another is better and ends no later.

The paper keeps the tops in an AVL tree.  While rows are added a row takes the place of a top without
passing another, which is why the paper chose the stack that it goes on as it did; so the tree never
turns, and a sorted array with binary search does as well: O(log limit) a row.  When rows are taken
out again the best is always taken: a heap does, O(log stacks) a row, and the sorted array is one.

Rows that have expired are dropped when they come to the top; below them may be others that have not.
Scores are smaller-is-better, and of equal ones the greater position is better.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skytide.kernel import inlined, part
from skytide.structures.blocks import Floats, Ints
from skytide.structures.scored import better

NONE = -1
FREE, USED, NODES, TOPS, BUILT, LIMIT, HINT = 0, 1, 2, 3, 4, 6, 8
"""What ``sizes`` holds: the first node of the chain of free ones, nodes ever used, nodes in use, stacks
in the heap; in each lane the stacks being built, how many there may be, which was added to last."""


class Savl(NamedTuple):
    """A *node* is one row on a stack.  Two sets of stacks can be built at a time, each in its lane."""

    scores: Floats  # (nodes,)
    positions: Ints  # (nodes,)
    labels: Ints  # (nodes,)
    below: Ints  # (nodes,): the next node of the stack; of free nodes the next free one
    beside: Ints  # (nodes,): chains the tops of stacks that were built and wait for their turn
    tops: Ints  # (nodes,): a heap of nodes, the best on top: the stacks that rows are taken from
    built: Ints  # (2, nodes): the tops of the stacks that rows are added to, the best first
    sizes: Ints


def empty_savl(nodes: int) -> Savl:
    """Room for so many rows."""
    positions, labels, below, beside, tops = np.zeros((5, nodes), np.int64)
    sizes = np.array([NONE, 0, 0, 0, 0, 0, 0, 0, 0, 0], np.int64)
    built = np.zeros((2, nodes), np.int64)
    return Savl(np.zeros(nodes), positions, labels, below, beside, tops, built, sizes)


@inlined
def room(savl: Savl) -> int:
    """How many more rows there is room for."""
    return savl.scores.shape[0] - savl.sizes[NODES]


@part
def open_stacks(savl: Savl, lane: int, limit: int) -> None:
    """Begin to build, with up to this many stacks."""
    savl.sizes[BUILT + lane] = 0
    savl.sizes[LIMIT + lane] = limit


@inlined
def full(savl: Savl, lane: int) -> bool:
    """Are there as many stacks as there may be?  From then on they are ordered."""
    return savl.sizes[BUILT + lane] == savl.sizes[LIMIT + lane]


@inlined
def lowest(savl: Savl, lane: int) -> int:
    """The node of the worst top of a full set of stacks: what it beats is forgotten."""
    return savl.built[lane, savl.sizes[BUILT + lane] - 1]


@part
def add(savl: Savl, lane: int, score: float, position: int, label: int) -> bool:
    """Add a row that ends no later than any before; was it taken?  O(log limit) amortised."""
    sizes, built = savl.sizes, savl.built
    if not full(savl, lane):
        built[lane, sizes[BUILT + lane]] = _node(savl, score, position, label)
        sizes[BUILT + lane] += 1
        if full(savl, lane):
            _sort(savl, lane)
        return True
    if not _beats(savl, score, position, lowest(savl, lane)):
        return False
    low, high = 0, sizes[BUILT + lane] - 1
    hint = min(sizes[HINT + lane] + 1, high)  # rows of one slide come best first
    if _beats(savl, score, position, built[lane, 0]):  # always, of falling scores
        high = 0
    elif hint > 0 and not _beats(savl, score, position, built[lane, hint - 1]):
        low = hint
        if _beats(savl, score, position, built[lane, hint]):
            high = hint
    while low < high:
        middle = (low + high) // 2
        if _beats(savl, score, position, built[lane, middle]):
            high = middle
        else:
            low = middle + 1
    node = _node(savl, score, position, label)
    sizes[HINT + lane] = low
    savl.below[node] = built[lane, low]
    built[lane, low] = node
    return True


@part
def close_stacks(savl: Savl, lane: int) -> int:
    """End building; the first of the chain of tops, the best first, or NONE."""
    if not full(savl, lane):
        _sort(savl, lane)
    first = NONE
    for i in range(savl.sizes[BUILT + lane] - 1, -1, -1):
        top = savl.built[lane, i]
        savl.beside[top] = first
        first = top
    savl.sizes[BUILT + lane] = 0
    return first


@part
def load(savl: Savl, first: int) -> None:
    """Add a chain of stacks to those that rows are taken from."""
    sizes, tops = savl.sizes, savl.tops
    while first != NONE:
        at = sizes[TOPS]
        sizes[TOPS] += 1
        while at > 0 and _before(savl, first, tops[(at - 1) // 2]):
            tops[at] = tops[(at - 1) // 2]
            at = (at - 1) // 2
        tops[at] = first
        first = savl.beside[first]


@inlined
def best(savl: Savl, bar: int) -> int:
    """The node of the best row with a label greater than the bar, or NONE."""
    while savl.sizes[TOPS] > 0:
        node = savl.tops[0]
        if savl.labels[node] > bar:
            return node
        pop(savl)
    return NONE


@inlined
def pop(savl: Savl) -> None:
    """Take the best row out; what lay below it takes its place in the order.  O(log stacks)."""
    sizes, tops = savl.sizes, savl.tops
    node = tops[0]
    heir = savl.below[node]
    if heir == NONE:
        sizes[TOPS] -= 1
        heir = tops[sizes[TOPS]]
    _release(savl, node)
    _sink(savl, sizes[TOPS], heir)


@part
def clear(savl: Savl) -> None:
    """Forget the stacks that rows are taken from."""
    while savl.sizes[TOPS] > 0:
        savl.sizes[TOPS] -= 1
        release_stack(savl, savl.tops[savl.sizes[TOPS]])


@part
def release_stack(savl: Savl, node: int) -> None:
    """Forget a row and all below it."""
    while node != NONE:
        below = savl.below[node]
        _release(savl, node)
        node = below


@part
def release_chain(savl: Savl, first: int) -> None:
    """Forget a chain of stacks that has not been loaded."""
    while first != NONE:
        following = savl.beside[first]
        release_stack(savl, first)
        first = following


@inlined
def _beats(savl: Savl, score: float, position: int, node: int) -> bool:
    return better(score, position, savl.scores[node], savl.positions[node])


@inlined
def _before(savl: Savl, node: int, other: int) -> bool:
    """Is the first node's row the better one?"""
    return _beats(savl, savl.scores[node], savl.positions[node], other)


@inlined
def _node(savl: Savl, score: float, position: int, label: int) -> int:
    sizes = savl.sizes
    node = sizes[FREE]
    if node == NONE:
        node = sizes[USED]
        sizes[USED] += 1
    else:
        sizes[FREE] = savl.below[node]
    sizes[NODES] += 1
    savl.scores[node], savl.positions[node], savl.labels[node] = score, position, label
    savl.below[node] = NONE
    return node


@inlined
def _release(savl: Savl, node: int) -> None:
    savl.below[node] = savl.sizes[FREE]
    savl.sizes[FREE] = node
    savl.sizes[NODES] -= 1


@inlined
def _sink(savl: Savl, size: int, node: int) -> None:
    """Let a node that stands on top of the heap of tops sink to its place."""
    tops, at, child = savl.tops, 0, 1
    while child < size:
        if child + 1 < size and _before(savl, tops[child + 1], tops[child]):
            child += 1
        if not _before(savl, tops[child], node):
            break
        tops[at] = tops[child]
        at, child = child, 2 * child + 1
    if size > 0:
        tops[at] = node


@part
def _sort(savl: Savl, lane: int) -> None:
    """Order what is built, the best first.  O(stacks log stacks), by a heap."""
    built, size = savl.built, savl.sizes[BUILT + lane]
    for at in range(size // 2 - 1, -1, -1):
        _lift(savl, lane, size, at, built[lane, at])
    for last in range(size - 1, 0, -1):
        node = built[lane, last]
        built[lane, last] = built[lane, 0]
        _lift(savl, lane, last, 0, node)


@part
def _lift(savl: Savl, lane: int, size: int, at: int, node: int) -> None:
    """Let a node sink in a heap with the *worst* on top."""
    built, child = savl.built, 2 * at + 1
    while child < size:
        if child + 1 < size and _before(savl, built[lane, child], built[lane, child + 1]):
            child += 1
        if not _before(savl, node, built[lane, child]):
            break
        built[lane, at] = built[lane, child]
        at, child = child, 2 * child + 1
    built[lane, at] = node
