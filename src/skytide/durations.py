"""Lengths of time: words for people, integer nanoseconds for engines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction

from skytide.errors import QueryError

__all__ = ["format_duration", "parse_duration"]

# Longest first: a duration is printed in as few of them as it takes.
_UNITS = {
    "week": 604_800_000_000_000,
    "day": 86_400_000_000_000,
    "hour": 3_600_000_000_000,
    "minute": 60_000_000_000,
    "second": 1_000_000_000,
    "millisecond": 1_000_000,
    "microsecond": 1_000,
    "nanosecond": 1,
}

_SHORT = {
    "week": "w",
    "day": "d",
    "hour": "h hr hrs",
    "minute": "m min mins",
    "second": "s sec secs",
    "millisecond": "ms",
    "microsecond": "us \N{MICRO SIGN}s \N{GREEK SMALL LETTER MU}s",
    "nanosecond": "ns",
}

_UNIT_NAMES = {
    spelling: name
    for name, short in _SHORT.items()
    for spelling in (name, f"{name}s", *short.split())
}

_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([^\W\d_]+)[\s,]*")


def parse_duration(duration: str | timedelta) -> int:
    """A length of time in nanoseconds: "10 minutes", "1h 30m", "500 ms", "1.5 days", a timedelta.

    >>> parse_duration("90s") == parse_duration("1 minute 30 seconds") == 90 * 10**9
    True
    """
    if isinstance(duration, timedelta):
        whole = (duration.days * 86_400 + duration.seconds) * 10**6 + duration.microseconds
        # pandas.Timedelta is a timedelta with a finer end.
        return whole * 1_000 + getattr(duration, "nanoseconds", 0)
    length = sum(_duration_parts(duration), Fraction(0))
    if length != int(length):
        raise _bad_duration(duration, "has a part of a nanosecond")
    return int(length)


def _duration_parts(duration: str) -> Iterator[Fraction]:
    text, position = duration.strip(), 0
    while position < len(text) or position == 0:
        part = _DURATION_PART.match(text, position)
        if part is None:
            raise _bad_duration(duration, "is not a length of time")
        number, word = part.groups()
        # A capital M is a month in pandas and Spark: never take it for a minute.
        unit = _UNIT_NAMES.get(word if word == "M" else word.lower())
        if unit is None:
            raise _bad_duration(duration, f"has the unknown unit {word!r}")
        yield Fraction(number) * _UNITS[unit]
        position = part.end()


def _bad_duration(duration: str, what: str) -> QueryError:
    if duration.strip().isdecimal():
        count = duration.strip()
        return QueryError(
            f"the duration {duration!r} has no unit",
            f'write last({count}) for {count} rows, last("{count} seconds") for a length of time',
        )
    return QueryError(
        f"the duration {duration!r} {what}",
        'write for example "10 minutes", "1h 30m", "500 ms"; the units are week, day, hour (h), '
        "minute (m, min), second (s), ms, us and ns; months and years have no fixed length",
    )


def format_duration(nanoseconds: int) -> str:
    """A length of time in words, which `parse_duration` reads back.

    >>> format_duration(5_400_000_000_000)
    '1 hour 30 minutes'
    """
    words, rest = [], nanoseconds
    for name, size in _UNITS.items():
        # Weeks only when nothing is left over: "10 days" reads better than "1 week 3 days".
        if name == "week" and rest % size:
            continue
        count, rest = divmod(rest, size)
        if count:
            words.append(f"{count} {name}{'s' * (count != 1)}")
    return " ".join(words) or "0 seconds"
