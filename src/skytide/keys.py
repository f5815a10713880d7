"""Keys and orders: which rows belong together, and which comes first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]

_DENSE = 1 << 16


def key_codes(table: pa.Table, keys: Sequence[str]) -> Ints:
    """A number for each row, the same for rows of equal keys; nulls are keys as well.

    >>> key_codes(pa.table({"s": ["b", "a", "b"]}), ["s"]).tolist()
    [0, 1, 0]
    """
    codes, width = np.zeros(table.num_rows, np.int64), 1
    for name in keys:
        column = table.column(name).combine_chunks().dictionary_encode("encode")
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        codes = codes * len(column.dictionary) + column.indices.to_numpy()
        width *= max(1, len(column.dictionary))
        if width > _DENSE:
            distinct, codes = np.unique(codes, return_inverse=True)
            width = len(distinct)
    return codes


def key_order(codes: Ints) -> Ints:
    """A stable order that brings equal codes together.

    >>> key_order(np.array([1, 0, 1])).tolist()
    [1, 0, 2]
    """
    # numpy sorts 16 bits by radix: 131,072 rows in 0.5 ms, not in 8.
    small = codes.astype(np.uint16) if codes.max(initial=0) < _DENSE else codes
    order: Ints = np.argsort(small, kind="stable")
    return order


def segments(codes: Ints) -> Iterator[tuple[int, int]]:
    """Where each run of equal codes starts and ends.

    >>> list(segments(np.array([4, 4, 7])))
    [(0, 2), (2, 3)]
    """
    if len(codes):
        starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 1))
        yield from zip(starts.tolist(), [*starts[1:].tolist(), len(codes)], strict=True)


def sorted_order(order: pa.Table, codes: Ints | None = None) -> Ints:
    """A stable order by codes, if there are any, then by the columns of the table.

    >>> sorted_order(pa.table({"ts": [2, 1, 2]}), np.array([0, 1, 0])).tolist()
    [0, 2, 1]
    """
    codes = np.zeros(order.num_rows, np.int64) if codes is None else codes
    named = [f"c{index}" for index in range(order.num_columns)]
    table = order.rename_columns(named).append_column("code", pa.array(codes))
    keys = [("code", "ascending"), *((name, "ascending") for name in named)]
    # Arrow's sort of several columns does not promise to be stable: the number of the row decides.
    table = table.append_column("row", pa.array(np.arange(len(codes))))
    result: Ints = pc.sort_indices(table, [*keys, ("row", "ascending")]).to_numpy()
    return result.astype(np.int64)
