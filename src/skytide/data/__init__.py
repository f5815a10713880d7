"""Data to try skytide on: generators, which give the same rows everywhere, and real files."""

from skytide.data.files import DistanceTo, read_rows, speed, turnover
from skytide.data.generators import (
    Distribution,
    anti_correlated,
    correlated,
    independent,
    stream,
)
from skytide.data.market import trade_stream, trades
from skytide.data.series import Series, scores
from skytide.data.spans import KINDS, span

__all__ = [
    "KINDS",
    "DistanceTo",
    "Distribution",
    "Series",
    "anti_correlated",
    "correlated",
    "independent",
    "read_rows",
    "scores",
    "span",
    "speed",
    "stream",
    "trade_stream",
    "trades",
    "turnover",
]
