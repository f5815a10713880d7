"""The answer over rows that stand still: no engine, one static skyband per key."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.choices import default_algorithm
from skytide.keys import key_codes, order_of_age, segments
from skytide.query import Query, Top
from skytide.rows import Reader
from skytide.slides import ruler_of

Ints = npt.NDArray[np.int64]


def answer_table(query: Query, data: Any) -> pa.Table:
    """The rows of ``data`` that are the query's answer when all of them have arrived.

    The order of the rows is their order of arrival; those of a time window need not be sorted by time,
    and of two of them the younger is the later in time, or if that is the same, in arrival.

    >>> import skytide as st
    >>> query = st.top(1, st.high("price")).over(st.last(2)).per("symbol")
    >>> answer_table(query, {"symbol": ["a", "b", "a"], "price": [1, 2, 3]}).to_pylist()
    [{'symbol': 'b', 'price': 2}, {'symbol': 'a', 'price': 3}]
    """
    default_algorithm(query)
    batch = Reader(query).read(data)
    codes = key_codes(batch.table, query.keys)
    ages = order_of_age(codes, batch.labels)
    labels = _positions(codes, ages) if batch.labels is None else batch.labels
    return batch.table.take(answer_rows(query, batch.values, labels, codes, ages))


def _positions(codes: Ints, ages: Ints) -> Ints:
    """The arrival number of each row among those of its key."""
    positions = np.empty(len(codes), np.int64)
    for start, end in segments(codes[ages]):
        positions[ages[start:end]] = np.arange(1, end - start + 1)
    return positions


def answer_rows(
    query: Query,
    values: npt.NDArray[np.float64],
    labels: Ints,
    codes: Ints,
    ages: Ints,
    newest: int | None = None,
) -> Ints:
    """The rows that are the answer, ascending; of a top k of one key, the best first.

    ``labels``: the times or the positions of the rows.  ``ages``: the rows of each code together, the
    oldest first.  ``newest``: the time that the clock of all keys shows, if it is not that of the
    newest of these rows.

    >>> from skytide import last, low, skyline
    >>> query, values = skyline(low("price")).over(last(2)), np.array([[1.0], [3.0], [2.0]])
    >>> answer_rows(query, values, np.array([1, 2, 3]), np.zeros(3), np.arange(3))
    array([2])
    """
    if not len(labels):
        return ages
    clock = int(labels.max()) if newest is None else newest
    chosen = []
    for start, end in segments(codes[ages]):
        rows = ages[start:end]
        now = clock if query.timed else int(labels[rows].max())
        chosen.append(_best(query, values, rows[_inside(query, labels[rows], now)]))
    return chosen[0] if _ranks(query, chosen) else np.sort(np.concatenate(chosen))


def _ranks(query: Query, chosen: list[Ints]) -> bool:
    return isinstance(query.question, Top) and len(chosen) == 1


def _inside(query: Query, labels: Ints, newest: int) -> npt.NDArray[np.bool_]:
    """Which of one key's rows the window holds."""
    ruler = ruler_of(query.window)
    clock = ruler.moved_to(newest)
    inside: npt.NDArray[np.bool_] = labels <= clock
    if ruler.length is not None:
        inside &= labels > clock - ruler.length
    return inside


def _best(query: Query, values: npt.NDArray[np.float64], rows: Ints) -> Ints:
    """The rows that fewer than k others beat, from the oldest to the youngest or by rank."""
    from skytide.algorithms.static.sfs import skyline_sfs

    best = rows[skyline_sfs(values[rows], query.k, query.ties == "newest")]
    if isinstance(query.question, Top):
        younger_first = best[::-1]
        best = younger_first[np.argsort(values[younger_first, 0], kind="stable")]
    return best
