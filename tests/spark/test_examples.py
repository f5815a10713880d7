"""The job files in examples/ can be run, and the demo plays."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from skytide import cli
from skytide.spark.folding import fold
from skytide.spark.jobs import read_job

pytestmark = pytest.mark.slow

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_can_be_read(path, monkeypatch):
    monkeypatch.setenv("KAFKA", "localhost:9092")
    assert read_job(path).name == path.stem
    assert f"skytide run examples/{path.name}" in path.read_text(), "says how to run it"


def run(path, folder, **replaced):
    """Run an example in a folder of its own, with fewer rows."""
    # The JVM of these tests does not follow us into another folder.
    text = path.read_text().replace('"build/', f'"{folder}/')
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    file = folder / path.name
    file.write_text(text)
    said = CliRunner().invoke(cli.app(), ["run", str(file)])
    assert said.exit_code == 0, said.output
    return said.output


def example(name):
    return next(path for path in EXAMPLES if path.stem == name)


def test_deals(spark, tmp_path):
    fewer = {"rows = 2_000_000": "rows = 20_000", "200_000": "10_000"}
    assert "after 20,000 rows" in run(example("deals"), tmp_path, **fewer)
    assert fold(str(tmp_path / "deals" / "changes")).count() > 0


def test_watch(spark, tmp_path):
    ends = {
        "rowsPerSecond = 50_000": "rows = 20_000",
        "\n[source]\n": '\ntrigger = "available now"\n\n[source]\n',
    }
    said = run(example("watch"), tmp_path, **ends)
    assert "the best rows now" in said
    assert "AXOLO" in said


def test_the_demo_plays_on_spark(spark):
    arguments = ["demo", "--rows", "20000", "--window", "1000", "--pace", "10000"]
    said = CliRunner().invoke(cli.app(), arguments)
    assert said.exit_code == 0, said.output
    assert "You saw 20,000 trades go by" in said.output
    assert "the best trades now" in said.output
    assert "Try next" in said.output
