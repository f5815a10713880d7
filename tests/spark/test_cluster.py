"""A standalone cluster, one master and two workers: `spark-submit` with a zip, or an environment."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import venv
from pathlib import Path

import pytest

pyspark = pytest.importorskip("pyspark")
HOME = Path(pyspark.__file__).parent
ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def started(log, *command):
    """A part of Spark, until it is no longer needed."""
    with open(log, "wb") as out:
        process = subprocess.Popen(
            [HOME / "bin" / "spark-class", *command],
            stdout=out,
            stderr=out,
            env=_without_path(),
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def said(log, pattern, seconds=60):
    """What the log says once it says it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := re.search(pattern, log.read_text()):
            return found[0]
        time.sleep(0.2)
    raise AssertionError(f"{pattern} is not in:\n{log.read_text()[-2000:]}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The address of a master with two workers of one core each."""
    folder = tmp_path_factory.mktemp("cluster")
    package = "org.apache.spark.deploy"
    with contextlib.ExitStack() as stack:
        logs = [folder / f"{name}.log" for name in ("master", "one", "two")]
        master = [f"{package}.master.Master", "--host", "127.0.0.1"]
        stack.enter_context(started(logs[0], *master, "--port", "0", "--webui-port", "0"))
        address = said(logs[0], r"spark://127\.0\.0\.1:\d+")
        for log in logs[1:]:
            worker = [f"{package}.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0"]
            worker += ["--cores", "1", "--memory", "1g", "--work-dir", str(log.with_suffix(""))]
            stack.enter_context(started(log, *worker, address))
        for log in logs[1:]:
            said(log, "Successfully registered with master")
        yield address


def submitted(cluster, python, rest, more=()):
    """What a program says that is submitted to the cluster."""
    environment = {
        **_without_path(),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONWARNINGS": "ignore",
        **dict(more),
    }
    conf = {
        "spark.ui.enabled": "false",
        "spark.executor.memory": "512m",
        # Kernels compiled by one application serve the next.
        "spark.executorEnv.NUMBA_CACHE_DIR": str(ROOT / "build" / "numba" / "cluster"),
    }
    options = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    done = subprocess.run(
        [HOME / "bin" / "spark-submit", "--master", cluster, *options, *rest],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _without_path():
    """Our environment without what would let a worker find skytide by chance."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**ours, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1"}


LITTLE = """
import pyarrow as pa
from pyspark.sql import SparkSession
import skytide as st

def where(batches):
    for _ in batches:
        yield pa.record_batch({"file": [st.__file__]})

spark = SparkSession.builder.getOrCreate()
best = st.skyline(st.low("id")).over(st.last(10))
rows = best.answer(spark.range(100)).collect()
files = spark.range(4).mapInArrow(where, "file string").collect()
print("TOLD", [row.id for row in rows], *[row.file for row in files])
"""


def zipped(folder):
    subprocess.run(
        ["make", "zip", f"ZIP={folder / 'skytide.zip'}", f"PYTHON={sys.executable}"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return folder / "skytide.zip"


def packed(folder):
    """An environment as venv-pack makes it, but for what is large and same here: borrowed by a path."""
    made = folder / "environment"
    venv.create(made, symlinks=True)
    (site,) = made.glob("lib/python*/site-packages")
    for package in ("skytide", "pyspark_skytide"):
        shutil.copytree(ROOT / "src" / package, site / package)
    borrowed = [path for path in sys.path if path.endswith("site-packages")]
    (site / "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    with tarfile.open(folder / "environment.tar.gz", "w:gz") as archive:
        archive.add(made, ".")
    return folder / "environment.tar.gz"


@pytest.fixture
def program(tmp_path):
    (tmp_path / "little.py").write_text(LITTLE)
    return tmp_path / "little.py"


def workers_of(output):
    """Where workers had skytide from, if the answer is right."""
    _, answer, *workers = next(line for line in output.splitlines() if "TOLD" in line).split()
    assert answer == "[90]"
    return workers


@pytest.mark.slow
def test_spark_submit_with_a_zip(cluster, tmp_path, program):
    rest = ["--py-files", zipped(tmp_path), program]
    assert all(
        "skytide.zip" in file for file in workers_of(submitted(cluster, sys.executable, rest))
    )


@pytest.mark.slow
def test_spark_submit_with_a_packed_environment(cluster, tmp_path, program):
    archives = "--archives", f"{packed(tmp_path)}#environment"
    path = {"PYTHONPATH": str(ROOT / "src")}  # the driver's own
    output = submitted(cluster, "./environment/bin/python", [*archives, program], path)
    assert all("/environment/lib/" in file for file in workers_of(output))
