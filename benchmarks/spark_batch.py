"""The answer over a batch DataFrame: two cores against one, and against Spark's own means.

Wall time of whole jobs, reading Parquet included.  Cores are taken away and given back while the
session runs, by pinning the JVM, its threads and the Python workers.  Contenders take turns; ratios are
medians of the rounds.  Target: two cores at least 1.6 times as fast as one.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from pathlib import Path

import harness as h
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Observation, Window
from pyspark.sql import functions as F  # noqa: N812
from spark_session import session

import skytide as st

TARGET = 1.6
FILES = 8
KEYS = 64


def axes(dims):
    """A preference for each coordinate."""
    return [st.low(f"x{axis}") for axis in range(1, dims + 1)]


# -- data and cores --------------------------------------------------------------------------------


def written(folder, spark, distribution, dims, count):
    """Rows in as many Parquet files as there will be partitions, or so."""
    path = Path(folder) / f"{distribution}{dims}-{count}"
    path.mkdir()
    for file in range(FILES):
        values = h.rows_of(distribution, dims, count // FILES, seed=file)
        columns = {f"x{axis + 1}": values[:, axis] for axis in range(dims)}
        key = np.random.default_rng(file).integers(0, KEYS, len(values))
        number = np.arange(file * len(values), (file + 1) * len(values))
        table = pa.table({**columns, "key": key, "number": number})
        pq.write_table(table, path / f"{file}.parquet")
    return spark.read.parquet(str(path))


def descendants(root):
    """The processes below this one, itself among them."""
    parents = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            parents[int(process)] = int(fields[1])
    found, more = {root}, True
    while more:
        more = {child for child, parent in parents.items() if parent in found} - found
        found |= more
    return found


def pin(cores):
    """Let Spark use these cores only: every thread of every process that we started."""
    for process in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{process}/task"):
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(int(thread), cores)


def done(df):
    """Run a job; what comes out is thrown away."""
    df.write.format("noop").mode("overwrite").save()


# -- experiments -----------------------------------------------------------------------------------


def by_cores(bench, spark, folder, rounds):
    """The global skyline of a large DataFrame with one core and with two."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        bench.say("one core only: nothing to compare")
        return []
    raw, rows = [], []
    for distribution, dims, count in (
        ("independent", 3, bench.pick(24_000_000, 800_000)),
        ("independent", 6, bench.pick(4_000_000, 200_000)),
        ("anti-correlated", 4, bench.pick(4_000_000, 200_000)),
    ):
        df = written(folder, spark, distribution, dims, count)
        query = st.skyline(*axes(dims)).over(st.everything())

        def with_cores(which, query=query, df=df):
            pin(which)
            start = time.perf_counter()
            done(query.answer(df))
            return time.perf_counter() - start

        with_cores(cores)
        times = {"one core": [], "two cores": []}
        for turn in range(rounds):
            order = (("one core", cores[:1]), ("two cores", cores))
            for name, which in order if turn % 2 else order[::-1]:
                times[name].append(with_cores(which))
        pin(cores)
        gain = h.ratio(times, "one core", "two cores")
        raw.append({"distribution": distribution, "dims": dims, "rows": count, "seconds": times})
        one, two = (h.middle(times[name]) for name in times)
        judged = [h.times_as(gain), TARGET, h.met(gain >= TARGET)]
        rows.append([distribution, dims, count, one, two, *judged])
    header = ["rows", "d", "count", "one core s", "two cores s", "one/two", "target", "met"]
    bench.table("Global skyline, one core against two", header, rows)
    return raw


def stages(bench, spark, folder, rounds):
    """Where the time goes, and what crosses the network."""
    raw, rows = [], []
    count = bench.pick(1_000_000, 400_000)
    for distribution, dims in (("independent", 3), ("anti-correlated", 4)):
        df = written(folder, spark, distribution, dims, count)
        plain = st.skyline(*axes(dims)).over(st.everything())
        for name, query in (("global", plain), (f"{KEYS} keys", plain.per("key"))):
            counts = Observation()
            done(query.answer(df, counts=counts))
            works = {
                "read": lambda df=df: done(df),
                "to Python and back": lambda df=df: done(df.mapInArrow(counted, "n long")),
                "answer": lambda df=df, query=query: done(query.answer(df)),
            }
            times = h.interleaved(works, rounds, time.perf_counter)
            seen = counts.get
            raw.append(
                {"rows": distribution, "dims": dims, "query": name, "seconds": times, **seen}
            )
            spent = [h.middle(times[work]) for work in works]
            rows.append([distribution, dims, name, *spent, seen["kept"], seen["bytes"] / count])
    header = [
        "rows",
        "d",
        "query",
        "read s",
        "handed to Python s",
        "answer s",
        "kept",
        "bytes a row",
    ]
    bench.table(f"Where the time goes, {count:,} rows", header, rows)
    return raw


def counted(batches):
    """The least that a Python stage can do."""
    yield pa.record_batch({"n": [sum(batch.num_rows for batch in batches)]})


