"""Questions of x and y, small enough that brute force and ties abound; shared by tests of pruning."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as some

import skytide as st


@some.composite
def questions(draw: Any) -> Any:
    k = draw(some.integers(1, 3))
    preferences = [st.low("x"), st.high("y")][: draw(some.integers(1, 2))]
    ties = draw(some.sampled_from(["all", "newest"]))
    return draw(
        some.sampled_from([st.skyband(k, *preferences, ties=ties), st.top(k, preferences[0])])
    )
