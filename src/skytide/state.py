"""The state of an engine as bytes: versioned, checked, nothing in it is ever executed.

    magic (8 bytes) | header length (4) | header, JSON | sections | digest of all before it (16)

A section is an Arrow IPC stream, or the steps from position to position as unsigned integers of as few
bytes as hold the largest; a table like the one before, without rows, is left out.  The digest tells a
truncated or altered state from a whole one; it is no signature.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.errors import StateError

Ints = npt.NDArray[np.int64]

MAGIC = b"SKYTIDE\x00"
VERSION = 1
_DIGEST = 16
_LENGTH = 4


class State(NamedTuple):
    """What is needed to go on: facts (plain JSON), the kept rows and their positions, and the rows
    that wait for the next slide."""

    facts: dict[str, Any]
    positions: Ints
    kept: pa.Table
    waiting: pa.Table


def pack(state: State) -> bytes:
    """The state as bytes.

    >>> empty = pa.table({"a": pa.array([], pa.int8())})
    >>> blob = pack(State({"seen": 0}, np.zeros(0, np.int64), empty, empty))
    >>> unpack(blob).facts
    {'seen': 0}
    """
    waits = state.waiting.num_rows or state.waiting.schema != state.kept.schema
    steps = _steps(state.positions)
    sections = [
        steps.tobytes(),
        _table_bytes(state.kept),
        _table_bytes(state.waiting) if waits else b"",
    ]
    layout = {"sections": [len(s) for s in sections], "step": steps.itemsize}
    header = json.dumps({"version": VERSION, **layout, "facts": state.facts}).encode()
    body = b"".join([MAGIC, len(header).to_bytes(_LENGTH, "little"), header, *sections])
    return body + _digest(body)


def unpack(blob: bytes) -> State:
    """The state that :func:`pack` wrote; anything else is refused with what is wrong."""
    header, at = _header(blob)
    try:
        return _unpacked(blob, header, at)
    except StateError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise StateError(f"this state contradicts itself: {error}") from error


def _unpacked(blob: bytes, header: dict[str, Any], at: int) -> State:
    sections = []
    for length in header["sections"]:
        sections.append(blob[at : at + length])
        at += length
    steps = np.frombuffer(sections[0], f"<u{header['step']}")
    kept = _table(sections[1])
    waiting = _table(sections[2]) if sections[2] else kept.slice(0, 0)
    return State(header["facts"], np.cumsum(steps, dtype=np.int64), kept, waiting)


def _steps(positions: Ints) -> npt.NDArray[np.unsignedinteger[Any]]:
    """What to add up to have the positions, which ascend from at least 0."""
    steps = np.diff(positions, prepend=0)
    most = int(steps.max(initial=0))
    size = next(size for size in (1, 2, 4, 8) if most < 256**size)
    return steps.astype(f"<u{size}")


def _header(blob: bytes) -> tuple[dict[str, Any], int]:
    """The header of a whole, unaltered state, and where the sections start."""
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise StateError(
            f"a state is bytes, not {type(blob).__name__}", "pass what save() returned"
        )
    blob = bytes(blob)
    if blob[: len(MAGIC)] != MAGIC:
        raise StateError("this is no state of a skytide engine", "pass what save() returned")
    if _digest(blob[:-_DIGEST]) != blob[-_DIGEST:]:
        raise StateError(
            f"this state is truncated or altered ({len(blob):,} bytes, wrong checksum)",
            "take another copy of it, or start a new engine with query.open()",
        )
    start = len(MAGIC) + _LENGTH
    at = start + int.from_bytes(blob[len(MAGIC) : start], "little")
    header: dict[str, Any] = json.loads(blob[start:at])
    if header["version"] != VERSION:
        raise StateError(
            f"this state has format {header['version']}; this skytide reads format {VERSION}",
            "load it with the skytide that wrote it, or start a new engine with query.open()",
        )
    return header, at


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST).digest()


def _table_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def _table(section: bytes) -> pa.Table:
    try:
        table = pa.ipc.open_stream(section).read_all()
        table.validate(full=True)
    except pa.ArrowException as error:
        raise StateError(f"the rows in this state cannot be read: {error}") from None
    return table
