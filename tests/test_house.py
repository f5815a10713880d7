"""The rules of the house that no other tool checks."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import skytide

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
HEAVY = {"numba", "pandas", "polars", "pyarrow", "pyspark", "sqlglot", "starlette", "typer"}
ALLOCATORS = {"np.empty", "np.zeros", "np.ones", "np.full", "np.arange", "np.array", "np.sort"}
MAX_LINES_OF_FILE = 600
MAX_LINES_OF_FUNCTION = 60


def test_importing_skytide_is_light():
    code = "import sys, skytide; print(*{name.split('.')[0] for name in sys.modules})"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert HEAVY.isdisjoint(run.stdout.split())


@pytest.mark.parametrize("name", skytide.__all__)
def test_public_names_are_explained(name):
    public = getattr(skytide, name)
    if isinstance(public, str):  # __version__
        return
    assert public.__doc__, "has no docstring"
    if not (isinstance(public, type) and issubclass(public, Exception)):
        assert ">>>" in public.__doc__, "has no example"


def test_version_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert skytide.__version__ == project["version"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_help_lists_every_target():
    run = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    listed = re.findall(r"^ +make (\S+) +\S", run.stdout, re.MULTILINE)
    assert sorted(listed) == sorted(targets.split())


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_short(path):
    text = path.read_text()
    assert len(text.splitlines()) <= MAX_LINES_OF_FILE
    long = [
        f"{node.name}, line {node.lineno}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno >= MAX_LINES_OF_FUNCTION
    ]
    assert not long


def parts_of_kernels():
    """All functions that are compiled without reference counting."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                if any(getattr(one, "id", None) == "part" for one in node.decorator_list):
                    yield path, node


def test_parts_of_kernels_do_nothing_that_counts_references():
    """Looping over an array frees it once too often, and some process crashes some day."""
    found = []
    for path, part in parts_of_kernels():
        for node in ast.walk(part):
            if isinstance(node, ast.For) and not ast.unparse(node.iter).startswith("range("):
                found.append(f"{path.name} {node.lineno}: for ... in {ast.unparse(node.iter)}")
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ALLOCATORS:
                found.append(f"{path.name} {node.lineno}: {ast.unparse(node)}")
    assert not found


def test_the_examples_of_the_readme_run():
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert examples
    for example in examples:
        exec(example, {})
