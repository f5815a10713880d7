"""The demo: a local Spark stream of trades, its best deals answered live on the terminal."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

import skytide as st
from skytide.cli.job import need_spark
from skytide.cli.replay import Data
from skytide.cli.screen import CHANGES_SHOWN, ROWS_SHOWN, answer_table, change_table

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


@dataclass(frozen=True)
class Play:
    """What is streamed and what is asked."""

    data: Data
    dims: int
    window: int
    seed: int
    pace: int
    rows: int | None

    @property
    def noun(self) -> str:
        """What a row is called.

        >>> Play("trades", 3, 10, 1, 1, None).noun
        'trades'
        """
        return "trades" if self.data == "trades" else "points"

    @property
    def order(self) -> str:
        """The column the answer is shown by.

        >>> Play("correlated", 3, 10, 1, 1, None).order
        'x1'
        """
        return "price" if self.data == "trades" else "x1"

    def query(self) -> Any:
        """The question.

        >>> print(Play("trades", 3, 10, 1, 1, None).query())
        the skyline of low price and high volume over the last 10 rows
        """
        if self.data == "trades":
            preferences = [st.low("price"), st.high("volume")]
        else:
            preferences = [st.low(f"x{axis}") for axis in range(1, self.dims + 1)]
        return st.skyline(*preferences).over(st.last(self.window))

    def job(self) -> Any:
        """The same as a job file would say it."""
        from skytide.spark.jobs import Console, Job, Source

        options = {
            "kind": self.data,
            "seed": self.seed,
            "rowsPerSecond": self.pace,
            "rowsPerBatch": max(1, self.pace // 2),  # so that something moves every second
        }
        if self.data != "trades":
            options["dims"] = self.dims
        if self.rows is not None:
            options["rows"] = self.rows
        return Job(
            name="demo",
            source=Source("skytide", options={name: str(value) for name, value in options.items()}),
            query=self.query(),
            asked={},
            sink=Console(self.order),
            trigger="available now" if self.rows is not None else "200 milliseconds",
        )


def play(wanted: Play, seconds: float | None) -> None:
    """Start Spark, show the answer as it moves, and say what was seen.

    >>> play(Play("trades", 3, 1_000, 1, 1_000, 5_000), seconds=5)  # doctest: +SKIP
    """
    need_spark()
    from rich.console import Console

    from skytide.spark.java import find_java
    from skytide.spark.running import run

    console = Console(highlight=False)
    try:
        java = find_java()
    except st.MissingExtra as error:
        raise st.MissingExtra(
            f"{error}\n      or, without Spark: skytide demo --no-spark"
        ) from None
    if seconds is None:
        seconds = float("inf") if wanted.rows else 30.0 if console.is_terminal else 5.0
    query = wanted.query()
    console.print(str(query), style="bold", markup=False, soft_wrap=True)
    stop = threading.Event()
    show = (_Screen if console.is_terminal else _Lines)(console, wanted, seconds, stop)
    threading.Thread(target=_warm, args=(query, wanted), daemon=True).start()
    with show:
        show.wait(f"starting Spark on Java {java} and compiling the kernels")
        run(wanted.job(), show.beat, show.answer, stop)
    if show.seen:
        console.print(show.closing())


def _warm(query: Any, wanted: Play) -> None:
    """Compile while Spark starts: its workers find the kernels in the cache."""
    from skytide.data import span

    named = {} if wanted.data == "trades" else {"dims": wanted.dims}
    for _ in query.changes(span(wanted.data, 0, 20_000, seed=wanted.seed, **named)):
        pass


@dataclass
class _Shown:
    """What was told so far; how it looks is for those below to say."""

    console: Console
    wanted: Play
    seconds: float
    stop: threading.Event
    began: float = field(default_factory=monotonic)
    first: float | None = None  # when the first answer came
    seen: int = 0
    kept: int = 0
    bytes: int = 0
    batches: int = 0
    last: Any = None
    now: Any = None

    def __enter__(self) -> _Shown:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def wait(self, what: str) -> None:
        """Say what it is that takes so long."""
        self.console.print(f"{what} ...", soft_wrap=True)

    def answer(self, answer: Any) -> None:
        """The answer has moved; it is shown with the numbers that come right after."""
        self.first = self.first or monotonic()
        self.now = answer

    def beat(self, beat: Any) -> None:
        """A micro-batch is done."""
        self.last = beat
        self.seen += beat.rows
        self.kept += beat.kept
        self.bytes += beat.bytes
        self.batches += 1
        if self.batches == 2:  # the first one was there to get things ready
            timer = threading.Timer(min(self.seconds, threading.TIMEOUT_MAX), self.stop.set)
            timer.daemon = True
            timer.start()
        self.update()

    def update(self) -> None:
        """Show what there is."""
        raise NotImplementedError

    def numbers(self) -> str:
        """The stream in two lines."""
        elapsed = monotonic() - (self.first or self.began)
        beat = self.last
        best = self.now.rows.num_rows if self.now else 0
        seen = f"{elapsed:5.1f} s   {self.seen:,} {self.wanted.noun} seen   {best:,} best\n"
        if beat.batch == 0:
            return f"{seen}the first micro-batch got the workers ready, {beat.milliseconds:,} ms"
        return (
            f"{seen}micro-batch {beat.batch}: {beat.rows:,} {self.wanted.noun} in "
            f"{beat.milliseconds:,} ms, {beat.kept:,} left after the prune"
        )

    def table(self) -> Any:
        """The answer, as far as there is room."""
        shown = max(ROWS_SHOWN, self.console.height - 16)
        return answer_table(self.now.rows, self.wanted.noun, self.wanted.order, shown)

    def closing(self) -> str:
        """What one saw, and where to go next."""
        noun = self.wanted.noun
        waited = (self.first or monotonic()) - self.began
        return f"""
