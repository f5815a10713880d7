"""Invented market trades.

A chunk of trades is a function of the seed and its number alone, so any part of a stream can be made
without the parts before. What must go on from chunk to chunk is therefore not carried but agreed on:
every chunk takes the same time, and prices follow a slow tide, which is known for every chunk, with
a random walk on top that is tied to the tide at both ends of a chunk.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skytide.data.generators import CHUNK, Floats, at_least, cut, rng_of

if TYPE_CHECKING:
    import pyarrow as pa

SYMBOLS = (
    *("AXOLO", "BRIMM", "CORVA", "DUNEX", "ELDRA", "FJORN"),
    *("GRYLL", "HUSKO", "IVORN", "JUNIP", "KESTR", "LYRRA"),
)
VENUES = ("EAST", "NORTH", "SOUTH", "WEST")

_KIND = 3  # beside the three distributions of points
_OPENING = 1_704_205_800_000_000  # 2024-01-02 14:30 UTC in microseconds
_SPAN = CHUNK * 1_000  # microseconds a chunk takes: a thousand trades a second in the middle
_BURST = 256  # trades that share one pace
_STEP = 1e-4  # of the logarithm of the price, from a trade of a symbol to its next
_TIDES = np.array([29.0, 113.0, 461.0])  # their periods in chunks
_SWELL = np.array([0.01, 0.02, 0.04])  # how far each moves the logarithm of the price


def trades(rows: int, seed: int = 0) -> pa.Table:
    """A table of invented market trades: ts, symbol, price, volume, venue.

    Times increase strictly, now slowly and now in bursts (a thousand a second in the middle);
    each symbol's price wanders in whole cents; volumes have a heavy tail.

    >>> trades(3, seed=1).column_names
    ['ts', 'symbol', 'price', 'volume', 'venue']
    """
    at_least("rows", rows, 0)
    return next(trade_stream(seed, max(rows, 1))).slice(0, rows)


def trade_stream(seed: int = 0, batch: int = 10_000) -> Iterator[pa.Table]:
    """Batches of trades without end: the rows one long `trades` would have given.

    >>> [table.num_rows for _, table in zip(range(2), trade_stream(seed=1, batch=500))]
    [500, 500]
    """
    import pyarrow as pa

    at_least("batch", batch, 1)
    chunks = (trade_chunk(seed, index) for index in itertools.count())
    return (pa.concat_tables(parts).combine_chunks() for parts in cut(chunks, batch))


def trade_chunk(seed: int, index: int) -> pa.Table:
    """The trades from `index * CHUNK` of a stream, without making those before.

    >>> trade_chunk(1, index=1) == trades(2 * CHUNK, seed=1).slice(CHUNK)
    True
    """
    import pyarrow as pa

    rng = rng_of(seed, _KIND, index)
    symbol = rng.integers(len(SYMBOLS), size=CHUNK)
    return pa.table(
        {
            "ts": pa.array(_times(rng, index), pa.timestamp("us", tz="UTC")),
            "symbol": pa.array(SYMBOLS).take(pa.array(symbol)),
            "price": _prices(rng, seed, index, symbol),
            "volume": np.ceil(50 * (1 + rng.pareto(1.5, CHUNK))).astype(np.int64),
            "venue": pa.array(VENUES).take(pa.array(rng.integers(len(VENUES), size=CHUNK))),
        }
    )


def _times(rng: np.random.Generator, index: int) -> NDArray[np.int64]:
    """Microseconds, each later than the one before; the pace changes from burst to burst."""
    pace = np.repeat(np.exp(rng.normal(0, 1, CHUNK // _BURST)), _BURST)
    waited = np.cumsum(rng.exponential(pace))
    waits = (waited * ((_SPAN - CHUNK) / waited[-1])).astype(np.int64)
    times: NDArray[np.int64] = _OPENING + index * _SPAN + waits + np.arange(1, CHUNK + 1)
    return times


def _prices(
    rng: np.random.Generator, seed: int, index: int, symbol: NDArray[np.int64]
) -> NDArray[Any]:
    begin, end = _tide(seed, index), _tide(seed, index + 1)
    part = np.arange(CHUNK) / CHUNK
    path = begin[symbol] + part * (end - begin)[symbol] + _bridge(rng, symbol)
    return np.round(np.exp(path), 2)


def _tide(seed: int, index: int) -> Floats:
    """The logarithm of every symbol's price where a chunk begins."""
    rng = rng_of(seed, _KIND)
    opening = np.log(rng.uniform(95, 105, len(SYMBOLS)))
    phase = rng.uniform(0, 2 * np.pi, (len(SYMBOLS), len(_TIDES)))
    waves: Floats = np.sin(phase + 2 * np.pi * index / _TIDES) - np.sin(phase)
    level: Floats = opening + waves @ _SWELL
    return level


def _bridge(rng: np.random.Generator, symbol: NDArray[np.int64]) -> Floats:
    """A random walk for each symbol, bent so that it ends where it began."""
    order = np.argsort(symbol, kind="stable")
    counts = np.bincount(symbol, minlength=len(SYMBOLS))
    ends = np.cumsum(counts)
    walk = np.concatenate([[0.0], np.cumsum(rng.normal(0, _STEP, CHUNK))])
    begun, drift = walk[ends - counts], walk[ends] - walk[ends - counts]
    rank = np.arange(1, CHUNK + 1) - np.repeat(ends - counts, counts)
    bent = walk[1:] - np.repeat(begun, counts) - rank * np.repeat(drift / counts.clip(1), counts)
    path = np.empty(CHUNK)
    path[order] = bent
    return path
