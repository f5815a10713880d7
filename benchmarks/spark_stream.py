"""Spark streams: rows per second, latency and state, against doing nothing and against Spark itself.

Wall time of whole micro-batches, as Spark reports it: driver, JVM, Python workers and state together.
Contenders take turns, round after round; ratios are medians of the rounds.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pyarrow as pa
from harness import Bench, label, met, middle, panels, times_as
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from spark_session import run, session

import skytide as st
from skytide.packs import Pack
from skytide.spark.keeper import Asked, Keeper

AXES = [st.low(f"x{axis}") for axis in (1, 2, 3)]
SKYLINE = st.skyline(*AXES).over(st.last(1_000_000))
TOP = st.top(100, AXES[0]).over(st.last(1_000_000))
POINTS = {"kind": "independent", "dims": 3, "keys": 64}
HARD = {"kind": "anti-correlated", "dims": 4}


class Nothing(StatefulProcessor):
    """A stateful processor that does nothing: the floor of every stateful stream."""

    def init(self, handle: Any) -> None:
        self.state = handle.getValueState("state", "state BINARY")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802
        for _ in rows:
            pass
        yield from ()


def identity(stream: Any) -> Any:
    return stream.mapInArrow(lambda batches: batches, stream.schema)


def empty_state(stream: Any) -> Any:
    return stream.groupBy("key").transformWithState(Nothing(), "x DOUBLE", "append", "None")


def large(bench: Bench, spark: Any) -> dict[str, Any]:
    """Micro-batches of a million rows."""
    rows, rounds = bench.pick(1_000_000, 200_000), bench.pick(3, 1)
    contenders = {
        "skyline": (SKYLINE.changes, 0.7),
        "skyline, 64 keys": (SKYLINE.per("key").changes, 0.5),
        "top 100": (TOP.changes, 0.7),
        "top 100, 64 keys": (TOP.per("key").changes, 0.5),
    }
    ratios: dict[str, list[float]] = {name: [] for name in contenders}
    results: dict[str, Any] = {"identity": []}
    for _ in range(rounds):
        for name, (make, _) in contenders.items():
            floor = run(spark, identity, rows, 6, **POINTS)
            taken = run(spark, make, rows, 6, engines=_engines(name), **POINTS)
            results["identity"].append(floor["ms"])
            results.setdefault(name, []).append(taken["ms"])
            results[f"{name}, observed"] = taken["metrics"]
            ratios[name].append(floor["ms"] / taken["ms"])
    table = []
    for name, (_, target) in contenders.items():
        seen = results[f"{name}, observed"]["skytide_in"]
        share = middle(ratios[name])
        rate = rows / middle(results[name]) / 1e3
        judged = [times_as(share), times_as(target), met(share >= target)]
        table.append([name, rate, *judged, seen["kept"], seen["bytes"] / seen["rows"]])
    bench.table(
        f"micro-batches of {rows:,} rows; identity mapInArrow: "
        f"{rows / middle(results['identity']) / 1e3:.2f} M rows/s",
        ["question", "M rows/s", "of identity", "target", "met", "kept of a batch", "bytes a row"],
        table,
    )
    return {"ms": results, "ratios": ratios}


def _engines(name: str) -> int:
    """A question of all rows has one engine; `skytide run` sees to that, too."""
    return 1 if name in ("skyline", "top 100") else 2


def small(bench: Bench, spark: Any) -> dict[str, Any]:
    """Micro-batches of 640 rows: what they wait."""
    rounds, batches = bench.pick(3, 1), bench.pick(20, 8)
    contenders = {
        "nothing (JVM only)": lambda stream: stream,
        "empty transformWithState": empty_state,
        "skyline": SKYLINE.changes,
        "skyline, 64 keys": SKYLINE.per("key").changes,
        "top 100": TOP.changes,
    }
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, make in contenders.items():
            engines = _engines(name)
            taken = run(spark, make, 640, batches, warm=4, engines=engines, **POINTS)
            times[name].append(taken["ms"])
    floor = times["empty transformWithState"]
    table = []
    for name, taken in times.items():
        part = statistics.median(a / b for a, b in zip(taken, floor, strict=True))
        table.append([name, middle(taken), times_as(part), met(part < 2)])
    bench.table("micro-batches of 640 rows", ["stream", "ms", "of empty", "under 2x"], table)
    return times


def against_spark(bench: Bench, spark: Any) -> dict[str, Any]:
    """The last rows kept as a DataFrame and asked anew after every micro-batch, with Spark's means."""
    window, rows = bench.pick(100_000, 10_000), bench.pick(10_000, 2_000)
    cases = [
        ("skyline, d = 3", POINTS, _skyline(3), lambda frame: _anti_join(frame, 3)),
        ("skyline, anti-correlated, d = 4", HARD, _skyline(4), lambda frame: _anti_join(frame, 4)),
        ("top 100", POINTS, st.top(100, AXES[0]), _ranked),
    ]
    table, raw = [], {}
    for name, points, question, ask in cases:
        changes = question.over(st.last(window)).changes
        batches = window // rows + 3
        mine = run(spark, changes, rows, batches, warm=batches - 3, engines=1, **points)["ms"]
        theirs = _recomputed(spark, window, rows, ask, points)
        raw[name] = {"skytide": mine, "Spark": theirs}
        table.append(_duel(name, rows, mine, theirs))
    many = bench.pick(20_000, 2_000)
    mine, theirs = _by_slides(bench, spark, many)
    raw["top 100 after each slide"] = {"skytide": mine, "Spark": theirs}
    table.append(_duel("top 100, a slide of 100 ms of 100 s", many, mine, theirs))
    bench.table(
        f"a window of {window:,} rows, recomputed by Spark itself",
        ["question", "rows a micro-batch", "skytide ms", "Spark ms", "times faster", "20x"],
        table,
    )
    return raw


