"""The command line: `skytide demo`, `skytide run` and `skytide version`.

Everything here goes through the public face of skytide, as a user's own program would.
"""

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import skytide as st
from skytide.cli.replay import Data

if TYPE_CHECKING:
    import typer


def main() -> None:
    """Run the command line, or say what to install when its libraries are missing.

    >>> main()  # doctest: +SKIP
    """
    for library in ("typer", "rich"):
        if importlib.util.find_spec(library) is None:
            sys.exit(f"skytide's command line needs {library}.\nHint: pip install 'skytide[cli]'")
    app()()


def app() -> "typer.Typer":
    """The commands, their options and what they say of themselves.

    >>> [command.callback.__name__ for command in app().registered_commands]
    ['demo', 'run', 'version']
    """
    import typer

    made = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        help="Standing preference questions over data that keeps moving.",
    )

    @made.command()
    def demo(
        spark: Annotated[bool, typer.Option(help="A stream in Spark, or the engine alone.")] = True,
        seconds: Annotated[
            float | None, typer.Option(min=0, help="Stop then (30 on a terminal, else 5).")
        ] = None,
        rows: Annotated[int | None, typer.Option(min=1, help="Stop after so many rows.")] = None,
        window: Annotated[int, typer.Option(min=1, help="How many rows count.")] = 1_000_000,
        data: Annotated[Data, typer.Option(help="Trades, or random points.")] = "trades",
        dims: Annotated[int, typer.Option(min=1, help="Coordinates of a random point.")] = 3,
        seed: Annotated[int, typer.Option(min=0, help="Another seed, other rows.")] = 1,
        pace: Annotated[int, typer.Option(min=1, help="Rows a second (Spark).")] = 200_000,
    ) -> None:
        """Watch the best rows of a stream change."""
        with _told():
            if spark:
                from skytide.cli.live import Play, play

                play(Play(data, dims, window, seed, pace, rows), seconds)
            else:
                from skytide.cli.replay import replay, scene_of

                replay(scene_of(data, dims, window, seed), rows, seconds)

    @made.command()
    def run(
        job: Annotated[Path, typer.Argument(help="A job file; examples/ has some.")],
        check: Annotated[
            bool, typer.Option("--check", help="Say whether it could run, and do not.")
        ] = False,
        metrics: Annotated[
            str | None, typer.Option(help="Add each micro-batch to this file, as JSON lines.")
        ] = None,
    ) -> None:
        """Run a job: a source, a query and a sink, on Spark. Ctrl-C stops it cleanly."""
        from skytide.cli.job import run_job

        with _told():
            run_job(job, check, metrics)

    @made.command()
    def version() -> None:
        """Print the version."""
        typer.echo(f"skytide {st.__version__}")

    return made


@contextmanager
def _told() -> Iterator[None]:
    """An error of ours is told in its own words, not as a traceback."""
    import typer

    try:
        yield
    except st.SkytideError as error:
        typer.echo(error, err=True)
        raise typer.Exit(1) from error
