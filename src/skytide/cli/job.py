"""`skytide run`: a job on Spark, with a line for every micro-batch."""

from __future__ import annotations

import importlib.util
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import skytide as st
from skytide.cli.screen import answer_table


def need_spark() -> None:
    """Refuse at once, with the remedy, where PySpark is not installed.

    >>> need_spark()
    """
    if importlib.util.find_spec("pyspark") is None:
        raise st.MissingExtra("Spark is not installed", "pip install 'skytide[spark]'")
    # Nothing a user of the command line could do about it: our rows do not go through pandas.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")


def run_job(path: Path, only_check: bool, metrics: str | None) -> None:
    """Read a job file, check it, run it, and tell of every micro-batch.

    >>> run_job(Path("examples/deals.toml"), only_check=True, metrics=None)  # doctest: +SKIP
    """
    need_spark()
    from rich.console import Console

    from skytide.spark.jobs import read_job
    from skytide.spark.running import check, run

    job = read_job(path)
    job = replace(job, metrics=metrics or job.metrics)
    told = Console(highlight=False, stderr=True)
    check(job)
    told.print(f"{job.name}: {job.query}", style="bold", markup=False, soft_wrap=True)
    if only_check:
        told.print("It can be run, as far as can be known without Spark.")
        return
    shown = _Shown(told, job.sink)
    told.print("starting Spark ...", style="dim")
    rows = run(job, shown.beat, shown.answer, notice=shown.notice)
    told.print(f"stopped after {rows:,} rows", style="dim")


class _Shown:
    """Lines on stderr; the answer, if it goes to the console, on stdout."""

    def __init__(self, told: Any, sink: Any) -> None:
        from rich.console import Console

        self._told, self._sink = told, sink
        self._out = Console(highlight=False)

    def beat(self, beat: Any) -> None:
        self._told.print(beat.line(), style="dim", markup=False, soft_wrap=True)

    def notice(self, text: str) -> None:
        self._told.print(text, markup=False, soft_wrap=True)

    def answer(self, answer: Any) -> None:
        order = self._sink.order
        if order is not None and order not in answer.rows.column_names:
            order = None
        self._out.print(answer_table(answer.rows, "rows", order, self._sink.rows))
