"""The demo plays, reports, stops when told; first with a stand-in for the engine, then for real."""

import re
import sys
from types import SimpleNamespace

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import skytide
from skytide import cli, data
from skytide.cli import replay


class StandIn:
    """Query, live engine and watch in one: the last twelve rows pushed are the answer."""

    def __init__(self):
        self.seen = 0
        self.table = None

    def __str__(self):
        return "the last twelve rows"

    def open(self):
        return self

    def watch(self):
        return self

    def push(self, table):
        self.seen += table.num_rows
        self.table = table

    def answer(self):
        return self.table.slice(max(0, self.table.num_rows - 12))

    def changes(self):
        rows = self.table.slice(0, 2).append_column("_change_type", [["insert", "delete"]])
        return rows.append_column("_change_at", [[self.seen - 1, self.seen]])

    def stats(self):
        return SimpleNamespace(seen=self.seen, kept=345, answer=12, seconds={"push": 0.1})


def scene(tables=None):
    tables = data.trade_stream(seed=1, batch=100) if tables is None else iter(tables)
    return replay.Scene(StandIn(), tables, "trades", "price")


def interrupted(after):
    """A stream that is broken off by Ctrl-C."""
    for table, _ in zip(data.trade_stream(seed=1, batch=100), range(after), strict=False):
        yield table
    raise KeyboardInterrupt


@pytest.fixture
def terminal(monkeypatch):
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "100"}.items():
        monkeypatch.setenv(name, value)


def test_off_a_terminal_it_reports_in_plain_lines(capsys):
    replay.replay(scene(), rows=950, seconds=None)
    report = capsys.readouterr().out
    assert "\x1b" not in report
    assert "950 trades seen   345 kept   12 best" in report
    assert "M rows/s" in report
    assert "and 4 more" in report
    assert "You saw 950 trades" in report
    assert "Try next" in report


def test_on_a_terminal_it_shows_the_changes_too(capsys, terminal):
    replay.replay(scene(), rows=950, seconds=None)
    screen = capsys.readouterr().out
    assert "\x1b" in screen
    assert "what entered (+) and left (-) last" in screen
    assert re.search(r"\n\s*\+ .*\n\s*- ", screen)
    assert "_change_at" not in screen


def test_it_ends_by_itself(capsys):
    replay.replay(scene(), rows=None, seconds=0.05)
    assert "Try next" in capsys.readouterr().out


def test_one_push_may_be_all(capsys):
    replay.replay(scene(), rows=30, seconds=None)
    assert "30 trades seen" in capsys.readouterr().out


def test_an_interrupt_ends_it_with_what_was_seen(capsys, monkeypatch):
    monkeypatch.setattr(
        replay.Replay, "push_for", lambda self, _: self.live.push(next(self.tables)) or True
    )
    replay.replay(scene(interrupted(after=4)), rows=None, seconds=60)
    assert "You saw 400 trades" in capsys.readouterr().out


def test_an_interrupt_before_the_first_frame_is_clean(capsys):
    replay.replay(scene(interrupted(after=2)), rows=None, seconds=60)
    assert "Traceback" not in capsys.readouterr().out


@pytest.mark.parametrize("rows", [None, 1, 99, 100, 101, 250, 300])
def test_first_cuts_a_stream_exactly(rows):
    tables = [data.trades(100, seed) for seed in range(3)]
    kept = list(replay._first(rows, tables))
    assert all(table.num_rows for table in kept)
    assert pa.concat_tables(kept) == pa.concat_tables(tables).slice(0, rows)


def test_version():
    run = CliRunner().invoke(cli.app(), ["version"])
    assert run.output == f"skytide {skytide.__version__}\n"


@pytest.mark.parametrize("arguments", [["demo", "--rows", "0"], ["demo", "--data", "gaussian"]])
def test_bad_options_are_refused(arguments):
    run = CliRunner().invoke(cli.app(), arguments)
    assert run.exit_code == 2
    assert arguments[1] in run.output


@pytest.mark.parametrize("library", ["typer", "rich"])
def test_a_missing_library_is_named_with_the_remedy(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(SystemExit, match=rf"needs {library}.\nHint: pip install 'skytide\[cli\]'"):
        cli.main()


@pytest.mark.parametrize("arguments", [[], ["--data", "anti-correlated", "--dims", "2"]])
def test_the_engine_itself_plays(arguments):
    run = CliRunner().invoke(cli.app(), ["demo", "--no-spark", "--rows", "30000", *arguments])
    assert run.exit_code == 0, run.output
    assert "You saw 30,000" in run.output
