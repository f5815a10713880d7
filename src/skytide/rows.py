"""Rows in: any table becomes the matrix of its preferences, the time of its rows and itself.

Whatever `skytide.tables.to_table` reads can be pushed. The first push fixes the columns and their
types; later pushes are brought to it or refused. A row with a cell that has no place in an order
(null, NaN, or a number that float64 cannot hold) is refused with all its fellows, or set aside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skytide.errors import BadRows, SchemaError, did_you_mean
from skytide.expressions import INEXACT, Expression, parse
from skytide.preferences import Preference, plain_column, sql_name
from skytide.query import LastTime, Query, TopPairs
from skytide.scores import ScoredColumns
from skytide.tables import to_table
from skytide.values import EXACT_INTEGER, MOMENTS, doubles, kind, plain, storable, ticks
from skytide.widening import widens

__all__ = ["Batch", "Reader", "to_table"]

REASONS = "_reasons"

_MANY = 4096
"""So many rows are worth a look at their scores before they are read."""

_NULL = "null"
_NAN = "NaN"
_DROP = "drop these rows, or fill their cells, before the push"
_FAR = "outside the years 1678 to 2262, which int64 nanoseconds can hold"

_ORDERED = {"boolean", "integer", "float", "decimal", "null", *MOMENTS}


class Batch(NamedTuple):
    """What was read of one push.

    `table` is the rows themselves, `values` the (rows, preferences) matrix in which lower is always
    better, `labels` the time of each row in nanoseconds since 1970, or None if the window has no
    clock. For pairs the matrix has a column for each of `query.value_columns`, as they are.

    >>> from skytide.query import everything, high, skyline
    >>> batch = Reader(skyline(high("volume")).over(everything())).read({"volume": [7, 8]})
    >>> batch.values.tolist(), batch.labels
    ([[-7.0], [-8.0]], None)
    """

    table: pa.Table
    values: NDArray[np.float64]
    labels: NDArray[np.int64] | None


class Reader:
    """Reads the pushes of one engine: fixes the schema with the first, holds the others to it.

    A read that fails leaves the reader as it was.

    >>> from skytide.query import everything, low, skyline
    >>> reader = Reader(skyline(low("price")).over(everything()))
    >>> reader.read({"price": [1.5, 0.5], "note": ["x", "y"]}).values.tolist()
    [[1.5], [0.5]]
    >>> reader.schema.names
    ['price', 'note']
    """

    def __init__(self, query: Query, schema: pa.Schema | None = None) -> None:
        self._query = query
        self._plan = None if schema is None else _Plan(query, schema)

    @property
    def schema(self) -> pa.Schema | None:
        """The columns and types fixed by the first push, or None before it.

        >>> from skytide.query import everything, low, skyline
        >>> Reader(skyline(low("price")).over(everything())).schema is None
        True
        """
        return None if self._plan is None else self._plan.schema

    def read(self, rows: Any) -> Batch:
        """Read rows of any accepted kind; raises BadRows if any of them is bad.

        >>> from skytide.query import everything, low, skyline
        >>> reader = Reader(skyline(low("price")).over(everything()))
        >>> reader.read({"price": [1.5, None]})
        Traceback (most recent call last):
        skytide.errors.BadRows: 1 bad cell in 1 row; nothing of this push was taken in
          price: 1 null (row 1)
        Hint: drop these rows, or fill: COALESCE(price, 0)
        """
        plan, batch, cells = self._examine(rows)
        if cells:
            raise _bad_rows(cells)
        self._fix(plan, batch.table.num_rows)
        return batch

    def plain_scores(self, rows: Any) -> tuple[pa.Table, NDArray[np.float64], int] | None:
        """The rows as a table and their one preference as it is, with its sign, if it is many float64.

        None before the first push, and for anything that has to be computed, or looked at for nulls.

        >>> from skytide.query import high, last, top
        >>> reader = Reader(top(1, high("x")).over(last(5)))
        >>> first, more = ({"x": np.arange(float(m))} for m in (9, 5_000))
        >>> _ = reader.read(first)
        >>> reader.plain_scores(first) is None, reader.plain_scores(more)[2]
        (True, -1)
        """
        plan = self._plan
        if plan is None or _count(rows) < _MANY:
            return None
        if not isinstance(rows, pa.Table) or not plan.fits(rows):
            rows = plan.conform(to_table(rows, self._names(rows)))
        column = plan.plain_column(rows)
        return None if column is None else (rows, column, plan.sign)

    def sift(self, rows: Any) -> tuple[Batch, pa.Table]:
        """The good rows, and the bad ones as a table that says why in its `_reasons` column.

        >>> from skytide.query import everything, low, skyline
        >>> reader = Reader(skyline(low("price")).over(everything()))
        >>> batch, rejects = reader.sift({"price": [1.5, None]})
        >>> batch.values.tolist(), rejects.to_pylist()
        ([[1.5]], [{'price': None, '_reasons': 'price: null'}])
        """
        plan, batch, cells = self._examine(rows)
        if REASONS in batch.table.column_names:
            raise SchemaError(
                f"the rows have a column {REASONS!r}, the name skytide gives to why a row is bad",
                "rename it",
            )
        good, rejects = _sifted(batch, cells)
        self._fix(plan, good.table.num_rows)
        return good, rejects

    def check(self, schema: pa.Schema) -> None:
        """Raise SchemaError if rows of this schema cannot be read; needs no rows.

        >>> from skytide.query import everything, low, skyline
        >>> Reader(skyline(low("price")).over(everything())).check(pa.schema({"prize": pa.int8()}))
        Traceback (most recent call last):
        skytide.errors.SchemaError: the data has no column "price". Did you mean "prize"?
        Hint: its columns are prize
        """
        if self._plan is None:
            _Plan(self._query, schema)
        else:
            self._plan.conform(schema.empty_table())

    def _examine(self, rows: Any) -> tuple[_Plan | None, Batch, list[_Cells]]:
        plan = self._plan
        if plan is None or not isinstance(rows, pa.Table) or not plan.fits(rows):
            table = to_table(rows, self._names(rows))
            if not table.num_columns and not table.num_rows:
                return plan, self._empty(), []
            plan = plan or _Plan(self._query, table.schema)
            rows = plan.conform(table)
        return plan, *plan.extract(rows)

    def _names(self, rows: Any) -> Sequence[str] | None:
        if not isinstance(rows, np.ndarray):
            return None
        if self._plan is not None and rows.shape[1:] == (len(self._plan.schema),):
            return list(self._plan.schema.names)
        return self._query.columns

    def _empty(self) -> Batch:
        if self._plan is not None:
            return self._plan.extract(self._plan.schema.empty_table())[0]
        width = len(_wanted(self._query))
        labels = np.empty(0, np.int64) if isinstance(self._query.window, LastTime) else None
        return Batch(pa.table({}), np.empty((0, width)), labels)

    def _fix(self, plan: _Plan | None, good_rows: int) -> None:
        # A column without a value says nothing of its type; while no row was taken, wait for one.
        if plan is not None and (good_rows or pa.null() not in plan.schema.types):
            self._plan = plan


def _count(rows: Any) -> int:
    """How many rows these are, if they say so."""
    if isinstance(rows, dict):
        rows = next(iter(rows.values()), ())
    try:
        return len(rows)
    except TypeError:
        return 0


# --------------------------------------------------------------------------------- what is wrong


class _Cells(NamedTuple):
    rows: NDArray[np.intp]
    column: str
    reason: str
    remedy: str


def _note(cells: list[_Cells], bad: Any, column: str, reason: str, remedy: str) -> None:
    rows = np.flatnonzero(bad)
    if not rows.size:
        return
    for index, cell in enumerate(cells):
        # Two preferences may stumble over one column: its cells are told once.
        if (cell.column, cell.reason) == (column, reason):
            cells[index] = cell._replace(rows=np.union1d(cell.rows, rows))
            return
    cells.append(_Cells(rows, column, reason, remedy))


def _note_inexact(cells: list[_Cells], bad: Any, column: str, sql: str) -> None:
    remedy = f"write CAST({sql} AS DOUBLE) to accept the nearest float64"
    _note(cells, bad.to_numpy(zero_copy_only=False), column, INEXACT, remedy)


def _bad_rows(cells: list[_Cells]) -> BadRows:
    entries = sorted((int(row), cell.column, cell.reason) for cell in cells for row in cell.rows)
    rows, columns, reasons = zip(*entries, strict=True)
    return BadRows(rows, columns, reasons, "; ".join(dict.fromkeys(cell.remedy for cell in cells)))


def _sifted(batch: Batch, cells: list[_Cells]) -> tuple[Batch, pa.Table]:
    reasons = np.full(batch.table.num_rows, "", object)
    for cell in cells:
        reasons[cell.rows] += f"; {cell.column}: {cell.reason}"
    bad = reasons != ""
    why = pa.array([reason.removeprefix("; ") for reason in reasons[bad]], pa.string())
    rejects = batch.table.filter(pa.array(bad)).append_column(REASONS, why)
    if not cells:
        return batch, rejects
    labels = None if batch.labels is None else batch.labels[~bad]
    return Batch(batch.table.filter(pa.array(~bad)), batch.values[~bad], labels), rejects


# ------------------------------------------------------------------------------------- the plan


class _Source(NamedTuple):
    """Where a column of the matrix comes from: a column of the table, or an expression."""

    name: str
    sql: str
    sign: int
    column: int
    expression: Expression | ScoredColumns | None
    data_type: Any


class _Plan:
    """How tables of one schema are read for one query."""

    def __init__(self, query: Query, schema: pa.Schema) -> None:
        self.schema = pa.schema([(field.name, storable(field.type)) for field in schema])
        _check_columns(query, self.schema)
        _check_keys(query, self.schema)
        _check_pairs(query, self.schema)
        self._sources = [_source(*wanted, self.schema) for wanted in _wanted(query)]
        self._clock = None
        if isinstance(query.window, LastTime):
            self._clock = _clock(query.window, self.schema)

    def fits(self, table: pa.Table) -> bool:
        """Whether the table has our columns already, in our order and of our types."""
        return bool(table.schema.equals(self.schema, check_metadata=True))

    def conform(self, table: pa.Table) -> pa.Table:
        """The table with the columns in our order and of our types."""
        if self.fits(table):
            return table
        _check_same(self.schema, table.schema)
        columns = [_widened(table.column(field.name), field) for field in self.schema]
        return pa.Table.from_arrays(columns, schema=self.schema)

    @property
    def sign(self) -> int:
        """Of the only preference."""
        return self._sources[0].sign

    def plain_column(self, table: pa.Table) -> Any:
        """The only preference, if it is a column of very many float64 without a null."""
        source = self._sources[0]
        if len(self._sources) > 1 or source.column < 0 or not pa.types.is_float64(source.data_type):
            return None
        column = table.column(source.column)
        if column.num_chunks != 1 or column.null_count:
            return None
        return column.chunk(0).to_numpy()

    def extract(self, table: pa.Table) -> tuple[Batch, list[_Cells]]:
        cells: list[_Cells] = []
        values = np.empty((table.num_rows, len(self._sources)))
        for index, source in enumerate(self._sources):
            _fill(values[:, index], source, table, cells)
        if values.size and np.isnan(
            values.min()
        ):  # in a third of the time that isnan().any() takes
            for index, source in enumerate(self._sources):
                _note(cells, np.isnan(values[:, index]), source.name, _NAN, _DROP)
        labels = None
        if self._clock is not None:
            labels = _labels(table.column(self._clock), self.schema.names[self._clock], cells)
        return Batch(table, values, labels), cells


def _wanted(query: Query) -> list[tuple[str, int, Preference | None]]:
    """Name, sign and preference of each column of the matrix; for pairs the columns themselves."""
    if isinstance(query.question, TopPairs):
        return [(name, 1, None) for name in query.value_columns]
    return [
        (_named(preference), 1 if preference.direction == "low" else -1, preference)
        for preference in query.preferences
    ]


def _named(preference: Preference) -> str:
    column = plain_column(preference.expression)
    return column[1] if column else preference.expression


def _source(name: str, sign: int, preference: Preference | None, schema: pa.Schema) -> _Source:
    sql = sql_name(name) if preference is None else preference.expression
    if preference is not None and preference.score is not None:
        return _Source(name, sql, sign, -1, ScoredColumns(preference.score), pa.float64())
    if preference is None or plain_column(sql):
        index = schema.get_field_index(name)
        data_type, expression = schema.field(index).type, None
    else:
        index, expression = -1, parse(sql)
        data_type = expression.evaluate(schema.empty_table().column).type
    _check_ordered(sql, data_type)
    return _Source(name, sql, sign, index, expression, data_type)


def _check_ordered(sql: str, data_type: Any) -> None:
    inner = data_type.value_type if pa.types.is_dictionary(data_type) else data_type
    if kind(inner) not in _ORDERED:
        raise SchemaError(
            f"the preference {sql} is non-numeric: it is {data_type}",
            f"prefer a number or a time; text that spells numbers: CAST({sql} AS DOUBLE)",
        )


def _check_columns(query: Query, schema: pa.Schema) -> None:
    missing = [name for name in query.columns if name not in schema.names]
    if missing:
        guess = did_you_mean(missing[0], schema.names)
        listed = ", ".join(f'"{name}"' for name in missing)
        names = ", ".join(schema.names) or "none"
        plural = "s" * (len(missing) > 1)
        raise SchemaError(
            f"the data has no column{plural} {listed}.{guess}", f"its columns are {names}"
        )


def _check_keys(query: Query, schema: pa.Schema) -> None:
    for name in query.keys:
        if pa.types.is_nested(schema.field(name).type):
            raise SchemaError(
                f"the key {name!r} is {schema.field(name).type}, by which rows cannot be grouped",
                "make a column of what tells its rows apart: text, a number or a time",
            )


def _check_pairs(query: Query, schema: pa.Schema) -> None:
    if not isinstance(query.question, TopPairs):
        return
    empty = schema.empty_table()
    for preference in query.preferences:
        expression = parse(preference.expression)
        values = expression.evaluate(lambda name: empty.column(name.partition(".")[2]))
        _check_ordered(preference.expression, values.type)


# ----------------------------------------------------------------------------- the matrix, filled


def _fill(out: Any, source: _Source, table: pa.Table, cells: list[_Cells]) -> None:
    """Fill one column of the matrix; bad cells are noted, and hold anything."""
    column = _values(source, table, cells)
    if column.null_count or not _is_exact(column, source.data_type):
        column = _cleaned(column, source, cells)
    start = 0
    for chunk in _chunks(column):
        part = out[start : start + len(chunk)]
        # From or to a zero of the right sign: -0.0 never comes out.
        if source.sign > 0:
            np.add(chunk.to_numpy(), 0.0, out=part, dtype=np.float64)
        else:
            np.subtract(0.0, chunk.to_numpy(), out=part, dtype=np.float64)
        start += len(chunk)


def _chunks(column: Any) -> Any:
    return column.chunks if isinstance(column, pa.ChunkedArray) else (column,)


def _is_exact(column: Any, data_type: Any) -> bool:
    """Whether numpy takes a column without nulls to float64 as it is."""
    types = pa.types
    if types.is_floating(data_type):
        return True
    if not types.is_integer(data_type):
        return False
    if data_type.bit_width <= 32:
        return True
    # Much faster than finding the inexact ones, and rarely is there any.
    parts = [chunk.to_numpy() for chunk in _chunks(column) if len(chunk)]
    return all(part.min() >= -EXACT_INTEGER and part.max() <= EXACT_INTEGER for part in parts)


def _values(source: _Source, table: pa.Table, cells: list[_Cells]) -> Any:
    if source.expression is None:
        return table.column(source.column)
    values, inexact = source.expression.evaluate_noting(table.column)
    for name, bad in inexact.items():
        _note_inexact(cells, bad, name, sql_name(name))
    return values


def _cleaned(column: Any, source: _Source, cells: list[_Cells]) -> Any:
    near, inexact = doubles(plain(column))
    if inexact is not None:
        _note_inexact(cells, inexact, source.name, source.sql)
    if not near.null_count:
        return near
    remedy = _DROP if source.expression else f"drop these rows, or fill: COALESCE({source.sql}, 0)"
    _note(cells, pc.is_null(near).to_numpy(zero_copy_only=False), source.name, _NULL, remedy)
    return pc.fill_null(near, 0.0)


# -------------------------------------------------------------------------------------- the clock


def _clock(window: LastTime, schema: pa.Schema) -> int:
    if window.on is not None:
        index: int = schema.get_field_index(window.on)
        if not _is_time(schema.field(index).type) and not pa.types.is_null(
            schema.field(index).type
        ):
            raise _no_time(window.on, schema.field(index).type)
        return index
    found = [index for index, field in enumerate(schema) if _is_time(field.type)]
    if len(found) != 1:
        names = ", ".join(schema.names[index] for index in found) or "none"
        raise SchemaError(
            f"the window needs one time column, and the data has {len(found)}: {names}",
            'name it: last(..., on="ts"); it must be a timestamp or a date',
        )
    return found[0]


def _is_time(data_type: Any) -> bool:
    return bool(pa.types.is_timestamp(data_type) or pa.types.is_date(data_type))


def _no_time(name: str, data_type: Any) -> SchemaError:
    how = {
        "integer": 'pc.cast(column, pa.timestamp("s")) reads seconds since 1970, "ms" milliseconds',
        "float": 'pc.cast(pc.cast(column, pa.int64()), pa.timestamp("s")) reads seconds since 1970',
        "text": 'pc.cast(column, pa.timestamp("us")) reads ISO dates; pc.strptime reads others',
    }.get(kind(data_type), 'make it a timestamp, as pa.timestamp("us")')
    return SchemaError(f"the time column {name!r} is {data_type}, not a timestamp or date", how)


def _labels(column: Any, name: str, cells: list[_Cells]) -> NDArray[np.int64]:
    if column.null_count:
        _note(cells, pc.is_null(column).to_numpy(), name, _NULL, _DROP)
        if pa.types.is_null(column.type):
            return np.zeros(len(column), np.int64)
    counts, unit = ticks(column)
    known = (pc.fill_null(counts, 0) if column.null_count else counts).to_numpy()
    most = np.iinfo(np.int64).max // unit
    far = (known > most) | (known < -most)
    _note(cells, far, name, _FAR, f"correct the times in {name}, or drop these rows")
    labels: NDArray[np.int64] = np.where(far, 0, known) * unit
    return labels


# ------------------------------------------------------------------------------------ the schema


def _check_same(ours: pa.Schema, theirs: pa.Schema) -> None:
    added = [name for name in theirs.names if name not in ours.names]
    missing = [name for name in ours.names if name not in theirs.names]
    changed = [
        f"{field.name} was {field.type}, is {theirs.field(field.name).type}"
        for field in ours
        if field.name in theirs.names
        and not widens(storable(theirs.field(field.name).type), field.type)
    ]
    problems = [
        f"{what}: {', '.join(names)}"
        for what, names in (("new", added), ("missing", missing), ("changed", changed))
        if names
    ]
    if problems:
        raise SchemaError(
            f"the columns are not those of the first push ({'; '.join(problems)})",
            "select and cast them to the first push's, or open another engine",
        )


def _widened(column: Any, field: Any) -> Any:
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise SchemaError(
            f"the column {field.name!r} is {column.type} and does not fit {field.type}, "
            f"its type in the first push: {error}",
            "cast it before the push",
        ) from error
