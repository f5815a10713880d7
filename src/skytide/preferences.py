"""What is better: a low or a high value of a column, or of an expression over columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from skytide.checks import one_of, quoted, text, tidy
from skytide.errors import QueryError

if TYPE_CHECKING:
    from skytide.expressions import Expression

__all__ = ["Direction", "Preference", "high", "low", "plain_column", "sql_name"]

Direction: TypeAlias = Literal["low", "high"]

# a.name or b.name (the rows of a pair), an identifier, or anything in double quotes.
_PLAIN_COLUMN = re.compile(r'(?:([abAB])\.)?(?:([^\W\d]\w*)|"((?:[^"]|"")+)")')


def plain_column(expression: str) -> tuple[str, str] | None:
    """The row ("a", "b" or "") and the name of a plain column, or None if it is an expression.

    >>> plain_column("price"), plain_column('a."unit price"'), plain_column("price * 2")
    (('', 'price'), ('a', 'unit price'), None)
    """
    match = _PLAIN_COLUMN.fullmatch(expression.strip())
    if match is None:
        return None
    row, identifier, quoted = match.groups()
    return (row or "").lower(), identifier or quoted.replace('""', '"')


def sql_name(column: str) -> str:
    """A column name as an expression has to write it: in quotes unless it is an identifier.

    >>> sql_name("price"), sql_name("unit price")
    ('price', '"unit price"')
    """
    if column.isidentifier():
        return column
    return '"' + column.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True, repr=False)
class Preference:
    """What is better: a low or a high value of a column or of a scalar SQL expression.

    An expression is parsed at once, so that a slip is reported where it was made.

    >>> Preference("price", "low")
    low("price")
    >>> str(high("volume"))
    'high volume'
    """

    expression: str
    direction: Direction

    def __post_init__(self) -> None:
        tidy(self, expression=text(self.expression, "the expression of a preference"))
        one_of(self.direction, ("low", "high"), "the direction of a preference")
        if not self.columns:
            raise QueryError(
                f"the preference {self!r} mentions no column: all rows would be equal",
                "name at least one column of the data",
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it needs, in order of mention; in a pair preference as `a.name`, `b.name`.

        >>> low("abs(price - cost) / cost").columns
        ('price', 'cost')
        """
        plain = plain_column(self.expression)
        if plain is None:
            return _parsed(self.expression).columns
        row, name = plain
        return (f"{row}.{name}" if row else name,)

    @property
    def rows(self) -> frozenset[str]:
        """Which rows it looks at: {""} for the row itself, any of {"a", "b"} for a pair.

        >>> sorted(low("abs(a.temp - b.temp)").rows)
        ['a', 'b']
        """
        plain = plain_column(self.expression)
        return frozenset([plain[0]]) if plain else _parsed(self.expression).rows

    def __repr__(self) -> str:
        return f"{self.direction}({quoted(self.expression)})"

    def __str__(self) -> str:
        return f"{self.direction} {' '.join(self.expression.splitlines())}"


def low(expression: str) -> Preference:
    """The lower the better: a column name, or a scalar SQL expression over columns.

    >>> low("price")
    low("price")
    """
    return Preference(expression, "low")


def high(expression: str) -> Preference:
    """The higher the better: a column name, or a scalar SQL expression over columns.

    >>> high('"traded volume"').columns
    ('traded volume',)
    """
    return Preference(expression, "high")


def _parsed(expression: str) -> Expression:
    # Late: expressions need pyarrow, and `import skytide` must stay light.
    from skytide.expressions import parse

    return parse(expression)
