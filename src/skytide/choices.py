"""The table of algorithms by name, and which of them a query gets.

A new algorithm is one new file and one line here.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from skytide.errors import QueryError, did_you_mean
from skytide.query import Everything, LastRows, LastTime, Query, Top, TopPairs
from skytide.slides import Ruler


@dataclass(frozen=True)
class Algorithm:
    """A line of the table of algorithms."""

    name: str
    where: str
    about: str

    def load(self) -> Any:
        """Its class, imported when it is first wanted."""
        module, _, name = self.where.partition(":")
        return getattr(importlib.import_module(f"skytide.algorithms.{module}"), name)

    def refuses(self, query: Query) -> str:
        """What of the query it cannot do; nothing if it can do all of it."""
        cls = self.load()
        if ranks(cls) and not isinstance(query.question, Top):
            return "ranks by one score: it answers top(k, ...) only"
        if query.k > 1 and not cls.any_k:
            return "answers skylines only, not skybands"
        if getattr(query.window, "history", False) and not cls.history:
            return "keeps no history"
        return ""


ALGORITHMS = {
    line.name: line
    for line in (
        Algorithm("n-of-n", "sliding.n_of_n:NofN", "R_N, by flat scan while small, then R-tree"),
        Algorithm("n-of-n-flat", "sliding.n_of_n:NofNFlat", "R_N by flat blocked scan alone"),
        Algorithm("n-of-n-rtree", "sliding.n_of_n:NofNTree", "R_N by R-tree alone"),
        Algorithm("n12-of-n", "sliding.n12_of_n:N12ofN", "all N rows, for questions on the past"),
        Algorithm("eager", "sliding.eager:Eager", "Tao and Papadias, eager: an event list"),
        Algorithm("lazy", "sliding.lazy:Lazy", "Tao and Papadias, lazy: work at expiry"),
        Algorithm("recompute-sfs", "sliding.recompute:RecomputeSFS", "anew, sort-filter-skyline"),
        Algorithm("recompute-klp", "sliding.recompute:RecomputeKLP", "anew, divide and conquer"),
        Algorithm("k-skyband", "topk.kskyband:KSkyband", "rows fewer than k younger ones beat"),
        Algorithm("mintopk", "topk.mintopk:MinTopK", "predicted results, lower-bound pointers"),
        Algorithm("sma", "topk.sma:SMA", "a grid, the 2 k best rows, recomputation"),
        Algorithm("two-stacks", "topk.two_stacks:TwoStacks", "suffix top-k lists of slides"),
        Algorithm("two-stacks-linked", "topk.two_stacks_linked:TwoStacksLinked", "of linked rows"),
        Algorithm("two-stacks-culled", "topk.two_stacks_linked:TwoStacksCulled", "of long slides"),
        Algorithm("lazy-heap", "topk.lazy_heap:LazyHeap", "two Python heaps with lazy deletion"),
        Algorithm("sap-enhanced", "topk.sap:SapEnhanced", "SAP, k-units by threshold"),
        Algorithm("sap-dynamic", "topk.sap:SapDynamic", "SAP, partitions by rank test"),
        Algorithm("sap-equal", "topk.sap:SapEqual", "SAP, partitions of one size"),
        Algorithm("sap-non-delay", "topk.sap:SapNonDelay", "SAP, every partition scanned"),
        Algorithm("sap-rescan", "topk.sap:SapRescan", "SAP without S-AVL"),
    )
}


def algorithms_for(query: Query) -> dict[str, str]:
    """The algorithms that can do what the query asks, the default first, and what each does."""
    default = default_algorithm(query)
    able = {name: line.about for name, line in ALGORITHMS.items() if not line.refuses(query)}
    return {default: able[default], **able}


def default_algorithm(query: Query) -> str:
    """The best algorithm we have for a query."""
    window = query.window
    if isinstance(query.question, TopPairs) or not isinstance(
        window, (LastRows, LastTime, Everything)
    ):
        raise QueryError(
            f"no engine answers {query} yet",
            "skyline, skyband and top are answered over last(...) and everything()",
        )
    if getattr(window, "history", False):
        return "n12-of-n"
    return _fastest_top(query) if isinstance(query.question, Top) else "n-of-n"


def _fastest_top(query: Query) -> str:
    """By measurement (``benchmarks/topk_map.py``): two stacks with a linked front.

    Of rows that end together only the k best need be kept, which pays when a slide has many more of
    them.  How many rows a slide of time has nobody knows.
    """
    window = query.window
    every = window.every if isinstance(window, LastRows) else 1
    return "two-stacks-culled" if every >= 8 * query.k else "two-stacks-linked"


def any_length_algorithm(query: Query) -> str:
    """The algorithm for a query that also answers for any part of the window."""
    name = "two-stacks-linked" if isinstance(query.question, Top) else "n-of-n"
    return "n12-of-n" if ALGORITHMS[name].refuses(query) else name


def made(query: Query, name: str, ruler: Ruler) -> Any:
    """The algorithm itself, if it can do what the query asks."""
    default_algorithm(query)
    if name not in ALGORITHMS:
        raise QueryError(
            f"there is no algorithm {name!r}.{did_you_mean(name, ALGORITHMS)}",
            f"the algorithms are {', '.join(ALGORITHMS)}",
        )
    if refused := ALGORITHMS[name].refuses(query):
        raise QueryError(
            f"the algorithm {name} {refused}",
            f"leave it out, or take {' or '.join(algorithms_for(query))}",
        )
    cls = ALGORITHMS[name].load()
    arguments = len(query.preferences), query.k, query.ties == "newest", ruler.length
    return cls(*arguments, ruler.every) if ranks(cls) else cls(*arguments)


def ranks(algorithm: Any) -> bool:
    """Is it one of those that rank by one score, slide by slide?"""
    return bool(getattr(algorithm, "ranking", False))
