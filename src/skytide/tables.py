"""Whatever Arrow can read, as an Arrow table."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from skytide.errors import SchemaError
from skytide.values import restored, storable

__all__ = ["to_table"]

_ACCEPTED = (
    "push a pyarrow Table or RecordBatch, a pandas or polars DataFrame, a duckdb relation, "
    "anything with __arrow_c_stream__, a dict of equally long columns, a dict of single values "
    "(one row), a list of dicts, or a 2-d numpy array"
)


def to_table(rows: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """Rows of any accepted kind as an Arrow table; `columns` names those of a 2-d numpy array.

    Arrow data is not copied. What its owner could still write to (numpy, pandas) is. A pandas index
    is dropped. String views and run-end encoded columns are laid out plainly, since Arrow cannot
    take rows from them. Metadata of the schema is dropped.

    >>> to_table([{"price": 1.5, "note": "x"}, {"price": 2.5}]).to_pydict()
    {'price': [1.5, 2.5], 'note': ['x', None]}
    >>> to_table(np.array([[1.0, 2.0]]), columns=["price", "volume"]).column_names
    ['price', 'volume']
    """
    try:
        return _settled(_read(rows, columns))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise SchemaError(f"Arrow cannot read the rows: {error}", _ACCEPTED) from error


def _read(rows: Any, columns: Sequence[str] | None) -> pa.Table:
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, Mapping):
        return _from_mapping(rows)
    if isinstance(rows, np.ndarray):
        return _from_matrix(rows, columns)
    if isinstance(rows, (list, tuple)):
        return _from_dicts(rows)
    if _is_pandas(rows, "DataFrame"):
        return _from_pandas(rows)
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
        return pa.table(rows)
    raise _unreadable(rows)


def _unreadable(rows: Any) -> SchemaError:
    kind = f"{type(rows).__module__}.{type(rows).__qualname__}"
    collect = "collect() it first; or " if hasattr(rows, "collect") else ""
    return SchemaError(f"rows cannot be read from a {kind}", collect + _ACCEPTED)


def _settled(table: pa.Table) -> pa.Table:
    schema = table.schema
    names = schema.names
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise SchemaError(
            f"the rows have more than one column named {', '.join(twice)}", "rename all but one"
        )
    if all(storable(field.type) == field.type for field in schema):
        return table.replace_schema_metadata(None) if schema.metadata else table
    return pa.table([restored(column) for column in table.columns], names=names)


def _is_pandas(rows: Any, name: str) -> bool:
    # Who holds a pandas object has imported pandas: there is no need to do it here.
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(rows, getattr(pandas, name))


def _from_pandas(frame: Any) -> pa.Table:
    if not frame.columns.is_unique:
        twice = map(str, frame.columns[frame.columns.duplicated()].unique())
        raise SchemaError(
            f"the frame has more than one column named {', '.join(twice)}", "rename all but one"
        )
    # Arrow shares memory with pandas, whose owner may write to it later.
    return pa.Table.from_pandas(frame.copy(), preserve_index=False)


def _from_dicts(rows: Sequence[Any]) -> pa.Table:
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise SchemaError(
                f"row {index} of the list is a {type(row).__name__}, not a dict", _ACCEPTED
            )
    names = list(dict.fromkeys(name for row in rows for name in row))
    if rows and not names:
        raise SchemaError(f"the {len(rows)} rows have no columns", _ACCEPTED)
    return pa.table(
        {name: _column(name, [row.get(name) for row in rows]) for name in _texts(names)}
    )


def _texts(names: Sequence[Any]) -> Sequence[str]:
    for name in names:
        if not isinstance(name, str):
            raise SchemaError(f"the column name {name!r} is not text", "name columns with text")
    return names


def _from_mapping(columns: Mapping[Any, Any]) -> pa.Table:
    _texts(list(columns))
    single = [name for name, values in columns.items() if _is_single(values)]
    if single and len(single) < len(columns):
        many = next(name for name in columns if name not in single)
        raise SchemaError(
            f"{single[0]!r} is a single value, but {many!r} has several",
            "give every column as many values, or one row with a list in it as [{...}]",
        )
    if single:
        columns = {name: [_unwrapped(value)] for name, value in columns.items()}
    arrays = {name: _column(name, values) for name, values in columns.items()}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise SchemaError(
            f"the columns are not equally long: {lengths}", "give every column as many values"
        )
    return pa.table(arrays)


def _is_single(values: Any) -> bool:
    if isinstance(values, (str, bytes, Mapping, pa.Scalar)):
        return True
    return getattr(values, "ndim", 1) == 0 or not hasattr(values, "__len__")


def _unwrapped(value: Any) -> Any:
    return value[()] if isinstance(value, np.ndarray) else value


def _column(name: str, values: Any) -> Any:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if isinstance(values, (set, frozenset)):
        raise SchemaError(f"the column {name!r} is a set, which has no order", "give a list")
    if _is_pandas(values, "Series") or isinstance(values, np.ndarray):
        values = values.copy()
    elif hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    elif not hasattr(values, "__arrow_c_array__"):
        values = list(values)
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise SchemaError(
            f"the column {name!r} has no one type: {error}", "give its values one type"
        ) from error


def _from_matrix(matrix: Any, columns: Sequence[str] | None) -> pa.Table:
    if matrix.ndim != 2:
        raise SchemaError(f"the numpy array has {matrix.ndim} dimensions, not 2", _ACCEPTED)
    if columns is None:
        raise SchemaError(
            "a numpy array has no column names",
            'push a dict instead: {"price": array[:, 0], "volume": array[:, 1]}',
        )
    if matrix.shape[1] != len(columns):
        raise SchemaError(
            f"the numpy array has {matrix.shape[1]} columns, "
            f"but {len(columns)} are needed: {', '.join(columns)}",
            "give it these columns in this order, or push a dict of arrays",
        )
    # One transposed copy, of which Arrow then shares the rows.
    return pa.table([pa.array(column) for column in matrix.T.copy()], names=list(columns))
