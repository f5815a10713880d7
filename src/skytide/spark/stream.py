"""`query.changes(stream)`: three stages, prune and pack where the rows are, one engine a key.

source ──► mapInArrow: prune, pack ──► shuffle by key ──► transformWithState: engine ──► changes
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

import skytide as st
from skytide.pruning import REASONS, Pruner
from skytide.spark.keeper import Asked
from skytide.spark.packing import (
    TIME,
    arrow_schema,
    group_columns,
    names_of,
    observed,
    packed_schema,
    packer,
)
from skytide.spark.processor import AT, LATE, REJECT, TYPE, Processor

OURS = (TYPE, AT, REASONS)


def stream_changes(
    query: st.Query,
    stream: Any,
    order_by: str | Sequence[str] | None = None,
    watermark: str = "0 seconds",
    rejects: bool = False,
    last: Any = None,
    between: Any = None,
    k: int | None = None,
    algorithm: str | None = None,
    name: str = "skytide",
) -> Any:
    """The changes of a query's answer over a streaming DataFrame, as another one.

    See :meth:`skytide.Query.changes`.  ``name`` is the first half of the names of its observed
    metrics, ``_in`` and ``_out`` the second.
    """
    columns = names_of(order_by)
    asked = Asked(query, columns, last, between, k, algorithm)
    arrow = _checked(asked, stream)
    schema = packed_schema(query, stream.schema)
    packs = stream.mapInArrow(packer(query, arrow, columns, rejects), schema)
    packs = observed(packs, f"{name}_in")
    if asked.timed:
        packs = packs.withWatermark(TIME, watermark)
    told = packs.groupBy(*group_columns(query)).transformWithState(
        Processor(asked, uuid.uuid4().hex),
        _told_schema(asked, stream.schema),
        "append",
        "EventTime" if asked.timed else "None",
    )
    counted = {"inserts": "insert", "deletes": "delete", "late": LATE, "rejected": REJECT}
    told = told.observe(f"{name}_out", *(_count(*one) for one in counted.items()))
    return _shown(told, rejects)


def _count(name: str, kind: str) -> Any:
    return F.count(F.when(F.col(TYPE) == kind, 1)).alias(name)


def _checked(asked: Asked, stream: Any) -> pa.Schema:
    """What the rows look like to Arrow; everything that can be known to be wrong is refused here."""
    schema = arrow_schema(stream, OURS)
    Pruner(asked.query, schema, asked.order_by)
    asked.watch(asked.open())
    return schema


def _told_schema(asked: Asked, rows: T.StructType) -> T.StructType:
    at = T.TimestampType() if asked.timed else T.LongType()
    return T.StructType(
        [
            T.StructField(TYPE, T.StringType()),
            T.StructField(AT, at),
            *(T.StructField(field.name, field.dataType) for field in rows),
            T.StructField(REASONS, T.StringType()),
        ]
    )


def _shown(told: Any, rejects: bool) -> Any:
    """Changes only, or changes and what was set aside."""
    if not rejects:
        return told.filter(F.col(TYPE).isin("insert", "delete")).drop(REASONS)
    kind = F.when(F.col(TYPE) == LATE, REJECT).otherwise(F.col(TYPE))
    return told.withColumn(TYPE, kind)
