"""Change tables: what entered and what left an answer.

A change is a row with two columns before its own: ``_change_type``, ``insert`` or ``delete``, and
``_change_at``, the position or the time at which the change was seen: the end of the push, or the
``advance``, that brought it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]

TYPE, AT = "_change_type", "_change_at"


class Changes(NamedTuple):
    """Positions that entered (1) or left (-1), and when: parallel arrays, in time order."""

    positions: Ints
    signs: Ints
    at: Ints


def nothing() -> Changes:
    """No change.

    >>> len(nothing().positions)
    0
    """
    return Changes(*(np.zeros(0, np.int64) for _ in range(3)))


def between(before: Ints, now: Ints, at: int) -> Changes:
    """What turns one answer, given as positions, into the next.

    >>> between(np.array([1, 2]), np.array([2, 3]), at=3).positions
    array([1, 3])
    """
    left, entered = np.setdiff1d(before, now), np.setdiff1d(now, before)
    positions = np.concatenate([left, entered])
    signs = np.repeat(np.array([-1, 1]), [len(left), len(entered)])
    return Changes(positions, signs, np.full(len(positions), at, np.int64))


def net(parts: list[Changes]) -> Changes:
    """The changes that are left when a row's comings and goings are summed up.

    A row that came and went is not mentioned.  In order of time; leaving before entering.

    >>> there, back = Changes(*np.array([[7], [1], [1]])), Changes(*np.array([[7], [-1], [2]]))
    >>> len(net([there, back]).positions)
    0
    """
    if not parts:
        return nothing()
    positions, signs, at = (np.concatenate(column) for column in zip(*parts, strict=True))
    unique, index = np.unique(positions, return_inverse=True)
    sums = np.zeros(len(unique), np.int64)
    np.add.at(sums, index, signs)
    last = np.zeros(len(unique), np.int64)
    last[index] = at  # the last assignment to an element wins
    order = np.lexsort((unique, sums, last))
    order = order[sums[order] != 0]
    return Changes(unique[order], sums[order], last[order])


def table(changes: Changes, rows: pa.Table, at_type: pa.DataType) -> pa.Table:
    """The change table of the changed ``rows``, given in the same order.

    >>> one = Changes(np.array([3]), np.array([1]), np.array([5]))
    >>> table(one, pa.table({"price": [9]}), pa.int64()).to_pylist()
    [{'_change_type': 'insert', '_change_at': 5, 'price': 9}]
    """
    kinds = pa.array(np.where(changes.signs > 0, "insert", "delete").tolist(), pa.string())
    at = pa.array(changes.at).cast(at_type)
    return pa.Table.from_arrays(
        [kinds, at, *rows.columns],
        schema=pa.schema([(TYPE, pa.string()), (AT, at_type), *rows.schema]),
    )
