"""The checks that frozen values make of their own fields, each with one message for one slip."""

from __future__ import annotations

import json
import operator
from collections.abc import Sequence
from typing import Any

from skytide.errors import QueryError, did_you_mean


def tidy(value: Any, **normalised: Any) -> None:
    """Set fields of a frozen value while it is being built."""
    for name, field in normalised.items():
        object.__setattr__(value, name, field)


def whole(value: Any, what: str) -> int:
    """A whole number of at least 1, of any integer type; True is not a number here."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        exact = isinstance(value, float) and value.is_integer()
        hint = f"write {int(value):_}" if exact else "give a whole number, at least 1"
        raise QueryError(f"{what} is {value!r}, not a whole number", hint) from None
    if number < 1:
        raise QueryError(f"{what} is {number}", "give a whole number, at least 1")
    return number


def text(value: Any, what: str) -> str:
    """Text that is not blank, without the space around it."""
    if not isinstance(value, str) or not value.strip():
        raise QueryError(f"{what} is {value!r}", "give it as text that is not empty")
    return value.strip()


def flag(value: Any, what: str) -> bool:
    """True or False, and nothing that only looks like it."""
    if not isinstance(value, bool):
        raise QueryError(f"{what} is {value!r}", "give True or False")
    return value


def one_of(value: Any, choices: tuple[str, ...], what: str) -> None:
    """Refuse what is not one of the choices."""
    if value not in choices:
        raise QueryError(
            f"{what} is {value!r}.{did_you_mean(str(value), choices)}",
            f"choose {' or '.join(map(quoted, choices))}",
        )


def sequence(value: Any, what: str) -> Sequence[Any]:
    """A list or tuple; text is no list of letters here."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise QueryError(f"{what} is {value!r}", "give a list")
    return value


def quoted(text: str) -> str:
    """Text as Python code in double quotes: the escapes of JSON are Python's too."""
    return json.dumps(text, ensure_ascii=False)
