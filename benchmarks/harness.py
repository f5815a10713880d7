"""What all benchmarks share: streams, fair timing, tables, results and pictures.

Times are CPU seconds of the measuring thread with the garbage collector off, so that a busy machine
disturbs little.  Contenders take turns within a round, in changing order, and what is reported is
the median over the rounds: of the times, and of the ratios of times taken in the same round.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import math
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numba
import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from skytide.data import anti_correlated, correlated, independent
from skytide.kernel import sources_stamp

RESULTS = Path(__file__).parent / "results"
DISTRIBUTIONS = {
    "correlated": correlated,
    "independent": independent,
    "anti-correlated": anti_correlated,
}
COLOURS = {"correlated": "#3b7d4f", "independent": "#2f5f98", "anti-correlated": "#b5482a"}
LINES = ("#2f5f98", "#b5482a", "#3b7d4f", "#8a6bb1", "#7a7a7a", "#c79a1e")
MARKERS = "osD^vP"
BATCH = 10_000

Times = dict[str, list[float]]


# -- streams -------------------------------------------------------------------------------------


def rows_of(distribution: str, dims: int, count: int, seed: int = 1) -> np.ndarray:
    """So many rows of one of the three classic distributions."""
    return DISTRIBUTIONS[distribution](count, dims, seed)


class Feed:
    """An algorithm over the last ``length`` rows, and the stream it is reading."""

    def __init__(self, make: Callable[..., Any], values: np.ndarray, length: int) -> None:
        self.algorithm = make(values.shape[1], 1, False, length)
        self.values, self.length, self.seen = values, length, 0
        self.positions = np.arange(1, len(values) + 1)

    def batch(self, count: int = BATCH) -> Feed:
        """Read the next rows as one batch."""
        rows = self._next(count)
        self.algorithm.advance(self.seen)
        self.algorithm.push(self.values[rows], self.positions[rows], self.positions[rows])
        return self

    def each(self, count: int = 1) -> Feed:
        """Read the next rows one by one, the window sliding with each."""
        rows = self._next(count)
        self.algorithm.push_each(self.values[rows], self.positions[rows], self.positions[rows])
        return self

    def fill(self, upto: int | None = None) -> Feed:
        """Read in batches until the window is full, or so many rows are read."""
        upto = upto or self.length
        while self.seen < upto:
            self.batch(min(BATCH, upto - self.seen))
        return self

    def refill(self, other: Feed) -> Feed:
        """Start where another feed is, with the rows it keeps: that is all that matters."""
        kept = other.algorithm.kept()
        self.seen = other.seen
        self.algorithm.advance(self.seen)
        for part in np.array_split(kept, max(1, len(kept) // BATCH)):
            self.algorithm.push(self.values[part - 1], part, part)
        return self

    def twin(self) -> Feed:
        """Another feed in the same state."""
        other = copy.copy(self)
        other.algorithm = copy.deepcopy(self.algorithm)
        return other

    def window(self, length: int | None = None) -> np.ndarray:
        """The last rows read."""
        return self.values[self.seen - (length or self.length) : self.seen]

    def _next(self, count: int) -> slice:
        rows = slice(self.seen, self.seen + count)
        if rows.stop > len(self.values):
            raise ValueError(f"row {rows.stop:,} of {len(self.values):,} is asked for")
        self.seen += count
        return rows


def check_agree(answers: dict[str, np.ndarray], what: str) -> None:
    """Stop the benchmark unless all contenders give the same answer."""
    (first, truth), *others = answers.items()
    for name, answer in others:
        if not np.array_equal(np.sort(truth), np.sort(answer)):
            sys.exit(f"{what}: {name} and {first} disagree ({len(answer)} and {len(truth)} rows)")


# -- time ----------------------------------------------------------------------------------------


def cost(work: Callable[[], Any], clock: Callable[[], float] = time.thread_time) -> float:
    """The seconds one call takes."""
    collecting = gc.isenabled()
    gc.disable()
    start = clock()
    work()
    taken = clock() - start
    if collecting:
        gc.enable()
    return taken


def interleaved(
    contenders: dict[str, Callable[[], Any]],
    rounds: int,
    clock: Callable[[], float] = time.thread_time,
    before: Callable[[str], Any] = lambda name: None,
) -> Times:
    """The seconds of every contender in every round; they take turns, in changing order.

    ``before`` is called with the name of each whose turn it is, and not timed.
    """
    times: Times = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(rounds):
        order = names if turn % 2 == 0 else names[::-1]
        for name in order:
            before(name)
            times[name].append(cost(contenders[name], clock))
    return times


def ratio(times: Times, slow: str, fast: str) -> float:
    """How many times as long one contender takes as another: median of the rounds' ratios."""
    pairs = zip(times[slow], times[fast], strict=True)
    return statistics.median(a / b for a, b in pairs)


def mean(values: Iterable[float]) -> float:
    """The average."""
    return float(statistics.fmean(values))


