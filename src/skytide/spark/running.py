"""Running a job: start, tell how it goes, stop cleanly.

A stop (Ctrl-C, SIGTERM) lets the micro-batch in hand finish; a second one does not. Either way the
checkpoint is good: what was cut off is done again at the next start.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import skytide as st
from skytide.spark.folding import TYPE
from skytide.spark.jobs import Console, Foreign, Job, Source
from skytide.spark.postgres import PostgresSink
from skytide.spark.progress import Beat, Listener
from skytide.spark.sessions import is_elsewhere, session
from skytide.spark.sinks import Answer, ConsoleSink, ParquetSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

__all__ = ["STAMP", "check", "run", "stamp_of"]

STAMP = "skytide-query.json"  # beside the checkpoint: whose it is
_KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_POLL = 0.1
_PATIENCE = 120.0  # seconds that a stop waits for the micro-batch in hand


def run(
    job: Job,
    show: Callable[[Beat], None] = lambda beat: None,
    show_answer: Callable[[Answer], None] = lambda answer: None,
    stop: threading.Event | None = None,
    notice: Callable[[str], None] = lambda text: None,
) -> int:
    """Run a job until its source ends, or until it is told to stop; how many rows it took.

    `show` is called after every micro-batch; `show_answer` if the sink is the console; `notice`
    when there is something to say besides.

    >>> run(read_job("examples/deals.toml"), show=print)  # doctest: +SKIP
    """
    stop = stop or threading.Event()
    check(job)
    with ExitStack() as stack:
        checkpoint = job.checkpoint or stack.enter_context(_forgotten())
        log = None if is_elsewhere() else stack.enter_context(_log(job.name))
        stack.enter_context(_signals(stop))
        spark = _session(job, log)
        stack.enter_context(_signals(stop))  # Spark has taken Ctrl-C for itself
        changes = _changes(job, spark)
        writer = _writer(job, changes, show_answer).option("checkpointLocation", checkpoint)
        _claim(job)
        told = Told(job, show, stack)
        listener = Listener(told.show, _standing(job, spark))
        spark.streams.addListener(listener)
        stack.callback(spark.streams.removeListener, listener)
        if not stop.is_set():
            _follow(job, _triggered(writer, job.trigger), listener, stop, notice, log)
        return told.rows


def check(job: Job) -> None:
    """Refuse what can be known to go wrong before Spark is started.

    >>> check(job)  # doctest: +SKIP
    """
    _check_stamp(job)
    if isinstance(job.sink, PostgresSink):
        try:
            job.sink.check()
        except Exception as error:
            raise st.JobError(
                f"{job.name}: PostgreSQL does not let us in: {str(error).strip()}",
                "set dsn in [sink], or PGHOST, PGUSER, PGPASSWORD in the environment",
            ) from error
    sink = job.sink
    if isinstance(sink, ParquetSink) and job.checkpoint and _local(sink.path):
        fresh = not (_folder(job.checkpoint) / "offsets").is_dir()
        folder = _folder(sink.path)
        if fresh and folder.is_dir() and any(folder.iterdir()):
            raise st.StateError(
                f"{job.name}: the checkpoint is new, but in {sink.path} stands something already",
                "choose another path, or remove what is there",
            )


class Told:
    """What was told of a job's micro-batches, and where to."""

    def __init__(self, job: Job, show: Callable[[Beat], None], stack: ExitStack) -> None:
        self._show, self.rows = show, 0
        self._file: IO[str] | None = None
        if job.metrics:
            Path(job.metrics).parent.mkdir(parents=True, exist_ok=True)
            self._file = stack.enter_context(Path(job.metrics).open("a", encoding="utf-8"))  # noqa: SIM115

    def show(self, beat: Beat) -> None:
        """Tell of one micro-batch."""
        self.rows += beat.rows
        if self._file is not None:
            self._file.write(f"{beat.json()}\n")
            self._file.flush()
        self._show(beat)


# --------------------------------------------------------------------------------------
# Whose checkpoint is it?


def stamp_of(job: Job) -> dict[str, Any]:
    """What of a job its checkpoint is bound to: all that the kept rows depend on.

    >>> stamp_of(job)["asked"]  # doctest: +SKIP
    {'order_by': ['ts']}
    """
    bound = ("order_by", "last", "between", "k", "algorithm")
    asked = {name: value for name, value in job.asked.items() if name in bound}
    stamp = {"says": str(job.query), "query": job.query.to_dict(), "asked": asked}
    return dict(json.loads(json.dumps(stamp)))


