"""Scores that a Python function gives: arrays in, one number a row out, and nothing taken on trust."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from skytide.errors import QueryError, SchemaError
from skytide.operations import Resolve
from skytide.preferences import Score
from skytide.values import EXACT_INTEGER


class ScoredColumns:
    """A score as the reader of rows wants it: like an expression, it gives a column of numbers.

    >>> table = pa.table({"bid": [1.0, 2.0], "ask": [4.0, 3.0]})
    >>> ScoredColumns(Score(np.add, ("bid", "ask"))).evaluate_noting(table.column)[0].to_pylist()
    [5.0, 5.0]
    """

    def __init__(self, score: Score) -> None:
        self._score = score

    def evaluate_noting(self, resolve: Resolve) -> tuple[Any, dict[str, Any]]:
        """The scores of all rows; NaN where the function gives NaN.  Nothing is inexact."""
        columns = [_array(resolve(name)) for name in self._score.columns]
        if not len(columns[0]):
            return pa.array([], pa.float64()), {}  # a function need not stand having no rows
        return pa.array(self._numbers(self._called(columns), len(columns[0]))), {}

    def _called(self, columns: list[Any]) -> Any:
        try:
            return self._score.function(*columns)
        except Exception as error:
            raise QueryError(
                f"the score {self._score} raised {type(error).__name__}: {error}",
                "it is called with one numpy array for each of its columns",
            ) from error

    def _numbers(self, scores: Any, rows: int) -> Any:
        try:
            numbers = np.asarray(scores)
            if numbers.dtype.kind not in "fiub":
                raise TypeError(f"an array of {numbers.dtype}")
            _check_exact(numbers)
            numbers = numbers.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise SchemaError(
                f"the score {self._score} did not return numbers: {error}",
                "return a numpy array of one number a row",
            ) from error
        if numbers.shape != (rows,):
            raise SchemaError(
                f"the score {self._score} returned an array of shape {numbers.shape} "
                f"for {rows:,} rows",
                "return a numpy array of one number a row",
            )
        return numbers


def _check_exact(numbers: Any) -> None:
    if numbers.dtype.kind in "iu" and numbers.size:
        if int(numbers.max()) > EXACT_INTEGER or int(numbers.min()) < -EXACT_INTEGER:
            raise ValueError("integers that float64 cannot hold exactly; return float64")


def _array(column: Any) -> Any:
    """The column as a numpy array that cannot be written to: what is pushed stays as it is."""
    array = column.to_numpy() if isinstance(column, pa.ChunkedArray) else np.asarray(column)
    array.flags.writeable = False
    return array
