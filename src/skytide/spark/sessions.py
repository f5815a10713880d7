"""A Spark session that suits skytide's streams, on this machine or where `spark-submit` says.

What is set, and why:

| setting | value | why |
|---|---|---|
| state store | RocksDB, changelog checkpoints | for `transformWithState`; writes what changed |
| `spark.sql.shuffle.partitions` | processors, 8 at most | each is a state store; checkpoints fix it |
| `spark.sql.session.timeZone` | UTC | the same rows read the same everywhere |
| `PYSPARK_PYTHON` | this Python | the workers need the packages that are installed here |

Whatever is given in `conf` goes before these.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import skytide as st
from skytide.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["STREAMING", "is_elsewhere", "session"]

STREAMING = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}

_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(
    name: str = "skytide",
    conf: Mapping[str, object] | None = None,
    log: str | os.PathLike[str] | None = None,
) -> SparkSession:
    """The running Spark session, or a new one: local, unless started by `spark-submit`.

    What Spark has to say goes to the file `log`, if one is given. `spark.master` and any other
    setting may be given in `conf`.

    >>> spark = session(conf={"spark.sql.shuffle.partitions": 4})  # doctest: +SKIP
    """
    _check_pyspark()
    from pyspark.sql import SparkSession

    given = {setting: _plain(value) for setting, value in (conf or {}).items()}
    settings = {**STREAMING, **given}
    if not is_elsewhere():
        if SparkSession.getActiveSession() is None:
            find_java()
        settings = {**_local(), **settings}
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    for setting, value in settings.items():
        builder = builder.config(setting, value)
    with _stderr_to(log), warnings.catch_warnings():
        # It says that pandas 3 is new to it; nothing here goes through pandas.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        return builder.getOrCreate()


def _check_pyspark() -> None:
    if importlib.util.find_spec("pyspark") is None:
        raise st.MissingExtra("Spark is not installed", "pip install 'skytide[spark]'")


def is_elsewhere() -> bool:
    """Has somebody else said where Spark runs: spark-submit, or an address of Spark Connect?

    >>> is_elsewhere()  # doctest: +SKIP
    False
    """
    return "PYSPARK_GATEWAY_PORT" in os.environ or "SPARK_REMOTE" in os.environ


def _local() -> dict[str, str]:
    cores = os.cpu_count() or 1
    logging = Path(__file__).with_name("log4j2.properties").as_uri()
    return {
        **_LOCAL,
        "spark.master": f"local[{cores}]",
        "spark.sql.shuffle.partitions": str(min(cores, 8)),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging}",
    }


def _plain(value: object) -> str:
    """As Spark writes it.

    >>> _plain(True), _plain(4)
    ('true', '4')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def _stderr_to(log: str | os.PathLike[str] | None) -> Iterator[None]:
    """A process started meanwhile, and all that it starts, write their errors to the file."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(file, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(file)
