"""What expressions and preferences do to Arrow values: kinds, numbers, comparisons, casts.

A value is an Arrow array, chunked array or scalar. Everything works row by row: what becomes of one
row never depends on the rows beside it, so a bad row can be set aside without touching the others.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "EXACT_INTEGER",
    "MOMENTS",
    "NUMBERS",
    "TypeMismatch",
    "common",
    "compare",
    "convert",
    "doubles",
    "extreme",
    "gap",
    "kind",
    "pick",
    "plain",
    "restored",
    "seconds",
    "storable",
    "ticks",
    "truth",
]

Number = Callable[[Any], Any]

NUMBERS = {"boolean", "integer", "float", "decimal", "duration", "null"}
MOMENTS = {"instant", "zoned instant", "time", "duration"}

# Up to these bounds float64 holds every integer, and every decimal of so many digits.
EXACT_INTEGER = 2**53
_EXACT_DIGITS = 15

_NS_PER = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_NS_PER_DAY = 86_400 * 10**9


class TypeMismatch(Exception):  # noqa: N818
    """An operation was given a type it has no meaning for; the text says which it needs."""


# ---------------------------------------------------------------------------------------- types


@lru_cache(maxsize=1024)
def kind(data_type: Any) -> str:
    """What a type is to an expression, in a word.

    >>> kind(pa.int8()), kind(pa.date32()), kind(pa.timestamp("s", "UTC"))
    ('integer', 'instant', 'zoned instant')
    """
    if pa.types.is_timestamp(data_type) and data_type.tz is not None:
        return "zoned instant"
    return next((name for test, name in _KINDS if test(data_type)), "other")


_KINDS = (
    (pa.types.is_floating, "float"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_decimal, "decimal"),
    (pa.types.is_timestamp, "instant"),
    (pa.types.is_date, "instant"),
    (pa.types.is_time, "time"),
    (pa.types.is_duration, "duration"),
    (pa.types.is_string, "text"),
    (pa.types.is_large_string, "text"),
    (pa.types.is_null, "null"),
)


@lru_cache(maxsize=1024)
def storable(data_type: Any) -> Any:
    """The nearest type whose rows Arrow can take and filter: string views and run ends cannot be.

    >>> storable(pa.list_(pa.string_view()))
    ListType(list<item: large_string>)
    """
    types = pa.types
    if types.is_string_view(data_type):
        return pa.large_string()
    if types.is_binary_view(data_type):
        return pa.large_binary()
    if types.is_run_end_encoded(data_type):
        return storable(data_type.value_type)
    if types.is_dictionary(data_type):
        value_type = storable(data_type.value_type)
        return pa.dictionary(data_type.index_type, value_type, data_type.ordered)
    return _storable_nested(data_type)


def _storable_nested(data_type: Any) -> Any:
    types = pa.types
    if types.is_struct(data_type):
        return pa.struct([field.with_type(storable(field.type)) for field in data_type])
    if types.is_map(data_type):
        return pa.map_(storable(data_type.key_type), storable(data_type.item_type))
    if not (types.is_list(data_type) or types.is_large_list(data_type)):
        if not types.is_fixed_size_list(data_type):
            return data_type
    inner = data_type.value_field.with_type(storable(data_type.value_type))
    if types.is_fixed_size_list(data_type):
        return pa.list_(inner, data_type.list_size)
    return pa.large_list(inner) if types.is_large_list(data_type) else pa.list_(inner)


def restored(values: Any) -> Any:
    """The same values in their storable type.

    >>> restored(pa.array(["a"], pa.string_view())).type
    DataType(large_string)
    """
    data_type = values.type
    target = storable(data_type)
    if target == data_type:
        return values
    if pa.types.is_run_end_encoded(data_type):
        return restored(pc.run_end_decode(values))
    if not pa.types.is_dictionary(data_type):
        return pc.cast(values, target)
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([restored(chunk) for chunk in values.chunks], target)
    # Arrow cannot decode a dictionary of views, so the dictionary itself is cast.
    words = pc.cast(values.dictionary, target.value_type)
    return pa.DictionaryArray.from_arrays(values.indices, words, ordered=data_type.ordered)


def plain(values: Any) -> Any:
    """The same values without encoding: no dictionary, no views, one type for text, no float16.

    >>> plain(pa.array(["a", "b", "a"]).dictionary_encode()).type
    DataType(large_string)
    """
    values = values if isinstance(values, pa.Scalar) else restored(values)
    if pa.types.is_dictionary(values.type):
        values = _decoded(values)
    if kind(values.type) == "text":
        return pc.cast(values, pa.large_string())
    return pc.cast(values, pa.float64()) if pa.types.is_float16(values.type) else values


def _decoded(values: Any) -> Any:
    if isinstance(values, pa.Scalar):
        return values.value
    return pc.cast(values, values.type.value_type)


# -------------------------------------------------------------------------------------- numbers


def doubles(values: Any) -> tuple[Any, Any]:
    """The nearest float64 values, and which of them are not exact (None: all are).

    Inexact are integers and times that float64 does not hold, and decimals that do not come back
    from float64 as they were. Constants are taken to the nearest without a word.

    >>> doubles(pa.array([1, 2**53 + 1]))[1].to_pylist()
    [False, True]
    """
    what = kind(values.type)
    if what in ("float", "boolean", "null"):
        return pc.cast(values, pa.float64()), None
    if what == "decimal":
        return _decimal_doubles(values)
    if what in MOMENTS:
        values, _ = ticks(values)
    elif what != "integer":
        raise TypeMismatch("a number is needed")
    return _integer_doubles(values)


def _integer_doubles(values: Any) -> tuple[Any, Any]:
    near = pc.cast(values, pa.float64(), safe=False)
    if values.type.bit_width < 64 or isinstance(values, pa.Scalar) or _all_small(values):
        return near, None
    # Beyond the type's end the way back is undefined, so it is not asked there.
    end = 2.0**64 if values.type == pa.uint64() else 2.0**63
    over = pc.greater_equal(near, end)
    back = pc.cast(pc.if_else(over, 0.0, near), values.type, safe=False)
    return near, pc.fill_null(pc.or_(over, pc.not_equal(back, values)), False)


def _all_small(values: Any) -> bool:
    ends = pc.min_max(values).as_py()
    if ends["min"] is None:
        return True
    return bool(ends["min"] >= -EXACT_INTEGER and ends["max"] <= EXACT_INTEGER)


def _decimal_doubles(values: Any) -> tuple[Any, Any]:
    # By way of text: Arrow's own cast of decimals misses the nearest float64 now and then.
    near = pc.cast(pc.cast(values, pa.string()), pa.float64())
    if values.type.precision <= _EXACT_DIGITS or isinstance(values, pa.Scalar):
        return near, None
    scale = values.type.scale
    large = pc.greater_equal(pc.abs(near), 10.0 ** (_EXACT_DIGITS - scale))
    if not pc.any(large).as_py():
        return near, None
    survives = [value is None or _survives(value, scale) for value in values.to_pylist()]
    return near, pc.invert(pa.array(survives, pa.bool_()))


def _survives(value: decimal.Decimal, scale: int) -> bool:
    # Digits enough for any float64 near a decimal of 76 digits.
    context = decimal.Context(prec=400)
    back = decimal.Decimal(float(value)).quantize(decimal.Decimal(1).scaleb(-scale), None, context)
    return back == value


# ---------------------------------------------------------------------------------------- times


def ticks(values: Any) -> tuple[Any, int]:
    """Times as int64 counts of their unit, and that unit in nanoseconds.

    >>> ticks(pa.array([1], pa.date32()))[1] == 86_400 * 10**9
    True
    """
    data_type = values.type
    if pa.types.is_date32(data_type):
        return pc.cast(pc.cast(values, pa.int32()), pa.int64()), _NS_PER_DAY
    if pa.types.is_date64(data_type):
        return pc.cast(values, pa.int64()), _NS_PER["ms"]
    if pa.types.is_time32(data_type):
        values = pc.cast(values, pa.int32())
    return pc.cast(values, pa.int64()), _NS_PER[data_type.unit]


def gap(a: Any, b: Any) -> tuple[Any, int]:
    """How far a is after b, as float64 counts of the finer unit, and that unit in nanoseconds.

    The sign is exact, whatever the units, and so are gaps of up to 2**53 counts.
    """
    (a_ticks, a_unit), (b_ticks, b_unit) = ticks(a), ticks(b)
    unit = min(a_unit, b_unit)
    # Integers wrap around silently, and the wrapped gap is right whenever the true gap fits:
    # which is known from the rough gap in floats.
    fine = pc.subtract(pc.multiply(a_ticks, a_unit // unit), pc.multiply(b_ticks, b_unit // unit))
    rough = pc.subtract(
        pc.multiply(pc.cast(a_ticks, pa.float64(), safe=False), float(a_unit // unit)),
        pc.multiply(pc.cast(b_ticks, pa.float64(), safe=False), float(b_unit // unit)),
    )
    fits = pc.less(pc.abs(rough), 2.0**62)
    return pc.if_else(fits, pc.cast(fine, pa.float64(), safe=False), rough), unit


def seconds(counts: Any, unit: int) -> Any:
    """Counts of a unit in nanoseconds, as seconds.

    >>> seconds(pa.array([1500]), 10**6).to_pylist()
    [1.5]
    """
    counts = pc.cast(counts, pa.float64(), safe=False)
    if unit >= _NS_PER["s"]:
        return pc.multiply(counts, float(unit // _NS_PER["s"]))
    return pc.divide(counts, float(_NS_PER["s"] // unit))


# ----------------------------------------------------------------------------- between two values


def compare(operator: Any, a: Any, b: Any, number: Number) -> Any:
    """A comparison of two values of comparable kinds; null if either is null.

    Integers are compared as integers, numbers of different types as float64, times exactly.

    >>> compare(pc.less, pa.array([1, None]), pa.scalar(1.5), lambda v: doubles(v)[0]).to_pylist()
    [True, None]
    """
    a, b = _typed_nulls([a, b])
    kinds = {kind(a.type), kind(b.type)}
    if "other" in kinds:
        raise TypeMismatch("such values have no order here")
    signs = {pa.types.is_unsigned_integer(a.type), pa.types.is_unsigned_integer(b.type)}
    if a.type == b.type or (kinds == {"integer"} and len(signs) == 1):
        return operator(a, b)
    if len(kinds) == 1 and kinds <= MOMENTS:
        return operator(gap(a, b)[0], 0.0)
    if kinds <= NUMBERS:
        return operator(number(a), number(b))
    raise TypeMismatch("the two sides must be of one kind")


def common(values: Sequence[Any], number: Number) -> list[Any]:
    """Values brought to one type, so that one of them can be chosen row by row.

    >>> [value.type for value in common([pa.scalar(1), pa.scalar(1.5)], lambda v: doubles(v)[0])]
    [DataType(double), DataType(double)]
    """
    typed = _typed_nulls(values)
    if len({value.type for value in typed}) == 1:
        return typed
    if {kind(value.type) for value in typed} <= NUMBERS:
        return [number(value) for value in typed]
    raise TypeMismatch("all values must be of one type")


def _typed_nulls(values: Sequence[Any]) -> list[Any]:
    known = (value.type for value in values if kind(value.type) != "null")
    target = next(known, pa.float64())
    return [pc.cast(value, target) if kind(value.type) == "null" else value for value in values]


def truth(value: Any) -> Any:
    """A condition, as it is; anything else is refused.

    >>> truth(pa.scalar(True)).as_py()
    True
    """
    if kind(value.type) not in ("boolean", "null"):
        raise TypeMismatch("a condition is needed")
    return pc.cast(value, pa.bool_())


def pick(condition: Any, then: Any, otherwise: Any) -> Any:
    """`then` where the condition is true, `otherwise` where it is false or null.

    >>> pick(pa.array([True, None]), pa.scalar(1), pa.scalar(2)).to_pylist()
    [1, 2]
    """
    return pc.if_else(pc.coalesce(truth(condition), pa.scalar(False)), then, otherwise)


def extreme(values: Sequence[Any], number: Number, *, least: bool) -> Any:
    """The least or the greatest value of each row; nulls are passed over, NaN is the greatest.

    >>> row = [pa.scalar(1.0), pa.scalar(None, pa.float64()), pa.scalar(3.0)]
    >>> extreme(row, lambda value: value, least=False).as_py()
    3.0
    """
    best, *others = common(values, number)
    for other in others:
        if least:
            wins = pc.or_kleene(compare(pc.less, other, best, number), _is_nan(best))
        else:
            wins = pc.or_kleene(compare(pc.greater, other, best, number), _is_nan(other))
        # With one side null the comparison is null, and the other side is taken as it is.
        best = pc.coalesce(pc.if_else(wins, other, best), best, other)
    return best


def _is_nan(value: Any) -> Any:
    return pc.is_nan(value) if kind(value.type) == "float" else pa.scalar(False)


# ---------------------------------------------------------------------------------------- casts


def convert(value: Any, target: Any) -> Any:
    """A value cast to a type; what does not fit becomes null, row by row.

    Numbers lose their fraction on the way to an integer. To float64 everything goes to the nearest
    value, times as seconds (of instants: since 1970).

    >>> convert(pa.array([1.9, -1.9, 1e99]), pa.int64()).to_pylist()
    [1, -1, None]
    """
    source, goal = kind(value.type), kind(target)
    if source == "null" or (source == "text" and goal != "text"):
        return _parsed(value, target)
    if goal == "float" and source in NUMBERS | MOMENTS:
        return pc.cast(_seconds_or_nearest(value, source), target)
    if goal == "integer" and source in NUMBERS - {"duration"}:
        return _whole(value, target)
    if goal in ("instant", "zoned instant") and source in ("instant", "zoned instant"):
        return _instant(value, target)
    if goal == source or goal == "text" or (goal == "boolean" and source in NUMBERS):
        return pc.cast(value, target)
    raise TypeMismatch(f"there is no way from {value.type} to {target}")


def _seconds_or_nearest(value: Any, source: str) -> Any:
    return seconds(*ticks(value)) if source in MOMENTS else doubles(value)[0]


def _whole(value: Any, target: Any) -> Any:
    source = kind(value.type)
    if source != "float":
        return _cast_rows(pc.trunc(value) if source == "decimal" else value, target)
    whole, end = pc.trunc(value), 2.0 ** (target.bit_width - 1)
    fits = pc.and_(pc.greater_equal(whole, -end), pc.less(whole, end))
    return pc.cast(pc.if_else(fits, whole, pa.scalar(None, whole.type)), target)


def _instant(value: Any, target: Any) -> Any:
    # An instant keeps its unit: a coarser one would merge instants, a finer one might overflow.
    if pa.types.is_timestamp(target) and pa.types.is_timestamp(value.type):
        target = pa.timestamp(value.type.unit, target.tz)
    if pa.types.is_timestamp(target) and pa.types.is_date(value.type):
        target = pa.timestamp("s", target.tz)
    return pc.cast(value, target, safe=False)


def _parsed(value: Any, target: Any) -> Any:
    if kind(value.type) == "text":
        value = pc.utf8_trim_whitespace(value)
    return _cast_rows(value, target)


def _cast_rows(value: Any, target: Any) -> Any:
    try:
        return pc.cast(value, target)
    except pa.ArrowInvalid:
        if isinstance(value, pa.Scalar):
            raise TypeMismatch(f"'{value}' cannot be read as {target}") from None
    # Some row does not fit: row by row, to find which.
    return pa.array([_cast_one(one, target) for one in value], target)


def _cast_one(value: Any, target: Any) -> Any:
    try:
        return pc.cast(value, target)
    except pa.ArrowInvalid:
        return pa.scalar(None, target)
