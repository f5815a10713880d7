"""Points in blocks of 64, each dimension of a block contiguous: the form SIMD likes.

Everything that compares one point with many (the flat scan, the nodes of the R-tree, the front of a
batch) does it here.  An empty lane holds NaN, which compares false with everything, so that empty
lanes and removed points never match.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import uint8

from skytide.kernel import part

LANES = 64

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class Blocks(NamedTuple):
    """``points[b, j, i]`` is dimension j of the point in lane i of block b."""

    points: Floats  # (blocks, dims, LANES)
    mask: Bytes  # (LANES,): 1 in the lanes that matched the last comparison


def empty_blocks(blocks: int, dims: int) -> Blocks:
    """So many blocks with nothing in them.

    >>> empty_blocks(2, 3).points.shape
    (2, 3, 64)
    """
    return Blocks(np.full((blocks, dims, LANES), np.nan), np.zeros(LANES, np.uint8))


@part
def mark_at_least(blocks: Blocks, block: int, point: Floats) -> bool:
    """Mark the lanes that are ``point`` or more in every dimension; is there one?

    Dimensions are looked at one by one and a block is left as soon as none of its lanes can match:
    on 75,000 anti-correlated rows of five dimensions as fast, within 10-20 %, as code compiled for
    one number of dimensions, and it is compiled once for all of them.
    """
    points, mask = blocks
    found = uint8(0)
    value = point[0]
    for i in range(LANES):
        match = uint8(value <= points[block, 0, i])
        mask[i] = match
        found |= match
    j = 1
    while found != 0 and j < point.shape[0]:
        value = point[j]
        found = uint8(0)
        for i in range(LANES):
            match = mask[i] & uint8(value <= points[block, j, i])
            mask[i] = match
            found |= match
        j += 1
    return found != 0


@part
def mark_at_most(blocks: Blocks, block: int, point: Floats) -> bool:
    """Mark the lanes that are ``point`` or less in every dimension; is there one?"""
    points, mask = blocks
    found = uint8(0)
    value = point[0]
    for i in range(LANES):
        match = uint8(value >= points[block, 0, i])
        mask[i] = match
        found |= match
    j = 1
    while found != 0 and j < point.shape[0]:
        value = point[j]
        found = uint8(0)
        for i in range(LANES):
            match = mask[i] & uint8(value >= points[block, j, i])
            mask[i] = match
            found |= match
        j += 1
    return found != 0


@part
def lane_equals(blocks: Blocks, block: int, lane: int, point: Floats) -> bool:
    """Is the point in this lane ``point`` itself?"""
    points = blocks.points
    for j in range(point.shape[0]):
        if points[block, j, lane] != point[j]:
            return False
    return True


@part
def put(blocks: Blocks, block: int, lane: int, point: Floats) -> None:
    """Write a point into a lane."""
    points = blocks.points
    for j in range(point.shape[0]):
        points[block, j, lane] = point[j]


@part
def move(blocks: Blocks, block: int, lane: int, to_block: int, to_lane: int) -> None:
    """Copy a point from one lane to another."""
    points = blocks.points
    for j in range(points.shape[1]):
        points[to_block, j, to_lane] = points[block, j, lane]


@part
def wipe(blocks: Blocks, block: int, lane: int) -> None:
    """Empty a lane."""
    points = blocks.points
    for j in range(points.shape[1]):
        points[block, j, lane] = np.nan
