"""The local Spark session of the Spark benchmarks, and streams run to their end."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from pyspark_skytide import DefaultSource


def session(cores: int = 2) -> Any:
    """A session without a page, quiet, with RocksDB for state."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONWARNINGS"] = "ignore"
    store = "spark.sql.streaming.stateStore"
    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", cores)
        .config("spark.sql.session.timeZone", "UTC")
        .config(
            f"{store}.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .config(f"{store}.rocksdb.changelogCheckpointing.enabled", True)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(DefaultSource)
    return spark


def run(
    spark: Any,
    make: Callable[[Any], Any],
    rows: int,
    batches: int,
    warm: int = 2,
    sink: Callable[[Any, int], None] | None = None,
    engines: int = 2,
    **source: Any,
) -> dict[str, Any]:
    """Run a stream of generated rows through ``make`` to a sink that keeps nothing.

    ``engines``: the shuffle partitions; one is enough for a question of all rows.  Comes back with the
    milliseconds of its micro-batches after the first ``warm``, and what was observed in the last.
    """
    spark.conf.set("spark.sql.shuffle.partitions", engines)
    options = {"rows": rows * batches, "rowsPerBatch": rows, "partitions": 2, **source}
    stream = spark.readStream.format("skytide").options(**options).load()
    checkpoint = tempfile.mkdtemp()
    writer = make(stream).writeStream.option("checkpointLocation", checkpoint)
    writer = writer.foreachBatch(sink) if sink else writer.format("noop")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [p for p in query.recentProgress if p.numInputRows]
    shutil.rmtree(checkpoint, ignore_errors=True)
    times = [p.durationMs["triggerExecution"] for p in progress][warm:]
    metrics = {name: row.asDict() for name, row in (progress[-1].observedMetrics or {}).items()}
    return {"ms": statistics.median(times), "times": times, "metrics": metrics}
