"""R_N and its critical dominance, kept current: Algorithms 1 and 2 of "Stabbing the Sky".

Lin, Yuan, Wang and Lu (ICDE 2005): of the last N rows only the non-redundant ones, R_N, can be in
the skyline of the last n <= N; each is in it exactly while its critical ancestor, the youngest older
row that dominates it, is not.  A row e is thus an interval (label of the ancestor, label of e],
and the n-of-N skyline is what a stab at the start of the window hits.

Generalised here from the skyline to the k-skyband: a row is redundant when k younger rows beat it;
while c < k do, it is in the answer exactly while the (k - c)th youngest of the older rows that beat it
is not.  Those ancestors are all in R_N: were one redundant, k rows younger than it would beat it and,
beating being transitive, e as well.  For k = 1 this is the paper's algorithm.

Differences from the paper:

- Labels of ancestors that have left the window are not rewritten to 0 (lines 5-7 of Algorithm 1): no
  legal stab can tell the difference.
- No heap of the answer per watch (Algorithm 2): who has a row in its answer follows from the row's
  interval, and who loses its oldest row next is kept in one heap for all watches.
- Rows are compared by standard dominance; ``newest`` gives the paper's, under which the younger of two
  equal rows beats the older.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skytide.kernel import kernel, part
from skytide.structures import flat, forest, graph, interval_tree, rtree, triggers
from skytide.structures.blocks import Floats, Ints
from skytide.structures.flat import Flat, empty_flat
from skytide.structures.forest import CHILD, LABEL, POSITION, Forest, empty_forest, left_end
from skytide.structures.graph import Graph, empty_graph
from skytide.structures.interval_tree import IntervalTree, empty_interval_tree
from skytide.structures.rtree import RTree, empty_rtree
from skytide.structures.triggers import Triggers

# What ``modes`` holds.
NEWEST = 0  # ties
HAS_TREE = 1  # the R-tree is in use beside the flat scan
TREE_FROM = 2  # so many kept rows are worth a tree
HAS_GRAPH = 3  # history is kept
PARTED = 4  # rows that were found redundant, in all
NEED = 5  # why a kernel stopped half way:
NEED_SLOTS, NEED_NODES, NEED_EVENTS, NEED_GRAPH, NEED_TREE = 1, 2, 3, 4, 5

RECENT = 32
"""Blocks of the youngest rows that are scanned for a dominator before the R-tree is asked.

Most rows are dominated by a recent one: on anti-correlated rows of four dimensions (22,000 kept) the
scan takes a third of the time of the tree's best-first search."""


class Kept(NamedTuple):
    """R_N and the structures that find its rows."""

    forest: Forest
    flat: Flat
    tree: RTree
    intervals: IntervalTree
    watches: Triggers
    graph: Graph
    found: Ints  # (slots + k,): scratch: what a search reports
    modes: Ints  # see above


def empty_kept(
    dims: int,
    k: int,
    newest: bool,
    watches: Triggers,
    tree_from: int,
    slots: int = 64,
    history: bool = False,
) -> Kept:
    """Nothing kept yet, with room for ``slots`` rows and no tree in use.

    Small, 40 kB, for a query per key opens thousands of them."""
    return Kept(
        empty_forest(dims, k, slots),
        empty_flat(dims, slots),
        empty_rtree(dims, 1, k, nodes=1),
        empty_interval_tree(slots),
        watches,
        empty_graph(128 if history else 1, k, 1),
        np.zeros(slots + k, np.int64),
        np.array([newest, 0, tree_from, history, 0, 0], np.int64),
    )


@part
def discard(kept: Kept, slot: int) -> None:
    """Forget a row altogether; the tree is left to settle."""
    forest.fell(kept.forest, slot)
    flat.remove(kept.flat, slot)
    interval_tree.remove(kept.intervals, slot)
    if kept.modes[HAS_TREE]:
        rtree.remove(kept.tree, slot)


@part
def beat(kept: Kept, slot: int) -> None:
    """One more younger row beats this one: it leaves some answers, or all when that is the kth."""
    facts, left = kept.forest.facts[slot], left_end(kept.forest, slot)
    if kept.modes[HAS_GRAPH]:
        graph.note_beaten(kept.graph, facts[POSITION])
    if forest.rank_of_parent(kept.forest, slot) == 0:
        triggers.tell_stabbed(kept.watches, left, facts[LABEL], facts[POSITION], -1)
        kept.modes[PARTED] += 1
        discard(kept, slot)
    else:
        forest.weaken(kept.forest, slot)
        raised = left_end(kept.forest, slot)
        triggers.tell_stabbed(kept.watches, left, raised, facts[POSITION], -1)
        interval_tree.raise_left(kept.intervals, slot, raised)


@part
def find_beaten(kept: Kept, point: Floats) -> int:
    """Line 9 of Algorithm 1: report D, the kept rows that ``point`` beats, into ``found``."""
    newest = kept.modes[NEWEST] == 1
    if kept.modes[HAS_TREE]:
        return rtree.report_dominated(kept.tree, point, newest, kept.found)
    return flat.report_dominated(kept.flat, point, newest, kept.found)


