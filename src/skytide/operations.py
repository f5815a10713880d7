"""What the operators and functions of an expression do to the values of their operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skytide.values import (
    MOMENTS,
    NUMBERS,
    TypeMismatch,
    common,
    compare,
    doubles,
    extreme,
    gap,
    kind,
    pick,
    plain,
    seconds,
    ticks,
    truth,
)

__all__ = [
    "CASTS",
    "MANY",
    "OPERATIONS",
    "Operation",
    "Resolve",
    "Run",
    "Step",
    "applied",
    "cases",
    "numeric",
]

# Only these can hold a number that float64 cannot.
_WIDE = {"integer", "decimal"}

Resolve: TypeAlias = Callable[[str], Any]
Step: TypeAlias = Callable[["Run"], Any]


class Run:
    """One evaluation: each column fetched once, and what was not exact noted."""

    __slots__ = ("_resolve", "inexact", "seen")

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self.seen: dict[str, Any] = {}
        self.inexact: dict[str, Any] = {}

    def column(self, name: str) -> Any:
        if name not in self.seen:
            self.seen[name] = plain(self._resolve(name))
        return self.seen[name]

    def number(self, value: Any) -> Any:
        """A value as float64; durations as seconds."""
        if kind(value.type) not in NUMBERS:
            raise TypeMismatch("a number is needed")
        if kind(value.type) == "duration":
            return seconds(*ticks(value))
        near, inexact = doubles(value)
        if inexact is not None and pc.any(inexact).as_py():
            name = self._source(value)
            known = self.inexact.get(name)
            self.inexact[name] = inexact if known is None else pc.or_(known, inexact)
        return near

    def _source(self, value: Any) -> str:
        """The column a value is, or, of a value computed on the way, one it may come from."""
        for name, seen in self.seen.items():
            if seen is value:
                return name
        wide = [name for name, seen in self.seen.items() if kind(seen.type) in _WIDE]
        return (wide or list(self.seen))[0]


class Operation(NamedTuple):
    """How a node of the tree is computed from its operands.

    `operands` are the node's fields that hold them, `ignored` those that change nothing here; a
    node with any other field filled is refused rather than misunderstood.
    """

    symbol: str
    apply: Callable[..., Any]
    operands: tuple[str, ...] = ("this", "expression")
    ignored: tuple[str, ...] = ()


def applied(operation: Operation, steps: list[Step]) -> Step:
    def step(run: Run) -> Any:
        values = [operand(run) for operand in steps]
        try:
            return operation.apply(run, *values)
        except (TypeMismatch, pa.ArrowException) as error:
            types = ", ".join(str(value.type) for value in values)
            reason = f": {error}" if isinstance(error, TypeMismatch) else ""
            raise TypeMismatch(f"{operation.symbol} cannot take {types}{reason}") from error

    return step


def numeric(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda run, *values: function(*map(run.number, values))


def _through_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """A numpy function on Arrow numbers, for what older Arrow has no kernel of."""

    def apply(*values: Any) -> Any:
        with np.errstate(all="ignore"):
            if all(isinstance(value, pa.Scalar) for value in values):
                known = all(value.is_valid for value in values)
                args = [value.as_py() for value in values]
                return pa.scalar(float(function(*args)) if known else None, pa.float64())
            null = reduce(np.logical_or, [_numpy(pc.is_null(value)) for value in values])
            return pa.array(function(*map(_numpy, values)), pa.float64(), mask=null)

    return apply


def _numpy(value: Any) -> Any:
    if isinstance(value, pa.Scalar):
        return np.nan if value.as_py() is None else value.as_py()
    return value.to_numpy(zero_copy_only=False) if isinstance(value, pa.Array) else value.to_numpy()


def _minus(run: Run, a: Any, b: Any) -> Any:
    kinds = {kind(a.type), kind(b.type)}
    if kinds <= MOMENTS:
        if len(kinds) > 1:
            raise TypeMismatch("the two sides must be of one kind")
        return seconds(*gap(a, b))
    return pc.subtract(run.number(a), run.number(b))


def _compared(operator: Callable[..., Any]) -> Callable[..., Any]:
    return lambda run, a, b: compare(operator, a, b, run.number)


def _between(run: Run, value: Any, least: Any, most: Any) -> Any:
    above = compare(pc.greater_equal, value, least, run.number)
    return pc.and_kleene(above, compare(pc.less_equal, value, most, run.number))


def _among(run: Run, value: Any, *choices: Any) -> Any:
    return reduce(
        pc.or_kleene, [compare(pc.equal, value, choice, run.number) for choice in choices]
    )


def _null_if(run: Run, value: Any, other: Any) -> Any:
    equal = compare(pc.equal, value, other, run.number)
    return pick(equal, pa.scalar(None, value.type), value)


def cases(run: Run, *values: Any) -> Any:
    """condition, value, condition, value, ..., default: the value of the first true condition."""
    *chosen, default = common([*values[1::2], values[-1]], run.number)
    for condition, value in zip(reversed(values[:-1:2]), reversed(chosen), strict=True):
        default = pick(condition, value, default)
    return default


_ONE = ("this",)
MANY = ("this", "expressions")


def _function(symbol: str, function: Callable[..., Any], *operands: str) -> Operation:
    return Operation(symbol, numeric(function), operands or _ONE)


OPERATIONS = {
    "Add": Operation("+", numeric(pc.add)),
    "Sub": Operation("-", _minus),
    "Mul": Operation("*", numeric(pc.multiply)),
    "Div": Operation("/", numeric(pc.divide), ignored=("typed", "safe")),
    "Mod": Operation("%", numeric(_through_numpy(np.fmod))),
    "Neg": _function("-", pc.negate),
    "EQ": Operation("=", _compared(pc.equal)),
    "NEQ": Operation("<>", _compared(pc.not_equal)),
    "LT": Operation("<", _compared(pc.less)),
    "LTE": Operation("<=", _compared(pc.less_equal)),
    "GT": Operation(">", _compared(pc.greater)),
    "GTE": Operation(">=", _compared(pc.greater_equal)),
    "And": Operation("AND", lambda _, a, b: pc.and_kleene(truth(a), truth(b))),
    "Or": Operation("OR", lambda _, a, b: pc.or_kleene(truth(a), truth(b))),
    "Not": Operation("NOT", lambda _, a: pc.invert(truth(a)), _ONE),
    "Between": Operation("BETWEEN", _between, ("this", "low", "high")),
    "In": Operation("IN", _among, MANY),
    "Coalesce": Operation(
        "COALESCE", lambda run, *values: pc.coalesce(*common(values, run.number)), MANY
    ),
    "Nullif": Operation("NULLIF", _null_if),
    "Least": Operation(
        "LEAST",
        lambda run, *values: extreme(values, run.number, least=True),
        MANY,
        ("ignore_nulls",),
    ),
    "Greatest": Operation(
        "GREATEST",
        lambda run, *values: extreme(values, run.number, least=False),
        MANY,
        ("ignore_nulls",),
    ),
    "Abs": _function("ABS", pc.abs),
    "Sign": _function("SIGN", lambda value: pc.cast(pc.sign(value), pa.float64())),
    "Sqrt": _function("SQRT", pc.sqrt),
    "Exp": _function("EXP", _through_numpy(np.exp)),
    "Ln": _function("LN", pc.ln),
    "Pow": _function("POWER", pc.power, "this", "expression"),
    "Floor": _function("FLOOR", pc.floor),
    "Ceil": _function("CEIL", pc.ceil),
    "Sin": _function("SIN", pc.sin),
    "Cos": _function("COS", pc.cos),
    "Tan": _function("TAN", pc.tan),
    "Asin": _function("ASIN", pc.asin),
    "Acos": _function("ACOS", pc.acos),
    "Atan": _function("ATAN", pc.atan),
    "Atan2": _function("ATAN2", pc.atan2, "this", "expression"),
    "Radians": _function("RADIANS", lambda value: pc.multiply(value, math.pi / 180)),
    "Degrees": _function("DEGREES", lambda value: pc.multiply(value, 180 / math.pi)),
}

CASTS = {
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "DATETIME": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
    "TEXT": pa.large_string(),
    "VARCHAR": pa.large_string(),
}
