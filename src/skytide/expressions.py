"""Scalar SQL expressions over columns, read once and computed on Arrow columns.

Arithmetic is that of float64: `/` is true division, x / 0 is infinite, and 0 / 0, the root of -1 or
the logarithm of -1 is NaN. Null in, null out, except where SQL says otherwise (COALESCE, CASE, AND,
OR, IS NULL; LEAST and GREATEST pass nulls over). A CAST that does not work out is null. Times can
be compared and subtracted, which gives seconds. Every row is computed for itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skytide.errors import BadRows, MissingExtra, QueryError, SchemaError, did_you_mean
from skytide.operations import (
    CASTS,
    MANY,
    OPERATIONS,
    Operation,
    Resolve,
    Run,
    Step,
    applied,
    cases,
    numeric,
)
from skytide.preferences import plain_column, sql_name
from skytide.values import TypeMismatch, convert, plain

__all__ = ["INEXACT", "Expression", "parse"]

INEXACT = "not exact in float64"


@dataclass(frozen=True, slots=True)
class Expression:
    """A scalar expression that has been read; make one with `parse`.

    `columns` are those it mentions, in order of mention, with `a.` or `b.` before them if the text
    says so; `rows` are the rows it speaks of: "" for the row itself, "a" and "b" for a pair.

    >>> expression = parse("(high - low) / 2")
    >>> expression.columns
    ('high', 'low')
    """

    text: str
    columns: tuple[str, ...]
    rows: frozenset[str]
    _step: Step = field(repr=False, compare=False)

    def evaluate(self, resolve: Resolve) -> Any:
        """The values of the expression; `resolve` gives the Arrow column of a name.

        A column may also be an Arrow scalar, which stands for every row. Without columns the value
        is a scalar. Types that do not fit raise SchemaError, inexact integers BadRows.

        >>> table = pa.table({"high": [3.0, None], "low": [1, 2]})
        >>> parse("(high - low) / 2").evaluate(table.column).to_pylist()
        [1.0, None]
        """
        values, inexact = self.evaluate_noting(resolve)
        if inexact:
            raise _bad_rows(inexact)
        return values

    def evaluate_noting(self, resolve: Resolve) -> tuple[Any, dict[str, Any]]:
        """The values, and by column which rows hold a number that float64 cannot hold exactly.

        The values of those rows were computed with the nearest float64.

        >>> table = pa.table({"n": [1, 2**53 + 1]})
        >>> {name: rows.to_pylist() for name, rows in
        ...  parse("n / 2").evaluate_noting(table.column)[1].items()}
        {'n': [False, True]}
        """
        run = Run(resolve)
        try:
            return self._step(run), run.inexact
        except TypeMismatch as mismatch:
            types = ", ".join(f"{name} is {value.type}" for name, value in run.seen.items())
            raise SchemaError(
                f"{self.text!r} cannot be computed: {mismatch}{types and f' ({types})'}",
                "convert with CAST(... AS DOUBLE), CAST(... AS TIMESTAMP) and the like",
            ) from None

    def __reduce__(self) -> tuple[Callable[[str], Expression], tuple[str]]:
        return parse, (self.text,)


@lru_cache(maxsize=1024)
def parse(text: str) -> Expression:
    """Read an expression: a column name, or SQL over columns, of one row or of the rows a and b.

    >>> parse("abs(a.temp - b.temp)").columns
    ('a.temp', 'b.temp')
    >>> parse("sum(price)")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    skytide.errors.QueryError: the aggregate SUM cannot be used here:
      sum(price)
      ^
    Hint: an expression looks at one row at a time: use columns, numbers, text, + - * / %, ...
    """
    reader = _Reader(text)
    column = plain_column(text)
    if column is not None:
        step = reader.column(*column)
    else:
        step = _compiled(reader)
    return Expression(text, tuple(reader.columns), frozenset(reader.rows), step)


def _bad_rows(inexact: Mapping[str, Any]) -> BadRows:
    cells = [
        (int(row), name)
        for name, bad in inexact.items()
        for row in np.flatnonzero(bad.to_numpy(zero_copy_only=False))
    ]
    rows, names = zip(*sorted(cells), strict=True)
    casts = " and ".join(f"CAST({sql_name(name)} AS DOUBLE)" for name in inexact)
    hint = f"write {casts} to accept the nearest float64"
    return BadRows(rows, names, [INEXACT] * len(rows), hint)


_MORE_FUNCTIONS = ("CASE", "CAST", "IF", "LOG", "LOG2", "LOG10", "MOD", "PI", "ROUND")
_FUNCTIONS = sorted(
    {*_MORE_FUNCTIONS, *(o.symbol for o in OPERATIONS.values() if o.symbol.isalnum())}
)
_ALLOWED = (
    "an expression looks at one row at a time: use columns, numbers, text, + - * / %, "
    f"comparisons, IS NULL and {', '.join(_FUNCTIONS)}"
)


# --------------------------------------------------------------------------------------- reading


def _compiled(reader: _Reader) -> Step:
    try:
        import sqlglot
        from sqlglot.errors import ParseError, TokenError
    except ImportError:
        raise MissingExtra(
            f"{reader.text!r} is an expression, and reading it needs sqlglot",
            "pip install 'skytide[sql]'",
        ) from None
    try:
        return reader.step(sqlglot.parse_one(reader.text))
    except (ParseError, TokenError) as error:
        raise _syntax_error(reader.text, getattr(error, "errors", [])) from None
    except RecursionError:
        raise QueryError(
            f"an expression of {len(reader.text):,} characters is nested too deeply",
            "compute a part of it as a column of the data",
        ) from None


class _Reader:
    """Turns the tree of a parsed text into steps, collecting the columns it mentions."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.columns: dict[str, None] = {}
        self.rows: set[str] = set()

    def step(self, node: Any) -> Step:
        name = type(node).__name__
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self, node)
        operation = OPERATIONS.get(name)
        if operation is None:
            raise _refusal(self.text, node)
        return applied(operation, [self.step(operand) for operand in self.operands(node)])

    def operands(self, node: Any) -> list[Any]:
        operation = OPERATIONS[type(node).__name__]
        self.only(node, *operation.operands, *operation.ignored)
        filled = [node.args.get(name) for name in operation.operands]
        listed = [each if isinstance(each, list) else [each] for each in filled]
        operands = [operand for each in listed for operand in each if operand is not None]
        if operation.operands == MANY and len(operands) < 2:
            raise self.refuse(node, f"{operation.symbol} of so few values")
        return operands

    def only(self, node: Any, *names: str) -> None:
        """Refuse a node that says more than we would do."""
        more = [name for name, value in node.args.items() if value and name not in names]
        if more:
            what = f"{_sql_name_of(node)} with {', '.join(more).replace('_', ' ')}"
            raise self.refuse(node, what)

    def refuse(self, node: Any, what: str, hint: str = _ALLOWED) -> QueryError:
        return _pointed(f"{what} cannot be used here", self.text, _place(node), hint)

    def column(self, row: str, name: str) -> Step:
        full = f"{row}.{name}" if row else name
        self.columns[full] = None
        self.rows.add(row)
        return lambda run: run.column(full)


