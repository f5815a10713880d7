"""Job files: a source, a query and a sink in TOML, read and checked before Spark starts.

    checkpoint = "checkpoints/deals"
    trigger = "1 second"

    [source]
    format = "kafka"
    json = "symbol string, price double, volume long"
    options = { subscribe = "trades", "kafka.bootstrap.servers" = "localhost:9092" }

    [query]
    low = "price"
    high = "volume"
    last = 1_000_000

    [sink]
    format = "parquet"
    path = "deals"

docs/spark.md lists every entry. Anything else is refused, with its line and what is allowed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import skytide as st
from skytide.spark.entries import Entries, read_toml
from skytide.spark.postgres import PostgresSink
from skytide.spark.sinks import ParquetSink
from skytide.spark.source import Options, schema_of

__all__ = ["Console", "Foreign", "Job", "Source", "read_job"]

_JOB = ("name", "checkpoint", "trigger", "metrics", "source", "query", "watch", "sink", "spark")
_SOURCE = ("format", "path", "schema", "json", "select", "options")
_QUESTION = ("question", "k", "low", "high", "ties")
_WINDOW = ("last", "every", "on", "history", "everything", "lifetime", "latest")
_ASKED = ("per", "order_by", "watermark", "rejects", "algorithm")
_SINKS = {
    "console": ("order", "rows"),
    "parquet": ("path",),
    "postgres": ("table", "dsn"),
}
_TRIGGER = re.compile(r"available now|\d+ (milliseconds?|seconds?|minutes?|hours?)")


@dataclass(frozen=True)
class Source:
    """Where rows come from: any format that Spark reads as a stream."""

    format: str
    path: str | None = None
    schema: str | None = None
    json: str | None = None
    select: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Console:
    """The answer on the screen, sorted by a column."""

    order: str | None = None
    rows: int = 10


@dataclass(frozen=True)
class Foreign:
    """Any other format that Spark writes as a stream; it gets the changes."""

    format: str
    path: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """A job file that can be run; `read_job` makes it."""

    name: str
    source: Source
    query: st.Query
    asked: Mapping[str, Any]  # what query.changes is told besides the stream
    sink: ParquetSink | PostgresSink | Console | Foreign
    checkpoint: str | None = None
    trigger: str | None = None
    metrics: str | None = None
    spark: Mapping[str, str] = field(default_factory=dict)


def read_job(path: str | os.PathLike[str]) -> Job:
    """The job in a file; the first thing wrong with it is named with its line.

    >>> read_job("examples/deals.toml")  # doctest: +SKIP
    """
    job = read_toml(path)
    job.only(_JOB)
    for part in ("source", "query", "sink"):
        job.need(part, dict, hint=f"add a table [{part}]")
    query = _query(job.inner("query"))
    source = _source(job.inner("source"))
    _check_columns(job.inner("query"), source, query)
    checkpoint = job.take("checkpoint", str)
    sink = _sink(job.inner("sink"))
    _check_checkpoint(job, checkpoint, isinstance(sink, Console))
    trigger = job.take("trigger", str)
    if trigger is not None and not _TRIGGER.fullmatch(trigger):
        job.fail("trigger", f"trigger is {trigger!r}", 'write "1 second" or "available now"')
    if source.format == "skytide" and trigger == "available now" and "rows" not in source.options:
        job.fail(
            "trigger",
            "the source has no end, so nothing is all that is available now",
            "give [source.options] the entry rows, or leave out the trigger",
        )
    return Job(
        name=job.take("name", str, default=Path(path).stem),
        source=source,
        query=query,
        asked=_asked(job),
        sink=sink,
        checkpoint=checkpoint,
        trigger=trigger,
        metrics=job.take("metrics", str),
        spark=job.inner("spark").settings(),
    )


def _check_checkpoint(job: Entries, checkpoint: str | None, console: bool) -> None:
    if checkpoint is None and not console:
        job.fail(
            "sink",
            "the job has no checkpoint, so after a stop it could not go on where it was",
            'add checkpoint = "checkpoints/..." above the first table',
        )
    if checkpoint is not None and console:
        job.fail(
            "checkpoint",
            "a console forgets the answer when it ends, so it cannot go on from a checkpoint",
            "leave the checkpoint out, or choose another sink",
        )


# --------------------------------------------------------------------------------------
# The source


def _source(part: Entries) -> Source:
    part.only(_SOURCE)
    named = part.need("format", str, hint='for example format = "kafka"')
    options = part.inner("options")
    source = Source(
        format=named,
        path=part.take("path", str),
        schema=part.take("schema", str),
        json=part.take("json", str),
        select=tuple(part.texts("select")),
        options=options.settings(),
    )
    if named == "skytide":
        _check_generator(part, options, source)
    if source.json is not None and named != "kafka":
        part.fail("json", "json says what is in the messages of Kafka", "leave it out")
    if named == "kafka" and source.json is None and not source.select:
        part.fail(
            "format",
            "a message of Kafka is bytes, and nothing says what is in it",
            'json = "symbol string, price double", or select = ["...", ...]',
        )
    return source


def _check_generator(part: Entries, options: Entries, source: Source) -> None:
    for name in ("path", "schema"):
        if getattr(source, name) is not None:
            part.fail(name, f"the format skytide has no {name}", "leave it out")
    kind = {name: value for name, value in source.options.items() if name.casefold() == "kind"}
    for name, value in source.options.items():
        options.asking(name, Options.parse, {**kind, name: value})


def _check_columns(part: Entries, source: Source, query: st.Query) -> None:
    """Does the query speak of columns that the source has, as far as is known yet?"""
    if source.format != "skytide" or source.select:
        return
    columns = [one.split()[0] for one in schema_of(Options.parse(source.options)).split(", ")]
    for column in query.columns:
        if column not in columns:
            entry = next((name for name, value in part.values.items() if column in str(value)), "")
            part.fail(
                entry,
                f"the source has no column {column!r}",
                f"its columns are {', '.join(columns)}",
            )


# --------------------------------------------------------------------------------------
# The query


def _query(part: Entries) -> st.Query:
    part.only((*_QUESTION, *_WINDOW, *_ASKED))
    query = _question(part).over(_window(part))
    keys = part.texts("per")
    keyed: st.Query = part.asking("per", query.per, *keys) if keys else query
    part.asking("", keyed.algorithms)  # is there an engine for it?
    return keyed


def _question(part: Entries) -> Any:
    kind = part.choice("question", ("skyline", "skyband", "top", "top_pairs"), "skyline")
    ends = {"low": st.low, "high": st.high}
    preferences = [
        part.asking(end, make, column) for end, make in ends.items() for column in part.texts(end)
    ]
    if not preferences:
        part.fail("", "[query] does not say what is better", 'low = "price", or high = ["volume"]')
    named = {"ties": part.take("ties", str)} if "ties" in part.values else {}
    if kind == "skyline":
        if "k" in part.values:
            part.fail("k", "a skyline has no k", 'question = "skyband", or leave k out')
        return part.asking("ties", st.skyline, *preferences, **named)
    k = part.need("k", int, hint="say how many: k = 10")
    if kind == "skyband":
        return part.asking("k", st.skyband, k, *preferences, **named)
    if len(preferences) > 1 or named:
        extra = "ties" if named else "high" if "high" in part.values else "low"
        part.fail(
            extra, f"{kind} ranks by one preference and has no ties", "leave one, or ask skyband"
        )
    return part.asking("k", st.top if kind == "top" else st.top_pairs, k, *preferences)


def _window(part: Entries) -> Any:
    kinds = [name for name in ("last", "everything", "lifetime", "latest") if name in part.values]
    if len(kinds) != 1:
        part.fail(
            kinds[1] if kinds else "",
            "[query] says twice which rows count"
            if kinds
            else "[query] does not say which rows count",
            'write one of last = 1_000_000, last = "10 minutes", everything = true',
        )
    for name in ("every", "on", "history"):
        if name in part.values and kinds != ["last"]:
            part.fail(name, f"{name} belongs to last", "leave it out")
    if kinds == ["everything"]:
        if not part.take("everything", bool):
            part.fail("everything", "everything is false", "leave it out, and say which rows count")
        return st.everything()
    if kinds == ["latest"]:
        return part.asking("latest", st.latest, *part.texts("latest"))
    if kinds == ["lifetime"]:
        lifetime = part.inner("lifetime")
        lifetime.only(("start", "end"))
        return part.asking("lifetime", st.lifetime, **lifetime.settings())
    return _last(part)


def _last(part: Entries) -> Any:
    named: dict[str, Any] = {
        name: part.take(name, *kinds)
        for name, kinds in {"every": (int, str), "on": (str,), "history": (bool,)}.items()
        if name in part.values
    }
    return part.asking("last", st.last, part.take("last", int, str), **named)


def _asked(job: Entries) -> dict[str, Any]:
    part, watch = job.inner("query"), job.inner("watch")
    watch.only(("last", "between", "k"))
    between = watch.take("between", list)
    if between is not None and len(between) != 2:
        watch.fail("between", f"between is {between!r}", "give two: between = [1, 50_000]")
    asked = {
        "order_by": tuple(part.texts("order_by")) or None,
        "watermark": part.take("watermark", str),
        "rejects": part.take("rejects", bool),
        "algorithm": part.take("algorithm", str),
        "last": watch.take("last", int, str),
        "between": tuple(between) if between else None,
        "k": watch.take("k", int),
    }
    return {name: value for name, value in asked.items() if value is not None}


# --------------------------------------------------------------------------------------
# The sink


def _sink(part: Entries) -> ParquetSink | PostgresSink | Console | Foreign:
    named = part.need("format", str, hint='for example format = "parquet"')
    part.only(("format", *_SINKS.get(named, ("path", "options"))))
    if named == "parquet":
        return ParquetSink(part.need("path", str, hint='path = "deals"'))
    if named == "postgres":
        table = part.need("table", str, hint='table = "best_deals"')
        return part.asking("table", PostgresSink, table, part.take("dsn", str, default=""))
    if named == "console":
        rows = part.take("rows", int, default=Console.rows)
        if rows < 1:
            part.fail("rows", f"rows is {rows}", "give a whole number, at least 1")
        return Console(part.take("order", str), rows)
    return Foreign(named, part.take("path", str), part.inner("options").settings())
