"""mnN, nN and cnN of "Stabbing the Sky": the skyline, or k-skyband, of the last n of N rows, any n.

Lin, Yuan, Wang and Lu, ICDE 2005.  The kernels, and how they differ from the paper, are in ``kept``.

=====================  ==========================================================================
mnN   (Algorithm 1)    ``push``, ``push_each``: keep R_N; O(d log^d N) rows on independent data
nN    (Section 3.2)    ``answer``: stab; O(s) and about a nanosecond for every 64 kept rows
cnN   (Algorithm 2)    ``watch``, ``events``: what changes in a standing answer; O(1) a change
=====================  ==========================================================================
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from skytide.algorithms.sliding import kept as k_
from skytide.algorithms.sliding.kept import Kept
from skytide.dominance import survivors
from skytide.kernel import direct, rows_for_kernels
from skytide.structures import flat, graph, interval_tree
from skytide.structures.blocks import Floats, Ints
from skytide.structures.compress import EIGHT
from skytide.structures.forest import POSITION
from skytide.structures.interval_tree import ALWAYS
from skytide.structures.triggers import CLOCK, EVENTS, NEVER, triggers

_advance, _insert_rows = direct(k_.advance), direct(k_.insert_rows)
_stab = direct(interval_tree.stab)

PRUNE_FROM = 8
"""A batch of so many rows is pruned against itself before it enters."""


class NofN:
    """R_N with its stabbing structure and its watches.

    Ties: equal rows do not beat each other, or with ``newest`` the younger beats the older.

    >>> recent = NofN(dims=2, k=1, newest=False, length=3)
    >>> points = np.array([[1.0, 9.0], [5.0, 5.0], [6.0, 6.0], [4.0, 7.0]])
    >>> recent.advance(4)
    >>> recent.push(points, np.arange(1, 5), np.arange(1, 5))
    array([0, 1, 2, 3])
    >>> recent.answer(3), recent.answer(2)
    (array([2, 4]), array([3, 4]))
    """

    any_length: ClassVar[bool] = True
    any_k: ClassVar[bool] = True
    history: ClassVar[bool] = False
    tree_from: ClassVar[int] = 5120
    """From so many kept rows on an R-tree pays: on 2 to 5 dimensions and five kinds of rows it breaks
    even between 3,000 and 5,000, is never slower from here on, and at most 1.1 times as fast before
    (benchmarks/row_at_a_time.py)."""

    def __init__(self, dims: int, k: int, newest: bool, length: int | None) -> None:
        self._k, self._newest, self._length = k, newest, length
        nothing = np.zeros(0, np.int64)
        watches = triggers(nothing, nothing, ALWAYS)
        self._kept = k_.empty_kept(dims, k, newest, watches, self.tree_from, history=self.history)
        self._told: list[Ints] = []
        self._out = np.empty(len(self._kept.forest.free) + EIGHT, np.int64)
        self._next_name = 0

    # -- mnN -------------------------------------------------------------------------------------

    def advance(self, clock: int) -> None:
        """Move the clock: rows leave, and the watches are told."""
        while not _advance(self._kept, clock, self._length or 0):
            self._make_room()

    def push(self, values: Floats, positions: Ints, labels: Ints) -> Ints:
        """Add a batch, pruned against itself first: a row that k younger rows of its own batch beat
        can never matter, nor can what it would have beaten escape those k."""
        values, positions, labels = rows_for_kernels(values, positions, labels)
        chosen = np.arange(len(values))
        if len(values) >= PRUNE_FROM and not self.history:
            chosen = survivors(values, self._k, self._newest)
            values, positions, labels = values[chosen], positions[chosen], labels[chosen]
        done = 0
        while done < len(values):
            done = _insert_rows(self._kept, values, positions, labels, done, -1)
            if done < len(values):
                self._make_room()
        self._shed_tree()
        return chosen

    def push_each(self, values: Floats, positions: Ints, labels: Ints) -> None:
        """Add rows one by one, the clock moving with each: Algorithm 1 as printed."""
        values, positions, labels = rows_for_kernels(values, positions, labels)
        done, length = 0, self._length or 0
        while done < len(values):
            done = _insert_rows(self._kept, values, positions, labels, done, length)
            if done < len(values):
                self._make_room()
        self._shed_tree()

    def _make_room(self) -> None:
        """Do what a kernel that stopped half way NEEDs."""
        kept, need = self._kept, self._kept.modes[k_.NEED]
        if need == k_.NEED_SLOTS:
            self._kept = k_.with_more_slots(kept)
            self._out = np.empty(len(self._kept.forest.free) + EIGHT, np.int64)
        elif need == k_.NEED_TREE:
            self._kept = k_.with_tree(kept)
        elif need == k_.NEED_NODES:
            self._kept = kept._replace(tree=k_.with_more_nodes(kept, len(kept.forest.free)))
        elif need == k_.NEED_GRAPH:
            self._kept = kept._replace(graph=graph.larger_graph(kept.graph))
        else:
            self._collect()
            events = np.zeros((3, 2 * kept.watches.events.shape[1]), np.int64)
            self._kept = kept._replace(watches=kept.watches._replace(events=events))

    def _shed_tree(self) -> None:
        """Give the tree up when few rows are left; well below where it was planted."""
        kept = self._kept
        if kept.modes[k_.HAS_TREE] and kept.flat.sizes[flat.LIVE] < self.tree_from // 4:
            self._kept = k_.without_tree(kept)

    # -- nN --------------------------------------------------------------------------------------

    def answer(self, length: int | None) -> Ints:
        """The positions, ascending, of the answer over rows with ``label > clock - length``."""
        return self.stab(length).copy()

    def stab(self, length: int | None) -> Ints:
        """The same positions in an array that the next call overwrites."""
        cut = ALWAYS if length is None else max(ALWAYS, self.clock - length)
        return self._out[: _stab(self._kept.intervals, cut, self._out)]

    @property
    def clock(self) -> int:
        """Where ``advance`` last moved to."""
        return int(self._kept.watches.sizes[CLOCK])

    def __len__(self) -> int:
        return int(self._kept.flat.sizes[flat.LIVE])

    def kept(self) -> Ints:
        """The positions, ascending, of R_N."""
        slots = self._kept.flat.slots
        return self._kept.forest.facts[slots[slots >= 0], POSITION]

    def stats(self) -> dict[str, Any]:
        """What is kept, by what, in how much memory."""
        kept = self._kept
        return {
            "kept": len(self),
            "index": "rtree" if kept.modes[k_.HAS_TREE] else "flat",
            "redundant": int(kept.modes[k_.PARTED]),
            "watches": kept.watches.table.shape[1],
            "bytes": nbytes(kept),
        }

    # -- cnN -------------------------------------------------------------------------------------

    def watch(self, length: int | None) -> int:
        """Stand watch over ``answer(length)`` from now on; the name its events will bear."""
        name, self._next_name = self._next_name, self._next_name + 1
        watched = self._watched()
        watched[name] = NEVER if length is None else length
        self._set_watches(watched)
        return name

    def unwatch(self, name: int) -> None:
        """Stop a watch."""
        watched = self._watched()
        del watched[name]
        self._set_watches(watched)

    def _watched(self) -> dict[int, int]:
        lengths, names, _ = self._kept.watches.table.tolist()
        return dict(zip(names, lengths, strict=True))

    def _set_watches(self, watched: dict[int, int]) -> None:
        self._collect()
        by_length = sorted(watched.items(), key=lambda item: item[1])
        names = np.array([name for name, _ in by_length], np.int64)
        lengths = np.array([length for _, length in by_length], np.int64)
        room = self._kept.watches.events.shape[1]
        self._kept = self._kept._replace(watches=triggers(lengths, names, self.clock, room))

    def events(self) -> tuple[Ints, Ints, Ints]:
        """What happened to the watches since last asked, in order: watch, position, 1 or -1."""
        self._collect()
        told, self._told = self._told, []
        who, what, sign = np.concatenate([np.zeros((3, 0), np.int64), *told], axis=1)
        return who, what, sign

    def _collect(self) -> None:
        """Copy the kernels' events out and give them their room back."""
        watches = self._kept.watches
        count = watches.sizes[EVENTS]
        if count:
            self._told.append(watches.events[:, :count].copy())
            watches.sizes[EVENTS] = 0


class NofNFlat(NofN):
    """The same with the flat blocked scan at any size: what the R-tree must beat."""

    tree_from: ClassVar[int] = np.iinfo(np.int64).max


class NofNTree(NofN):
    """The same with the R-tree from the first row on, as in the paper."""

    tree_from: ClassVar[int] = 0


def nbytes(kept: Kept | tuple[Any, ...]) -> int:
    """The memory of all arrays of a state."""
    return sum(nbytes(a) if isinstance(a, tuple) else a.nbytes for a in kept)
