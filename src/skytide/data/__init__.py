"""Data to try skytide on: seeded generators, the same rows for the same arguments everywhere."""

from skytide.data.generators import (
    Distribution,
    anti_correlated,
    correlated,
    independent,
    stream,
    trade_stream,
    trades,
)

__all__ = [
    "Distribution",
    "anti_correlated",
    "correlated",
    "independent",
    "stream",
    "trade_stream",
    "trades",
]
