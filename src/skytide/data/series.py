"""Streams of scores for continuous top-k queries.

`uniform-time` and `sin-time` are TIME^U and TIME^R of Section 6.1 of "SAP: Improving Continuous Top-K
Queries over Streaming Data" (Zhu, Wang, Yang, Zheng and Wang, TKDE 2017): scores that know nothing of
the order of arrival, and sin(pi t / 1,000,000) for the t-th row. The others are the worst that can
happen to one algorithm or another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np

from skytide.data.generators import CHUNK, Floats, at_least, rng_of

Series = Literal["uniform-time", "sin-time", "decreasing", "increasing", "constant", "bursts"]

PERIOD = 1_000_000
"""TIME^R rises and falls once in twice so many rows."""

_KIND = 5  # the generator of scores, beside those of points, trades and keys


def scores(series: Series, stop: int, start: int = 0, seed: int = 0) -> Floats:
    """The scores of the rows `start` to `stop` of a stream; any part can be had alone.

    `bursts` are now and then, for some hundred rows, better by 1 than all rows between them, which are
    uniform in [0, 1].

    >>> scores("decreasing", 3)
    array([-1., -2., -3.])
    >>> bool((scores("bursts", 9_000)[8_000:] == scores("bursts", 9_000, start=8_000)).all())
    True
    """
    if series not in _MAKE:
        raise ValueError(f"unknown series {series!r}. Hint: one of {list(_MAKE)}")
    at_least("start", start, 0)
    at_least("stop", stop, start)
    chunks = range(start // CHUNK, -(-stop // CHUNK))
    parts = [_MAKE[series](seed, index) for index in chunks]
    first = start // CHUNK * CHUNK
    return np.concatenate([np.empty(0), *parts])[start - first : stop - first]


def _times(index: int) -> Floats:
    """Of the rows of a chunk, from 1."""
    return np.arange(index * CHUNK + 1, (index + 1) * CHUNK + 1, dtype=np.float64)


def _uniform(seed: int, index: int) -> Floats:
    return rng_of(seed, _KIND, index).random(CHUNK)


def _bursts(seed: int, index: int) -> Floats:
    """One burst a chunk."""
    rng = rng_of(seed, _KIND, index)
    values = rng.random(CHUNK)
    begin, length = rng.integers(CHUNK), rng.integers(50, 500)
    values[begin : begin + length] += 1
    return values


_MAKE: dict[str, Callable[[int, int], Floats]] = {
    "uniform-time": _uniform,
    "sin-time": lambda seed, index: np.sin(np.pi * _times(index) / PERIOD),
    "decreasing": lambda seed, index: -_times(index),
    "increasing": lambda seed, index: _times(index),
    "constant": lambda seed, index: np.zeros(CHUNK),
    "bursts": _bursts,
}
assert tuple(_MAKE) == get_args(Series)
