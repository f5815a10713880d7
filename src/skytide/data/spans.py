"""Any part of a generated stream, without the parts before: what a replayable source reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import numpy as np

from skytide.data.generators import CHUNK, Distribution, at_least, chunk_of, rng_of
from skytide.data.market import trade_chunk

if TYPE_CHECKING:
    import pyarrow as pa

# Makes the table of one chunk from its number.
MakeChunk: TypeAlias = "Callable[[int], pa.Table]"

KINDS = ("trades", *get_args(Distribution))
_KEYS = 4  # the generator of keys, beside those of points and trades


def span(
    kind: str, start: int, stop: int, *, dims: int = 3, seed: int = 0, keys: int = 0
) -> Iterator[pa.Table]:
    """The rows `start` to `stop` of a stream of one kind, in tables of at most `CHUNK` rows.

    The kind is "trades" or a distribution, whose coordinates are the columns x1, x2, ... With `keys`
    points also get a column `key` of so many values. The cost is that of the rows asked for, wherever
    in the stream they are.

    >>> tables = span("independent", 1_000_000, 1_000_002, dims=2, seed=1)
    >>> [table.column_names for table in tables]
    [['x1', 'x2']]
    """
    make = _maker(kind, dims, seed, keys)
    at_least("start", start, 0)
    return _cut_out(make, start, stop)


def _cut_out(make: MakeChunk, start: int, stop: int) -> Iterator[pa.Table]:
    while start < stop:
        index, begin = divmod(start, CHUNK)
        end = min(stop - index * CHUNK, CHUNK)
        yield make(index).slice(begin, end - begin)
        start += end - begin


def _maker(kind: str, dims: int, seed: int, keys: int) -> MakeChunk:
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}. Hint: one of {list(KINDS)}")
    if kind == "trades":
        return partial(trade_chunk, seed)
    at_least("dims", dims, 1)
    at_least("keys", keys, 0)
    return partial(_points, kind, dims, seed, keys)


def _points(kind: Any, dims: int, seed: int, keys: int, index: int) -> pa.Table:
    import pyarrow as pa

    columns = np.ascontiguousarray(chunk_of(kind, dims, seed, index).T)
    table = pa.table({f"x{axis}": column for axis, column in enumerate(columns, start=1)})
    if not keys:
        return table
    drawn = rng_of(seed, _KEYS, keys, index).integers(keys, size=CHUNK)
    return table.append_column("key", pa.array(drawn))