@part
def find_ancestors(kept: Kept, point: Floats) -> int:
    """Line 14 of Algorithm 1: the k youngest kept rows that beat ``point``, into ``found``."""
    k = kept.forest.ancestors.shape[2]
    blocks = RECENT if kept.modes[HAS_TREE] else kept.flat.labels.shape[0]
    count = flat.youngest_dominators(kept.flat, point, k, blocks, kept.found)
    if count < k and kept.modes[HAS_TREE]:
        return rtree.youngest_dominators(kept.tree, point, k, kept.found)
    return count


@part
def add(kept: Kept, point: Floats, position: int, label: int, ancestors: int) -> None:
    """Lines 13-15 of Algorithm 1: keep a new row, whose so many ancestors are in ``found``."""
    slot = forest.plant(kept.forest, point, position, label, kept.found, ancestors)
    left = left_end(kept.forest, slot)
    flat.insert(kept.flat, slot, label, point)
    if kept.modes[HAS_TREE]:
        rtree.insert(kept.tree, slot, position, point)
    interval_tree.insert(kept.intervals, slot, left, label, position)
    triggers.tell_stabbed(kept.watches, left, label, position, 1)


@part
def note_elders(kept: Kept, place: int, ancestors: int) -> None:
    """Enter the ancestors of the row just added to the graph of all rows (Algorithm 4)."""
    for rank in range(ancestors):
        elder = kept.forest.facts[kept.found[rank], POSITION]
        graph.note_elder(kept.graph, place, rank, elder)
    graph.seal(kept.graph, place)


@part
def needs(kept: Kept, beaten: int) -> int:
    """What is lacking before a row that beats so many can be taken in; 0: nothing."""
    if kept.forest.sizes[forest.FREE] == 0:
        return NEED_SLOTS
    if kept.modes[HAS_TREE]:
        if kept.tree.sizes[rtree.FREE] < rtree.SPARE:
            return NEED_NODES
    elif kept.flat.sizes[flat.LIVE] >= kept.modes[TREE_FROM]:
        return NEED_TREE
    if triggers.events_left(kept.watches) < (beaten + 1) * kept.watches.table.shape[1]:
        return NEED_EVENTS
    if kept.modes[HAS_GRAPH] and not graph.room(kept.graph, beaten):
        return NEED_GRAPH
    return 0


@part
def insert_row(kept: Kept, point: Floats, position: int, label: int) -> bool:
    """Lines 9-15 of Algorithm 1 for one row; False, and nothing done, if it NEEDs something."""
    beaten = find_beaten(kept, point)
    kept.modes[NEED] = needs(kept, beaten)
    if kept.modes[NEED]:
        return False
    place = graph.append(kept.graph, label) if kept.modes[HAS_GRAPH] else 0
    for i in range(beaten):
        beat(kept, kept.found[i])
    if kept.modes[HAS_TREE]:
        rtree.settle(kept.tree)
    ancestors = find_ancestors(kept, point)
    if kept.modes[HAS_GRAPH]:
        note_elders(kept, place, ancestors)
    add(kept, point, position, label, ancestors)
    return True


@kernel
def insert_rows(
    kept: Kept, points: Floats, positions: Ints, labels: Ints, start: int, each: int
) -> int:
    """Insert rows from index ``start`` on; the index of the first that was not, see NEED.

    With ``each`` >= 0 the clock moves to a row's label before it enters a window of that length:
    Algorithm 1 as printed.  Otherwise the caller has moved it past the whole batch.
    """
    for i in range(start, points.shape[0]):
        if each >= 0 and not move_clock(kept, labels[i], each):
            return i
        if labels[i] <= kept.forest.sizes[forest.START]:
            continue  # older than the window
        if not insert_row(kept, points[i], positions[i], labels[i]):
            return i
    return points.shape[0]


@kernel
def advance(kept: Kept, clock: int, length: int) -> bool:
    """``move_clock``, for calls from Python."""
    return move_clock(kept, clock, length)


@part
def move_clock(kept: Kept, clock: int, length: int) -> bool:
    """Move the clock: sound alarms, then lines 2-8 of Algorithm 1.  False: NEEDs room for events.

    ``length`` 0 means that nothing expires.  A part, because ``insert_rows`` moves the clock for each
    row: were it the kernel itself, its references to arrays would be counted anew each time.
    """
    kept.watches.sizes[triggers.CLOCK] = clock
    while triggers.next_alarm(kept.watches) <= clock:
        if triggers.events_left(kept.watches) < 2 * kept.flat.sizes[flat.LIVE]:
            kept.modes[NEED] = NEED_EVENTS
            return False
        sound_alarm(kept, clock)
    if length > 0:
        expire(kept, triggers.before(clock, length))
    return True


