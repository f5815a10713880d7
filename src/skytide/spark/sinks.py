"""Where changes go: a Parquet change table, and the answer itself on a console.

A sink is what `foreachBatch` takes; `skytide.spark.postgres` has the one for PostgreSQL:

    changes.writeStream.foreachBatch(ParquetSink("deals")).option("checkpointLocation", ...).start()

Spark calls it at least once for every micro-batch, with the same changes if it calls it again. Each
sink makes exactly once of it, by the number of the micro-batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import skytide as st
from skytide.spark.folding import AT, BATCH, REASONS, TYPE, row_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Answer", "ConsoleSink", "ParquetSink", "files_under"]


@dataclass(frozen=True)
class ParquetSink:
    """A folder of Parquet files, with a folder of its own for each micro-batch.

    A micro-batch that is done again replaces its folder, so whatever reads Parquet reads every
    change once. The number of the micro-batch is the column `change_batch`; `fold(path)` gives the
    answer. A stream that begins anew is refused a path where something stands already.

    >>> ParquetSink("/data/deals")
    ParquetSink(path='/data/deals')
    """

    path: str

    def __call__(self, changes: DataFrame, batch: int) -> None:
        """Write one micro-batch, whether or not it was written before."""
        if BATCH in changes.columns:
            raise st.SchemaError(
                f"the rows have a column {BATCH}, which the change table needs for itself",
                f'rename it: .withColumnRenamed("{BATCH}", ...)',
            )
        if batch == 0:
            self._refuse_another(changes.sparkSession)
        folder = f"{self.path.rstrip('/')}/{BATCH}={batch}"
        writer = changes.write.mode("overwrite")
        writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(folder)

    def _refuse_another(self, spark: SparkSession) -> None:
        others = [one for one in files_under(spark, self.path) if f"/{BATCH}=0/" not in one]
        if others:
            raise st.StateError(
                f"a new stream would write into {self.path}, where {others[0]} stands already",
                "choose another path, or remove what is there, "
                "or go on with the checkpoint that belongs to it",
            )


def files_under(spark: SparkSession, path: str) -> list[str]:
    """Some of the files below a path, wherever Spark can read; none if it does not exist.

    >>> files_under(spark, "s3a://bucket/deals")  # doctest: +SKIP
    []
    """
    from pyspark.errors import AnalysisException

    try:
        listed = spark.read.format("binaryFile").option("recursiveFileLookup", True).load(path)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return []
        raise
    return [row.path for row in listed.select("path").limit(1_000).collect()]


@dataclass
class Answer:
    """A moving answer: what there is now, and what came and went last.

    >>> import pyarrow as pa
    >>> answer = Answer()
    >>> answer.take(pa.table({"_change_type": ["insert"], "_change_at": [1], "price": [9]}), batch=0)
    >>> answer.rows.to_pylist(), answer.batch
    ([{'price': 9}], 0)
    """

    rows: pa.Table = None
    batch: int = -1
    recent: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=50))

    def take(self, changes: pa.Table, batch: int) -> None:
        """Let the changes of a micro-batch happen, once."""
        if batch <= self.batch:
            return
        changes = _without_rejects(changes)
        self.rows = st.fold(changes if self.rows is None else [self._as_changes(changes), changes])
        self.recent.extend(changes.slice(max(0, changes.num_rows - 50)).to_pylist())
        self.batch = batch

    def _as_changes(self, like: pa.Table) -> pa.Table:
        """The rows there are, as inserts."""
        import pyarrow as pa

        count = self.rows.num_rows
        kinds = pa.array(["insert"] * count, pa.string())
        when = pa.nulls(count, like.schema.field(AT).type)
        columns = dict(zip(self.rows.column_names, self.rows.columns, strict=True))
        return pa.table({TYPE: kinds, AT: when, **columns}).cast(like.schema)


def _without_rejects(changes: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    kept = changes.filter(pc.not_equal(changes[TYPE], "reject"))
    names = [TYPE, AT, *row_columns(changes.column_names)]
    return kept.select(names).sort_by(AT)


@dataclass
class ConsoleSink:
    """The answer in this process, handed to `show` after every micro-batch that changed it.

    It holds the whole answer in memory and forgets it with the process: give it a stream that
    begins with the process. It needs a driver in this process, so not Spark Connect.

    >>> ConsoleSink(show=lambda answer: None).answer.batch
    -1
    """

    show: Callable[[Answer], None]
    answer: Answer = field(default_factory=Answer)

    def __call__(self, changes: DataFrame, batch: int) -> None:
        """Take the changes of a micro-batch and show what has become of the answer."""
        names = [name for name in changes.columns if name not in (REASONS, BATCH)]
        table = changes.select(*(f"`{name.replace('`', '``')}`" for name in names)).toArrow()
        self.answer.take(table, batch)
        if table.num_rows or batch == 0:
            self.show(self.answer)
