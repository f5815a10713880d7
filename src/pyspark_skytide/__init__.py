"""What makes `spark.read.format("skytide")` work: Spark imports every top-level `pyspark_*` at start.

So this module imports nothing but Spark's own interface until the source is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from skytide.spark.source import BatchReader, StreamReader

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """Generated rows at a chosen pace; see `skytide.spark.source` for the options.

    >>> DefaultSource.name()
    'skytide'
    """

    @classmethod
    def name(cls) -> str:
        """The name that `format` takes.

        >>> DefaultSource.name()
        'skytide'
        """
        return "skytide"

    def schema(self) -> str:
        """The columns of the rows, as Spark writes them.

        >>> DefaultSource({"kind": "independent", "dims": "2"}).schema()
        'x1 double, x2 double'
        """
        from skytide.spark.source import Options, schema_of

        return schema_of(Options.parse(self.options))

    def reader(self, schema: Any) -> BatchReader:
        """Reads all rows at once.

        >>> reader = DefaultSource({"rows": "10", "partitions": "2"}).reader(None)
        >>> [(part.start, part.stop) for part in reader.partitions()]
        [(0, 5), (5, 10)]
        """
        from skytide.spark.source import BatchReader, Options

        return BatchReader(Options.parse(self.options))

    def streamReader(self, schema: Any) -> StreamReader:  # noqa: N802
        """Reads the rows at their pace.

        >>> DefaultSource({"rows": "10"}).streamReader(None).initialOffset()
        {'row': 0}
        """
        from skytide.spark.source import Options, StreamReader

        return StreamReader(Options.parse(self.options))
