"""Data to try skytide on: seeded generators, the same rows for the same arguments everywhere."""

from skytide.data.generators import (
    Distribution,
    anti_correlated,
    correlated,
    independent,
    stream,
)
from skytide.data.market import trade_stream, trades
from skytide.data.spans import KINDS, span

__all__ = [
    "KINDS",
    "Distribution",
    "anti_correlated",
    "correlated",
    "independent",
    "span",
    "stream",
    "trade_stream",
    "trades",
]
