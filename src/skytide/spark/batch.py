"""`query.answer(df)`: prune every partition where it lies, merge what is left, answer.

source ──► mapInArrow: prune ──► neighbours merged, 16 to 1 ──► all merged: the answer

| column | what |
|---|---|
| `_bucket` | which task answers for the rows: of a query per key a hash of the key, else 0 |
| `_part` | the partition of the source, or the first of those merged: the order of arrival |
| `_kind` | `rows` or `rejects` |
| `_pack` | what is left, or the rejects, as an Arrow stream |
| `_time` | of time windows: the newest time of the partition, in nanoseconds |
| `_rows`, `_kept`, `_rejected` | how many rows there were, are left, were set aside |

Nothing comes to the driver, and no job runs before the answer is asked for.  A task holds what is left
of the parts it merges, one after the other; a part travels as one binary value, of 2 GB at most.

Sixteen parts are merged at a time because a merge costs a task little (what is left is small) and a
stage some 50 ms: 256 partitions meet in a last merge of 16, 4,096 in one of 256.  Keys are spread over
as many tasks as ``spark.sql.shuffle.partitions`` says, and merged there at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

import skytide as st
from skytide.parts import Merger, Part, split, standing
from skytide.pruning import REASONS, Pack, Pruner
from skytide.spark.packing import (
    KEPT,
    KIND,
    PACK,
    PART,
    REJECTED,
    REJECTS,
    ROWS,
    SURVIVORS,
    TIME,
    arrow_schema,
    names_of,
    observed,
    part_of_task,
)

BUCKET = "_bucket"
FAN_IN = 16

WIRE = f"{BUCKET} int, {PART} int, {KIND} string, {PACK} binary, {TIME} long, " + ", ".join(
    f"{name} long" for name in (ROWS, KEPT, REJECTED)
)
_ARROW = pa.schema(
    [
        (BUCKET, pa.int32()),
        (PART, pa.int32()),
        (KIND, pa.string()),
        (PACK, pa.binary()),
        *((name, pa.int64()) for name in (TIME, ROWS, KEPT, REJECTED)),
    ]
)

Batches = Iterator[pa.RecordBatch]


def batch_answer(
    query: st.Query,
    df: Any,
    order_by: str | Sequence[str] | None = None,
    rejects: bool = False,
    counts: Any = None,
) -> Any:
    """The answer of a query over a DataFrame that stands still, as another one; see `Query.answer`."""
    asked = _asked(query, df, order_by, rejects)
    if asked.query.keys:
        names = [F.col("`" + name.replace("`", "``") + "`") for name in query.keys]
        df = df.withColumn(BUCKET, F.pmod(F.hash(*names), F.lit(asked.buckets)))
    wire = df.mapInArrow(_pruned(asked), WIRE)
    wire = observed(wire, "skytide_in" if counts is None else counts)
    if not query.keys:
        neighbours = F.floor(F.col(PART) / FAN_IN)
        wire = _sorted(wire.repartition(neighbours)).mapInArrow(_merged(asked), WIRE)
    wire = wire.repartition(BUCKET) if query.keys else wire.repartition(1)
    return _sorted(wire).mapInArrow(_answered(asked), asked.schema)


def _sorted(wire: Any) -> Any:
    return wire.sortWithinPartitions(BUCKET, KIND, PART)


class _Asked(NamedTuple):
    """What tasks need to know."""

    query: st.Query
    order_by: tuple[str, ...]
    rejects: bool
    buckets: int
    schema: T.StructType


def _asked(query: st.Query, df: Any, order_by: str | Sequence[str] | None, rejects: bool) -> _Asked:
    """What is asked; everything that can be known to be wrong is refused here."""
    columns = names_of(order_by)
    arrow = arrow_schema(df, (BUCKET, REASONS))
    query = standing(query)
    Pruner(query, arrow, columns, still=True)
    schema = df.schema
    if rejects:
        fields = [T.StructField(field.name, field.dataType) for field in schema]
        schema = T.StructType([*fields, T.StructField(REASONS, T.StringType())])
    if not query.keys:
        return _Asked(query, columns, rejects, 1, schema)
    buckets = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    query = st.Query(query.question, query.window, (BUCKET, *query.keys))
    return _Asked(query, columns, rejects, buckets, schema)


# -- in the tasks --------------------------------------------------------------------------------


def _pruned(asked: _Asked) -> Callable[[Batches], Batches]:
    """Stage one: a partition's rows in; what is left of them out, a pack for every bucket."""

    def prune(batches: Batches) -> Batches:
        merger, part = Merger(asked.query, asked.order_by), part_of_task()
        pruner, rows, rejected = merger.pruner(), 0, 0
        for batch in batches:
            rows += batch.num_rows
            aside = pruner.add(batch)
            rejected += aside.num_rows
            if asked.rejects and aside.num_rows:
                yield _wire(0, part, REJECTS, Pack.of(aside).to_bytes(), None)
        left = merger.left_by(pruner)
        yield _wire(0, part, SURVIVORS, None, None, rows, left.rows.num_rows, rejected)
        yield from _packs(asked, part, left)

    return prune