def _column(reader: _Reader, node: Any) -> Step:
    if type(node.this).__name__ != "Identifier":
        raise _refusal(reader.text, node.this)
    row = node.table.lower()
    if row not in ("", "a", "b") or node.args.get("db"):
        raise reader.refuse(
            node,
            f"a column of {node.table}",
            "name columns alone, or a.name and b.name for the two rows of a pair; "
            'a name that has a dot stands in double quotes: "x.y"',
        )
    return reader.column(row, node.name)


def _literal(reader: _Reader, node: Any) -> Step:
    return _constant(node.this if node.is_string else _number(node.this))


def _number(digits: str) -> int | float:
    whole = int(digits) if digits.isdecimal() else None
    return whole if whole is not None and whole < 2**63 else float(digits)


def _constant(value: Any) -> Step:
    scalar = plain(pa.scalar(value))
    return lambda run: scalar


def _paren(reader: _Reader, node: Any) -> Step:
    return reader.step(node.this)


def _is(reader: _Reader, node: Any) -> Step:
    if type(node.expression).__name__ != "Null":
        raise reader.refuse(node, "IS other than IS [NOT] NULL")
    return applied(Operation("IS", lambda _, value: pc.is_null(value)), [reader.step(node.this)])


def _if(reader: _Reader, node: Any) -> Step:
    reader.only(node, "this", "true", "false")
    parts = [node.this, node.args["true"]]
    steps = [*map(reader.step, parts), _default(reader, node.args.get("false"))]
    return applied(Operation("IF", cases), steps)


def _case(reader: _Reader, node: Any) -> Step:
    reader.only(node, "this", "ifs", "default")
    subject = reader.step(node.this) if node.this else None
    steps: list[Step] = []
    for branch in node.args["ifs"]:
        condition = reader.step(branch.this)
        if subject is not None:
            condition = applied(OPERATIONS["EQ"], [subject, condition])
        steps += [condition, reader.step(branch.args["true"])]
    return applied(Operation("CASE", cases), [*steps, _default(reader, node.args.get("default"))])


def _default(reader: _Reader, node: Any) -> Step:
    return _constant(None) if node is None else reader.step(node)