@part
def expire(kept: Kept, start: int) -> None:
    """Forget the rows with labels up to ``start``."""
    kept.forest.sizes[forest.START] = start
    slot = flat.oldest(kept.flat)
    while slot >= 0 and kept.forest.facts[slot, LABEL] <= start:
        discard(kept, slot)
        slot = flat.oldest(kept.flat)
    if kept.modes[HAS_TREE]:
        rtree.settle(kept.tree)


@part
def sound_alarm(kept: Kept, clock: int) -> None:
    """Lines 9-14 of Algorithm 2 for the watch whose alarm is due.

    Rows that leave its window leave its answer, if they were in it, and their children enter, unless
    they leave at the same time.  The next alarm is when the oldest row that is left will leave; in an
    empty window, when the oldest that may still be pushed could.
    """
    rows, table = kept.flat, kept.watches.table
    rank = kept.watches.alarms[1, 0]
    before, length = table[triggers.CUT, rank], table[triggers.LENGTH, rank]
    cut = triggers.before(clock, length)
    place = flat.first_place_after(rows, before)
    while place < rows.sizes[flat.TAIL] and rows.labels[place] <= cut:
        if rows.slots[place] >= 0:
            depart(kept, rank, rows.slots[place], before, cut)
        place += 1
    while place < rows.sizes[flat.TAIL] and rows.slots[place] < 0:
        place += 1
    oldest = rows.labels[place] if place < rows.sizes[flat.TAIL] else cut + 1
    table[triggers.CUT, rank] = cut
    triggers.set_alarm(kept.watches, rank, triggers.after(oldest, length))


@part
def depart(kept: Kept, rank: int, slot: int, before: int, cut: int) -> None:
    """A row leaves the window of one watch, whose cut moves from ``before`` to ``cut``."""
    facts = kept.forest.facts
    if left_end(kept.forest, slot) <= before:
        triggers.tell(kept.watches, rank, facts[slot, POSITION], -1)
    child = facts[slot, CHILD]
    while child >= 0:
        if facts[child, LABEL] > cut:
            triggers.tell(kept.watches, rank, facts[child, POSITION], 1)
        child = facts[child, forest.NEXT]


@kernel
def fill_tree(kept: Kept) -> None:
    """Put all kept rows into a new, empty R-tree and use it from now on."""
    rows = kept.flat
    for place in range(rows.sizes[flat.TAIL]):
        slot = rows.slots[place]
        if slot >= 0:
            position = kept.forest.facts[slot, POSITION]
            rtree.insert(kept.tree, slot, position, kept.forest.points[slot])
    kept.modes[HAS_TREE] = 1


def enlarged(old: Any, new: Any) -> Any:
    """``new`` with the content of the smaller ``old``, field by field, in the first places."""
    for before, after in zip(old, new, strict=True):
        if isinstance(before, tuple):
            enlarged(before, after)
        else:
            after[tuple(slice(n) for n in before.shape)] = before
    return new


def with_more_slots(kept: Kept) -> Kept:
    """The same rows, and room for twice as many."""
    old, k = kept.forest, kept.forest.ancestors.shape[2]
    slots, dims = old.points.shape
    trees = enlarged(old, empty_forest(dims, k, 2 * slots))
    free = trees.sizes[forest.FREE]
    trees.free[free : free + slots] = np.arange(slots, 2 * slots)
    trees.sizes[forest.FREE] += slots
    return kept._replace(
        forest=trees,
        flat=enlarged(kept.flat, empty_flat(dims, 2 * slots)),
        intervals=enlarged(kept.intervals, empty_interval_tree(2 * slots)),
        tree=with_more_nodes(kept, 2 * slots) if kept.modes[HAS_TREE] else kept.tree,
        found=np.zeros(2 * slots + k, np.int64),
    )


def with_more_nodes(kept: Kept, slots: int) -> RTree:
    """The same R-tree, with room for so many slots and twice the nodes."""
    old, nodes = kept.tree, len(kept.tree.nodes)
    k, dims = len(old.best), len(old.scale)
    tree: RTree = enlarged(old, empty_rtree(dims, slots, k, 2 * nodes))
    free = tree.sizes[rtree.FREE]
    tree.lists[rtree.FREE, free : free + nodes] = np.arange(nodes, 2 * nodes)
    tree.sizes[rtree.FREE] += nodes
    return tree


def with_tree(kept: Kept) -> Kept:
    """The same rows, found by an R-tree."""
    slots, dims = kept.forest.points.shape
    kept = kept._replace(tree=empty_rtree(dims, slots, kept.forest.ancestors.shape[2]))
    fill_tree(kept)
    return kept


def without_tree(kept: Kept) -> Kept:
    """The same rows, found by the flat scan alone."""
    kept.modes[HAS_TREE] = 0
    dims, k = kept.forest.points.shape[1], kept.forest.ancestors.shape[2]
    return kept._replace(tree=empty_rtree(dims, 1, k, nodes=1))
