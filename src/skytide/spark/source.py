"""The data source `format("skytide")`: the generators of `skytide.data`, at a chosen pace.

| option | meaning | if not given |
|---|---|---|
| `kind` | trades, independent, correlated, anti-correlated | trades |
| `rows` | how many rows there are | a stream never ends; a batch needs it |
| `rowsPerSecond` | the pace of a stream | as fast as they are taken |
| `rowsPerBatch` | the most rows of one micro-batch | 1,000,000 |
| `partitions` | how many tasks share a micro-batch | one |
| `dims`, `keys`, `seed` | coordinates, distinct keys (none), seed of the points | 3, 0, 0 |

A row is a function of the options and its number, and an offset is the number of the next row. So a
replay of the same offsets gives the same rows, in the same partitions, wherever and whenever.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

import skytide as st
from skytide.data import KINDS, span
from skytide.errors import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:  # before Spark 4.2 such a trigger is one micro-batch

        class SupportsTriggerAvailableNow: ...


__all__ = ["BatchReader", "Options", "Part", "StreamReader", "schema_of"]

_CUTS = 8  # chunks that go to Spark in one Arrow batch: fewer, larger batches are cheaper
_ENDLESS = 2**62


@dataclass(frozen=True)
class Options:
    """What was asked of the source; `parse` reads and checks it.

    >>> Options.parse({"kind": "correlated", "ROWSPERSECOND": "1_000"}).rows_per_second
    1000
    """

    kind: str = "trades"
    rows: int | None = None
    rows_per_second: int | None = None
    rows_per_batch: int = 1_000_000
    partitions: int = 1
    dims: int = 3
    keys: int = 0
    seed: int = 0

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Options:
        """Options as Spark hands them over: text, their names in any case.

        >>> Options.parse({"rows": "many"})
        Traceback (most recent call last):
        skytide.errors.QueryError: the option rows of format("skytide") is 'many'
        Hint: give a whole number, at least 1
        """
        names = {_spelled(field.name).casefold(): field.name for field in fields(cls)}
        values: dict[str, Any] = {}
        for option, text in given.items():
            name = names.get(option.casefold())
            if name is None:
                raise _unknown(option)
            values[name] = _kind(text) if name == "kind" else _whole(name, text)
        return cls(**values)._sound()

    def _sound(self) -> Options:
        for point in ("dims", "keys"):
            if self.kind == "trades" and getattr(self, point) != getattr(Options, point):
                raise st.QueryError(
                    f'the option {point} of format("skytide") has no meaning for trades',
                    f"leave it out, or choose the kind {_among(KINDS[1:])}",
                )
        return self

    @property
    def end(self) -> int:
        """The number of the first row there is not.

        >>> Options(rows=10).end
        10
        """
        return _ENDLESS if self.rows is None else self.rows


def _spelled(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _unknown(option: str) -> st.QueryError:
    allowed = [_spelled(field.name) for field in fields(Options)]
    return st.QueryError(
        f'format("skytide") has no option {option!r}.{did_you_mean(option, allowed)}',
        f"its options are {', '.join(allowed)}",
    )


def _kind(text: str) -> str:
    if text not in KINDS:
        raise st.QueryError(
            f'the kind of format("skytide") is {text!r}.{did_you_mean(text, KINDS)}',
            f"choose {_among(KINDS)}",
        )
    return text


def _whole(name: str, text: str) -> int:
    least = 0 if name in ("keys", "seed") else 1
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number <= _ENDLESS:
        raise st.QueryError(
            f'the option {_spelled(name)} of format("skytide") is {text!r}',
            f"give a whole number, at least {least}",
        )
    return number


def _among(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def schema_of(options: Options) -> str:
    """The columns as Spark writes them.

    >>> schema_of(Options(kind="independent", dims=2, keys=5))
    'x1 double, x2 double, key long'
    """
    if options.kind == "trades":
        return "ts timestamp, symbol string, price double, volume long, venue string"
    axes = [f"x{axis} double" for axis in range(1, options.dims + 1)]
    return ", ".join(axes + ["key long"] * bool(options.keys))


class Part(InputPartition):
    """The rows that one task makes.

    >>> Part(0, 10)
    Part(value=(0, 10))
    """

    def __init__(self, start: int, stop: int) -> None:
        super().__init__((start, stop))

    @property
    def start(self) -> int:
        """The number of its first row.

        >>> Part(3, 10).start
        3
        """
        return int(self.value[0])

    @property
    def stop(self) -> int:
        """The number of the first row after it.

        >>> Part(3, 10).stop
        10
        """
        return int(self.value[1])


def _parts(start: int, stop: int, count: int) -> list[Part]:
    """Neighbouring parts of like size; source partition and index in it are the order of arrival."""
    cuts = [start + (stop - start) * part // count for part in range(count + 1)]
    return [Part(begin, end) for begin, end in pairwise(cuts) if begin < end]


def _batches(options: Options, part: Any) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    made = {"dims": options.dims, "seed": options.seed, "keys": options.keys}
    waiting: list[pa.Table] = []
    for table in span(options.kind, part.start, part.stop, **made):
        waiting.append(table)
        if len(waiting) == _CUTS:
            yield from pa.concat_tables(waiting).combine_chunks().to_batches()
            waiting.clear()
    if waiting:
        yield from pa.concat_tables(waiting).combine_chunks().to_batches()


class BatchReader(DataSourceReader):
    """All rows at once.

    >>> next(BatchReader(Options(rows=3)).read(Part(0, 3))).num_rows
    3
    """

    def __init__(self, options: Options) -> None:
        if options.rows is None:
            raise st.QueryError(
                'a batch of format("skytide") needs to know its size', '.option("rows", 1_000_000)'
            )
        self._options = options

    def partitions(self) -> list[Part]:
        """A part for each task.

        >>> len(BatchReader(Options(rows=100, partitions=4)).partitions())
        4
        """
        return _parts(0, self._options.end, self._options.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a part.

        >>> [batch.num_rows for batch in BatchReader(Options(rows=100)).read(Part(5, 9))]
        [4]
        """
        return _batches(self._options, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The rows at their pace, from wherever the stream last was.

    >>> reader = StreamReader(Options(rows=10, rows_per_batch=6))
    >>> first = reader.latestOffset(reader.initialOffset())
    >>> first, reader.latestOffset(first)
    ({'row': 6}, {'row': 10})
    """

    def __init__(self, options: Options, clock: Callable[[], float] = time.monotonic) -> None:
        self._options, self._clock = options, clock
        self._begun: tuple[int, float] | None = None  # where and when this run of the stream began
        self._at = 0  # for Spark 4.1, which does not say where it is

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options}  # what a task needs to read its part

    def prepareForTriggerAvailableNow(self) -> None:
        """All that is there is all there will be: a stream without end would never stop.

        >>> StreamReader(Options()).prepareForTriggerAvailableNow()
        Traceback (most recent call last):
        skytide.errors.QueryError: a stream without end has no rows that are available now
        Hint: .option("rows", 1_000_000), or another trigger
        """
        if self._options.rows is None:
            raise st.QueryError(
                "a stream without end has no rows that are available now",
                '.option("rows", 1_000_000), or another trigger',
            )

    def initialOffset(self) -> dict[str, int]:
        """The first row.

        >>> StreamReader(Options()).initialOffset()
        {'row': 0}
        """
        return {"row": 0}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:
        """Where the next micro-batch may end.

        >>> StreamReader(Options(rows_per_batch=100)).latestOffset({"row": 50})
        {'row': 150}
        """
        begin = self._at if start is None else int(start["row"])
        self._at = max(begin, min(begin + self._options.rows_per_batch, self._made(begin)))
        return {"row": self._at}

    def _made(self, begin: int) -> int:
        """How many rows the pace has brought forth until now."""
        pace, end = self._options.rows_per_second, self._options.end
        if pace is None:
            return end
        if self._begun is None:
            # The first row is there at once: nobody should wait for a slow stream to begin.
            self._begun = begin, self._clock() - 1 / pace
        row, when = self._begun
        return min(end, row + int((self._clock() - when) * pace))

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Part]:
        """A part of a micro-batch for each task.

        >>> parts = StreamReader(Options(partitions=2)).partitions({"row": 5}, {"row": 9})
        >>> [(part.start, part.stop) for part in parts]
        [(5, 7), (7, 9)]
        """
        self._at = max(self._at, int(end["row"]))
        return _parts(int(start["row"]), int(end["row"]), self._options.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a part.

        >>> next(StreamReader(Options()).read(Part(7, 9))).num_rows
        2
        """
        return _batches(self._options, partition)

    def commit(self, end: dict[str, int]) -> None:
        """What was read may be forgotten: nothing was kept.

        >>> StreamReader(Options()).commit({"row": 5})
        """

    def stop(self) -> None:
        """Nothing is held open.

        >>> StreamReader(Options()).stop()
        """
