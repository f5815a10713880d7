"""A max-heap of int64 keys with an item each; the caller counts its size.

``heap[KEY, i]`` and ``heap[ITEM, i]``; the items may also serve as a plain stack.
"""

from __future__ import annotations

from skytide.kernel import kernel
from skytide.structures.blocks import Ints

KEY, ITEM = 0, 1


@kernel
def push(heap: Ints, size: int, key: int, item: int) -> int:
    """Add an item; the new size.  O(log size).

    >>> import numpy as np
    >>> heap = np.zeros((2, 9), np.int64)
    >>> size = push(heap, push(heap, 0, 5, 50), 7, 70)
    >>> int(heap[ITEM, 0]), pop(heap, size), int(heap[ITEM, 0])
    (70, 1, 50)
    """
    i = size
    while i > 0 and heap[KEY, (i - 1) // 2] < key:
        heap[KEY, i] = heap[KEY, (i - 1) // 2]
        heap[ITEM, i] = heap[ITEM, (i - 1) // 2]
        i = (i - 1) // 2
    heap[KEY, i] = key
    heap[ITEM, i] = item
    return size + 1


@kernel
def pop(heap: Ints, size: int) -> int:
    """Drop the item with the greatest key, which is ``heap[ITEM, 0]``; the new size.  O(log size)."""
    size -= 1
    key, item = heap[KEY, size], heap[ITEM, size]
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and heap[KEY, child + 1] > heap[KEY, child]:
            child += 1
        if heap[KEY, child] <= key:
            break
        heap[KEY, i] = heap[KEY, child]
        heap[ITEM, i] = heap[ITEM, child]
        i = child
    heap[KEY, i] = key
    heap[ITEM, i] = item
    return size
