"""What can go wrong, by kind. Every message says what happened, where, and what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

__all__ = [
    "BadRows",
    "JobError",
    "LateRows",
    "MissingExtra",
    "QueryError",
    "SchemaError",
    "SkytideError",
    "StateError",
    "did_you_mean",
]

# A message is read by a person: the first few rows of each kind are enough to find the rest.
_SHOWN = 5


class SkytideError(Exception):
    """The base of every error skytide raises on purpose.

    The hint, if there is one, stands on a line of its own after the message.

    >>> print(SkytideError("the cup is empty", hint="fill it"))
    the cup is empty
    Hint: fill it
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}\nHint: {hint}" if hint else message)


class QueryError(SkytideError, ValueError):
    """A question that cannot be asked: found when it is built, before any row is read.

    >>> issubclass(QueryError, ValueError)
    True
    """


class SchemaError(SkytideError, TypeError):
    """Columns that are missing, of the wrong type, or not what they were in the first push.

    >>> issubclass(SchemaError, TypeError)
    True
    """


class JobError(SkytideError, ValueError):
    """A job file that cannot be run; the message begins with the file and the line.

    >>> issubclass(JobError, ValueError)
    True
    """


class LateRows(SkytideError, ValueError):  # noqa: N818
    """Rows older than the newest row already seen: the time of a window does not run backwards.

    >>> issubclass(LateRows, ValueError)
    True
    """


class StateError(SkytideError, ValueError):
    """A saved state that cannot be loaded, or an engine that cannot be saved.

    >>> issubclass(StateError, ValueError)
    True
    """


class MissingExtra(SkytideError, ImportError):  # noqa: N818
    """An optional library is needed at this point and is not installed.

    >>> issubclass(MissingExtra, ImportError)
    True
    """


class BadRows(SkytideError, ValueError):  # noqa: N818
    """Cells that cannot be ordered: null, NaN, or not exact in float64. Nothing was taken in.

    `rows`, `columns` and `reasons` are parallel, one entry a bad cell; a row is its 0-based index
    in the push. All cells are kept here; the message counts them and shows the first few.

    >>> error = BadRows([3, 8], ["price", "price"], ["null", "null"], hint="drop them")
    >>> print(error)
    2 bad cells in 2 rows; nothing of this push was taken in
      price: 2 null (rows 3, 8)
    Hint: drop them
    >>> error.rows
    [3, 8]
    """

    def __init__(
        self,
        rows: Sequence[int],
        columns: Sequence[str],
        reasons: Sequence[str],
        hint: str = "drop these rows, or fill their cells, before the push",
    ) -> None:
        self.rows = list(rows)
        self.columns = list(columns)
        self.reasons = list(reasons)
        self._hint = hint
        super().__init__("\n".join([self._headline(), *self._lines()]), hint)

    def _headline(self) -> str:
        cells, rows = len(self.rows), len(set(self.rows))
        return (
            f"{cells:,} bad cell{'s' * (cells != 1)} in {rows:,} row{'s' * (rows != 1)}; "
            "nothing of this push was taken in"
        )

    def _lines(self) -> list[str]:
        kinds: dict[tuple[str, str], list[int]] = {}
        for row, column, reason in zip(self.rows, self.columns, self.reasons, strict=True):
            kinds.setdefault((column, reason), []).append(row)
        return [
            f"  {column}: {len(rows):,} {reason} ({_listed(rows)})"
            for (column, reason), rows in kinds.items()
        ]

    def __reduce__(self) -> tuple[type[BadRows], tuple[list[int], list[str], list[str], str]]:
        return type(self), (self.rows, self.columns, self.reasons, self._hint)


def _listed(rows: list[int]) -> str:
    shown = ", ".join(str(row) for row in rows[:_SHOWN])
    return f"row{'s' * (len(rows) != 1)} {shown}{', ...' * (len(rows) > _SHOWN)}"


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """The sentence that offers the choice closest to `name`, or "" if none is close.

    >>> did_you_mean("prize", ["price", "volume"])
    ' Did you mean "price"?'
    >>> did_you_mean("weight", ["price", "volume"])
    ''
    """
    by_folded = {choice.casefold(): choice for choice in choices}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1)
    return f' Did you mean "{by_folded[close[0]]}"?' if close else ""
