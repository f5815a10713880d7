"""Tables and numbers on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

ROWS_SHOWN = 8
CHANGES_SHOWN = 5


def answer_table(answer: pa.Table, noun: str, order: str | None, shown: int = ROWS_SHOWN) -> Table:
    """The first rows of an answer, by one of its columns."""
    best = answer.sort_by(order) if order else answer
    hidden = best.num_rows - shown
    caption = f"and {hidden:,} more" if hidden > 0 else None
    rows = best.slice(0, shown).to_pylist()
    return _table(f"the best {noun} now", rows, caption)


def change_table(changes: Iterable[dict[str, Any]]) -> Table:
    """Rows that came and went, the latest last."""
    rows = [
        {"": "+" if row["_change_type"] == "insert" else "-"}
        | {name: value for name, value in row.items() if not name.startswith("_")}
        for row in changes
    ]
    return _table("what entered (+) and left (-) last", rows)


def _table(title: str, rows: list[dict[str, Any]], caption: str | None = None) -> Table:
    from rich import box
    from rich.table import Table

    look: dict[str, Any] = {"box": box.SIMPLE_HEAD, "show_edge": False}  # to fit 24 lines
    table = Table(title=title, title_justify="left", caption=caption, **look)
    for name, value in rows[0].items() if rows else ():
        table.add_column(name, justify="right" if isinstance(value, int | float) else "left")
    columns = [_texts([row[name] for row in rows]) for name in (rows[0] if rows else ())]
    for texts in zip(*columns, strict=True):
        table.add_row(*texts)
    return table


def _texts(values: list[Any]) -> list[str]:
    """The cells of a column; of numbers the points stand below each other.

    >>> _texts([87.1, 87.25, 103.5]), _texts([1234, None])
    (['87.10', '87.25', '103.50'], ['1,234', ''])
    """
    texts = [_text(value) for value in values]
    if not all(isinstance(value, float) for value in values) or any("e" in text for text in texts):
        return texts
    places = max(len(text.partition(".")[2]) for text in texts)
    return [f"{value:,.{places}f}" for value in values]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:%H:%M:%S.%f}" if hasattr(value, "hour") else str(value)
