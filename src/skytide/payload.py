"""The rows themselves, kept only while an answer or a change may still need them.

Engines know rows as positions; here a position becomes the row it stands for, with all its columns,
untouched.  What has become useless is thrown out when it is more than half, so that memory follows
the rows kept, not the rows seen.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]

_SLACK = 1024  # so many useless rows are never worth a clean-up
_SMALL = 64  # so many chunks are put together


class Payload:
    """Rows by position, in arrival order.

    >>> kept = Payload()
    >>> kept.append(np.array([1, 4]), pa.table({"name": ["a", "d"]}))
    >>> kept.take(np.array([4])).to_pylist()
    [{'name': 'd'}]
    """

    def __init__(self) -> None:
        self._chunks: list[tuple[Ints, pa.Table]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, positions: Ints, table: pa.Table) -> None:
        """Add rows, all younger than those there.  O(rows), and O(all) every 64th time."""
        if not len(positions):
            return
        self._chunks.append((positions, table))
        self._count += len(positions)
        if len(self._chunks) > _SMALL:
            self._join()

    def take(self, positions: Ints) -> pa.Table:
        """The rows at these positions, in this order."""
        if len(self._chunks) != 1:
            self._join()
        have, table = self._chunks[0]
        return table.take(np.searchsorted(have, positions))

    def tidy(self, kept: int, wanted: Callable[[], Ints]) -> None:
        """Throw out the rows that are not ``wanted`` if they may be more than those ``kept``.

        O(all), paid for by the rows that were added since.
        """
        if self._count > 2 * kept + _SLACK:
            positions = wanted()
            table = self.take(positions)
            self._chunks, self._count = [(positions, table)], len(positions)

    def _join(self) -> None:
        positions, tables = zip(*self._chunks, strict=True)
        # Chunks of the joined table point into what was pushed; combining lets go of that.
        joined = pa.concat_tables(tables).combine_chunks()
        self._chunks = [(np.concatenate(positions), joined)]

    @property
    def nbytes(self) -> int:
        """Memory of the rows."""
        return sum(positions.nbytes + table.nbytes for positions, table in self._chunks)
