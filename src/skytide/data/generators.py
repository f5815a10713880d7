"""Seeded generators of benchmark rows.

The three distributions are those of S. Börzsönyi, D. Kossmann and K. Stocker, "The skyline
operator" (ICDE 2001), on which skyline algorithms have been compared ever since.

Rows are made in chunks of a fixed size, each from its own seed. So the same arguments give the
same rows everywhere, a shorter run is the beginning of a longer one, and a stream cut into batches
gives the same rows as one call.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

Distribution = Literal["independent", "correlated", "anti-correlated"]
Floats: TypeAlias = NDArray[np.float64]
# Draws so many candidate points of so many coordinates, as an array (dims, points).
Draw: TypeAlias = Callable[[int, int, np.random.Generator], Floats]

# Changing this, or anything a chunk draws, changes every generated row.
CHUNK = 8192

# --------------------------------------------------------------------------------------
# The classic distributions


def independent(rows: int, dims: int, seed: int = 0) -> Floats:
    """Rows whose coordinates are uniform in [0, 1] and know nothing of each other.

    >>> independent(1_000, 3, seed=1).shape
    (1000, 3)
    """
    return _take("independent", rows, dims, seed)


def correlated(rows: int, dims: int, seed: int = 0) -> Floats:
    """Rows near the diagonal: good in one coordinate is good in all, so skylines are small.

    >>> points = correlated(1_000, 2, seed=1)
    >>> bool(np.corrcoef(points.T)[0, 1] > 0.6)
    True
    """
    return _take("correlated", rows, dims, seed)


def anti_correlated(rows: int, dims: int, seed: int = 0) -> Floats:
    """Rows near the plane across the diagonal: good here is bad there, so skylines are large.

    >>> points = anti_correlated(1_000, 2, seed=1)
    >>> bool(np.corrcoef(points.T)[0, 1] < -0.5)
    True
    """
    return _take("anti-correlated", rows, dims, seed)


def stream(
    distribution: Distribution, dims: int, seed: int = 0, batch: int = 10_000
) -> Iterator[Floats]:
    """Batches of one distribution without end: the rows one long call would have given.

    >>> batches = stream("independent", dims=2, seed=1, batch=300)
    >>> first, second = next(batches), next(batches)
    >>> bool((np.vstack([first, second]) == independent(600, 2, seed=1)).all())
    True
    """
    if distribution not in _DRAWS:
        raise ValueError(f"unknown distribution {distribution!r}. Hint: one of {list(_DRAWS)}")
    at_least("dims", dims, 1)
    at_least("batch", batch, 1)
    chunks = (chunk_of(distribution, dims, seed, index) for index in itertools.count())
    return map(np.concatenate, cut(chunks, batch))


def _take(distribution: Distribution, rows: int, dims: int, seed: int) -> Floats:
    at_least("rows", rows, 0)
    return next(stream(distribution, dims, seed, max(rows, 1)))[:rows]


def chunk_of(distribution: Distribution, dims: int, seed: int, index: int) -> Floats:
    """The rows from `index * CHUNK` of a stream, without making those before.

    >>> points = independent(2 * CHUNK, 2, seed=1)
    >>> bool((chunk_of("independent", 2, 1, index=1) == points[CHUNK:]).all())
    True
    """
    kind = list(_DRAWS).index(distribution)
    return _accepted(_DRAWS[distribution], dims, rng_of(seed, kind, dims, index))


def _accepted(draw: Draw, dims: int, rng: np.random.Generator) -> Floats:
    """One chunk of drawn points, without those that left the unit cube."""
    parts: list[Floats] = []
    while sum(part.shape[1] for part in parts) < CHUNK:
        points = draw(CHUNK, dims, rng)
        parts.append(points[:, ((points >= 0) & (points <= 1)).all(axis=0)])
    return np.ascontiguousarray(np.hstack(parts)[:, :CHUNK].T)


def _draw_independent(count: int, dims: int, rng: np.random.Generator) -> Floats:
    return rng.random((dims, count))


def _draw_correlated(count: int, dims: int, rng: np.random.Generator) -> Floats:
    centre = _peak(dims, (count,), rng)
    reach = np.minimum(centre, 1 - centre)
    return centre + _ring((2 * _peak(12, (dims, count), rng) - 1) * reach)


def _draw_anti_correlated(count: int, dims: int, rng: np.random.Generator) -> Floats:
    centre = 0.25 + 0.5 * _peak(12, (count,), rng)
    reach = np.minimum(centre, 1 - centre)
    return centre + _ring((2 * rng.random((dims, count)) - 1) * reach)


_DRAWS: dict[Distribution, Draw] = {
    "independent": _draw_independent,
    "correlated": _draw_correlated,
    "anti-correlated": _draw_anti_correlated,
}
assert tuple(_DRAWS) == get_args(Distribution)


def _peak(uniforms: int, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Values in [0, 1] with a peak at 0.5: each the mean of so many uniforms."""
    total = rng.random(shape)
    for _ in range(uniforms - 1):
        total += rng.random(shape)
    return total / uniforms


def _ring(shift: Floats) -> Floats:
    """Move each coordinate by its shift and the next one back by it: their sum stays."""
    return shift - np.roll(shift, 1, axis=0)


# --------------------------------------------------------------------------------------
# Shared


def rng_of(seed: int, *key: int) -> np.random.Generator:
    """A generator of its own for every key; equal for equal seed and key.

    >>> rng_of(1, 2, 3).random() == rng_of(1, 2, 3).random()
    True
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def cut(chunks: Iterator[Any], size: int) -> Iterator[list[Any]]:
    """Cut a sequence of sliceable chunks anew: lists of parts that hold `size` rows together.

    >>> next(cut(iter(["abc", "defgh"]), size=5))
    ['abc', 'de']
    """
    chunk = next(chunks)
    while True:
        parts, missing = [], size
        while missing:
            if len(chunk) == 0:
                chunk = next(chunks)
            parts.append(chunk[:missing])
            missing -= len(parts[-1])
            chunk = chunk[len(parts[-1]) :]
        yield parts


def at_least(name: str, value: int, least: int) -> None:
    """Refuse a number that is too small.

    >>> at_least("rows", 3, 0)
    """
    if value < least:
        raise ValueError(f"{name} is {value}. Hint: it must be at least {least}")