def anti_join(df, dims):
    """The skyline in Spark's own words: the rows that no other row beats."""
    other = df.select(*(F.col(f"x{axis}").alias(f"y{axis}") for axis in range(1, dims + 1)))
    no_worse = [F.col(f"y{axis}") <= F.col(f"x{axis}") for axis in range(1, dims + 1)]
    better = [F.col(f"y{axis}") < F.col(f"x{axis}") for axis in range(1, dims + 1)]
    beats = no_worse[0] & (better[0] | better[1] | better[2])
    for one in no_worse[1:]:
        beats = beats & one
    return df.join(other, beats, "left_anti")


def ranked(df, k):
    """The k best of each key in Spark's own words."""
    order = Window.partitionBy("key").orderBy("x1", F.desc("number"))
    return df.withColumn("r", F.row_number().over(order)).where(F.col("r") <= k).drop("r")


def last_ranked(df, k, length):
    """The k best of the last rows of each key: one window for the age, one for the rank."""
    age = Window.partitionBy("key").orderBy(F.desc("number"))
    young = df.withColumn("a", F.row_number().over(age)).where(F.col("a") <= length).drop("a")
    return ranked(young, k)


def by_spark(bench, spark, folder, rounds):
    """Spark's own means against ours."""
    best, k = st.top(10, st.low("x1")), 10
    few = written(folder, spark, "independent", 3, bench.pick(24_000, 8_000))
    many = written(folder, spark, "independent", 3, bench.pick(2_000_000, 400_000) + 8)
    duels = {
        "skyline: left anti self-join": (
            few,
            lambda df: anti_join(df, 3),
            st.skyline(*axes(3)).over(st.everything()).answer,
        ),
        "top 10: orderBy, limit": (
            many,
            lambda df: df.orderBy("x1", F.desc("number")).limit(k),
            best.over(st.everything()).answer,
        ),
        f"top 10 of {KEYS} keys: row_number": (
            many,
            lambda df: ranked(df, k),
            best.over(st.everything()).per("key").answer,
        ),
        f"top 10 of the last 10,000 of {KEYS} keys: two row_numbers": (
            many,
            lambda df: last_ranked(df, k, 10_000),
            lambda df: best.over(st.last(10_000)).per("key").answer(df, order_by="number"),
        ),
    }
    raw, rows = [], []
    for name, (df, theirs, ours) in duels.items():
        makers = {"Spark": theirs, "ours": ours}
        answers = {who: np.array(make(df).toArrow()["number"]) for who, make in makers.items()}
        h.check_agree(answers, name)
        works = {
            "Spark": lambda df=df, make=theirs: done(make(df)),
            "ours": lambda df=df, make=ours: done(make(df)),
        }
        times = h.interleaved(works, rounds, time.perf_counter)
        raw.append({"name": name, "seconds": times})
        spark_s, ours_s = h.middle(times["Spark"]), h.middle(times["ours"])
        gain = h.times_as(h.ratio(times, "Spark", "ours"))
        rows.append([name, df.count(), spark_s, ours_s, gain])
    header = ["question: Spark's own means", "rows", "Spark s", "ours s", "Spark/ours"]
    bench.table("Against Spark's own means", header, rows)
    return raw


# -- pictures --------------------------------------------------------------------------------------


def draw_cores(axis, raw):
    """One core over two."""
    names = [f"{run['distribution']}\nd = {run['dims']}" for run in raw]
    gains = [h.ratio(run["seconds"], "one core", "two cores") for run in raw]
    axis.barh(names[::-1], gains[::-1], color=h.LINES[0])
    axis.axvline(TARGET, color="black", lw=0.8)
    h.label(axis, "Two cores against one (line: target)", "one / two", "")
    axis.grid(False, axis="y")


def draw_spark(axis, raw):
    """Spark's own means over ours."""
    names = [run["name"].replace(": ", ":\n") for run in raw]
    gains = [h.ratio(run["seconds"], "Spark", "ours") for run in raw]
    axis.barh(names[::-1], gains[::-1], color=h.LINES[1])
    axis.axvline(1, color="black", lw=0.8)
    h.label(axis, "Against Spark's own means", "Spark / ours", "", log="x")
    axis.grid(False, axis="y")


def main():
    """Run all and draw them."""
    bench = h.Bench(__file__, __doc__)
    rounds = bench.pick(3, 2)
    spark = session(2)
    with tempfile.TemporaryDirectory() as folder:
        raw = {
            "by_cores": by_cores(bench, spark, folder, rounds),
            "by_spark": by_spark(bench, spark, folder, rounds),
        }
        with tempfile.TemporaryDirectory() as more:
            raw["stages"] = stages(bench, spark, more, rounds)
    spark.stop()
    figure, panels = h.panels(2, 5.6, 3.4)
    draw_cores(panels[0], raw["by_cores"])
    draw_spark(panels[1], raw["by_spark"])
    bench.picture(figure)
    bench.finish({"rounds": rounds, "files": FILES, "keys": KEYS}, raw)


if __name__ == "__main__":
    main()
