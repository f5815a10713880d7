"""Stages one and two: what of a partition may still matter, packed into one binary value a key.

| column | what |
|---|---|
| `_group0`, ... | the key: whose rows |
| `_part` | the partition of the source: the order of the packs of a micro-batch |
| `_kind` | `rows` or `rejects` |
| `_pack` | the survivors, or the rejects, as an Arrow stream |
| `_time` | of time windows, in a row of its own: the newest time of the partition |
| `_rows`, `_kept`, `_rejected` | how many rows there were, are left, were set aside |

Only packs cross the network: rows that can no longer matter never leave their partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

import skytide as st
from skytide.pruning import PLACE, Pack, Pruner, split_by_key

GROUP, PART, KIND, PACK, TIME = "_group", "_part", "_kind", "_pack", "_time"
ROWS, KEPT, REJECTED = "_rows", "_kept", "_rejected"

SURVIVORS, REJECTS, CLOCK = "rows", "rejects", "clock"

Batches = Iterator[pa.RecordBatch]


def names_of(columns: str | Sequence[str] | None) -> tuple[str, ...]:
    """One column, several or none, as a tuple.

    >>> names_of("ts"), names_of(["ts", "id"]), names_of(None)
    (('ts',), ('ts', 'id'), ())
    """
    return (columns,) if isinstance(columns, str) else tuple(columns or ())


def arrow_schema(rows: Any, reserved: Sequence[str]) -> pa.Schema:
    """What the rows of a DataFrame look like to Arrow; refused if they use names that we need."""
    schema = rows.sparkSession.createDataFrame([], rows.schema).toArrow().schema
    clash = [name for name in (*reserved, PLACE) if name in schema.names]
    if clash:
        raise st.SchemaError(
            f"the rows have a column {clash[0]!r}, a name that skytide needs for itself",
            "rename it",
        )
    return schema


def observed(packs: Any, metrics: Any) -> Any:
    """Packs whose rows and bytes are counted, under a name or in an ``Observation``."""
    return packs.observe(
        metrics,
        F.sum(ROWS).alias("rows"),
        F.sum(KEPT).alias("kept"),
        F.sum(REJECTED).alias("rejected"),
        F.sum(F.length(PACK)).alias("bytes"),
    )


def group_columns(query: st.Query) -> list[str]:
    """The columns that the packs of one key share: numbered, so that no name of a key matters.

    >>> group_columns(st.skyline(st.low("price")).over(st.last(9)).per("symbol", "a.b"))
    ['_group0', '_group1']
    """
    return [f"{GROUP}{number}" for number in range(max(1, len(query.keys)))]


def packed_schema(query: st.Query, schema: T.StructType) -> T.StructType:
    """The columns of packs of such rows."""
    kinds = [schema[name].dataType for name in query.keys] or [T.IntegerType()]
    fixed = [
        T.StructField(PART, T.IntegerType()),
        T.StructField(KIND, T.StringType()),
        T.StructField(PACK, T.BinaryType()),
        T.StructField(TIME, T.TimestampType()),
        *(T.StructField(name, T.LongType()) for name in (ROWS, KEPT, REJECTED)),
    ]
    return T.StructType([*map(T.StructField, group_columns(query), kinds), *fixed])


def packer(
    query: st.Query,
    schema: pa.Schema,
    order_by: Sequence[str] = (),
    rejects: bool = False,
    still: bool = False,
) -> Callable[[Batches], Batches]:
    """The function that ``mapInArrow`` calls for each partition.

    ``rejects``: bad rows travel too, and not only their number.
    """

    def pack(batches: Batches) -> Batches:
        pruner = Pruner(query, schema, order_by, still)
        aside = [pruner.add(batch) for batch in batches]
        bad = [table for table in aside if table.num_rows]
        table = _Packs(query, schema, part_of_task())
        for _, left in pruner.packs():
            table.add_survivors(left)
        for rows in bad:
            table.add_rejects(rows, rejects)
        if pruner.newest is not None:
            table.add_clock(pruner.newest)
        yield from table.batches()

    return pack


def part_of_task() -> int:
    """The number of the partition that this task reads; 0 where there is no task."""
    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


class _Packs:
    """The packs of a partition, as they become a batch of rows."""

    def __init__(self, query: st.Query, schema: pa.Schema, part: int) -> None:
        self._query, self._part = query, part
        self._keys = [schema.field(name) for name in query.keys]
        self._tables: list[pa.Table] = []
        self._facts: list[tuple[Any, ...]] = []

    def add_survivors(self, pack: Pack) -> None:
        count, kept = pack.seen, len(pack.places)
        self._add(pack.rows, SURVIVORS, pack.to_bytes(), None, count, kept, 0)

    def add_rejects(self, rows: pa.Table, sent: bool) -> None:
        for part in split_by_key(rows, self._query.keys):
            blob = Pack.of(part).to_bytes() if sent else None
            self._add(part, REJECTS, blob, None, part.num_rows, 0, part.num_rows)

    def add_clock(self, newest: int) -> None:
        """A row of its own, so that the packs have no time by which Spark could drop them as late."""
        self._facts.append((CLOCK, None, newest // 1000, 0, 0, 0))
        self._tables.append(self._tables[0] if self._tables else None)

    def _add(self, rows: pa.Table, kind: str, blob: bytes | None, *facts: Any) -> None:
        self._tables.append(rows.select([field.name for field in self._keys]).slice(0, 1))
        self._facts.append((kind, blob, *facts))

    def batches(self) -> Batches:
        if not self._facts:
            return
        kinds, blobs, times, *counts = zip(*self._facts, strict=True)
        if self._keys:
            keys = pa.concat_tables(self._tables).combine_chunks().columns
        else:
            keys = [pa.array([0] * len(kinds), pa.int32())]
        columns = [
            *keys,
            pa.array([self._part] * len(kinds), pa.int32()),
            pa.array(kinds, pa.string()),
            pa.array(blobs, pa.binary()),
            pa.array(times, pa.timestamp("us", "UTC")),
            *(pa.array(column, pa.int64()) for column in counts),
        ]
        names = [*group_columns(self._query), PART, KIND, PACK, TIME, ROWS, KEPT, REJECTED]
        yield from pa.table(columns, names=names).to_batches()


__all__ = [
    "CLOCK", "GROUP", "KEPT", "KIND", "PACK", "PART", "REJECTED", "REJECTS", "ROWS", "SURVIVORS",
    "TIME", "arrow_schema", "group_columns", "names_of", "observed", "packed_schema", "packer",
    "part_of_task",
]  # fmt: skip
