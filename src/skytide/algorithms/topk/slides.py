"""Which slide a row belongs to, and what all top-k algorithms refuse."""

from __future__ import annotations

from skytide.kernel import part


@part
def arrival(label: int, every: int) -> int:
    """The first multiple of ``every`` that is not before the label: from then on the row counts.
    With ``every`` 3 it is 6 for label 6, 9 for 7, and 0 for -2."""
    return -(-label // every) * every


@part
def end(label: int, length: int, every: int) -> int:
    """The first multiple of ``every`` at which the row counts no more: with ``length`` 5 and
    ``every`` 3 it is 9 for label 4, and 12 for 5."""
    return -(-(label + length) // every) * every


def refuse_other_questions(name: str, dims: int, newest: bool) -> None:
    """A top k has one score, and of equal ones the younger row is better."""
    if dims != 1 or not newest:
        raise ValueError(f"{name} ranks by one score, with the younger of equal rows the better")


def refuse_other_lengths(name: str, length: int | None, asked: int | None) -> None:
    """For algorithms that answer for the whole window only."""
    if asked != length:
        raise ValueError(f"{name} answers for the whole window, of length {length}, only")