def middle(values: Iterable[float]) -> float:
    """The median."""
    return float(statistics.median(values))


def sized(work: Callable[[int], Any], probe: int, seconds: float, most: int) -> int:
    """How many rows make ``work`` take about so long: what it did with a few, extrapolated."""
    taken = cost(lambda: work(probe)) / probe
    return int(min(most, max(probe, seconds / max(taken, 1e-9))))


# -- what comes of it ----------------------------------------------------------------------------


class Bench:
    """One experiment: its mode, its tables, its files."""

    def __init__(self, file: str, about: str | None, files: dict[str, str] | None = None) -> None:
        parser = argparse.ArgumentParser(description=about)
        parser.add_argument("--quick", action="store_true", help="small sizes, under a minute")
        for name, explained in (files or {}).items():
            parser.add_argument(f"--{name}", metavar="PATH", help=explained)
        self.options = vars(parser.parse_args())
        self.name, self.quick = Path(file).stem, self.options["quick"]
        self.started = time.perf_counter()
        self.tables: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.folder = RESULTS / "quick" if self.quick else RESULTS
        self.folder.mkdir(parents=True, exist_ok=True)
        print((about or "").strip().splitlines()[0], "[quick]" if self.quick else "")

    def pick(self, full: Any, quick: Any) -> Any:
        """The value for this mode."""
        return quick if self.quick else full

    def table(self, title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print a table and keep it for the results."""
        self.tables.append({"title": title, "header": list(header), "rows": rows})
        cells = [list(header), *([shown(cell) for cell in row] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        print(f"\n{title}")
        for i, row in enumerate(cells):
            line = (
                cell.ljust(w) if j == 0 else cell.rjust(w)
                for j, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            print("  " + "  ".join(line))
            if i == 0:
                print("  " + "  ".join("-" * w for w in widths))
        sys.stdout.flush()

    def say(self, note: str) -> None:
        """Print a remark and keep it."""
        self.notes.append(note)
        print(f"\n{note}", flush=True)

    def finish(self, parameters: dict[str, Any], raw: Any) -> None:
        """Write the results file."""
        result = {
            "benchmark": self.name,
            "mode": "quick" if self.quick else "full",
            "seconds": round(time.perf_counter() - self.started, 1),
            "versions": {
                "python": platform.python_version(),
                "numpy": np.__version__,
                "numba": numba.__version__,
            },
            "sources": sources_stamp()[:12],
            "parameters": parameters,
            "notes": self.notes,
            "tables": self.tables,
            "raw": raw,
        }
        path = self.folder / f"{self.name}.json"
        path.write_text(json.dumps(result, indent=1, default=_plain) + "\n")
        print(f"\n{self.name}: {result['seconds']} s, {path.relative_to(RESULTS.parent)}")

    def picture(self, figure: Any) -> None:
        """Write the picture."""
        for axes in figure.axes:
            _plain_ticks(axes)
        figure.tight_layout()
        figure.savefig(self.folder / f"{self.name}.png", dpi=110)
        plt.close(figure)


def shown(value: Any) -> str:
    """A table cell: numbers with three significant digits, whole ones with separators."""
    if isinstance(value, (bool, str)) or value is None:
        return "" if value is None else str(value)
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if not math.isfinite(value):
        return "-"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def met(is_so: bool) -> str:
    """For the column that says whether a target is met."""
    return "yes" if is_so else "NO"


def times_as(value: float) -> str:
    """A ratio for a table."""
    return f"{shown(value)}x"


def _plain(value: Any) -> Any:
    """For JSON: six significant digits are plenty."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return str(value)


def panels(count: int, width: float = 4.4, height: float = 3.6) -> tuple[Any, list[Any]]:
    """A picture with so many axes side by side."""
    plt.rcParams.update(
        {
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "legend.frameon": False,
            "lines.markersize": 4,
        }
    )
    figure, axes = plt.subplots(1, count, figsize=(width * count, height), squeeze=False)
    return figure, list(axes[0])


def label(axes: Any, title: str, x: str, y: str, *, log: str = "") -> None:
    """Title and axes; ``log`` names the axes that are logarithmic."""
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log:
        axes.set_yscale("log")


def legend(axes: Any, **options: Any) -> None:
    """A small legend where there is room."""
    axes.legend(fontsize=8, **options)


def _plain_ticks(axes: Any) -> None:
    """On logarithmic axes 10k instead of 10^4, and more ticks where there are few decades."""
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            within = (1.0,) if high / low > 200 else (1.0, 2.0, 5.0)
            axis.set_major_locator(LogLocator(subs=within, numticks=12))
            axis.set_major_formatter(FuncFormatter(lambda value, _: compact(value)))
            axis.set_minor_formatter(NullFormatter())


def compact(value: float) -> str:
    """A number for an axis.

    >>> compact(20_000), compact(0.05), compact(1e6)
    ('20k', '0.05', '1M')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
