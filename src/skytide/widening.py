"""Which types hold all that another type holds, so that a later push may have either."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

__all__ = ["widens"]

_TEXT = (pa.types.is_string, pa.types.is_large_string)
_BYTES = (pa.types.is_binary, pa.types.is_large_binary)
_LISTS = (pa.types.is_list, pa.types.is_large_list)


def widens(source: Any, target: Any) -> bool:
    """Whether values of `source` keep their meaning as `target`; the cast still checks each.

    >>> widens(pa.int32(), pa.int64()), widens(pa.int64(), pa.int32())
    (True, False)
    >>> widens(pa.dictionary(pa.int8(), pa.string()), pa.string())
    True
    """
    types = pa.types
    if source == target or types.is_null(source):
        return True
    if types.is_dictionary(source) or types.is_dictionary(target):
        return widens(_plain(source), _plain(target))
    if types.is_struct(source) and types.is_struct(target):
        return _struct_widens(source, target)
    for family in (_TEXT, _BYTES):
        if _both(source, target, family):
            return True
    if _both(source, target, _LISTS):
        return widens(source.value_type, target.value_type)
    return _number_widens(source, target) or _time_widens(source, target)


def _plain(data_type: Any) -> Any:
    return data_type.value_type if pa.types.is_dictionary(data_type) else data_type


def _both(source: Any, target: Any, family: Any) -> bool:
    return all(any(test(data_type) for test in family) for data_type in (source, target))


def _struct_widens(source: Any, target: Any) -> bool:
    return [field.name for field in source] == [field.name for field in target] and all(
        widens(ours.type, theirs.type) for ours, theirs in zip(source, target, strict=True)
    )


def _number_widens(source: Any, target: Any) -> bool:
    types = pa.types
    if types.is_decimal(source) and types.is_decimal(target):
        more_whole = target.precision - target.scale >= source.precision - source.scale
        return bool(target.scale >= source.scale and more_whole)
    if types.is_floating(source):
        return bool(types.is_floating(target) and source.bit_width < target.bit_width)
    if not types.is_integer(source):
        return False
    if types.is_floating(target):
        # Python writes 2 for 2.0: the cast refuses integers that the float does not hold.
        return True
    if not types.is_integer(target):
        return False
    same_sign = types.is_signed_integer(source) == types.is_signed_integer(target)
    to_signed = types.is_signed_integer(target)
    return bool((same_sign or to_signed) and source.bit_width < target.bit_width)


def _time_widens(source: Any, target: Any) -> bool:
    types = pa.types
    if types.is_timestamp(source) and types.is_timestamp(target):
        return bool(source.tz == target.tz and _finer(source, target))
    if types.is_duration(source) and types.is_duration(target):
        return _finer(source, target)
    if types.is_time(source) and types.is_time(target):
        return _finer(source, target)
    return bool(types.is_date32(source) and types.is_date64(target))


def _finer(source: Any, target: Any) -> bool:
    units = ("s", "ms", "us", "ns")
    return units.index(source.unit) < units.index(target.unit)
