"""mn12N, n12N and cn12N of "Stabbing the Sky" (section 4): the answer between any two ages.

Lin, Yuan, Wang and Lu, ICDE 2005.  A row is in the skyline of the rows from the n1th to the n2th most
recent exactly if it is among them, its youngest older dominator a_e is too old and its oldest
younger dominator b_e too young to be (Theorem 4).  A row that became redundant yesterday may thus be
in an answer about last week: all N rows are kept, in the CBC dominance graph of
``structures.graph``, besides R_N, in which both dominators are found as rows arrive (Algorithm 4).

The paper keeps the redundant rows' intervals in a second interval tree.  Here the rows stand in a
ring in arrival order, each 64 with the greatest b_e and the least a_e among them: rows older or
younger than the window asked for are not even looked at, and the others 64 at a time.

Continuous queries (cn12N), which the paper promises without printing them: with the window standing
from position lo to position hi, both of which only grow, row e is in the answer if and only if

    lo <= e <= hi,  fewer than k rows of lo..hi beat e.

The second condition counts those younger than e, b <= hi, and those older than e, a >= lo.  So the
membership of e can change only when hi passes e or one of its first k youngers, or lo passes e or
one of its last k elders: beyond these no further row matters, for k beaters already settle that e is
out.  When hi passes a row, it and the rows it beat on arrival are looked at; when lo passes a row,
it and those it is an elder of.  Each is judged before and after by Theorem 4, and told if that
differs.  Nothing else can have changed, so the events are exactly the difference of the answers.
Every row is passed twice and every edge of the graph followed twice: O(k) amortised per row and
watch, whatever the size of answer or window; no candidate list is kept, because the graph is one.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from skytide.algorithms.sliding.n_of_n import NofN
from skytide.kernel import direct
from skytide.structures import graph
from skytide.structures.blocks import Floats, Ints
from skytide.structures.forest import START
from skytide.structures.interval_tree import ALWAYS

_first_after, _stab_between = direct(graph.first_after), direct(graph.stab_between)


class N12ofN(NofN):
    """All of :class:`NofN`, and every row of the window for questions about the past.

    Memory: O(k N).  Rows must be pushed with positions that have no gaps.

    >>> rows = N12ofN(dims=1, k=1, newest=False, length=4)
    >>> at = np.arange(1, 5)
    >>> rows.advance(4)
    >>> taken = rows.push(np.array([[3.0], [1.0], [2.0], [0.0]]), at, at)
    >>> rows.answer(4), rows.answer_between(0, 1), rows.answer_between(2, 3)
    (array([4]), array([1]), array([3]))
    """

    history: ClassVar[bool] = True

    def __init__(self, dims: int, k: int, newest: bool, length: int | None) -> None:
        super().__init__(dims, k, newest, length)
        self._spans: dict[int, tuple[int, int, Ints]] = {}  # name: younger, older age; lo and hi
        self._span_events: list[Ints] = []

    def advance(self, clock: int) -> None:
        """Move the clock: rows leave, and the watches are told."""
        super().advance(clock)
        self._move_spans()

    def push(self, values: Floats, positions: Ints, labels: Ints) -> Ints:
        """Add rows, each compared with the rows before it: none of them may be pruned."""
        self._start_at(positions, labels)
        taken = super().push(values, positions, labels)
        self._move_spans()
        return taken

    def push_each(self, values: Floats, positions: Ints, labels: Ints) -> None:
        """Add rows one by one, the clock moving with each."""
        self._start_at(positions, labels)
        super().push_each(values, positions, labels)
        self._move_spans()

    def _start_at(self, positions: Ints, labels: Ints) -> None:
        """An empty ring starts at the first row that is still in the window."""
        sizes = self._kept.graph.sizes
        inside = positions[labels > self._kept.forest.sizes[START]]
        if sizes[graph.FIRST] == sizes[graph.NEXT] and len(inside):
            sizes[[graph.FIRST, graph.NEXT]] = inside[0]

    # -- n12N ------------------------------------------------------------------------------------

    def answer_between(self, after: int, upto: int) -> Ints:
        """Algorithm 3: positions, ascending, of the answer over rows with after < label <= upto."""
        lo, hi = self._positions_between(after, upto)
        out = np.empty(max(0, hi - lo + 1), np.int64)
        return out[: _stab_between(self._kept.graph, lo, hi, out)]

    def _positions_between(self, after: int, upto: int) -> tuple[int, int]:
        rows, after, upto = self._kept.graph, max(ALWAYS, after), max(ALWAYS, upto)
        return _first_after(rows, after), _first_after(rows, upto) - 1

    def __len__(self) -> int:
        sizes = self._kept.graph.sizes
        return int(sizes[graph.NEXT] - sizes[graph.FIRST])

    def kept(self) -> Ints:
        """The positions, ascending, of all rows of the window."""
        sizes = self._kept.graph.sizes
        return np.arange(sizes[graph.FIRST], sizes[graph.NEXT])

    # -- cn12N -----------------------------------------------------------------------------------

    def watch_between(self, younger: int, older: int) -> int:
        """Stand watch over rows with ``younger <= clock - label < older``; the watch's name."""
        name, self._next_name = self._next_name, self._next_name + 1
        lo, hi = self._positions_between(self.clock - older, self.clock - younger)
        self._spans[name] = (younger, older, np.array([lo, hi, lo, hi]))
        return name

    def unwatch(self, name: int) -> None:
        """Stop a watch of either kind."""
        if self._spans.pop(name, None) is None:
            super().unwatch(name)

    def _move_spans(self) -> None:
        """Take every span to where the clock is, then forget what has left the window."""
        for name, (younger, older, span) in self._spans.items():
            span[:2] = span[2:]
            span[2:] = self._positions_between(self.clock - older, self.clock - younger)
            out = np.empty((2, 64), np.int64)
            while (found := graph.move_span(self._kept.graph, span, out)) > out.shape[1]:
                out = np.empty((2, found), np.int64)
            if found:
                who = np.full((1, found), name)
                self._span_events.append(np.concatenate([who, out[:, :found]]))
        if self._length is not None:
            graph.forget(self._kept.graph, max(ALWAYS, self.clock - self._length))

    def events(self) -> tuple[Ints, Ints, Ints]:
        """What happened to the watches of both kinds: watch, position, 1 or -1."""
        told, self._span_events = self._span_events, []
        who, what, sign = np.concatenate([np.stack(super().events()), *told], axis=1)
        return who, what, sign
