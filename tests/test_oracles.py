"""The oracles against definitions written out, against each other, and against the paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from oracles import (
    beats,
    changes,
    everything,
    kept,
    kept_of_fixed_window,
    last,
    recent,
    skyband,
    skyline,
    slide,
    top,
    top_pairs,
)
from paper_streams import (
    EXAMPLE_1,
    EXAMPLE_1_INTERVALS,
    FIGURE_2,
    FIGURE_2_ANSWERS,
    FIGURE_5,
    FIGURE_5_ANSWERS,
    FIGURE_5_INTERVALS,
    letters,
)

Row = tuple[int, ...]

few_rows = some.integers(1, 3).flatmap(
    lambda dims: some.lists(some.tuples(*[some.integers(0, 2)] * dims), min_size=1, max_size=12)
)


def intervals(values: list[Row], window: list[int]) -> set[tuple[int, int]]:
    """The paper's encoding of the dominance graph, straight from section 3.2."""
    beat = beats(values)
    stays = kept(values, window)
    return {(max((q for q in stays if q < p and beat[q - 1, p - 1]), default=0), p) for p in stays}


# --------------------------------------------------------------------------------------
# The definitions


@given(few_rows, some.booleans())
def test_beats_is_the_definition_row_by_row(rows: list[Row], newest: bool) -> None:
    for q, p in np.ndindex(len(rows), len(rows)):
        no_worse = all(a <= b for a, b in zip(rows[q], rows[p], strict=True))
        better = any(a < b for a, b in zip(rows[q], rows[p], strict=True))
        younger_equal = newest and rows[q] == rows[p] and q > p
        assert beats(rows, newest)[q, p] == (no_worse and (better or younger_equal))


@given(few_rows, some.integers(1, 4))
def test_top_is_the_skyband_of_one_dimension(rows: list[Row], k: int) -> None:
    scores = [row[0] for row in rows]
    column = np.reshape(scores, (-1, 1))
    window = everything(len(rows))
    assert top(scores, window, k) == skyband(column, window, k, newest=True)
    assert top(scores, window, k, newest=False) == skyband(column, window, k, newest=False)


@given(few_rows, some.integers(1, 3), some.booleans())
def test_every_answer_is_among_the_kept(rows: list[Row], k: int, newest: bool) -> None:
    m = len(rows)
    answers = [skyband(rows, last(n, m), k, newest) for n in range(1, m + 1)]
    # Theorem 1: not only must all of them be kept, none is kept in vain.
    assert kept(rows, everything(m), k, newest) == sorted(set().union(*answers))


@given(few_rows, some.lists(some.integers(0, 5), min_size=12, max_size=12), some.booleans())
def test_a_fixed_window_keeps_what_its_answers_will_take(
    rows: list[Row], instants: list[int], newest: bool
) -> None:
    times = sorted(instants)[: len(rows)]
    answers = [skyline(rows, recent(times, 6, now), newest) for now in range(5, 12)]
    window = everything(len(rows))
    assert kept_of_fixed_window(rows, times, window, newest=newest) == sorted(set().union(*answers))


def test_equal_rows_are_all_in_the_skyline_unless_only_the_newest_counts() -> None:
    rows = [(1, 2), (2, 1), (1, 2)]
    assert skyline(rows, everything(3)) == [1, 2, 3]
    assert skyline(rows, everything(3), newest=True) == [2, 3]
    assert skyline(rows, [1, 2], newest=True) == [1, 2]


def test_pairs_of_equal_score_go_by_the_younger_older_member_first() -> None:
    rows = [0, 0, 0, 0]
    best = [top_pairs(lambda a, b: a - b, rows, everything(4), k) for k in (1, 2, 3)]
    assert best == [[(3, 4)], [(2, 4), (3, 4)], [(2, 3), (2, 4), (3, 4)]]


def test_a_sliding_clock_stands_at_multiples_before_zero_too() -> None:
    assert [slide(clock, 5) for clock in (-6, -5, -1, 0, 4, 5)] == [-10, -5, -5, 0, 0, 5]


@given(some.sets(some.integers(0, 9)), some.sets(some.integers(0, 9)))
def test_changes_lead_from_one_answer_to_the_next(before: set[int], after: set[int]) -> None:
    inserted, deleted = changes(sorted(before), sorted(after))
    assert (before | set(inserted)) - set(deleted) == after
    assert not set(inserted) & set(deleted)


# --------------------------------------------------------------------------------------
# The paper's examples


@pytest.mark.parametrize(("seen", "n"), FIGURE_2_ANSWERS)
def test_figure_2(seen: int, n: int) -> None:
    assert letters(skyline(FIGURE_2, last(n, seen))) == FIGURE_2_ANSWERS[seen, n]


def test_example_1_needs_only_the_youngest_dominator() -> None:
    assert beats(EXAMPLE_1)[:, 2].tolist() == [True, True, False]
    assert intervals(EXAMPLE_1, everything(3)) == EXAMPLE_1_INTERVALS


def test_example_2_forgets_a_and_b() -> None:
    assert letters(kept(FIGURE_5, last(7, 7))) == "cefgh"


def test_example_3_encodes_figure_5_by_its_intervals() -> None:
    assert intervals(FIGURE_5, last(7, 7)) == FIGURE_5_INTERVALS


@pytest.mark.parametrize(("seen", "n"), FIGURE_5_ANSWERS)
def test_examples_3_and_4(seen: int, n: int) -> None:
    assert letters(skyline(FIGURE_5, last(n, seen))) == FIGURE_5_ANSWERS[seen, n]


def test_theorem_3_stabbing_the_intervals_gives_every_answer() -> None:
    for n in range(1, 8):
        stabbed = sorted(p for a, p in intervals(FIGURE_5, last(7, 7)) if a < 7 - n + 1 <= p)
        assert stabbed == skyline(FIGURE_5, last(n, 7))


def test_no_stream_has_the_answers_of_both_figures() -> None:
    # Both speak of the last six of the same seven elements.
    assert FIGURE_2_ANSWERS[7, 6] != FIGURE_5_ANSWERS[7, 6]
