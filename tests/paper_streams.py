"""The worked examples of Lin, Yuan, Wang, Lu, "Stabbing the Sky" (ICDE 2005), as streams of rows.

The paper draws its points but prints no coordinates.  Those here were found by search; they give
every fact that the text states, which is all that is known of the figures.  Elements arrive in
alphabetic order (there is no d), so a, b, c, e, f, g, h are the positions 1 to 7.

Two figures, two streams
------------------------
Figures 2 and 5 use the same seven letters, but no one stream gives the facts of both:

- after h, section 2.3 has S_6 = {c, h}, Example 3 has S_6 = {c, e}, over the same six elements;
- before h, section 2.3 has S_4 = {c, g} over {c, e, f, g}, so one of c, f, g dominates e; Example 3
  gives e the interval (0, 4], so none of them does;
- Example 3 has c dominate h, by (3, 7]; section 2.3 has both c and h in S_6.

S_4 = {e, h} after h is all they have in common.  Each is consistent in itself: section 2.3 is about
Figure 2; Examples 2 to 4 and the remark on N = 6 in section 3.3 are about Figure 5.

Figure 3 (the non-redundant elements of Figure 2 for N = 6) and Figure 10 (the CBC graph of
Figure 2) are drawn without a word on them in the text, so nothing of them is tested: c, e and h
must be non-redundant, whether f is cannot be told.
"""

from __future__ import annotations

NAMES = "abcefgh"

FIGURE_2 = [(2, 4), (7, 7), (4, 1), (5, 2), (6, 5), (3, 6), (1, 3)]
"""Section 2.3; see ``FIGURE_2_ANSWERS``."""

FIGURE_2_ANSWERS = {
    # (elements seen, n): skyline of the last n
    (6, 6): "ac",
    (6, 4): "cg",
    (7, 6): "ch",
    (7, 4): "eh",
}

EXAMPLE_1 = [(1, 0), (0, 1), (1, 1)]
"""a, b, c with c dominated by both: only b -> c is critical, so c's interval is (2, 3]."""

EXAMPLE_1_INTERVALS = {(0, 1), (0, 2), (2, 3)}

FIGURE_5 = [(4, 5), (3, 6), (1, 2), (5, 1), (6, 4), (7, 3), (2, 7)]
"""Examples 2 to 4: c dominates a, b (redundant), f, g and h; e dominates f and g."""

FIGURE_5_INTERVALS = {(0, 3), (0, 4), (3, 7), (4, 5), (4, 6)}
"""Example 3, N = 7, M = 7: (position of the youngest older dominator or 0, own position]."""

FIGURE_5_ANSWERS = {
    # (elements seen, n): skyline of the last n
    (7, 6): "ce",  # Example 3
    (5, 4): "ce",  # Example 4, N = 5
    (6, 4): "ce",
    (7, 4): "eh",
}


def letters(positions: list[int]) -> str:
    """Positions as the paper's letters.

    >>> letters([3, 4])
    'ce'
    """
    return "".join(NAMES[p - 1] for p in positions)
