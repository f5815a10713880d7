"""The rows themselves, kept only while an answer or a change may still need them.

Engines know rows as positions; here a position becomes the row it stands for, with all its columns,
untouched.  What has become useless is thrown out when it is more than half, so that memory follows
the rows kept, not the rows seen.

The engines of a query per key share one such store, and hold the *numbers* of their rows in it
instead of rows: thousands of tables of a few rows each would cost more than all the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]

SLACK = 1024  # so many useless rows are never worth a clean-up
_SMALL = 64  # so many chunks are put together


class Numbers:
    """Rows that are kept elsewhere, by number; sliced and taken as a table is.

    >>> Numbers(np.array([7, 8, 9])).slice(1, 2).take(np.array([1])).of
    array([9])
    """

    def __init__(self, of: Ints) -> None:
        self.of = of

    def slice(self, start: int, length: int) -> Numbers:
        """So many of them, from one on."""
        return Numbers(self.of[start : start + length])

    def take(self, indices: Ints) -> Numbers:
        """Some of them."""
        return Numbers(self.of[indices])

    @property
    def nbytes(self) -> int:
        """Memory."""
        return self.of.nbytes


def joined_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """One table.  Its chunks still point into what was pushed; combining lets go of that."""
    return pa.concat_tables(tables).combine_chunks()


def joined_numbers(parts: Sequence[Numbers]) -> Numbers:
    """All numbers, one part after the other."""
    return Numbers(np.concatenate([part.of for part in parts]))


class Payload:
    """Rows by position, in arrival order.

    >>> kept = Payload()
    >>> kept.append(np.array([1, 4]), pa.table({"name": ["a", "d"]}))
    >>> kept.take(np.array([4])).to_pylist()
    [{'name': 'd'}]
    """

    def __init__(
        self, joined: Callable[[Sequence[Any]], Any] = joined_tables, slack: int = SLACK
    ) -> None:
        self._joined, self._slack = joined, slack
        self._chunks: list[tuple[Ints, Any]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, positions: Ints, table: Any) -> None:
        """Add rows, all younger than those there.  O(rows), and O(all) every 64th time."""
        if not len(positions):
            return
        self._chunks.append((positions, table))
        self._count += len(positions)
        if len(self._chunks) > _SMALL:
            self._join()

    def take(self, positions: Ints) -> Any:
        """The rows at these positions, in this order."""
        if len(self._chunks) != 1:
            self._join()
        have, table = self._chunks[0]
        return table.take(np.searchsorted(have, positions))

    def chunks(self) -> list[Any]:
        """All rows, those in use and those no longer, in pieces."""
        return [rows for _, rows in self._chunks]

    def tidy(self, kept: int, wanted: Callable[[], Ints]) -> None:
        """Throw out the rows that are not ``wanted`` if they may be more than those ``kept``.

        O(all), paid for by the rows that were added since.
        """
        if self._count > 2 * kept + self._slack:
            positions = wanted()
            table = self.take(positions)
            self._chunks, self._count = [(positions, table)], len(positions)

    def _join(self) -> None:
        positions, tables = zip(*self._chunks, strict=True)
        self._chunks = [(np.concatenate(positions), self._joined(tables))]

    @property
    def nbytes(self) -> int:
        """Memory of the rows."""
        return sum(positions.nbytes + table.nbytes for positions, table in self._chunks)
