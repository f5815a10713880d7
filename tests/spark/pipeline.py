"""A pipeline from files to a change table, as a program of its own: something to kill.

    python pipeline.py FOLDER

reads FOLDER/rows, a file a micro-batch, and writes the changes of two questions, one per key and one of
all rows, to FOLDER/changes until there are no more files.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import skytide as st

SCHEMA = "x BIGINT, y BIGINT, key STRING, ts TIMESTAMP, number BIGINT"
ROWS = st.skyline(st.low("x"), st.high("y")).over(st.last(50)).per("key")
TIMES = st.top(5, st.low("x + y")).over(st.last("40 seconds", on="ts"))


def main(folder: Path) -> None:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2,4]")  # a task may fail four times
        .config("spark.ui.enabled", False)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.session.timeZone", "UTC")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", True)
        .getOrCreate()
    )
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    rows = stream.parquet(str(folder / "rows"))
    queries = [
        written(ROWS.changes(rows, order_by="number"), folder, "rows"),
        written(TIMES.changes(rows, watermark="3 seconds"), folder, "times"),
    ]
    for query in queries:
        query.awaitTermination()
    spark.stop()


def written(changes: Any, folder: Path, name: str) -> Any:
    return (
        changes.writeStream.format("parquet")
        .option("path", str(folder / "changes" / name))
        .option("checkpointLocation", str(folder / "checkpoints" / name))
        .trigger(availableNow=True)
        .start()
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
