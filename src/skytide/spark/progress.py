"""What a running stream tells of itself: one line a micro-batch, for people and as JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

__all__ = ["Beat", "Listener", "beat_of"]


@dataclass(frozen=True)
class Beat:
    """The numbers of one micro-batch.

    >>> Beat("2026-01-01T00:00:00Z", 3, 200_000, 500, kept=212, answer=14, inserts=2).line()
    'batch 3   400,000 rows/s   500 ms   212 of 200,000 kept   14 best (+2 -0)'
    """

    timestamp: str
    batch: int
    rows: int
    milliseconds: int
    kept: int = 0  # rows that survived the prune
    rejected: int = 0
    late: int = 0
    bytes: int = 0  # over the wire to the engines
    inserts: int = 0
    deletes: int = 0
    answer: int | None = None  # its size, if it is known
    lag: int | None = None  # rows that the source has and nobody took yet, if it says so

    @property
    def rows_per_second(self) -> float:
        """The pace of this micro-batch.

        >>> Beat("", 0, rows=100, milliseconds=50).rows_per_second
        2000.0
        """
        return self.rows * 1_000 / max(self.milliseconds, 1)

    def line(self) -> str:
        """All of it for a person; what is nought or unknown is left out."""
        best = "" if self.answer is None else f"{self.answer:,} best "
        parts = [
            f"batch {self.batch}",
            f"{self.rows_per_second:,.0f} rows/s",
            f"{self.milliseconds:,} ms",
            f"{self.kept:,} of {self.rows:,} kept",
            f"{best}(+{self.inserts:,} -{self.deletes:,})",
            f"{self.rejected:,} set aside" if self.rejected else "",
            f"{self.late:,} late" if self.late else "",
            f"{self.lag:,} rows behind" if self.lag else "",
        ]
        return "   ".join(filter(None, parts))

    def json(self) -> str:
        """All of it for a program.

        >>> Beat("", 0, rows=100, milliseconds=50).json()[:32]
        '{"timestamp": "", "batch": 0, "r'
        """
        return json.dumps(asdict(self) | {"rows_per_second": round(self.rows_per_second, 1)})


def beat_of(progress: Any, answer: int | None) -> Beat:
    """The beat of a progress report of Spark, after an answer of so many rows."""
    came = _numbers(progress.observedMetrics.get("skytide_in"))
    went = _numbers(progress.observedMetrics.get("skytide_out"))
    inserts, deletes = went.get("inserts", 0), went.get("deletes", 0)
    return Beat(
        timestamp=progress.timestamp,
        batch=progress.batchId,
        rows=progress.numInputRows,
        milliseconds=progress.batchDuration,
        kept=came.get("kept", 0),
        rejected=came.get("rejected", 0),
        late=went.get("late", 0),
        bytes=came.get("bytes", 0),
        inserts=inserts,
        deletes=deletes,
        answer=None if answer is None else answer + inserts - deletes,
        lag=lag_of(progress.sources),
    )


def _numbers(row: Any) -> dict[str, int]:
    """Nothing observed is nought."""
    return {name: value or 0 for name, value in row.asDict().items()} if row else {}


def lag_of(sources: Any) -> int | None:
    """How many rows the sources are behind, as far as they say so."""
    behind = [lag for lag in map(_lag, sources) if lag is not None]
    return sum(behind) if behind else None


def _lag(source: Any) -> int | None:
    latest, end = _offset(source.latestOffset), _offset(source.endOffset)
    if latest is None or end is None:
        return None
    # Kafka: {"topic": {"partition": offset}}; skytide: {"row": offset}
    return max(0, _sum(latest) - _sum(end))


def _offset(text: Any) -> Mapping[str, Any] | None:
    try:
        offset = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return None
    return offset if isinstance(offset, Mapping) else None


def _sum(offset: Any) -> int:
    """The sum of all offsets in it.

    >>> _sum({"trades": {"0": 5, "1": 7}})
    12
    """
    if isinstance(offset, Mapping):
        return sum(map(_sum, offset.values()))
    return offset if isinstance(offset, int) else 0


class Listener(StreamingQueryListener):
    """Hands the beats of one stream on, and knows which micro-batch is done and when it ended.

    >>> Listener(show=print, answer=0)  # doctest: +SKIP
    """

    def __init__(self, show: Callable[[Beat], None], answer: int | None) -> None:
        self._show, self._answer = show, answer
        self._stream: str | None = None
        self.done = -1  # the last micro-batch that was committed
        self.ended = threading.Event()

    def onQueryStarted(self, event: Any) -> None:
        """The stream that is started next is the one, until `of` says better."""
        if self._stream is None:
            self._stream = str(event.runId)

    def of(self, stream: str) -> Listener:
        """Hear this stream only."""
        self._stream = stream
        return self

    def onQueryProgress(self, event: Any) -> None:
        """A micro-batch was committed, or there was nothing to do."""
        progress = event.progress
        if str(progress.runId) != self._stream or progress.batchId <= self.done:
            return
        self.done = progress.batchId
        beat = beat_of(progress, self._answer)
        self._answer = beat.answer
        self._show(beat)

    def onQueryIdle(self, event: Any) -> None:
        """Not of interest."""

    def onQueryTerminated(self, event: Any) -> None:
        """The stream has ended, well or not."""
        if str(event.runId) == self._stream:
            self.ended.set()
