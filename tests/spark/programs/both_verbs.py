"""A user's program: both verbs, in whatever session it is started in; the outcome is printed as JSON.

Arguments: a folder to write to, and a Spark Connect address, if that is how Spark is to be reached.
"""

import json
import sys

import pyarrow as pa
from pyspark.sql import Observation, SparkSession

import skytide as st

BEST = st.skyline(st.low("price"), st.high("volume")).over(st.last(20_000))
TOP = st.top(3, st.high("volume")).over(st.last("1 minute")).per("venue")


def where(batches):
    """Where a worker has skytide from."""
    for _ in batches:
        yield pa.record_batch({"file": [st.__file__]})


def main(folder, remote=None):
    builder = SparkSession.builder.appName("both verbs")
    spark = (builder.remote(remote) if remote else builder).getOrCreate()
    for name, value in {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
    }.items():
        spark.conf.set(name, value)
    trades = spark.read.format("skytide").option("rows", 50_000).option("partitions", 4).load()
    counts = Observation()
    told = {
        "kind": f"{type(trades).__module__}",
        "answer": BEST.answer(trades, counts=counts).toArrow()["price"].to_pylist(),
        "per key": sorted(TOP.answer(trades).toArrow()["volume"].to_pylist()),
        "workers": [row.file for row in spark.range(4).mapInArrow(where, "file string").collect()],
        "rows": counts.get["rows"],
    }
    stream = spark.readStream.format("skytide").option("rows", 50_000)
    stream = stream.option("rowsPerBatch", 25_000).load()
    writing = (
        BEST.changes(stream)
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{folder}/changes")
    )
    writing.awaitTermination()
    changes = spark.read.parquet(f"{folder}/changes").toArrow().sort_by("_change_at")
    told["folded"] = st.fold(changes)["price"].to_pylist()
    sys.stdout.write("TOLD " + json.dumps(told) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
