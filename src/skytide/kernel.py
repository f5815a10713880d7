"""The decorator of all kernels: compiled by numba, cached on disk, safe to share.

A kernel releases the GIL, divides like numpy (no ZeroDivisionError), and is cached under a stamp of
*all* kernel sources: numba's own stamp covers only the kernel's own file, so a caller would be served
stale after a callee in another file changed.  Where no cache folder can be written, kernels are
compiled afresh in every process.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from numba.core import caching, config, event

P = ParamSpec("P")
R = TypeVar("R")

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ROOT = Path(__file__).parent


@cache
def sources_stamp() -> str:
    """A hash of every source file that may hold kernels; in a zip, of every file."""
    digest = hashlib.sha256()
    for archive in (path for path in _ROOT.parents if path.is_file()):
        for info in zipfile.ZipFile(archive).infolist():
            digest.update(f"{info.filename} {info.CRC}".encode())
    for pattern in ("kernel.py", "dominance.py", "structures/*.py", "algorithms/**/*.py"):
        for file in sorted(_ROOT.glob(pattern)):
            digest.update(file.name.encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


class _Stamped:
    """Mixed into numba's own cache locators: theirs say where, ours says how fresh."""

    def get_source_stamp(self) -> str:
        return sources_stamp()


class _BySources(_Stamped):
    """Of numba's locators: the sources name the folder, and not the place that they lie in.

    On a cluster every application unpacks the package somewhere else, or leaves it in a zip.
    """

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """The folder for kernels of this file, in the folder for all."""
        folder = Path(py_file).parent
        if not folder.is_relative_to(_ROOT):
            return str(super().get_suitable_cache_subpath(py_file))  # type: ignore[misc]
        return ".".join(("skytide", *folder.relative_to(_ROOT).parts, sources_stamp()[:16]))

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """A locator for a function, or None; numba's own knows no files in archives."""
        if not Path(py_file).is_relative_to(_ROOT):
            return super().from_function(py_func, py_file)  # type: ignore[misc]
        locator: Any = cls(py_func, py_file)  # type: ignore[call-arg]
        try:
            locator.ensure_cache_path()
        except OSError:
            return None
        return locator


class InUserFolder(_BySources, caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """The folder named by NUMBA_CACHE_DIR."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """A locator for a function, or None."""
        return super().from_function(py_func, py_file) if config.CACHE_DIR else None


class InPycache(_Stamped, caching.InTreeCacheLocator):  # type: ignore[misc]
    """__pycache__ beside the sources."""


class InHome(_BySources, caching.UserWideCacheLocator):  # type: ignore[misc]
    """The user's own cache folder, when the package is installed read-only."""


@contextlib.contextmanager
def _stamped_locators() -> Iterator[None]:
    """Let numba choose among our locators while one kernel is being declared."""
    before = config.CACHE_LOCATOR_CLASSES
    names = (InUserFolder, InPycache, InHome)
    config.CACHE_LOCATOR_CLASSES = ",".join(f"{__name__}.{c.__name__}" for c in names)
    try:
        yield
    finally:
        config.CACHE_LOCATOR_CLASSES = before


class _Announcer(event.Listener):  # type: ignore[misc]
    """Says on a terminal, once, that the wait is for compilation and will not come again."""

    def on_start(self, event: Any) -> None:
        self.on_start = self.on_end  # type: ignore[method-assign]
        if sys.stderr.isatty():
            sys.stderr.write("skytide: compiling its kernels, once on this machine (some 20 s)\n")

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


event.register("numba:compile", _Announcer())


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` with numba, once for each combination of argument types.

    >>> @kernel
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> twice(1.5)
    3.0
    """
    return _compiled(function)


def direct(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel, to be called from Python with arguments whose types never change.

    numba looks at the types of all arguments at every call, which for a state of forty arrays takes
    5 of 7 µs.  Here the first call decides, and the others go to the compiled code at once.  So the
    caller answers for it that arrays are C-contiguous and of one type: see ``rows_for_kernels``.

    >>> @direct
    ... @kernel
    ... def thrice(x: float) -> float:
    ...     return 3 * x
    >>> thrice(1.5), thrice(2.5)
    (4.5, 7.5)
    """
    if config.DISABLE_JIT:
        return function
    dispatcher: Any = function
    compiled: list[Callable[P, R]] = []

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        assert not named
        if not compiled:
            types = tuple(numba.typeof(argument) for argument in arguments)
            dispatcher.compile(types)
            compiled.append(dispatcher.overloads[types].entry_point)
        return compiled[0](*arguments, **named)

    return call


def rows_for_kernels(values: Any, positions: Any, labels: Any) -> tuple[Floats, Ints, Ints]:
    """Rows as :func:`direct` calls take them; themselves if they are so already."""
    return (
        np.ascontiguousarray(values, np.float64),
        np.ascontiguousarray(positions, np.int64),
        np.ascontiguousarray(labels, np.int64),
    )


def part(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that only kernels call.

    No wrapper for calls from Python is compiled, which for states of thirty arrays costs more than
    the code itself, and no references to arrays are counted: the sliding skyline's kernels compile
    in 19 s of CPU time instead of 37 s.  So it must not do what counts references behind our back:
    allocate, assign an array to a slice, loop over an array itself (it would be freed too often).
    """
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A part that becomes a piece of every kernel that calls it.

    A call hands a state over array by array, seven words each: some 50 ns for a state of twenty, which
    is more than a step of a heap.  For what is called for each row and is short.  Loops over whole
    blocks had better stay parts: they become SIMD more readily in a function of their own.
    """
    return _compiled(
        function, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False, forceinline=True
    )


def _compiled(function: Callable[P, R], **options: bool) -> Callable[P, R]:
    compiled: Any = numba.njit(nogil=True, error_model="numpy", **options)(function)
    if not config.DISABLE_JIT:
        # RuntimeError: no writable folder, or a source that is no file (a notebook cell).
        with contextlib.suppress(RuntimeError), _stamped_locators():
            compiled.enable_caching()
    return compiled  # type: ignore[no-any-return]