def _packs(asked: _Asked, number: int, left: Part) -> Batches:
    if not asked.query.keys:
        if left.rows.num_rows:
            yield _wire(0, number, SURVIVORS, left.to_bytes(), left.newest)
        return
    for bucket, part in split(left, BUCKET):
        yield _wire(bucket, number, SURVIVORS, part.to_bytes(), left.newest)
    if left.newest is not None:  # the clock of all keys is told to all buckets
        for bucket in range(asked.buckets):
            yield _wire(bucket, number, SURVIVORS, None, left.newest)


def _wire(*values: Any) -> pa.RecordBatch:
    values = (*values, *[0] * (len(_ARROW) - len(values)))
    columns = [pa.array([value], kind.type) for value, kind in zip(values, _ARROW, strict=True)]
    return pa.record_batch(columns, schema=_ARROW)


def _merged(asked: _Asked) -> Callable[[Batches], Batches]:
    """Stage two: packs of neighbours in, one out."""

    def merge(batches: Batches) -> Batches:
        for (bucket, kind, group), rows in groupby(
            _told(batches), lambda row: (row[BUCKET], row[KIND], row[PART] // FAN_IN)
        ):
            if kind == REJECTS:
                yield from (_wire(bucket, row[PART], kind, row[PACK], None) for row in rows)
                continue
            merger = _fed(asked, rows)
            newest, part = merger.newest, merger.part()
            if part.rows.num_rows:
                yield _wire(bucket, group * FAN_IN, kind, part.to_bytes(), newest)

    return merge


def _answered(asked: _Asked) -> Callable[[Batches], Batches]:
    """Stage three: all packs of a bucket in, its answer out."""

    def answer(batches: Batches) -> Batches:
        for (_, kind), rows in groupby(_told(batches), lambda row: (row[BUCKET], row[KIND])):
            if kind == REJECTS:
                for row in rows:
                    yield from _out(asked, Pack.from_bytes(row[PACK]).rows)
            else:
                yield from _out(asked, _fed(asked, rows).answer())

    return answer


def _fed(asked: _Asked, rows: Iterator[dict[str, Any]]) -> Merger:
    merger = Merger(asked.query, asked.order_by)
    for row in rows:
        if row[PACK] is not None:
            merger.add(Part.from_bytes(row[PACK], row[TIME]))
        elif row[TIME] is not None:
            merger.add(Part.nothing(row[TIME]))
    return merger


def _told(batches: Batches) -> Iterator[dict[str, Any]]:
    for batch in batches:
        for number in range(batch.num_rows):
            yield {name: batch.column(name)[number].as_py() for name in (BUCKET, *_READ)}


_READ = (KIND, PART, PACK, TIME)


def _out(asked: _Asked, rows: pa.Table) -> Batches:
    """The rows as Spark was told that they would look."""
    if rows.num_rows:
        if asked.rejects and REASONS not in rows.column_names:
            rows = rows.append_column(REASONS, pa.nulls(rows.num_rows, pa.string()))
        yield from rows.select(asked.schema.names).to_batches()


__all__ = ["BUCKET", "FAN_IN", "batch_answer"]
