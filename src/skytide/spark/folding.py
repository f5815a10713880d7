"""From a change table in Spark back to the answer; `skytide.fold` does the same for Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

import skytide as st

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["AT", "BATCH", "REASONS", "TYPE", "fold", "quoted", "row_columns", "sign"]

TYPE, AT, REASONS = "_change_type", "_change_at", "_reasons"
BATCH = "change_batch"  # the folders of a change table: one a micro-batch


def fold(changes: DataFrame | str) -> DataFrame:
    """The answer that the changes lead to from an empty one.

    Equal rows are counted: of three inserts and one delete of the same row two rows are left, in
    no order. Rows set aside are left out. `changes` is a DataFrame, or the path of a change table
    written by `ParquetSink`. Reading the answer fails if a row is deleted more often than it was
    inserted, since then the beginning is missing. One shuffle of the changes by row.

    >>> fold("deals.parquet").orderBy("price").show()  # doctest: +SKIP
    """
    table = _read(changes) if isinstance(changes, str) else changes
    _check(table.columns)
    names = row_columns(table.columns)
    counted = table.where(F.col(TYPE) != "reject").groupBy(*map(quoted, names))
    left = counted.agg(F.sum(sign()).alias(AT))
    return left.withColumn(AT, F.explode(_copies(F.col(AT)))).drop(AT)


def _read(path: str) -> DataFrame:
    from pyspark.sql import SparkSession

    return SparkSession.active().read.parquet(path)


def _check(columns: list[str]) -> None:
    missing = [name for name in (TYPE, AT) if name not in columns]
    if missing:
        raise st.SchemaError(
            f"a change table has the columns {TYPE} and {AT}; {' and '.join(missing)} is missing",
            "fold what query.changes(...) gave",
        )


def _copies(count: Column) -> Column:
    """A list of as many entries as there are copies of the row, none for none."""
    wrong = F.raise_error(
        F.lit(
            "a row is deleted more often than it was inserted\n"
            "Hint: fold the changes from the first one on"
        )
    ).cast("bigint")
    sound = F.when(count < 0, wrong).otherwise(count)
    return F.when(sound > 0, F.sequence(F.lit(1), sound)).otherwise(F.array().cast("array<bigint>"))


def row_columns(columns: list[str]) -> list[str]:
    """The columns of the rows themselves, without what a change table adds to them.

    >>> row_columns(["_change_type", "_change_at", "price", "change_batch"])
    ['price']
    """
    return [name for name in columns if name not in (TYPE, AT, REASONS, BATCH)]


def quoted(name: str) -> Column:
    """The column of this name, whatever is in the name.

    >>> quoted("a.b")  # doctest: +SKIP
    """
    return F.col("`" + name.replace("`", "``") + "`")


def sign() -> Column:
    """1 where a row enters, -1 where it leaves.

    >>> sign()  # doctest: +SKIP
    """
    return F.when(F.col(TYPE) == "insert", 1).otherwise(-1)