def _skyline(dims: int) -> Any:
    return st.skyline(*(st.low(f"x{axis}") for axis in range(1, dims + 1)))


def _duel(name: str, rows: int, mine: float, theirs: float) -> list[Any]:
    return [name, rows, mine, theirs, times_as(theirs / mine), met(theirs >= 20 * mine)]


def _recomputed(spark: Any, window: int, rows: int, ask: Any, points: Any) -> float:
    """The milliseconds of a micro-batch after which the whole window is asked anew."""
    kept: list[pa.Table] = []

    def recompute(frame: Any, _: int) -> None:
        kept.append(frame.toArrow())
        del kept[: -window // rows]
        if len(kept) == window // rows:  # the window is full
            answer = ask(spark.createDataFrame(pa.concat_tables(kept)))
            answer.write.format("noop").mode("overwrite").save()

    full = window // rows
    return float(run(spark, lambda s: s, rows, full + 2, full, recompute, **points)["ms"])


def _by_slides(bench: Bench, spark: Any, rows: int) -> tuple[float, float]:
    """Spark's own sliding aggregate, which copies each row into all windows that hold it."""
    length = bench.pick("100 seconds", "10 seconds")
    ours = st.top(100, st.high("volume")).over(st.last(length, every="100 milliseconds", on="ts"))

    def aggregate(stream: Any) -> Any:
        windows = F.window("ts", length, "100 milliseconds")
        best = F.expr("max_by(struct(*), volume, 100)")
        return stream.withWatermark("ts", "0 seconds").groupBy(windows).agg(best)

    trades = {"kind": "trades"}
    return (
        run(spark, ours.changes, rows, 8, warm=4, engines=1, **trades)["ms"],
        run(spark, aggregate, rows, 2, warm=1, **trades)["ms"],
    )


def _anti_join(rows: Any, dims: int) -> Any:
    """The skyline as SQL has it: no row that is at least as good everywhere and better somewhere."""
    a, b = rows.alias("a"), rows.alias("b")
    beaten = F.lit(True)
    better = F.lit(False)
    for axis in (f"x{number}" for number in range(1, dims + 1)):
        beaten &= F.col(f"b.{axis}") <= F.col(f"a.{axis}")
        better |= F.col(f"b.{axis}") < F.col(f"a.{axis}")
    return a.join(b, beaten & better, "left_anti")


def _ranked(rows: Any) -> Any:
    """The best 100 by a window function."""
    place = F.row_number().over(Window.orderBy("x1"))
    return rows.withColumn("place", place).filter("place <= 100")


def state(bench: Bench) -> list[Any]:
    """The state of a key against the rows in it, eight bytes a number."""
    random, table = np.random.default_rng(1), []
    for dims, window in bench.pick(
        [(3, 15_000), (3, 1_000_000), (5, 100_000)], [(3, 15_000), (5, 15_000)]
    ):
        query = st.skyline(*(st.low(f"x{axis}") for axis in range(dims))).over(st.last(window))
        keeper = Keeper(Asked(query))
        for _ in range(0, window, 5_000):
            values = random.random((5_000, dims)).T
            rows = pa.table({f"x{axis}": column for axis, column in enumerate(values)})
            keeper.take([Pack.of(rows.append_column("key", pa.array(np.zeros(5_000, np.int64))))])
        blob, _ = keeper.save()
        kept = st.load(blob).stats().kept
        bare = kept * (dims + 1) * 8
        table.append([dims, window, kept, bare, len(blob), times_as(len(blob) / bare)])
        table[-1].append(met(len(blob) <= 1.5 * bare))
    bench.table(
        "state of one key",
        ["preferences", "window", "rows kept", "bare bytes", "state bytes", "of bare", "1.5x"],
        table,
    )
    return table


def main() -> None:
    bench = Bench(__file__, __doc__)
    spark = session()
    raw = {
        "state": state(bench),
        "large": large(bench, spark),
        "small": small(bench, spark),
        "against Spark": against_spark(bench, spark),
    }
    spark.stop()
    figure, (left, right) = panels(2, width=5)
    names = list(raw["large"]["ratios"])
    shares = [middle(raw["large"]["ratios"][name]) for name in names]
    left.barh(names, shares, color="#2f5f98")
    left.axvline(1, color="#7a7a7a", linewidth=1)
    label(left, "1,000,000 rows a micro-batch", "rows/s of an identity mapInArrow", "")
    right.barh(list(raw["small"]), [middle(times) for times in raw["small"].values()])
    label(right, "640 rows a micro-batch", "milliseconds", "")
    bench.picture(figure)
    bench.finish({"cores": 2, "spark": spark.version}, raw)


if __name__ == "__main__":
    main()
