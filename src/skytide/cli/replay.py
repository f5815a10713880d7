"""The demo of the engine alone: a stream replayed in this process, without Spark."""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import skytide as st
from skytide.cli.screen import CHANGES_SHOWN, answer_table, change_table
from skytide.data import Distribution, stream, trade_stream

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console, RenderableType

Data = Literal["trades", Distribution]

BATCH = 10_000  # rows in one push


@dataclass(frozen=True)
class Scene:
    """A query, the stream it is asked of, and how to talk about both."""

    query: Any
    tables: Iterator["pa.Table"]
    noun: str
    order: str  # the column its answer is sorted by when shown


def scene_of(data: Data, dims: int, window: int, seed: int) -> Scene:
    """What is played when this is asked for.

    >>> scene_of("correlated", 2, 10, 1).noun
    'points'
    """
    if data == "trades":
        question = st.skyline(st.low("price"), st.high("volume"))
        tables = trade_stream(seed, BATCH)
        return Scene(question.over(st.last(window)), tables, "trades", "price")
    question = st.skyline(*(st.low(f"x{axis}") for axis in range(1, dims + 1)))
    points = stream(data, dims, seed, BATCH)
    return Scene(question.over(st.last(window)), map(_point_table, points), "points", "x1")


def _point_table(points: Any) -> "pa.Table":
    import pyarrow as pa

    return pa.table({f"x{axis}": column for axis, column in enumerate(points.T, start=1)})


def _first(rows: int | None, tables: Iterable["pa.Table"]) -> Iterator["pa.Table"]:
    """The tables up to so many rows, or all of them."""
    for table in tables:
        yield table if rows is None else table.slice(0, rows)
        if rows is not None:
            rows -= table.num_rows
            if rows <= 0:
                return


# --------------------------------------------------------------------------------------
# Playing it


@dataclass(frozen=True)
class Frame:
    """What there is to show at one moment."""

    elapsed: float
    rows_per_second: float
    stats: Any
    answer: "pa.Table"
    changes: list[dict[str, Any]]  # the latest, oldest first


@dataclass
class Replay:
    """A live engine, fed from a stream; its pace is that of the engine alone."""

    live: Any
    watch: Any
    tables: Iterator["pa.Table"]
    started: float = field(default_factory=perf_counter)
    pushed: int = 0
    pushing: float = 0.0
    recent: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=CHANGES_SHOWN))

    def push_for(self, seconds: float) -> bool:
        """Push for so long; False when the stream has ended before."""
        until = perf_counter() + seconds
        for table in self.tables:
            begun = perf_counter()
            self.live.push(table)
            now = perf_counter()
            self.pushing += now - begun
            self.pushed += table.num_rows
            if now >= until:
                return True
        return False

    def frame(self) -> Frame:
        """Ask the engine what it has."""
        changes = self.watch.changes()
        skipped = max(0, changes.num_rows - CHANGES_SHOWN)
        self.recent.extend(changes.slice(skipped).to_pylist())
        rate = self.pushed / self.pushing if self.pushing else 0.0
        elapsed = perf_counter() - self.started
        return Frame(elapsed, rate, self.live.stats(), self.live.answer(), list(self.recent))


def _replay(scene: Scene, rows: int | None) -> Replay:
    """Open the engine and push once, so that getting the kernels ready is not timed."""
    tables = _first(rows, scene.tables)
    live = scene.query.open()
    watch = live.watch()
    live.push(next(tables))
    return Replay(live, watch, tables)


def _frames(replay: Replay, seconds: float, every: float) -> Iterator[Frame]:
    until = perf_counter() + seconds
    more = True
    while more:
        more = replay.push_for(every) and perf_counter() < until
        yield replay.frame()


# --------------------------------------------------------------------------------------
# Showing it


def replay(scene: Scene, rows: int | None, seconds: float | None) -> None:
    """Play a scene to its end, or for so long."""
    from rich.console import Console

    console = Console(highlight=False)
    if seconds is None:
        seconds = float("inf") if rows else 20.0 if console.is_terminal else 5.0
    console.print(str(scene.query), style="bold", markup=False, soft_wrap=True)
    with console.status("getting the kernels ready (a few seconds, the first time) ..."):
        played = _replay(scene, rows)
    show = _play if console.is_terminal else _report
    last = show(console, scene, played, seconds)
    if last:
        console.print(_closing(scene, last))


def _play(console: "Console", scene: Scene, replay: Replay, seconds: float) -> Frame | None:
    """A screen that changes in place; Ctrl-C ends the play, not the program."""
    from rich.live import Live

    last = None
    with Live(console=console, auto_refresh=False) as screen, suppress(KeyboardInterrupt):
        for last in _frames(replay, seconds, every=0.2):
            screen.update(_screen(scene, last), refresh=True)
    return last


def _report(console: "Console", scene: Scene, replay: Replay, seconds: float) -> Frame | None:
    """A line a second and the last answer, for a file or a log."""
    last = None
    with suppress(KeyboardInterrupt):
        for last in _frames(replay, seconds, every=1.0):
            console.print(_numbers(scene, last), soft_wrap=True)
    if last:
        console.print(answer_table(last.answer, scene.noun, scene.order))
    return last


def _screen(scene: Scene, frame: Frame) -> "RenderableType":
    from rich.console import Group

    return Group(
        _numbers(scene, frame),
        answer_table(frame.answer, scene.noun, scene.order),
        change_table(frame.changes),
    )


def _numbers(scene: Scene, frame: Frame) -> str:
    stats = frame.stats
    pace = f"{frame.rows_per_second / 1e6:5.2f} M rows/s   " if frame.rows_per_second else ""
    return (
        f"{frame.elapsed:5.1f} s   {pace}{stats.seen:,} {scene.noun} seen   "
        f"{stats.kept:,} kept   {stats.answer:,} best"
    )


def _closing(scene: Scene, frame: Frame) -> str:
    stats = frame.stats
    pace = frame.rows_per_second
    taken = f", taken in at {pace:,.0f} a second" if pace else ""
    return f"""
You saw {stats.seen:,} {scene.noun} go by{taken}.
To answer at any moment, for any shorter window too, the engine keeps only
{stats.kept:,} of them: the others are too old, or beaten by a younger one, and can
never be an answer again. Of those it keeps, {stats.answer:,} are the best now.

Try next:
  skytide demo                                the same as a stream in Spark
  skytide demo --no-spark --rows 10000000     more rows
  skytide demo --no-spark --window 10000      a shorter memory
  skytide demo --help                         the rest, harder rows for example
The README shows the same in ten lines of Python."""
