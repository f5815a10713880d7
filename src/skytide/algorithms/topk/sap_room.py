"""SAP: the state before the first row, and more room in it (see ``sap``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from skytide.algorithms.sliding.protocol import Floats, Ints
from skytide.algorithms.topk.ranking import NEVER
from skytide.algorithms.topk.sap_state import (
    BAR,
    COUNTS,
    CULLS,
    FRONT,
    NEED_KEPT,
    NEED_LEAVING,
    NEED_NODES,
    NEED_ROWS,
    NEED_SLIDE,
    NEED_UNIT,
    NEED_UNITS,
    OLDEST,
    PART,
    RIGHT,
    UNIT,
    ZETA,
    Candidates,
    Parts,
    Rows,
    Sap,
    Units,
)
from skytide.structures import savl
from skytide.structures.savl import empty_savl
from skytide.structures.scored import Scored


def empty_state(asked: Ints, upper: Floats) -> Sap:
    """Before the first row."""

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, np.int64)

    def rows(size: int) -> Rows:
        return Rows(np.zeros(size), ints(size), ints(size))

    def pairs(size: int) -> Scored:
        return Scored(np.zeros(size), ints(size))

    def kept(size: int) -> Candidates:
        return Candidates(np.zeros(size), *(ints(size) for _ in range(4)))

    n, units, room = ints(COUNTS), 8, 64
    n[RIGHT], n[PART], n[BAR] = room, -1, NEVER
    return Sap(
        rows(1024),
        pairs(room),
        pairs(room),
        pairs(room),
        pairs(2 * room),
        pairs(1024),
        pairs(2 * int(asked[ZETA]) if asked[CULLS] else 1),
        rows(room),
        kept(room),
        kept(room),
        Units(
            *(ints(units), ints(units), ints(units, 2), ints(units), ints(units), ints(units, 2)),
            np.zeros((units, 2)),
            *(ints(units), ints(units), ints(units)),
        ),
        Parts(
            *(ints(units, 2), ints(units, 2), ints(units), ints(units), np.zeros(units)),
            *(ints(units), ints(units)),
        ),
        empty_savl(1024),
        np.full((2, 9), -1),
        np.zeros(2),
        np.full(4, np.inf),
        upper,
        asked,
        n,
    )


def doubled(arrays: Any) -> Any:
    """Arrays, or tuples of them, with as much room again at the end."""
    return type(arrays)(*(np.concatenate([a, np.zeros_like(a)]) for a in arrays))


def with_wider_gap(kept: Candidates, right: int) -> Candidates:
    """The same with as much room again in the gap."""
    size = len(kept.scores)
    larger = doubled(kept)
    for old, new in zip(kept, larger, strict=True):
        new[right + size :] = old[right:]
    return larger


def with_more_units(s: Sap) -> Sap:
    """Both rings, doubled: what was at ``u % size`` is now at ``u % (2 * size)``."""
    size, units, parts = len(s.units.first), doubled(s.units), doubled(s.parts)
    for old, new, first, last in (
        (s.units, units, s.n[OLDEST], s.n[UNIT]),
        (s.parts, parts, s.n[FRONT], s.n[PART]),
    ):
        for number in range(max(0, first - 1), last + 1):
            for before, after in zip(old, new, strict=True):
                after[number % (2 * size)] = before[number % size]
    return s._replace(units=units, parts=parts)


def with_more_nodes(stacks: savl.Savl) -> savl.Savl:
    """Room for twice as many rows on stacks."""
    larger = empty_savl(2 * len(stacks.scores))
    for old, new in zip(stacks[:-2], larger[:-2], strict=True):
        new[: len(old)] = old
    larger.built[:, : stacks.built.shape[1]] = stacks.built
    larger.sizes[:] = stacks.sizes
    return larger


def grown(s: Sap, need: int) -> Sap:
    """With more of what it lacks."""
    if need == NEED_KEPT:
        wider = with_wider_gap(s.kept, int(s.n[RIGHT]))
        s.n[RIGHT] += len(s.kept.scores)
        return s._replace(kept=wider, merged=doubled(s.merged))
    if need == NEED_UNITS:
        return with_more_units(s)
    if need == NEED_NODES:
        return s._replace(stacks=with_more_nodes(s.stacks))
    names = {
        NEED_ROWS: ("rows",),
        NEED_LEAVING: ("leaving",),
        NEED_UNIT: ("best", "rest", "rising", "group"),
        NEED_SLIDE: ("slide",),
    }[need]
    return s._replace(**{name: doubled(getattr(s, name)) for name in names})