def _local(path: str) -> bool:
    return "://" not in path or path.startswith("file://")


def _folder(path: str) -> Path:
    return Path(path.removeprefix("file://").removeprefix("file:"))


def _check_stamp(job: Job) -> None:
    if job.checkpoint is None or not _local(job.checkpoint):
        return
    folder = _folder(job.checkpoint)
    anew = "or name another checkpoint, with which the answer begins anew"
    try:
        found = json.loads((folder / STAMP).read_text(encoding="utf-8"))
        same = {name: found[name] for name in ("query", "asked")}
    except FileNotFoundError:
        if (folder / "offsets").is_dir():
            raise st.StateError(
                f"{job.name}: the checkpoint {job.checkpoint} was not made by skytide run",
                "name another checkpoint",
            ) from None
        return
    except (ValueError, KeyError, TypeError):
        raise st.StateError(
            f"{job.name}: {folder / STAMP} cannot be read", "name another checkpoint"
        ) from None
    now = stamp_of(job)
    if same != {"query": now["query"], "asked": now["asked"]}:
        raise st.StateError(
            f"{job.name}: the checkpoint {job.checkpoint} belongs to another query\n"
            f"  it was made for  {_spoken(found)}\n"
            f"  the job asks     {_spoken(now)}",
            f"ask as before, {anew}: the rows it kept are those that the old query needs",
        )


def _spoken(stamp: dict[str, Any]) -> str:
    asked = stamp["asked"]
    extra = ", ".join(f"{name} = {value}" for name, value in asked.items()) if asked else ""
    return f"{stamp.get('says')}{f' ({extra})' if extra else ''}"


def _claim(job: Job) -> None:
    """Write the query beside the checkpoint, if it is on this machine."""
    if job.checkpoint is not None and _local(job.checkpoint):
        file = _folder(job.checkpoint) / STAMP
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(stamp_of(job), indent=2) + "\n", encoding="utf-8")


# --------------------------------------------------------------------------------------
# From source to sink


def _session(job: Job, log: Path | None) -> SparkSession:
    conf = dict(job.spark)
    if not job.query.keys:  # one engine, so one state store
        conf.setdefault("spark.sql.shuffle.partitions", "1")
    kafka = "kafka" in (job.source.format, getattr(job.sink, "format", ""))
    if kafka and not conf.keys() & {"spark.jars", "spark.jars.packages"} and not is_elsewhere():
        import pyspark

        conf["spark.jars.packages"] = f"{_KAFKA}:{pyspark.__version__}"
    try:
        return session(job.name, conf, log)
    except st.SkytideError:
        raise
    except Exception as error:
        raise _stopped(f"{job.name}: Spark did not start", error, log) from error


def _changes(job: Job, spark: SparkSession) -> DataFrame:
    try:
        rows = _rows(job.source, spark)
    except Exception as error:  # whatever the format raises
        raise _stopped(f"{job.name}: [source] cannot be read", error) from error
    try:
        changes: DataFrame = job.query.changes(rows, **job.asked)
        return changes
    except st.SkytideError as error:
        raise type(error)(f"{job.name}: {error}") from error


def _rows(source: Source, spark: SparkSession) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    reader = spark.readStream.format(source.format).options(**source.options)
    if source.schema is not None:
        reader = reader.schema(source.schema)
    rows = reader.load(source.path)
    if source.json is not None:
        # What is not JSON becomes nulls, which the query sets aside and counts.
        value = F.from_json(F.col("value").cast("string"), source.json)
        rows = rows.select(value.alias("value")).select("value.*")
    return rows.selectExpr(*source.select) if source.select else rows


def _writer(
    job: Job, changes: DataFrame, show_answer: Callable[[Answer], None]
) -> DataStreamWriter:
    if isinstance(job.sink, Console):
        return changes.writeStream.foreachBatch(ConsoleSink(show_answer))
    if not isinstance(job.sink, Foreign):
        return changes.writeStream.foreachBatch(job.sink)
    if job.sink.format == "kafka":
        changes = changes.selectExpr("to_json(struct(*)) AS value")
    writer = changes.writeStream.format(job.sink.format).options(**job.sink.options)
    return writer if job.sink.path is None else writer.option("path", job.sink.path)