def _cast(reader: _Reader, node: Any) -> Step:
    reader.only(node, "this", "to", "safe")
    name = node.to.this.name if hasattr(node.to.this, "name") else str(node.to.this)
    target = CASTS.get(name)
    if target is None or node.to.expressions:
        raise reader.refuse(node, f"a cast to {node.to.sql()}", f"cast to {', '.join(CASTS)}")
    operation = Operation(f"CAST AS {name}", lambda _, value: convert(value, target))
    return applied(operation, [reader.step(node.this)])


def _round(reader: _Reader, node: Any) -> Step:
    reader.only(node, "this", "decimals")
    digits = node.args.get("decimals")
    try:
        count = 0 if digits is None else int(digits.sql())
    except ValueError:
        raise reader.refuse(node, "ROUND to a computed number of digits") from None
    # As SQL does, and unlike Python: a half goes away from zero.
    rounded = partial(pc.round, ndigits=count, round_mode="half_towards_infinity")
    return applied(Operation("ROUND", numeric(rounded)), [reader.step(node.this)])


def _log(reader: _Reader, node: Any) -> Step:
    if node.expression is None or not node.args.get("expression"):
        raise reader.refuse(node, "LOG without a base", "say which: LN(x), LOG2(x) or LOG10(x)")
    base, value = reader.step(node.this), reader.step(node.expression)
    # LOG2(x) and LOG10(x) arrive here too; only their own functions are exact at powers.
    exact = {"2": pc.log2, "10": pc.log10}.get(node.this.sql())
    if exact is not None:
        return applied(Operation("LOG", numeric(exact)), [value])
    return applied(Operation("LOG", numeric(pc.logb)), [value, base])


_SPECIAL: dict[str, Callable[[_Reader, Any], Step]] = {
    "Boolean": lambda reader, node: _constant(bool(node.this)),
    "Case": _case,
    "Cast": _cast,
    "Column": _column,
    "If": _if,
    "Is": _is,
    "Literal": _literal,
    "Log": _log,
    "Null": lambda reader, node: _constant(None),
    "Paren": _paren,
    "Pi": lambda reader, node: _constant(math.pi),
    "Round": _round,
    "TryCast": _cast,
}


# -------------------------------------------------------------------------------- what is refused


def _refusal(text: str, node: Any) -> QueryError:
    what, hint = _named(node)
    return _pointed(f"{what} cannot be used here", text, _place(node), hint)


def _named(node: Any) -> tuple[str, str]:
    from sqlglot import expressions as exp

    if isinstance(node, exp.Alias):
        return "a name after an expression", (
            'a name with a space, or one that is a word of SQL, stands in quotes: "unit price"'
        )
    if isinstance(node, exp.Anonymous):
        offer = did_you_mean(node.name.upper(), _FUNCTIONS)
        return f"the unknown function {node.name}", f"{offer.strip()} {_ALLOWED}".strip()
    for cls, what in (
        (exp.Star, "a star"),
        (exp.Window, "a window function"),
        (exp.Query, "a subquery"),
        (exp.Exists, "a subquery"),
    ):
        if isinstance(node, cls):
            return what, _ALLOWED
    what = "the aggregate " if isinstance(node, exp.AggFunc) else ""
    return f"{what}{_sql_name_of(node)}", _ALLOWED


def _sql_name_of(node: Any) -> str:
    if type(node).__name__ in OPERATIONS:
        return OPERATIONS[type(node).__name__].symbol
    if hasattr(node, "sql_name"):
        return str(node.sql_name())
    # BitwiseXor: "bitwise xor"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).lower()


def _place(node: Any) -> int:
    """Where the node begins: not every node knows, but its names and numbers do."""
    return min(_starts(node), default=0)


def _starts(node: Any) -> Iterator[int]:
    for part in node.walk():
        if "start" in part.meta:
            yield int(part.meta["start"])


def _syntax_error(text: str, errors: list[dict[str, Any]]) -> QueryError:
    found = errors[0] if errors else {}
    line, column = found.get("line"), found.get("col")
    place = len(text)
    if line and column:
        before = sum(len(each) + 1 for each in text.split("\n")[: line - 1])
        place = before + column - max(1, len(found.get("highlight") or ""))
    hint = 'a column whose name is not a plain word stands in double quotes: "unit price"'
    return _pointed("the expression cannot be read here", text, place, hint)


def _pointed(message: str, text: str, place: int, hint: str) -> QueryError:
    before = text[:place].split("\n")
    line = text.split("\n")[len(before) - 1]
    return QueryError(f"{message}:\n  {line}\n  {' ' * len(before[-1])}^", hint)
