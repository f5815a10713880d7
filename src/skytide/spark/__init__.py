"""skytide on Spark: the two verbs of a query, for DataFrames, and what stands around a stream.

`query.answer(df)` and `query.changes(stream)` come here when they are given Spark's DataFrames.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skytide.spark.batch import batch_answer as answer
    from skytide.spark.folding import fold
    from skytide.spark.jobs import read_job
    from skytide.spark.postgres import PostgresSink
    from skytide.spark.running import run
    from skytide.spark.sessions import session
    from skytide.spark.sinks import ConsoleSink, ParquetSink
    from skytide.spark.stream import stream_changes as changes

__all__ = [
    "ConsoleSink",
    "ParquetSink",
    "PostgresSink",
    "answer",
    "changes",
    "fold",
    "read_job",
    "run",
    "session",
]

_WHERE = {
    "ConsoleSink": "sinks:ConsoleSink",
    "ParquetSink": "sinks:ParquetSink",
    "PostgresSink": "postgres:PostgresSink",
    "answer": "batch:batch_answer",
    "changes": "stream:stream_changes",
    "fold": "folding:fold",
    "read_job": "jobs:read_job",
    "run": "running:run",
    "session": "sessions:session",
}


def __getattr__(name: str) -> Any:
    """Import each part when it is first used: a worker that reads a source needs no engine."""
    if name not in _WHERE:
        raise AttributeError(f"module 'skytide.spark' has no attribute {name!r}")
    module, _, thing = _WHERE[name].partition(":")
    value = globals()[name] = getattr(importlib.import_module(f"skytide.spark.{module}"), thing)
    return value
