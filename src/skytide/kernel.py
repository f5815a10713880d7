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
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from numba.core import caching, config, event

P = ParamSpec("P")
R = TypeVar("R")

_ROOT = Path(__file__).parent


@cache
def sources_stamp() -> str:
    """A hash of every source file that may hold kernels."""
    digest = hashlib.sha256()
    for pattern in ("kernel.py", "dominance.py", "structures/*.py", "algorithms/**/*.py"):
        for file in sorted(_ROOT.glob(pattern)):
            digest.update(file.name.encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


class _Stamped:
    """Mixed into numba's own cache locators: theirs say where, ours says how fresh."""

    def get_source_stamp(self) -> str:
        return sources_stamp()


class InUserFolder(_Stamped, caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """The folder named by NUMBA_CACHE_DIR."""


class InPycache(_Stamped, caching.InTreeCacheLocator):  # type: ignore[misc]
    """__pycache__ beside the sources."""


class InHome(_Stamped, caching.UserWideCacheLocator):  # type: ignore[misc]
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
