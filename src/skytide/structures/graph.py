"""The CBC dominance graph (Lin et al., "Stabbing the Sky", section 4): all rows, by arrival.

Every row e of the last N knows its *elders*, the k youngest rows before it that beat it (the paper's
critical ancestor a_e for k = 1), and its *youngers*, the k oldest rows after it that beat it
(b_e).  Both are given by position, the row's arrival number; positions have no gaps, so a ring
finds a row by its position alone.

By Theorem 4, generalised from 1 to k: e is beaten by fewer than k rows of the positions lo..hi around
it if and only if, of its youngers, i < k are at most hi, and the (k - i)th youngest of its elders is
before lo.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skytide.kernel import kernel, part
from skytide.structures.blocks import LANES, Ints

NOBODY_BEFORE = np.iinfo(np.int64).min
NOBODY_AFTER = np.iinfo(np.int64).max
LABEL, BEATEN, CHILD, LOG_START, SEEN = 0, 1, 2, 3, 4  # columns of ``rows``
ELDERS, YOUNGERS, SIBLING = 0, 1, 2  # of ``kin``
OLDEST_ELDER, LAST_YOUNGER = 0, 1  # columns of ``blocks``
FIRST, NEXT, LOGGED, STEP = 0, 1, 2, 3  # what ``sizes`` holds


class Graph(NamedTuple):
    """``place = position & (capacity - 1)``; the capacity is a power of two."""

    rows: Ints  # (capacity, 5): LABEL; BEATEN by so many younger rows, <= k; CHILD: first node of
    #             the list of the rows it is an elder of; LOG_START: where its part of the log starts,
    #             counted from the first entry ever; SEEN: the last STEP of a watch that looked at it
    kin: Ints  # (capacity, 3, k): ELDERS: positions, youngest first, then NOBODY_BEFORE; YOUNGERS:
    #            positions, oldest first, then NOBODY_AFTER; SIBLING: next node in an elder's list.
    #            node = place * k + rank of that elder
    blocks: Ints  # (capacity / LANES, 2): OLDEST_ELDER: the least of the kth elders of 64 rows;
    #               LAST_YOUNGER: the greatest of their kth youngers
    log: Ints  # (entries,), a ring: the positions that each row beat when it came, row after row
    sizes: Ints  # FIRST position kept, NEXT position to come, LOGGED in all, STEP


def empty_graph(capacity: int, k: int, first: int) -> Graph:
    """A graph with room for ``capacity`` rows (a power of two), the first at position ``first``.

    >>> int(empty_graph(1024, k=1, first=1).sizes[FIRST])
    1
    """
    graph = Graph(
        np.zeros((capacity, 5), np.int64),
        np.zeros((capacity, 3, k), np.int64),
        np.zeros((max(1, capacity // LANES), 2), np.int64),
        np.zeros(2 * capacity * k, np.int64),
        np.array([first, first, 0, 0], np.int64),
    )
    graph.kin[:, YOUNGERS] = NOBODY_AFTER
    graph.blocks[:] = NOBODY_AFTER, NOBODY_BEFORE
    return graph


@part
def room(graph: Graph, beaten: int) -> bool:
    """Is there room for one more row that beats so many?

    A block of rows is never shared by the newest and the oldest, for its summary could not be.
    """
    capacity = graph.rows.shape[0]
    first, upcoming = graph.sizes[FIRST], graph.sizes[NEXT]
    if upcoming - first > capacity - LANES:
        return False
    start = (
        graph.rows[first & (capacity - 1), LOG_START] if upcoming > first else graph.sizes[LOGGED]
    )
    return bool(graph.sizes[LOGGED] + beaten - start <= graph.log.shape[0])


@part
def append(graph: Graph, label: int) -> int:
    """Add the row at the next position; its place.  O(k)."""
    position, mask = graph.sizes[NEXT], graph.rows.shape[0] - 1
    place = position & mask
    block = place // LANES
    if place % LANES == 0:
        graph.blocks[block, OLDEST_ELDER] = NOBODY_AFTER
        graph.blocks[block, LAST_YOUNGER] = NOBODY_BEFORE
    graph.rows[place, LABEL] = label
    graph.kin[place, ELDERS] = NOBODY_BEFORE
    graph.kin[place, YOUNGERS] = NOBODY_AFTER
    graph.rows[place, BEATEN] = 0
    graph.rows[place, CHILD] = -1
    graph.kin[place, SIBLING] = -1
    graph.rows[place, LOG_START] = graph.sizes[LOGGED]
    graph.rows[place, SEEN] = 0
    graph.blocks[block, LAST_YOUNGER] = NOBODY_AFTER
    graph.sizes[NEXT] = position + 1
    return place


@part
def note_elder(graph: Graph, place: int, rank: int, elder: int) -> None:
    """The ``rank``th youngest row that beats the row at ``place``, which has just been added."""
    if elder < graph.sizes[FIRST]:
        return
    mask, k = graph.rows.shape[0] - 1, graph.kin.shape[2]
    graph.kin[place, ELDERS, rank] = elder
    graph.kin[place, SIBLING, rank] = graph.rows[elder & mask, CHILD]
    graph.rows[elder & mask, CHILD] = place * k + rank


@part
def seal(graph: Graph, place: int) -> None:
    """All elders of the row just added are noted."""
    block, k = place // LANES, graph.kin.shape[2]
    graph.blocks[block, OLDEST_ELDER] = min(
        graph.blocks[block, OLDEST_ELDER], graph.kin[place, ELDERS, k - 1]
    )


@part
def note_beaten(graph: Graph, position: int) -> None:
    """The row added last beats the one at ``position``.  O(1), O(LANES) when that is its kth."""
    mask, k = graph.rows.shape[0] - 1, graph.kin.shape[2]
    place = position & mask
    count = graph.rows[place, BEATEN]
    graph.kin[place, YOUNGERS, count] = graph.sizes[NEXT] - 1
    graph.rows[place, BEATEN] = count + 1
    graph.log[graph.sizes[LOGGED] % graph.log.shape[0]] = position
    graph.sizes[LOGGED] += 1
    if count + 1 == k:
        _measure_youngers(graph, place // LANES)


@part
def _measure_youngers(graph: Graph, block: int) -> None:
    k, last = graph.kin.shape[2], NOBODY_BEFORE
    for place in range(block * LANES, min((block + 1) * LANES, graph.rows.shape[0])):
        last = max(last, graph.kin[place, YOUNGERS, k - 1])
    graph.blocks[block, LAST_YOUNGER] = last


@kernel
def forget(graph: Graph, label: int) -> None:
    """Drop the rows with labels up to ``label``.  O(1) a row."""
    mask = graph.rows.shape[0] - 1
    while graph.sizes[FIRST] < graph.sizes[NEXT]:
        if graph.rows[graph.sizes[FIRST] & mask, LABEL] > label:
            break
        graph.sizes[FIRST] += 1


@kernel
def first_after(graph: Graph, label: int) -> int:
    """The first position with a label beyond ``label``; the next to come, if none.  O(log N)."""
    mask = graph.rows.shape[0] - 1
    low, high = graph.sizes[FIRST], graph.sizes[NEXT]
    while low < high:
        middle = (low + high) // 2
        if graph.rows[middle & mask, LABEL] > label:
            high = middle
        else:
            low = middle + 1
    return low


@part
def is_answer(graph: Graph, position: int, lo: int, hi: int) -> bool:
    """Theorem 4: is the row in the skyband of the positions lo..hi?  O(k)."""
    if position < lo or position > hi:
        return False
    place, k = position & (graph.rows.shape[0] - 1), graph.kin.shape[2]
    beaten = 0
    while beaten < k and graph.kin[place, YOUNGERS, beaten] <= hi:
        beaten += 1
    return bool(beaten < k and graph.kin[place, ELDERS, k - 1 - beaten] < lo)


@kernel
def stab_between(graph: Graph, lo: int, hi: int, out: Ints) -> int:
    """Algorithm 3: write the positions of the skyband of lo..hi, ascending; how many.

    Blocks of 64 rows in which no row has all elders before lo, or none a younger after hi, are
    passed over: O((hi - lo) / 64 + 64 * blocks that are not).
    """
    found, position = 0, lo
    mask = graph.rows.shape[0] - 1
    while position <= hi:
        block = (position & mask) // LANES
        end = min(hi + 1, position + LANES - position % LANES)
        if graph.blocks[block, OLDEST_ELDER] < lo and graph.blocks[block, LAST_YOUNGER] > hi:
            for candidate in range(position, end):
                if is_answer(graph, candidate, lo, hi):
                    out[found] = candidate
                    found += 1
        position = end
    return found


def larger_graph(old: Graph) -> Graph:
    """The same rows in a ring, and a log, of twice the size."""
    new = empty_graph(2 * len(old.rows), old.kin.shape[2], 0)
    _replay(old, new)
    return new


@kernel
def _replay(old: Graph, new: Graph) -> None:
    mask = old.rows.shape[0] - 1
    first, upcoming = old.sizes[FIRST], old.sizes[NEXT]
    new.sizes[FIRST] = new.sizes[NEXT] = first
    new.sizes[STEP] = old.sizes[STEP]
    for position in range(first, upcoming):
        from_place = position & mask
        place = append(new, old.rows[from_place, LABEL])
        for rank in range(old.kin.shape[2]):
            if old.kin[from_place, ELDERS, rank] != NOBODY_BEFORE:
                note_elder(new, place, rank, old.kin[from_place, ELDERS, rank])
        seal(new, place)
        new.rows[place, SEEN] = old.rows[from_place, SEEN]
        start = old.rows[from_place, LOG_START]
        end = old.sizes[LOGGED]
        if position + 1 < upcoming:
            end = old.rows[(position + 1) & mask, LOG_START]
        for i in range(start, end):
            beaten = old.log[i % old.log.shape[0]]
            if beaten >= first:
                note_beaten(new, beaten)


@part
def _look_at(graph: Graph, position: int, span: Ints, out: Ints, found: int) -> int:
    """Has this row entered or left as the watch's span moved?  Each row is asked once a step.

    ``span``: lo and hi before, lo and hi now.
    """
    if position < graph.sizes[FIRST]:
        return found
    place = position & (graph.rows.shape[0] - 1)
    if graph.rows[place, SEEN] == graph.sizes[STEP]:
        return found
    graph.rows[place, SEEN] = graph.sizes[STEP]
    before = is_answer(graph, position, span[0], span[1])
    now = is_answer(graph, position, span[2], span[3])
    if before != now:
        if found < out.shape[1]:
            out[0, found] = position
            out[1, found] = 1 if now else -1
        found += 1
    return found


@part
def _log_end(graph: Graph, position: int) -> int:
    """Where a row's part of the log ends."""
    if position + 1 == graph.sizes[NEXT]:
        return graph.sizes[LOGGED]
    return graph.rows[(position + 1) & (graph.rows.shape[0] - 1), LOG_START]


