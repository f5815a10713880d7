"""Killed at any moment and started again, the pipeline writes what it would have written anyway.

Set ``SKYTIDE_KILLS`` for more kills than the few that everyday testing can afford.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skytide as st

pytest.importorskip("pyspark")

from spark import pipeline

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc"),
]

KILLS = int(os.environ.get("SKYTIDE_KILLS", "2"))
PROGRAM = Path(pipeline.__file__)
START = datetime(2024, 1, 1)
FILES = 6 + 3 * KILLS
PATIENCE = 240  # seconds for a run that nobody kills


def files_of(folder: Path, count: int, rows: int = 40) -> None:
    """So many files of rows, which are read in the order of their age."""
    rng = random.Random(5)
    (folder / "rows").mkdir(parents=True)
    for file in range(count):
        numbers = range(file * rows, (file + 1) * rows)
        table = pa.Table.from_pylist(
            [
                {
                    "x": rng.randint(0, 30),
                    "y": rng.randint(0, 30),
                    "key": rng.choice("abcde"),
                    "ts": START + timedelta(seconds=number // 4 + rng.randint(0, 5)),
                    "number": number,
                }
                for number in numbers
            ]
        )
        path = folder / "rows" / f"{file:05}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + file, 1_700_000_000 + file))


def started(folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, PROGRAM, folder], stdout=log, stderr=log, start_new_session=True
        )


def finished(folder: Path) -> None:
    """A run to the end."""
    run = started(folder)
    try:
        assert run.wait(PATIENCE) == 0, (folder / "log").read_text()[-3000:]
    finally:
        end(run)


def end(run: subprocess.Popen[bytes]) -> None:
    """The whole tree, at once; the JVM is in the session of the driver that started it."""
    for pid in tree(run.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    run.wait(30)


def tree(root: int) -> list[int]:
    """A process and all its descendants."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = [root]
    for pid in found:
        found += parents.get(pid, [])
    return found


def workers(root: int) -> list[int]:
    """The Python workers of Spark below a process."""
    return [pid for pid in tree(root) if b"pyspark.daemon" in command(pid)][1:]


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def told(folder: Path, name: str) -> list[str]:
    """The change table, in an order that does not depend on files; only committed ones count."""
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    assert spark is not None
    frame = spark.read.parquet(str(folder / "changes" / name))
    return sorted(map(repr, frame.toArrow().to_pylist()))


@pytest.fixture(scope="module")
def undisturbed(spark: Any, tmp_path_factory: Any) -> dict[str, list[str]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    files_of(folder, FILES)
    finished(folder)
    return {name: told(folder, name) for name in ("rows", "times")}


def interrupted(folder: Path, hit: Callable[[subprocess.Popen[bytes]], None], kills: int) -> int:
    """Run until it is through, with ``kills`` blows at random moments; how many there were."""
    rng, done = random.Random(kills), 0
    while True:
        run = started(folder)
        try:
            while done < kills:
                run.wait(rng.uniform(4, 11))
                break
        except subprocess.TimeoutExpired:
            hit(run)
            done += 1
            continue
        try:
            if run.wait(PATIENCE) == 0:
                return done
        finally:
            end(run)


def test_the_whole_tree_killed(spark: Any, undisturbed: Any, tmp_path: Path) -> None:
    files_of(tmp_path, FILES)
    assert interrupted(tmp_path, end, KILLS) > 0
    for name, changes in undisturbed.items():
        assert told(tmp_path, name) == changes
    rows = pa.concat_tables(map(pq.read_table, sorted((tmp_path / "rows").iterdir())))
    changes = spark.read.parquet(str(tmp_path / "changes" / "rows")).orderBy("_change_at")
    live = pipeline.ROWS.open()
    live.push(rows)
    assert numbers(st.fold(changes.toArrow())) == numbers(live.answer())


def numbers(table: pa.Table) -> list[int]:
    return sorted(table["number"].to_pylist())


def test_workers_killed_in_the_middle_of_a_task(undisturbed: Any, tmp_path: Path) -> None:
    files_of(tmp_path, FILES)
    run, rng, hits, begun = started(tmp_path), random.Random(1), 0, time.monotonic()
    try:
        while run.poll() is None and time.monotonic() < begun + PATIENCE:
            time.sleep(rng.uniform(0.3, 1.5))
            victims = workers(run.pid)
            if victims and hits < 3 * KILLS:
                os.kill(rng.choice(victims), signal.SIGKILL)
                hits += 1
                time.sleep(2)  # a task may fail four times, no more
        assert run.poll() == 0, (tmp_path / "log").read_text()[-3000:]
    finally:
        end(run)
    assert hits > 0
    for name, changes in undisturbed.items():
        assert told(tmp_path, name) == changes
