"""Real data: files of rows, and the three scores that top-k papers rank them by.

The scores are those of Section 6.1 of "SAP: Improving Continuous Top-K Queries over Streaming Data"
(TKDE 2017): of stock trades the turnover, of taxi trips the speed, of sky observations the distance to
a point. They are functions of arrays, to be used as `high(turnover, "price", "volume")`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skytide.data.generators import Floats

if TYPE_CHECKING:
    import pyarrow as pa


def read_rows(path: str | Path, columns: list[str] | None = None) -> pa.Table:
    """The rows of a Parquet file, or of a CSV file with a header, also a gzipped one, in their order.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "trades.csv"
    ...     _ = file.write_text("price,volume\\n2.5,100\\n3.5,200\\n")
    ...     read_rows(file, ["price"]).to_pylist()
    [{'price': 2.5}, {'price': 3.5}]
    """
    names = Path(path).name.lower().removesuffix(".gz")
    if names.endswith((".parquet", ".pq")):
        import pyarrow.parquet

        return pyarrow.parquet.read_table(path, columns=columns)
    if names.endswith((".csv", ".txt")):
        import pyarrow.csv

        convert = pyarrow.csv.ConvertOptions(include_columns=columns or [])
        return pyarrow.csv.read_csv(path, convert_options=convert)
    raise ValueError(
        f"{path} is neither Parquet nor CSV by its name. Hint: .parquet, .csv or .csv.gz"
    )


def turnover(price: Any, volume: Any) -> Floats:
    """Price times volume.

    >>> turnover(np.array([2.0, 3.0]), np.array([10, 5]))
    array([20., 15.])
    """
    value: Floats = np.multiply(price, volume, dtype=np.float64)
    return value


def speed(distance: Any, begin: Any, end: Any) -> Floats:
    """Distance over duration, in units of distance an hour; 0 for trips that took no time or less.

    >>> times = np.array(["2024-01-01T10:00", "2024-01-01T10:30"], "M8[s]")
    >>> speed(np.array([5.0]), times[:1], times[1:])
    array([10.])
    """
    hours = (np.asarray(end) - np.asarray(begin)) / np.timedelta64(1, "h")
    fine = hours > 0
    result: Floats = np.where(fine, distance, 0.0) / np.where(fine, hours, 1.0)
    return result


@dataclass(frozen=True)
class DistanceTo:
    """The distance of points in the plane to one of them; a preference for `low`.

    >>> DistanceTo(0.0, 0.0)(np.array([3.0]), np.array([4.0]))
    array([5.])
    """

    x: float
    y: float

    def __call__(self, x: Any, y: Any) -> Floats:
        away: Floats = np.hypot(np.subtract(x, self.x), np.subtract(y, self.y), dtype=np.float64)
        return away