@kernel
def move_span(graph: Graph, span: Ints, out: Ints) -> int:
    """Write who enters (1) and leaves (-1) as a watch moves; how many, even beyond ``out``'s room.

    Only four kinds of rows can change, and the graph leads to each: a row that the young edge hi
    passes, the rows it beat when it came, a row that the old edge lo passes, and the rows it is an
    elder of.  Either edge passes a row once, so that an edge of the graph is followed at most twice
    in a watch's life: O(k) amortised for each row of the stream.
    """
    graph.sizes[STEP] += 1
    mask, k, found = graph.rows.shape[0] - 1, graph.kin.shape[2], 0
    for position in range(span[1] + 1, span[3] + 1):
        found = _look_at(graph, position, span, out, found)
        start, end = graph.rows[position & mask, LOG_START], _log_end(graph, position)
        for i in range(start, end):
            found = _look_at(graph, graph.log[i % graph.log.shape[0]], span, out, found)
    for position in range(max(span[0], graph.sizes[FIRST]), span[2]):
        found = _look_at(graph, position, span, out, found)
        node = graph.rows[position & mask, CHILD]
        while node >= 0:
            found = _look_at(graph, _position(graph, node // k), span, out, found)
            node = graph.kin[node // k, SIBLING, node % k]
    return found


@part
def _position(graph: Graph, place: int) -> int:
    """The position of the row at a place."""
    first, mask = graph.sizes[FIRST], graph.rows.shape[0] - 1
    return first + ((place - first) & mask)
