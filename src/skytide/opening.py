"""From a query to what answers it: an engine, one that was saved, a stream of changes, one answer."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from skytide.engine import Engine
from skytide.errors import QueryError, StateError
from skytide.keyed import KeyedEngine
from skytide.once import answer_table
from skytide.query import Query, query_from_dict
from skytide.state import State, unpack


def open_query(query: Query, algorithm: str | None = None) -> Engine | KeyedEngine:
    """The engine of a query: one :class:`Engine`, or one for every key."""
    return (KeyedEngine if query.keys else Engine)(query, algorithm)


def load(blob: bytes, query: Query | None = None) -> Engine | KeyedEngine:
    """The engine that ``save`` wrote; it gives the same answers.  Watches are opened anew.

    ``query`` must be the one that was saved; it is needed only if it scores by a Python function.
    Raises StateError for anything but a whole, unaltered state of a version we know.

    >>> import skytide as st
    >>> live = st.skyline(st.low("price")).over(st.last(2)).open()
    >>> live.push({"price": [1.0, 3.0, 2.0]})
    >>> st.load(live.save()).answer().to_pylist()
    [{'price': 2.0}]
    """
    state = unpack(blob)
    try:
        engine = open_query(_query_of(state, query), state.facts["algorithm"])
        engine._restore(state)
    except StateError:
        raise
    except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise StateError(
            f"this state contradicts itself: {error}", "start a new engine with query.open()"
        ) from error
    return engine


def _query_of(state: State, expected: Query | None) -> Query:
    """The query of a state, which is the one expected if any is."""
    if expected is None:
        for preference in state.facts["query"]["question"]["preferences"]:
            if "function" in preference:
                raise StateError(
                    f"the query of this state scores by a function, {preference['function']}",
                    "give the query it was saved from: st.load(blob, query=...)",
                )
        return query_from_dict(state.facts["query"])
    if state.facts["query"] != expected.to_dict():
        raise StateError(
            "this state is of another query than the one given",
            "load it with the query it was saved from, or start anew with query.open()",
        )
    return expected


def changes_of(query: Query, stream: Any, **options: Any) -> Any:
    """A table of changes for every batch of a stream; of a Spark stream, a stream of changes."""
    if _is_spark(stream):
        return _spark_room("changes", stream)(query, stream, **options)
    return _tables_of_changes(query, stream, **options)


def _tables_of_changes(
    query: Query,
    stream: Iterable[Any],
    last: Any = None,
    between: Any = None,
    k: int | None = None,
    algorithm: str | None = None,
) -> Iterator[pa.Table]:
    live = open_query(query, algorithm)
    watch = live.watch(last, between, k)
    for rows in stream:
        live.push(rows)
        yield watch.changes()


def answer_once(query: Query, data: Any, **options: Any) -> Any:
    """The answer over given rows."""
    if _is_spark(data):
        return _spark_room("answer", data)(query, data, **options)
    return answer_table(query, data, **options)


def _is_spark(data: Any) -> bool:
    return type(data).__module__.startswith("pyspark.sql.")


def _spark_room(verb: str, data: Any) -> Any:
    """What does a verb on Spark; imported by name, since this room knows nothing of that one."""
    streaming = verb == "changes"
    if data.isStreaming != streaming:
        raise QueryError(
            f"the DataFrame is {'streaming' if data.isStreaming else 'not streaming'}: "
            f"its answer {'moves' if data.isStreaming else 'stands still'}",
            f"ask query.{'answer' if streaming else 'changes'}(df)",
        )
    room = importlib.import_module("skytide.spark")
    return getattr(room, verb)
