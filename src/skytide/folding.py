"""From changes back to the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.changes import AT, TYPE
from skytide.errors import SchemaError
from skytide.tables import to_table

Ints = npt.NDArray[np.int64]


def fold(changes: Any) -> pa.Table:
    """The answer that a change table, or several one after the other, leads to from an empty one.

    Equal rows are counted: of three inserts and one delete of the same row, two rows are left. They
    stand in the order of their inserts. What deletes a row that was never inserted is refused, since
    then the beginning is missing. O(n log n) in the number of changes.

    >>> import skytide as st
    >>> best = st.skyline(st.low("price")).over(st.last(2))
    >>> st.fold(best.changes([{"price": [2.0]}, {"price": [1.0]}])).to_pylist()
    [{'price': 1.0}]
    """
    table = _one_table(changes)
    _check(table)
    signs = _signs(table)
    rows = table.drop_columns([TYPE, AT])
    return rows.take(pa.array(_left(_codes(rows), signs, table)))


def _one_table(changes: Any) -> pa.Table:
    if isinstance(changes, Mapping) or not isinstance(changes, Iterable) or _is_rows(changes):
        return to_table(changes)
    tables = [to_table(table) for table in changes]
    if not tables:
        raise SchemaError("there is no change table to fold", "give at least an empty one")
    return pa.concat_tables(tables)


def _is_rows(changes: Any) -> bool:
    """Is it one table, and not several?"""
    readable = hasattr(changes, "__arrow_c_stream__") or hasattr(changes, "columns")
    dicts = isinstance(changes, list) and bool(changes) and isinstance(changes[0], Mapping)
    return readable or (dicts and TYPE in changes[0] and isinstance(changes[0][TYPE], str))


def _check(table: pa.Table) -> None:
    missing = [name for name in (TYPE, AT) if name not in table.column_names]
    if missing:
        raise SchemaError(
            f"a change table has the columns {TYPE} and {AT}; {' and '.join(missing)} is missing",
            "fold what query.changes(...) or watch.changes() gave",
        )


def _signs(table: pa.Table) -> Ints:
    kinds = table.column(TYPE).to_pylist()
    unknown = sorted({str(kind) for kind in kinds} - {"insert", "delete"})
    if unknown:
        raise SchemaError(
            f"{TYPE} is {' or '.join(map(repr, unknown))}", "it is insert or delete everywhere"
        )
    return np.array([1 if kind == "insert" else -1 for kind in kinds], np.int64)


def _codes(rows: pa.Table) -> Ints:
    """A number for each row, the same for equal rows; null equals null."""
    codes = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        values = _distinct(column.combine_chunks())
        codes = codes * (int(values.max(initial=0)) + 1) + values
        codes = np.unique(codes, return_inverse=True)[1]
    return codes


def _distinct(column: Any) -> Ints:
    if isinstance(column, pa.ChunkedArray):  # as older Arrow leaves a column without rows
        column = pa.concat_arrays(column.chunks)
    try:
        codes: Ints = column.dictionary_encode("encode").indices.to_numpy().astype(np.int64)
        return codes
    except pa.ArrowNotImplementedError:  # lists and structs
        return np.unique([repr(value) for value in column.to_pylist()], return_inverse=True)[1]


def _left(codes: Ints, signs: Ints, table: pa.Table) -> Ints:
    """The rows of the youngest inserts that no delete took back, in their order."""
    inserts = np.flatnonzero(signs > 0)[::-1]
    left = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
    np.add.at(left, codes, signs)
    if (left < 0).any():
        row = int(np.flatnonzero((left < 0)[codes])[0])
        raise SchemaError(
            f"a row is deleted more often than it was inserted: {table.slice(row, 1).to_pylist()[0]}",
            "fold the changes from the first one on",
        )
    order = np.argsort(codes[inserts], kind="stable")
    sorted_codes = codes[inserts][order]
    begins = np.searchsorted(sorted_codes, sorted_codes)
    rank = np.arange(len(sorted_codes)) - begins
    return np.sort(inserts[order[rank < left[sorted_codes]]])
