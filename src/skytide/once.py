"""The answer over rows that stand still: no engine, one static skyband per key."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.choices import default_algorithm
from skytide.keys import key_codes
from skytide.query import LastTime, Query, Top
from skytide.rows import Batch, Reader
from skytide.slides import Ruler, ruler_of

Ints = npt.NDArray[np.int64]


def answer_table(query: Query, data: Any) -> pa.Table:
    """The rows of ``data`` that are the query's answer when all of them have arrived.

    The order of the rows is their order of arrival; those of a time window need not be sorted by time.

    >>> import skytide as st
    >>> query = st.top(1, st.high("price")).over(st.last(2)).per("symbol")
    >>> answer_table(query, {"symbol": ["a", "b", "a"], "price": [1, 2, 3]}).to_pylist()
    [{'symbol': 'b', 'price': 2}, {'symbol': 'a', 'price': 3}]
    """
    default_algorithm(query)
    batch = Reader(query).read(data)
    ruler = ruler_of(query.window)
    newest = int(batch.labels.max()) if batch.labels is not None and len(batch.labels) else None
    groups = key_groups(batch.table, query.keys)
    chosen = [_answer(query, ruler, batch, rows, newest) for rows in groups]
    if isinstance(query.question, Top) and len(chosen) == 1:
        return batch.table.take(chosen[0])
    return batch.table.take(np.sort(np.concatenate([np.zeros(0, np.int64), *chosen])))


def key_groups(table: pa.Table, keys: tuple[str, ...]) -> list[Ints]:
    """The rows of each combination of keys, ascending; nulls are keys as well.

    >>> key_groups(pa.table({"s": ["b", "a", "b"]}), ("s",))
    [array([0, 2]), array([1])]
    """
    codes = key_codes(table, keys)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    groups = np.split(order, starts[1:]) if len(order) else []
    return sorted(groups, key=lambda rows: int(rows[0]))


def _answer(query: Query, ruler: Ruler, batch: Batch, rows: Ints, newest: int | None) -> Ints:
    from skytide.algorithms.static.sfs import skyline_sfs

    rows = rows[_inside(query, ruler, batch, rows, newest)]
    values = np.ascontiguousarray(batch.values[rows])
    best = rows[skyline_sfs(values, query.k, query.ties == "newest")]
    if isinstance(query.question, Top):
        best = best[np.lexsort((-best, batch.values[best, 0]))]
    return best


def _inside(
    query: Query, ruler: Ruler, batch: Batch, rows: Ints, newest: int | None
) -> npt.NDArray[np.bool_]:
    """Which of one key's rows the window holds."""
    if isinstance(query.window, LastTime):
        assert batch.labels is not None
        assert newest is not None
        labels, clock = batch.labels[rows], ruler.moved_to(newest)
    else:
        labels = np.arange(1, len(rows) + 1)
        clock = ruler.moved_to(len(rows))
    inside: npt.NDArray[np.bool_] = labels <= clock
    if ruler.length is not None:
        inside &= labels > clock - ruler.length
    return inside
