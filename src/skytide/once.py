"""The answer over rows that stand still: no engine, one static skyband per key."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.choices import default_algorithm
from skytide.keys import grouped
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
    groups = grouped(batch.table, query.keys)
    chosen = [
        _answer(query, ruler, batch, groups.order[span], newest) for _, span in groups.spans()
    ]
    if isinstance(query.question, Top) and len(chosen) == 1:
        return batch.table.take(chosen[0])
    return batch.table.take(np.sort(np.concatenate([np.zeros(0, np.int64), *chosen])))


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
