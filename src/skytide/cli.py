"""The command line: `skytide demo` and `skytide version`.

Everything here goes through the public face of skytide, as a user's own program would.
"""

import importlib.util
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import skytide as st
from skytide.data import Distribution, stream, trade_stream

if TYPE_CHECKING:
    import pyarrow as pa
    import typer
    from rich.console import Console, RenderableType
    from rich.table import Table

Data = Literal["trades", Distribution]

BATCH = 10_000  # rows in one push
ROWS_SHOWN = 8
CHANGES_SHOWN = 5


def main() -> None:
    """Run the command line, or say what to install when its libraries are missing.

    >>> main()  # doctest: +SKIP
    """
    for library in ("typer", "rich"):
        if importlib.util.find_spec(library) is None:
            sys.exit(f"skytide's command line needs {library}.\nHint: pip install 'skytide[cli]'")
    _app()()


def _app() -> "typer.Typer":
    import typer

    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        help="Standing preference questions over data that keeps moving.",
    )

    @app.command()
    def demo(
        seconds: Annotated[
            float | None, typer.Option(min=0, help="Stop then (20 on a terminal, else 5).")
        ] = None,
        rows: Annotated[int | None, typer.Option(min=1, help="Stop after so many rows.")] = None,
        window: Annotated[int, typer.Option(min=1, help="How many rows count.")] = 1_000_000,
        data: Annotated[Data, typer.Option(help="Trades, or random points.")] = "trades",
        dims: Annotated[int, typer.Option(min=1, help="Coordinates of a random point.")] = 3,
        seed: Annotated[int, typer.Option(min=0, help="Another seed, other rows.")] = 1,
    ) -> None:
        """Watch the best rows of a stream change."""
        _demo(_scene(data, dims, window, seed), rows, seconds)

    @app.command()
    def version() -> None:
        """Print the version."""
        typer.echo(f"skytide {st.__version__}")

    return app


# --------------------------------------------------------------------------------------
# What is played


@dataclass(frozen=True)
class Scene:
    """A query, the stream it is asked of, and how to talk about both."""

    query: Any
    tables: Iterator["pa.Table"]
    noun: str
    order: str  # the column its answer is sorted by when shown


def _scene(data: Data, dims: int, window: int, seed: int) -> Scene:
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


def _demo(scene: Scene, rows: int | None, seconds: float | None) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if seconds is None:
        seconds = float("inf") if rows else 20.0 if console.is_terminal else 5.0
    console.print(str(scene.query), style="bold", markup=False, soft_wrap=True)
    with console.status("getting the kernels ready (a few seconds, the first time) ..."):
        replay = _replay(scene, rows)
    show = _play if console.is_terminal else _report
    last = show(console, scene, replay, seconds)
    if last:
        console.print(_closing(scene, last), soft_wrap=True)


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
        console.print(_answer_table(scene, last))
    return last


def _screen(scene: Scene, frame: Frame) -> "RenderableType":
    from rich.console import Group

    return Group(_numbers(scene, frame), _answer_table(scene, frame), _change_table(frame))


def _numbers(scene: Scene, frame: Frame) -> str:
    stats = frame.stats
    pace = f"{frame.rows_per_second / 1e6:5.2f} M rows/s   " if frame.rows_per_second else ""
    return (
        f"{frame.elapsed:5.1f} s   {pace}{stats.seen:,} {scene.noun} seen   "
        f"{stats.kept:,} kept   {stats.answer:,} best"
    )


def _answer_table(scene: Scene, frame: Frame) -> "Table":
    best = frame.answer.sort_by(scene.order)
    hidden = best.num_rows - ROWS_SHOWN
    caption = f"and {hidden:,} more" if hidden > 0 else None
    rows = best.slice(0, ROWS_SHOWN).to_pylist()
    return _table(f"the best {scene.noun} now", rows, caption)


def _change_table(frame: Frame) -> "Table":
    rows = [
        {"": "+" if row["_change_type"] == "insert" else "-"}
        | {name: value for name, value in row.items() if not name.startswith("_")}
        for row in frame.changes
    ]
    return _table("what entered (+) and left (-) last", rows)


def _table(title: str, rows: list[dict[str, Any]], caption: str | None = None) -> "Table":
    from rich import box
    from rich.table import Table

    look: dict[str, Any] = {"box": box.SIMPLE_HEAD, "show_edge": False}  # to fit 24 lines
    table = Table(title=title, title_justify="left", caption=caption, **look)
    for name, value in rows[0].items() if rows else ():
        table.add_column(name, justify="right" if isinstance(value, int | float) else "left")
    for row in rows:
        table.add_row(*map(_text, row.values()))
    return table


def _text(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:%H:%M:%S.%f}" if hasattr(value, "hour") else str(value)


def _closing(scene: Scene, frame: Frame) -> str:
    stats = frame.stats
    pace = frame.rows_per_second
    taken = f", taken in at {pace:,.0f} a second (making them not counted)" if pace else ""
    return f"""
You saw {stats.seen:,} {scene.noun} go by{taken}.
To answer at any moment, for any shorter window too, the engine keeps only {stats.kept:,} of them:
the others are too old, or beaten by a younger one, and can never be an answer again.
Of those it keeps, {stats.answer:,} are the best now.

Try next:
  skytide demo --rows 10000000                      more rows
  skytide demo --window 10000                       a shorter memory
  skytide demo --data anti-correlated --dims 4      much harder rows
  skytide demo --help                               the rest
The README shows the same in ten lines of Python."""
