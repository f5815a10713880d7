"""A real broker: trades come from a topic as JSON, changes go to a table and to another topic."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import servers
import skytide as st
from skytide import data

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

ROOT = Path(__file__).parents[2]

# Connector jars must be there when the JVM starts, so this Spark is one of its own.
PROGRAM = """
import json, sys
from skytide.spark import read_job, run, session

folder, broker, jars = sys.argv[1:]
spark = session("kafka", {"spark.jars": jars, "spark.sql.shuffle.partitions": 1})
options = {"kafka.bootstrap.servers": broker}


def send(lines):
    rows = spark.createDataFrame([(line,) for line in lines], "value string").coalesce(1)
    rows.write.format("kafka").options(**options).option("topic", "trades").save()


lines = open(f"{folder}/trades.jsonl").read().splitlines()
half = len(lines) // 2
beats = []
send(lines[:half])
run(read_job(f"{folder}/table.toml"), beats.append)
send(lines[half:])
for name in ("table", "topic"):
    run(read_job(f"{folder}/{name}.toml"), beats.append)
told = spark.read.format("kafka").options(**options).option("subscribe", "told").load()
values = [row.value.decode() for row in told.orderBy("offset").collect()]
open(f"{folder}/told.json", "w").write(json.dumps(values))
open(f"{folder}/beats.json", "w").write(json.dumps([beat.json() for beat in beats]))
"""

JOB = """
checkpoint = "{folder}/checkpoint-{name}"
trigger = "available now"
[source]
format = "kafka"
json = "n long, price double, volume long, _corrupt_record string"
select = ["price", "volume", "n", "_corrupt_record AS raw"]
[source.options]
"kafka.bootstrap.servers" = "{broker}"
subscribe = "trades"
startingOffsets = "earliest"
[query]
low = "price"
high = "volume"
last = 300
order_by = "n"
rejects = true
[sink]
"""

SINKS = {
    "table": 'format = "parquet"\npath = "{folder}/changes"',
    "topic": 'format = "kafka"\noptions = {{ "kafka.bootstrap.servers" = "{broker}", topic = "told" }}',
}


def test_from_a_topic_to_a_table_and_to_a_topic(tmp_path):
    jars = servers.kafka_connector()
    trades = data.trades(1_000, seed=3).select(["price", "volume"]).to_pylist()
    lines = [json.dumps({"n": n, **trade}) for n, trade in enumerate(trades)]
    for at, bad in {100: "no json", 600: '{"n": 600, "price": null, "volume": 1}'}.items():
        lines[at] = bad
    (tmp_path / "trades.jsonl").write_text("\n".join(lines))
    with servers.kafka() as broker:
        for name, sink in SINKS.items():
            text = (JOB + sink).format(folder=tmp_path, broker=broker, name=name)
            (tmp_path / f"{name}.toml").write_text(text)
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), broker, jars]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3_000:]

    good = [{**trade, "n": n} for n, trade in enumerate(trades) if n not in (100, 600)]
    question = st.skyline(st.low("price"), st.high("volume"))
    expected = key(question.over(st.last(300)).answer(good).to_pylist())

    table = pq.read_table(tmp_path / "changes").drop_columns(["change_batch"]).to_pylist()
    assert key(folded(table)) == expected
    rejects = [row for row in table if row["_change_type"] == "reject"]
    assert sorted((str(row["n"]), row["raw"]) for row in rejects) == [
        ("600", None),
        ("None", "no json"),
    ]
    assert all(row["_reasons"] for row in rejects)
    told = [json.loads(value) for value in json.loads((tmp_path / "told.json").read_text())]
    assert key(folded(told)) == expected
    beats = [json.loads(beat) for beat in json.loads((tmp_path / "beats.json").read_text())]
    assert sum(beat["rows"] for beat in beats) == 2_000
    assert all(beat["lag"] == 0 for beat in beats)


def folded(changes):
    wanted = [change for change in changes if change["_change_type"] != "reject"]
    wanted.sort(key=lambda change: change["_change_at"])
    names = ("_change_type", "_change_at", "price", "volume", "n")
    return st.fold([{name: change[name] for name in names} for change in wanted]).to_pylist()


def key(rows):
    return sorted((row["price"], row["volume"], row["n"]) for row in rows)
