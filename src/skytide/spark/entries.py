"""Reading the tables of a job file: what is there, of the right kind, and on which line it stands."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, NoReturn, TypeVar

import skytide as st
from skytide.errors import did_you_mean
from skytide.spark.lines import Path, lines_of, nearest

__all__ = ["Entries", "read_toml"]

Value = TypeVar("Value")

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_KINDS = {
    str: "text",
    int: "a whole number",
    bool: "true or false",
    dict: "a table",
    list: "a list",
}


@dataclass(frozen=True)
class Entries:
    """A table of a job file, whose entries are asked for by name and kind.

    >>> job = Entries("job.toml", {("rows",): 3}, (), {"rows": "many"})
    >>> job.take("rows", int)
    Traceback (most recent call last):
    skytide.errors.JobError: job.toml, line 3: rows is 'many'
    Hint: give a whole number
    """

    file: str
    lines: dict[Path, int]
    path: Path
    values: Mapping[str, Any]

    def fail(self, name: str, message: str, hint: str = "") -> NoReturn:
        """Refuse the file because of this entry, or, without a name, of the whole table."""
        line = nearest(self.lines, (*self.path, name) if name else self.path)
        where = f"{self.file}, line {line}" if line else self.file
        raise st.JobError(f"{where}: {message}", hint)

    def only(self, allowed: Iterable[str]) -> None:
        """Refuse entries of any other name."""
        allowed = list(allowed)
        for name in self.values:
            if name not in allowed:
                where = f"[{'.'.join(self.path)}]" if self.path else "a job"
                self.fail(
                    name,
                    f"{where} has no entry {name!r}.{did_you_mean(name, allowed)}",
                    f"it may have {', '.join(allowed)}",
                )

    def take(self, name: str, *kinds: type, default: Any = None) -> Any:
        """The entry if it is of one of these kinds, or the default if there is none."""
        if name not in self.values:
            return default
        value = self.values[name]
        if not any(type(value) is kind for kind in kinds):
            wanted = " or ".join(_KINDS[kind] for kind in kinds)
            self.fail(name, f"{name} is {value!r}", f"give {wanted}")
        return self._filled(name, value)

    def need(self, name: str, *kinds: type, hint: str = "") -> Any:
        """The entry; refused if there is none."""
        if name not in self.values:
            self.fail("", f"{self._called()} has no {name}", hint)
        return self.take(name, *kinds)

    def texts(self, name: str) -> list[str]:
        """A text or a list of texts, as a list."""
        value = self.take(name, str, list, default=[])
        listed = value if isinstance(value, list) else [value]
        for one in listed:
            if not isinstance(one, str):
                self.fail(name, f"{name} lists {one!r}", "give text, in quotes")
        return [self._filled(name, one) for one in listed]

    def choice(self, name: str, allowed: Iterable[str], default: str) -> str:
        """A text that is one of these."""
        allowed = list(allowed)
        value = str(self.take(name, str, default=default))
        if value not in allowed:
            self.fail(
                name,
                f"{name} is {value!r}.{did_you_mean(value, allowed)}",
                f"choose {', '.join(allowed[:-1])} or {allowed[-1]}",
            )
        return value

    def inner(self, name: str) -> Entries:
        """A table in this table; an empty one if there is none."""
        values = self.take(name, dict, default={})
        return Entries(self.file, self.lines, (*self.path, name), values)

    def settings(self) -> dict[str, str]:
        """All entries, as Spark wants its options: text; tables within are dotted names."""
        flat: dict[str, str] = {}
        for name, value in self.values.items():
            if isinstance(value, dict):
                inner = self.inner(name).settings()
                flat |= {f"{name}.{below}": text for below, text in inner.items()}
            elif isinstance(value, str | int | float):
                plain = str(value).lower() if isinstance(value, bool) else str(value)
                flat[name] = self._filled(name, plain)
            else:
                self.fail(name, f"{name} is {value!r}", "give text, a number, true or false")
        return flat

    def asking(self, name: str, call: Callable[..., Value], *values: Any, **named: Any) -> Value:
        """The call's result; what skytide refuses is refused with the line of this entry."""
        try:
            return call(*values, **named)
        except st.SkytideError as error:
            message, _, hint = str(error).partition("\nHint: ")
            self.fail(name, message, hint)

    def _called(self) -> str:
        return f"[{'.'.join(self.path)}]" if self.path else "the job"

    def _filled(self, name: str, value: Any) -> Any:
        """A text with ${NAME} replaced by that variable of the environment."""
        if not isinstance(value, str):
            return value
        for variable in _VARIABLE.findall(value):
            if variable not in os.environ:
                self.fail(
                    name,
                    f"{name} speaks of ${{{variable}}}, which is not set in the environment",
                    f"export {variable}=...",
                )
        return _VARIABLE.sub(lambda match: os.environ[match[1]], value)


def read_toml(path: str | os.PathLike[str]) -> Entries:
    """The entries of a file.

    >>> read_toml("nowhere.toml")
    Traceback (most recent call last):
    skytide.errors.JobError: there is no file nowhere.toml
    Hint: the folder examples has job files to begin with
    """
    file = str(path)
    try:
        text = File(file).read_text(encoding="utf-8")
    except FileNotFoundError:
        hint = "the folder examples has job files to begin with"
        raise st.JobError(f"there is no file {file}", hint) from None
    except (OSError, UnicodeDecodeError) as error:
        raise st.JobError(f"{file} cannot be read: {error}", "a job file is UTF-8 text") from error
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(file, text, str(error)) from None
    return Entries(file, lines_of(text.replace("\r\n", "\n")), (), values)


def _not_toml(file: str, text: str, message: str) -> st.JobError:
    found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", message)
    line = int(found[1]) if found and found[1] else len(text.splitlines())
    said = message[: found.start()] if found else message
    return st.JobError(
        f"{file}, line {line}: this is not TOML: {said[:1].lower()}{said[1:]}",
        'an entry is name = value, text stands in "quotes", a table begins with [name]',
    )