def _standing(job: Job, spark: SparkSession) -> int | None:
    """The size of the answer from which this run goes on, if there is a cheap way to know."""
    if job.checkpoint is None or (_local(job.checkpoint) and not _begun(job.checkpoint)):
        return 0
    if isinstance(job.sink, ParquetSink):
        from pyspark.sql import functions as F  # noqa: N812

        sign = F.expr(f"CASE {TYPE} WHEN 'insert' THEN 1 WHEN 'delete' THEN -1 ELSE 0 END")
        try:
            row = spark.read.parquet(job.sink.path).agg(F.sum(sign)).first()
        except Exception:  # no table yet; the number is for show only
            return None
        return row[0] if row else None
    return None


def _begun(checkpoint: str) -> bool:
    return (_folder(checkpoint) / "commits").is_dir()


def _triggered(writer: DataStreamWriter, trigger: str | None) -> Callable[[], StreamingQuery]:
    if trigger == "available now":
        writer = writer.trigger(availableNow=True)
    elif trigger is not None:
        writer = writer.trigger(processingTime=trigger)
    return writer.start


# --------------------------------------------------------------------------------------
# While it runs


def _follow(
    job: Job,
    start: Callable[[], StreamingQuery],
    listener: Listener,
    stop: threading.Event,
    notice: Callable[[str], None],
    log: Path | None,
) -> None:
    try:
        query = start()
        listener.of(str(query.runId))
        while query.isActive and not stop.is_set():
            time.sleep(_POLL)
        if query.isActive:
            stop.clear()
            if job.checkpoint is not None:  # else nothing of it will be seen again
                notice("stopping when this micro-batch is done; Ctrl-C again stops at once")
                _finish(query, stop)
            query.stop()
        query.awaitTermination()
    except Exception as error:
        if isinstance(error, st.SkytideError):
            raise
        raise _stopped(f"{job.name} has stopped", error, log) from error
    listener.ended.wait(5)


def _finish(query: StreamingQuery, again: threading.Event) -> None:
    """Wait until the micro-batch in hand is done, or until there is none, or we are told again."""
    now = _done(query)
    until = time.monotonic() + _PATIENCE
    while query.isActive and _done(query) == now and not again.is_set():
        if time.monotonic() > until or not query.status["isTriggerActive"]:
            return
        time.sleep(_POLL / 2)


def _done(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return -1 if progress is None else int(progress.batchId)


@contextmanager
def _signals(stop: threading.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM ask for a stop, as long as the block lasts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = (signal.SIGINT, signal.SIGTERM)
    before = {one: signal.signal(one, lambda *_: stop.set()) for one in asked}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextmanager
def _forgotten() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="skytide-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _log(name: str) -> Iterator[Path]:
    """A file for what Spark says; it stays if things went wrong and Spark said why."""
    safe = re.sub(r"[^A-Za-z0-9_-]+", "-", name)
    opened, path = tempfile.mkstemp(prefix=f"skytide-{safe}-", suffix=".log")
    os.close(opened)
    file = Path(path)
    well = False
    try:
        yield file
        well = True
    finally:
        if well or not file.stat().st_size:
            file.unlink()


_OURS = re.compile(r"skytide\.errors\.\w+: (.*?)(?:\nHint: ([^\n]*))?\n", re.DOTALL)


def _stopped(what: str, error: Exception, log: Path | None = None) -> st.JobError:
    """An error of Spark in a few lines; the rest is in the log."""
    told = str(error).strip()
    ours = _OURS.findall(told + "\n")
    message, hint = ours[-1] if ours else (_first_line(told), "")
    if "\n  " in message:  # frames of a traceback between two of our errors
        message = message.partition("\n")[0]
    place = f"all that Spark said is in {log}" if log and log.stat().st_size else ""
    return st.JobError(f"{what}: {message}", "; ".join(filter(None, [hint, place])))


def _first_line(told: str) -> str:
    """What Java says comes after a line of what was called.

    >>> _first_line("An error occurred while calling o1.load.\\n: java.io.IOException: no disk\\n\\tat")
    'no disk'
    """
    called, _, rest = told.partition("\n: ")
    if not called.startswith("An error occurred while calling"):
        return told.partition("\n")[0]
    line = rest.partition("\n")[0]
    return line.partition(": ")[2] or line
