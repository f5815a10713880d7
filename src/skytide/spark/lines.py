"""On which line of a TOML file does an entry stand? `tomllib` does not say."""

from __future__ import annotations

import re

__all__ = ["Path", "lines_of", "nearest"]

Path = tuple[str, ...]

_KEY = re.compile(r"""\s*([A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')\s*(\.)?""")
_TOKEN = re.compile(
    r'''"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#[^\n]*|[][{}\n]''',
    re.DOTALL,
)


def lines_of(text: str) -> dict[Path, int]:
    """The line of every table and key of a sound TOML text, from 1.

    Entries of inline tables and lists are not listed: they stand where their own key stands, or a
    little below.

    >>> lines_of('name = "x"\\n[source]\\n\\noptions.rows = 5')
    {('name',): 1, ('source',): 2, ('source', 'options'): 4, ('source', 'options', 'rows'): 4}
    """
    lines: dict[Path, int] = {}
    table: Path = ()
    for number, statement in _statements(text):
        if statement.startswith("["):
            table = _path(statement.strip("[] \t"))
            key = table
        else:
            key = (*table, *_path(statement))
        for length in range(1, len(key) + 1):
            lines.setdefault(key[:length], number)
    return lines


def _statements(text: str) -> list[tuple[int, str]]:
    """Where each header and each key with its value begins, and its text without comments."""
    found: list[tuple[int, str]] = []
    begin = depth = 0
    for token in _TOKEN.finditer(text + "\n"):
        piece = token[0]
        if piece in "[{":
            depth += 1
        elif piece in "]}":
            depth -= 1
        elif piece[0] == "#" and not text[begin : token.start()].strip():
            begin = token.end()
        elif piece == "\n" and depth == 0:
            statement = text[begin : token.start()].strip()
            if statement:
                lead = len(text[begin:]) - len(text[begin:].lstrip())
                found.append((text.count("\n", 0, begin + lead) + 1, statement))
            begin = token.end()
    return found


def _path(text: str) -> Path:
    """The parts of a dotted key at the beginning of a text."""
    parts, position = [], 0
    while match := _KEY.match(text, position):
        name = match[1]
        parts.append(name[1:-1] if name[0] in "\"'" else name)
        position = match.end()
        if not match[2]:
            break
    return tuple(parts)


def nearest(lines: dict[Path, int], path: Path) -> int | None:
    """The line of an entry, or of what it stands in.

    >>> nearest({("sink",): 4}, ("sink", "path")), nearest({}, ("sink",))
    (4, None)
    """
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None
