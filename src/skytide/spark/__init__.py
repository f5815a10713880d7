"""skytide on Spark: the two verbs of a query, for DataFrames.

`query.answer(df)` and `query.changes(stream)` come here when they are given Spark's DataFrames.
"""

from __future__ import annotations

from skytide.spark.stream import stream_changes as changes

__all__ = ["changes"]
