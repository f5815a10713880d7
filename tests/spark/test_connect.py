"""Spark Connect: both verbs, in a program of its own."""

import os
import subprocess
import sys

import pytest

from spark.programs import PROGRAM, checked

pytest.importorskip("grpc_status")


@pytest.mark.slow
def test_both_verbs_over_spark_connect(tmp_path):
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", PROGRAM, tmp_path, "local[2]"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    checked(done.stdout, "pyspark.sql.connect")
