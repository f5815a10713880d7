"""Which slide a row belongs to, and what all top-k algorithms refuse."""

from __future__ import annotations

from skytide.kernel import inlined, part
from skytide.structures.blocks import Ints


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


@inlined
def first_after(labels: Ints, start: int, label: int) -> int:
    """The first row from ``start`` on with a greater label: O(log of how far that is)."""
    low, step, rows = start, 1, labels.shape[0]
    while low + step <= rows and labels[low + step - 1] <= label:
        low += step
        step *= 2
    high = min(low + step, rows + 1) - 1
    while low < high:
        middle = (low + high) // 2
        if labels[middle] <= label:
            low = middle + 1
        else:
            high = middle
    return low


def refuse_other_questions(name: str, dims: int, newest: bool) -> None:
    """A top k has one score, and of equal ones the younger row is better."""
    if dims != 1 or not newest:
        raise ValueError(f"{name} ranks by one score, with the younger of equal rows the better")


def refuse_other_lengths(name: str, length: int | None, asked: int | None) -> None:
    """For algorithms that answer for the whole window only."""
    if asked != length:
        raise ValueError(f"{name} answers for the whole window, of length {length}, only")
