"""Packs: what is left of the rows of one key, on its way from where it was pruned to its engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.keys import key_codes, key_order, segments, sorted_order

__all__ = ["Pack", "merged", "split_by_key"]

Ints = npt.NDArray[np.int64]

PLACE = "_place"


class Pack(NamedTuple):
    """What is left of the rows of one key.

    ``places`` are their arrival numbers in the part they come from, ascending; the last row of a part
    is always left, so its place is the number of rows there were.  ``order`` holds the columns that
    the arrival order follows, of *all* rows, sorted by them; None where nothing needs it.

    >>> pack = Pack(np.array([2, 5]), pa.table({"price": [1, 2]}))
    >>> pack.seen, Pack.from_bytes(pack.to_bytes()).rows.to_pydict()
    (5, {'price': [1, 2]})
    """

    places: Ints
    rows: pa.Table
    order: pa.Table | None = None

    @staticmethod
    def of(rows: pa.Table) -> Pack:
        """All of these rows.

        >>> Pack.of(pa.table({"price": [1, 2]})).places.tolist()
        [1, 2]
        """
        return Pack(np.arange(1, rows.num_rows + 1), rows)

    @property
    def seen(self) -> int:
        """How many rows there were.

        >>> Pack(np.array([2, 5]), pa.table({"price": [1, 2]})).seen
        5
        """
        return int(self.places[-1]) if len(self.places) else 0

    def to_bytes(self) -> bytes:
        """The pack as one binary value: an Arrow stream, of one more column.

        >>> len(Pack(np.array([1]), pa.table({"price": [1]})).to_bytes()) > 0
        True
        """
        body = _stream(self.rows.append_column(PLACE, pa.array(self.places)))
        if self.order is None:
            return body
        return body + _stream(self.order)

    @staticmethod
    def from_bytes(blob: bytes) -> Pack:
        """The pack that :meth:`to_bytes` wrote.

        >>> order = pa.table({"ts": [1, 2]})
        >>> pack = Pack(np.array([2]), pa.table({"price": [7]}), order)
        >>> Pack.from_bytes(pack.to_bytes()).order.to_pydict()
        {'ts': [1, 2]}
        """
        source = pa.BufferReader(blob)
        table = pa.ipc.open_stream(source).read_all()
        order = None
        if source.tell() < source.size():
            order = pa.ipc.open_stream(source).read_all()
        places = table.column(PLACE).to_numpy().astype(np.int64)
        return Pack(places, table.drop_columns([PLACE]), order)


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def split_by_key(rows: pa.Table, keys: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of each key, in the order they are in.

    >>> [part.num_rows for part in split_by_key(pa.table({"s": ["b", "a", "b"]}), ["s"])]
    [2, 1]
    """
    codes = key_codes(rows, keys)
    order = key_order(codes)
    for start, end in segments(codes[order]):
        yield rows.take(order[start:end])


def merged(packs: Sequence[Pack]) -> Pack:
    """One pack of several, the first of which arrived first: as if their rows had come in one part.

    >>> one, two = (Pack(np.array([2]), pa.table({"price": [price]})) for price in (7, 8))
    >>> merged([one, two]).places.tolist()
    [2, 4]
    """
    rows = pa.concat_tables([pack.rows for pack in packs])
    if packs[0].order is not None:
        places, order = _interleaved(packs)
        by_place = np.argsort(places, kind="stable")
        return Pack(places[by_place], rows.take(by_place), order)
    before = np.cumsum([0, *(pack.seen for pack in packs[:-1])])
    shifted = [pack.places + base for pack, base in zip(packs, before, strict=True)]
    return Pack(np.concatenate(shifted), rows)


def _interleaved(packs: Sequence[Pack]) -> tuple[Ints, pa.Table]:
    """The places of all rows when the parts are put together in order, and that order."""
    together = pa.concat_tables([pack.order for pack in packs]).combine_chunks()
    order = sorted_order(together)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    before = np.cumsum([0, *(pack.order.num_rows for pack in packs[:-1])])  # type: ignore[union-attr]
    places = [ranks[pack.places - 1 + base] for pack, base in zip(packs, before, strict=True)]
    return np.concatenate(places), together.take(order)
