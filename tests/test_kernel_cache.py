"""Compiled kernels are found again wherever the package lies, and never once it has changed."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src"
PROGRAM = """
import numpy, skytide.algorithms.topk.admission as a
assert ".zip" in a.__file__
print(a.admitted(numpy.arange(9.0), 1))
"""


def archived(path, more=""):
    """The package as a zip, its kernels changed by a remark."""
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(SOURCES.glob("skytide/**/*.py")):
            text = file.read_text() + more * (file.name == "admission.py")
            archive.writestr(str(file.relative_to(SOURCES)), text)
    return path


def compiled(archive, cache):
    """The kernels in the cache after a process has used the package of this archive."""
    environment = {**os.environ, "PYTHONPATH": str(archive), "NUMBA_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True)
    return {file: file.stat().st_mtime_ns for file in cache.rglob("*.nbc")}


@pytest.mark.slow
def test_the_sources_say_where_compiled_kernels_are(tmp_path):
    first = compiled(archived(tmp_path / "a" / "skytide.zip"), tmp_path / "cache")
    assert first
    assert compiled(archived(tmp_path / "b" / "skytide.zip"), tmp_path / "cache") == first
    changed = archived(tmp_path / "c" / "skytide.zip", "\n# changed\n")
    assert len(compiled(changed, tmp_path / "cache")) == 2 * len(first)
