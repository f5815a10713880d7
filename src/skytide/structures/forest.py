"""The dominance graph G of R_N: every kept row and what it waits for (section 3.2 of the paper).

A row e that ``c`` younger rows beat waits for its (k - c)th youngest elder to leave the window: its
*parent*.  A row has one parent at most, so the graph is a forest; each parent lists its children,
which is what enters an answer when the parent leaves it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skytide.kernel import part
from skytide.structures.blocks import Floats, Ints
from skytide.structures.interval_tree import ALWAYS

POSITION, LABEL, BEATEN, PARENT, CHILD, NEXT, BEFORE = 0, 1, 2, 3, 4, 5, 6  # columns of ``facts``
SLOT, WHEN = 0, 1  # of ``ancestors``
FREE, START = 0, 1  # what ``sizes`` holds


class Forest(NamedTuple):
    """The kept rows by slot."""

    points: Floats  # (slots, dims)
    facts: Ints  # (slots, 7): POSITION; LABEL; BEATEN by so many younger rows, < k; PARENT slot or
    #              -1; first CHILD; NEXT and one BEFORE in the parent's list of children
    ancestors: Ints  # (slots, 2, k): the youngest older rows that beat it, youngest first: SLOT, -1
    #                  where there are fewer; WHEN: their label, or ALWAYS
    free: Ints  # (slots,): a stack of unused slots
    sizes: Ints  # FREE slots; START: rows with labels up to here have left the window


def empty_forest(dims: int, k: int, slots: int) -> Forest:
    """No rows, and room for so many.

    >>> int(empty_forest(dims=2, k=1, slots=64).sizes[FREE])
    64
    """
    return Forest(
        np.zeros((slots, dims)),
        np.full((slots, 7), -1, np.int64),
        np.zeros((slots, 2, k), np.int64),
        np.arange(slots - 1, -1, -1, dtype=np.int64),
        np.array([slots, ALWAYS], np.int64),
    )


@part
def rank_of_parent(forest: Forest, slot: int) -> int:
    """Which of its ancestors, the youngest being 0, a row waits for."""
    return forest.ancestors.shape[2] - 1 - forest.facts[slot, BEATEN]


@part
def left_end(forest: Forest, slot: int) -> int:
    """The label that must leave a window before this row is in its answer."""
    return forest.ancestors[slot, WHEN, rank_of_parent(forest, slot)]


@part
def plant(forest: Forest, point: Floats, position: int, label: int, elders: Ints, n: int) -> int:
    """Add a row whose n <= k ancestors are the slots ``elders``; its slot.  O(d + k)."""
    forest.sizes[FREE] -= 1
    slot = forest.free[forest.sizes[FREE]]
    for j in range(point.shape[0]):
        forest.points[slot, j] = point[j]
    forest.facts[slot, POSITION] = position
    forest.facts[slot, LABEL] = label
    forest.facts[slot, BEATEN] = 0
    forest.facts[slot, CHILD] = -1
    for rank in range(forest.ancestors.shape[2]):
        elder = elders[rank] if rank < n else -1
        forest.ancestors[slot, SLOT, rank] = elder
        forest.ancestors[slot, WHEN, rank] = forest.facts[elder, LABEL] if rank < n else ALWAYS
    _link(forest, slot)
    return slot


@part
def _link(forest: Forest, slot: int) -> None:
    """Hang a row under its parent, unless that has left the window."""
    facts, rank = forest.facts, rank_of_parent(forest, slot)
    parent = forest.ancestors[slot, SLOT, rank]
    if forest.ancestors[slot, WHEN, rank] <= forest.sizes[START]:
        parent = -1
    facts[slot, PARENT] = parent
    facts[slot, BEFORE] = -1
    facts[slot, NEXT] = -1
    if parent >= 0:
        first = facts[parent, CHILD]
        facts[slot, NEXT] = first
        if first >= 0:
            facts[first, BEFORE] = slot
        facts[parent, CHILD] = slot


@part
def _unlink(forest: Forest, slot: int) -> None:
    """Take a row out of its parent's list.  O(1)."""
    facts = forest.facts
    before, following = facts[slot, BEFORE], facts[slot, NEXT]
    if following >= 0:
        facts[following, BEFORE] = before
    if before >= 0:
        facts[before, NEXT] = following
    elif facts[slot, PARENT] >= 0:
        facts[facts[slot, PARENT], CHILD] = following


@part
def weaken(forest: Forest, slot: int) -> None:
    """One more younger row beats this one, yet fewer than k: it waits for a younger parent."""
    _unlink(forest, slot)
    forest.facts[slot, BEATEN] += 1
    _link(forest, slot)


@part
def fell(forest: Forest, slot: int) -> None:
    """Forget a row; its children become roots.  O(1 + children)."""
    facts = forest.facts
    _unlink(forest, slot)
    child = facts[slot, CHILD]
    while child >= 0:
        following = facts[child, NEXT]
        facts[child, PARENT] = -1
        facts[child, NEXT] = -1
        facts[child, BEFORE] = -1
        child = following
    forest.free[forest.sizes[FREE]] = slot
    forest.sizes[FREE] += 1
