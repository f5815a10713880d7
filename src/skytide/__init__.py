"""skytide: which rows are the best right now, exactly, while the data moves.

>>> import skytide as st
>>> best = st.skyline(st.low("price"), st.high("volume")).over(st.last(3))
>>> live = best.open()
>>> live.push({"price": [9, 7, 8], "volume": [1, 5, 6]})
>>> live.answer().to_pylist()
[{'price': 7, 'volume': 5}, {'price': 8, 'volume': 6}]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skytide.errors import (
    BadRows,
    JobError,
    LateRows,
    MissingExtra,
    QueryError,
    SchemaError,
    SkytideError,
    StateError,
)
from skytide.query import (
    Query,
    everything,
    high,
    last,
    latest,
    lifetime,
    low,
    skyband,
    skyline,
    top,
    top_pairs,
)

if TYPE_CHECKING:
    from skytide.engine import Engine
    from skytide.folding import fold
    from skytide.opening import load
    from skytide.watches import Watch

__version__ = "0.1.0"

__all__ = [
    "BadRows",
    "Engine",
    "JobError",
    "LateRows",
    "MissingExtra",
    "Query",
    "QueryError",
    "SchemaError",
    "SkytideError",
    "StateError",
    "Watch",
    "everything",
    "fold",
    "high",
    "last",
    "latest",
    "lifetime",
    "load",
    "low",
    "skyband",
    "skyline",
    "top",
    "top_pairs",
]

_LAZY = {"Engine": "engine", "fold": "folding", "load": "opening", "Watch": "watches"}


def __getattr__(name: str) -> Any:
    """Import what needs pyarrow and numba when it is first used, not before."""
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(f"skytide.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'skytide' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
