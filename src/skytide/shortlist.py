"""Large batches for a top k: one look at the scores, and only what can matter is read at all.

A million rows cost about twice what comparing them with a constant does, and a seventh of reading them
all: `skytide.algorithms.topk.admission` has the argument why the others can be left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skytide.algorithms.topk.admission import admitted
from skytide.rows import Batch, Reader
from skytide.slides import Ruler

Ints = npt.NDArray[np.int64]


def shortlist(
    reader: Reader, rows: Any, ruler: Ruler, seen: int, k: int
) -> tuple[Batch, Ints, int] | None:
    """The rows that can matter, their places among all, from 1, and how many all are.

    Rows that wait for the end of their slide rule out only each other.  None where it takes more than
    a look: a score to be computed, few rows, a NaN to be complained of.

    >>> from skytide.query import high, last, top
    >>> query = top(1, high("x")).over(last(9_000))
    >>> from skytide.slides import ruler_of
    >>> reader, ruler = Reader(query), ruler_of(query.window)
    >>> _ = reader.read({"x": np.zeros(1)})
    >>> batch, places, count = shortlist(reader, {"x": -np.arange(5_000.0)}, ruler, seen=1, k=1)
    >>> len(places), count
    (5000, 5000)
    """
    plain = reader.plain_scores(rows)
    if plain is None:
        return None
    table, scores, sign = plain
    ready = max(0, ruler.moved_to(seen + len(scores)) - seen)
    now, later = (admitted(part, k, sign) for part in np.split(scores, [ready]))
    if len(now) == 0 < ready or len(later) == 0 < len(scores) - ready:
        return None  # there is a NaN
    chosen = np.concatenate([now, later + ready])
    return reader.read(table.take(chosen)), chosen + 1, len(scores)
