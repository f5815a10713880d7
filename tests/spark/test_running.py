"""Jobs run: they leave the answer, also after a stop; a stranger's checkpoint is refused."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import skytide as st
from skytide import cli, data
from skytide.spark import running
from skytide.spark.folding import fold
from skytide.spark.jobs import read_job
from skytide.spark.progress import Beat, lag_of
from skytide.spark.running import run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

JOB = """
checkpoint = "{folder}/checkpoint"
trigger = "available now"
metrics = "{folder}/metrics.jsonl"
[source]
format = "skytide"
options = {{ rows = 30_000, rowsPerBatch = 10_000, seed = 4 }}
[query]
low = "price"
high = "volume"
last = 12_000
[sink]
format = "parquet"
path = "{folder}/changes"
"""


def job_file(folder, text=JOB, **replaced):
    text = text.format(folder=folder)
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    file = folder / "job.toml"
    file.write_text(text)
    return file


def rows_of(table):
    return sorted(map(str, table.to_pylist()))


def expected(rows=30_000, last=12_000):
    trades = data.trades(rows, seed=4)
    return st.skyline(st.low("price"), st.high("volume")).over(st.last(last)).answer(trades)


def test_a_job_leaves_the_answer_and_tells_of_every_micro_batch(spark, tmp_path):
    file, beats = job_file(tmp_path), []
    assert run(read_job(file), beats.append) == 30_000
    answer = fold(str(tmp_path / "changes")).toArrow()
    assert rows_of(answer.cast(expected().schema)) == rows_of(expected())
    assert [beat.rows for beat in beats] == [10_000] * 3
    assert all(0 < beat.kept < 1_000 and beat.bytes for beat in beats)
    assert beats[-1].answer == answer.num_rows
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["batch"] for line in lines] == [0, 1, 2]
    # There is nothing more, so starting it again changes nothing; more rows go on where it was.
    assert run(read_job(file), beats.append) == 0
    more = job_file(tmp_path, **{"rows = 30_000": "rows = 40_000"})
    assert run(read_job(more), beats.append) == 10_000
    answer = fold(str(tmp_path / "changes")).toArrow()
    assert rows_of(answer.cast(expected().schema)) == rows_of(expected(40_000))
    assert beats[-1].answer == answer.num_rows
    # And another query has no business there.
    other = job_file(tmp_path, **{"last = 12_000": "last = 13_000"})
    message = r"(?s)another query\n.*last 12,000 rows\n.*last 13,000 rows\nHint: ask as before"
    with pytest.raises(st.StateError, match=message):
        run(read_job(other))
    with pytest.raises(st.StateError, match="changes stands something already"):
        run(read_job(job_file(tmp_path, **{"/checkpoint": "/another"})))
    (tmp_path / "checkpoint" / "skytide-query.json").unlink()
    with pytest.raises(st.StateError, match="was not made by skytide run"):
        run(read_job(job_file(tmp_path)))


def test_a_stop_lets_the_micro_batch_finish(spark, tmp_path):
    endless = {'trigger = "available now"': "", "rows = 30_000, ": ""}
    stop, beats = threading.Event(), []

    def show(beat):
        beats.append(beat)
        stop.set()

    rows = run(read_job(job_file(tmp_path, **endless)), show, stop=stop)
    folders = {path.name for path in (tmp_path / "checkpoint" / "commits").glob("[0-9]*")}
    assert {str(beat.batch) for beat in beats} == folders
    answer = fold(str(tmp_path / "changes")).toArrow()
    assert rows_of(answer.cast(expected().schema)) == rows_of(expected(rows))


def test_a_console_shows_the_answer_and_rejects_are_counted(spark, tmp_path):
    (tmp_path / "in").mkdir()
    lines = ['{"price": 5.0}', '{"price": null}', '{"price": 3.0}', "no json"]
    (tmp_path / "in" / "one.json").write_text("\n".join(lines))
    text = """
    trigger = "available now"
    [source]
    format = "json"
    schema = "price double"
    path = "{folder}/in"
    [query]
    low = "price"
    last = 10
    rejects = true
    [sink]
    format = "console"
    """
    beats, seen = [], []
    job = read_job(job_file(tmp_path, text))
    run(job, beats.append, lambda answer: seen.append(answer.rows.to_pylist()))
    assert seen == [[{"price": 3.0}]]
    assert [(beat.rejected, beat.answer) for beat in beats] == [(2, 1)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"skytide"', '"nowhere"', r"\[source\] cannot be read: .*nowhere"),
        ("options =", 'select = ["ts"]\noptions =', "job: .*price"),
        ('low = "price"', 'low = "symbol"', "job: .*symbol"),
        ('format = "parquet"', 'format = "nowhere"', "has stopped: .*nowhere"),
    ],
)
def test_what_spark_or_the_query_refuses_is_told_in_a_line(spark, tmp_path, old, new, message):
    text = JOB.replace(old, new)
    with pytest.raises(st.SkytideError, match=message) as told:
        run(read_job(job_file(tmp_path, text)))
    assert len(str(told.value).splitlines()) < 6


def test_an_error_in_a_sink_is_told_in_its_own_words(spark, tmp_path, monkeypatch):
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / "theirs").write_text("not ours")
    monkeypatch.setattr(running, "check", lambda job: None)
    message = r"^job has stopped: a new stream would write into .*\nHint: choose another path"
    with pytest.raises(st.JobError, match=message):
        run(read_job(job_file(tmp_path)))


def test_the_command_line_runs_a_job_and_says_what_is_wrong(spark, tmp_path):
    file = job_file(tmp_path)
    said = CliRunner().invoke(cli.app(), ["run", str(file), "--check"])
    assert said.exit_code == 0, said.output
    assert "It can be run" in said.output
    said = CliRunner().invoke(cli.app(), ["run", str(file)])
    assert said.exit_code == 0, said.output
    assert "stopped after 30,000 rows" in said.output
    assert len(re.findall(r"^batch \d .* of 10,000 kept", said.output, re.M)) == 3
    file.write_text("")
    said = CliRunner().invoke(cli.app(), ["run", str(file)])
    assert said.exit_code == 1
    assert "the job has no source\nHint: add a table [source]" in said.output


def test_ctrl_c_stops_a_job_cleanly(tmp_path):
    endless = {'trigger = "available now"': "", "rows = 30_000, ": "rowsPerSecond = 5_000, "}
    file = job_file(tmp_path, **endless)
    code = "from skytide.cli import main; main()"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", code, "run", str(file)]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        metrics = tmp_path / "metrics.jsonl"
        until = time.monotonic() + 120
        while time.monotonic() < until and (not metrics.exists() or not metrics.stat().st_size):
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert process.returncode == 0, told
    rows = int(re.search(r"stopped after ([\d,]+) rows", told)[1].replace(",", ""))
    beats = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert rows == sum(beat["rows"] for beat in beats)
    assert "Traceback" not in told
    assert "stopping when this micro-batch is done" in told


def test_a_beat_reads_well():
    beat = Beat("now", 7, 1_000, 100, kept=5, rejected=2, late=1, answer=3, inserts=1, lag=40)
    line = beat.line()
    for part in (
        "10,000 rows/s",
        "100 ms",
        "3 best (+1 -0)",
        "2 set aside",
        "1 late",
        "40 rows behind",
    ):
        assert part in line
    assert "best" not in Beat("now", 7, 1_000, 100).line()
    assert json.loads(beat.json())["rows_per_second"] == 10_000


class Reported:
    def __init__(self, latest, end):
        self.latestOffset, self.endOffset = latest, end


def test_the_lag_is_what_the_sources_say():
    kafka = Reported('{"t": {"0": 10, "1": 7}}', '{"t": {"0": 8, "1": 7}}')
    assert lag_of([kafka]) == 2
    assert lag_of([Reported(None, '{"row": 5}')]) is None
    assert lag_of([kafka, Reported("strange", "text")]) == 2