You saw {self.seen:,} {noun} go by in {self.batches:,} micro-batches of a Spark stream.
The first answer came after {waited:.0f} s. The tasks that made the rows pruned all but
{self.kept:,} of them, so only {_size(self.bytes)} went over to the engine, which knows the
best of the last {self.wanted.window:,} at any moment.

Try next:
  skytide demo --data anti-correlated --dims 4   much harder rows
  skytide demo --no-spark                        the engine alone, at its pace
  skytide run examples/deals.toml                a job: a table of the changes
  docs/spark.md                                  Kafka, PostgreSQL, clusters"""


def _size(count: int) -> str:
    """So many bytes, for people.

    >>> _size(900), _size(25_000), _size(3_400_000)
    ('0.9 kB', '25.0 kB', '3.4 MB')
    """
    return f"{count / 1e3:,.1f} kB" if count < 1e6 else f"{count / 1e6:,.1f} MB"


class _Lines(_Shown):
    """A line for each micro-batch and the last answer, for a file or a log."""

    def update(self) -> None:
        self.console.print(self.last.line(), soft_wrap=True)

    def __exit__(self, *_: Any) -> None:
        if self.now is not None:
            self.console.print(self.table())


class _Screen(_Shown):
    """A screen that changes in place."""

    def __enter__(self) -> _Screen:
        from rich.live import Live

        self._live = Live(console=self.console, refresh_per_second=10)
        self._live.start()
        return self

    def wait(self, what: str) -> None:
        from rich.spinner import Spinner

        self._live.update(Spinner("dots", f"{what} (up to a minute, the first time) ..."))

    def update(self) -> None:
        if self.now is not None:
            self._live.update(self._screen(), refresh=True)

    def _screen(self) -> RenderableType:
        from rich.console import Group

        changes = list(self.now.recent)[-CHANGES_SHOWN:]
        return Group(self.numbers(), self.table(), change_table(changes))

    def __exit__(self, *_: Any) -> None:
        if self.now is None:
            self._live.update("")
        self._live.stop()
