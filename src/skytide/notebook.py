"""How an engine looks in a notebook: its question, its figures and the first rows of its answer."""

from __future__ import annotations

from html import escape
from typing import Any

_ROWS = 10
_CELL = 60


def engine_html(question: str, figures: dict[str, int], answer: Any) -> str:
    """A heading, a line of figures, a table; everything that comes from data is escaped.

    >>> import pyarrow as pa
    >>> engine_html("the best", {"rows seen": 2}, pa.table({"a<b": ["<i>"]})).count("<i>")
    0
    """
    line = " · ".join(f"{number:,} {name}" for name, number in figures.items())
    more = answer.num_rows - _ROWS
    rest = f"<div>and {more:,} more</div>" if more > 0 else ""
    return (
        f"<div><b>{escape(question)}</b></div><div>{escape(line)}</div>"
        f"{_table(answer.slice(0, _ROWS))}{rest}"
    )


def _table(rows: Any) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in rows.column_names)
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows.to_pylist())
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: dict[str, Any]) -> str:
    texts = (str(value) for value in row.values())
    return "".join(
        f"<td>{escape(text if len(text) <= _CELL else text[: _CELL - 1] + '…')}</td>"
        for text in texts
    )
