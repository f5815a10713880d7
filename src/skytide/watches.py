"""Standing queries on an engine: each hears what enters and leaves its own answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.changes import Changes, between, net

if TYPE_CHECKING:
    from skytide.algorithms.sliding.protocol import SlidingAlgorithm
    from skytide.engine import Engine

Ints = npt.NDArray[np.int64]

_UNREAD = 4096  # events of a watch that are summed up before anybody asks


class Watch:
    """A standing query; made by :meth:`skytide.Engine.watch`.

    >>> import skytide as st
    >>> live = st.skyline(st.low("price")).over(st.last(2)).open()
    >>> with live.watch() as watch:
    ...     live.push({"price": [3.0, 5.0, 4.0]})
    ...     watch.changes().to_pylist()
    [{'_change_type': 'insert', '_change_at': 3, 'price': 4.0}]
    """

    def __init__(self, engine: Engine, name: int, ask: Callable[[], pa.Table]) -> None:
        self._engine, self._name, self._ask = engine, name, ask

    def changes(self) -> pa.Table:
        """What entered and left the answer since last asked, netted, in order of time.

        The first call tells the answer as it was when the watch began, too, unless it was made with
        ``snapshot=False``: to add up all that is told is to have the answer.
        """
        return self._engine._changes_of(self._name)

    def answer(self) -> pa.Table:
        """The watched answer as it is now."""
        return self._ask()

    def __repr__(self) -> str:
        return f"<Watch {self._name} on {self._engine!r}>"

    def close(self) -> None:
        """Stop watching.  Closing twice is harmless."""
        self._engine._close_watch(self._name)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Ledger:
    """The unread changes of all watches of an engine."""

    def __init__(self) -> None:
        self._unread: dict[int, list[Changes]] = {}
        self._counts: dict[int, int] = {}

    def open(self, name: int, first: Changes) -> None:
        """Start a watch's account with these changes."""
        self._unread[name], self._counts[name] = [first], len(first.positions)

    def close(self, name: int) -> None:
        """End a watch's account."""
        self._unread.pop(name, None)
        self._counts.pop(name, None)

    def __contains__(self, name: int) -> bool:
        return name in self._unread

    def __len__(self) -> int:
        return len(self._unread)

    def book(self, events: tuple[Ints, Ints, Ints], at: int) -> None:
        """Enter events (who, position, sign), in order, that were seen at one time.

        O(events log events), whatever the number of watches.
        """
        who, what, sign = events
        if not len(who):
            return
        order = np.argsort(who, kind="stable")
        who, what, sign = who[order], what[order], sign[order]
        starts = np.flatnonzero(np.diff(who, prepend=who[0] - 1))
        for start, end in zip(starts, [*starts[1:], len(who)], strict=True):
            when = np.full(end - start, at, np.int64)
            self.add(int(who[start]), Changes(what[start:end], sign[start:end], when))

    def add(self, name: int, changes: Changes) -> None:
        """Enter one watch's changes; sum up when too many were not asked for."""
        if name not in self._unread or not len(changes.positions):
            return
        self._unread[name].append(changes)
        self._counts[name] += len(changes.positions)
        if self._counts[name] > _UNREAD:
            summed = net(self._unread[name])
            # What cannot be summed up any further counts for nothing, or we would try every time.
            self._unread[name], self._counts[name] = [summed], 0

    def read(self, name: int) -> Changes:
        """The net changes since last read."""
        unread, self._unread[name], self._counts[name] = self._unread[name], [], 0
        return net(unread)

    def is_quiet(self) -> bool:
        """Has no watch anything to tell, when all is summed up?"""
        return not any(len(net(unread).positions) for unread in self._unread.values())

    def positions(self) -> Ints:
        """All positions that unread changes speak of."""
        parts = [c.positions for unread in self._unread.values() for c in unread]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *parts]))


class Watchers:
    """All watches of an engine: those its algorithm keeps itself, and answers that are compared.

    An algorithm's own watches bear even names, the others odd ones.
    """

    def __init__(self, algorithm: SlidingAlgorithm) -> None:
        self._algorithm: Any = algorithm
        self._differ = Differ()

    def watch(self, length: int | None) -> int:
        """Watch the answer over rows with ``label > clock - length``."""
        if hasattr(self._algorithm, "watch"):
            return 2 * int(self._algorithm.watch(length))
        return self.watch_answer(lambda: self._algorithm.answer(length))

    def watch_between(self, ages: tuple[int, int], ask: Callable[[], Ints]) -> int:
        """Watch the answer over rows of these ages, which ``ask`` answers too."""
        if hasattr(self._algorithm, "watch_between"):
            return 2 * int(self._algorithm.watch_between(*ages))
        return self.watch_answer(ask)

    def watch_answer(self, ask: Callable[[], Ints]) -> int:
        """Watch whatever ``ask`` answers."""
        return 2 * self._differ.watch(ask) + 1

    def unwatch(self, name: int) -> None:
        """Stop a watch."""
        (self._differ if name % 2 else self._algorithm).unwatch(name // 2)

    def events(self) -> tuple[Ints, Ints, Ints]:
        """What happened since last asked: watch, position, sign."""
        who, what, sign = self._differ.events()
        if not hasattr(self._algorithm, "events"):
            return 2 * who + 1, what, sign
        names, positions, signs = self._algorithm.events()
        return (
            np.concatenate([2 * names, 2 * who + 1]),
            np.concatenate([positions, what]),
            np.concatenate([signs, sign]),
        )


class Differ:
    """Watches that are kept by asking for the answer anew and comparing."""

    def __init__(self) -> None:
        self._asks: dict[int, Callable[[], Ints]] = {}
        self._last: dict[int, Ints] = {}
        self._next = 0

    def watch(self, ask: Callable[[], Ints]) -> int:
        """Watch whatever ``ask`` answers."""
        name, self._next = self._next, self._next + 1
        self._asks[name], self._last[name] = ask, ask()
        return name

    def unwatch(self, name: int) -> None:
        """Stop a watch."""
        del self._asks[name], self._last[name]

    def events(self) -> tuple[Ints, Ints, Ints]:
        """The differences since last asked: watch, position, sign."""
        parts = [np.zeros((3, 0), np.int64)]
        for name, ask in self._asks.items():
            now = ask()
            moved = between(self._last[name], now, 0)
            who = np.full(len(moved.positions), name)
            parts.append(np.stack([who, moved.positions, moved.signs]))
            self._last[name] = now
        who, what, sign = np.concatenate(parts, axis=1)
        return who, what, sign
