"""The engine on its public face: what goes in, what comes out, and what nonsense gets."""

from __future__ import annotations

import datetime as dt
import gc
import weakref
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skytide as st
from skytide.choices import ALGORITHMS

BEST = st.skyline(st.low("price"), st.high("volume"))
EPOCH = np.datetime64("2024-01-01", "ns")


def deals(*pairs: tuple[float, float]) -> pa.Table:
    prices, volumes = zip(*pairs, strict=True) if pairs else ((), ())
    return pa.table(
        {"price": pa.array(prices, pa.float64()), "volume": pa.array(volumes, pa.float64())}
    )


def at(*seconds: float) -> pa.Array:
    return pa.array(EPOCH + (np.array(seconds) * 1e9).astype("m8[ns]"))


def ticks(*rows: tuple[float, float]) -> pa.Table:
    """Rows of (second, price)."""
    return pa.table({"ts": at(*(s for s, _ in rows)), "price": [p for _, p in rows]})


def prices(table: pa.Table) -> list[float]:
    return table["price"].to_pylist()


def same_engine(live: Any, before: bytes) -> bool:
    """Nothing about the engine has changed."""
    return bool(live.save() == before)


# -- rows of any kind --------------------------------------------------------------------------


def test_payload_of_any_type_comes_back_untouched() -> None:
    rows = pa.table(
        {
            "price": [3.0, 1.0, 2.0],
            "name": ["c", "a", None],
            "tags": [["x"], [], ["y", "z"]],
            "venue": [{"id": 1}, {"id": 2}, None],
            "fee": pa.array([Decimal("1.10"), Decimal("2.20"), None], pa.decimal128(10, 2)),
            "code": pa.array(["u", "v", "u"]).dictionary_encode(),
        }
    )
    live = st.skyband(3, st.low("price")).over(st.last(10)).open()
    live.push(rows)
    assert live.answer().equals(rows)
    assert st.load(live.save()).answer().equals(rows)


@pytest.mark.parametrize("kind", ["pandas", "polars", "duckdb"])
def test_frames_of_other_libraries(kind: str) -> None:
    library = pytest.importorskip(kind)
    columns = {"price": [2.0, 1.0], "volume": [1.0, 2.0]}
    frame = library.DataFrame(columns) if kind != "duckdb" else None
    if kind == "duckdb":
        frame = library.sql(
            "select * from (values (2.0::double, 1.0::double), (1.0, 2.0)) t(price, volume)"
        )
    live = BEST.over(st.last(5)).open()
    live.push(frame)
    assert prices(live.answer()) == [1.0]


def test_a_matrix_has_the_columns_of_the_query_in_order() -> None:
    live = BEST.over(st.last(5)).open()
    live.push(np.array([[2.0, 1.0], [1.0, 2.0]]))
    assert live.answer().to_pylist() == [{"price": 1.0, "volume": 2.0}]


def test_an_expression_is_a_preference() -> None:
    live = st.top(1, st.high("price * volume")).over(st.last(3)).open()
    live.push(deals((2, 2), (1, 9), (3, 2)))
    assert prices(live.answer()) == [1.0]


def test_the_memory_of_rows_follows_what_is_kept() -> None:
    live = BEST.over(st.last(1_000_000)).open()
    rng = np.random.default_rng(1)
    for _ in range(30):
        table = pa.table(
            {"price": rng.random(5_000), "volume": rng.random(5_000), "text": ["x" * 200] * 5_000}
        )
        live.push(table)
        pushed = weakref.ref(table)
    stats = live.stats()
    assert stats.seen == 150_000
    assert stats.kept < 300
    assert stats.bytes < 2_000_000  # the text alone was 30 MB
    del table
    gc.collect()
    assert pushed() is None


def test_the_engine_does_not_share_what_it_was_given() -> None:
    matrix = np.array([[2.0, 1.0], [1.0, 2.0]])
    live = BEST.over(st.last(5)).open()
    live.push(matrix)
    matrix[:] = 77.0
    assert prices(live.answer()) == [1.0]


# -- windows -----------------------------------------------------------------------------------


def test_a_slide_moves_the_answer_only_when_it_is_full() -> None:
    live = st.skyline(st.low("price")).over(st.last(4, every=2)).open()
    live.push({"price": [5.0]})
    assert live.answer().num_rows == 0
    live.push({"price": [6.0, 1.0]})
    assert prices(live.answer()) == [5.0]
    assert live.stats().waiting == 1
    live.push({"price": [9.0]})
    assert prices(live.answer()) == [1.0]


def test_one_push_larger_than_the_window() -> None:
    live = st.skyline(st.low("price")).over(st.last(2)).open()
    live.push({"price": [1.0, 5.0, 4.0, 6.0]})
    assert prices(live.answer()) == [4.0]


def test_a_row_counts_while_it_is_younger_than_the_window() -> None:
    live = st.skyline(st.low("price")).over(st.last("10 seconds")).open()
    live.push(ticks((0, 1.0), (5, 2.0), (9, 3.0)))
    assert prices(live.answer()) == [1.0]
    live.advance(to="2024-01-01T00:00:10")
    assert prices(live.answer()) == [2.0]
    assert prices(live.answer(last="5 seconds")) == [3.0]
    live.advance(to=dt.datetime(2024, 1, 1, 1, tzinfo=dt.UTC))
    assert live.answer().num_rows == 0
    live.push(ticks((7200, 8.0)))
    assert prices(live.answer()) == [8.0]


def test_many_rows_at_one_instant() -> None:
    live = st.skyline(st.low("price")).over(st.last("2 seconds")).open()
    for price in (3.0, 1.0, 2.0, 1.0):
        live.push(ticks((1, price)))
    assert prices(live.answer()) == [1.0, 1.0]
    live.advance(to=np.datetime64("2024-01-01T00:00:03"))
    assert live.answer().num_rows == 0


def test_slides_of_time() -> None:
    live = st.skyline(st.low("price")).over(st.last("4 seconds", every="2 seconds")).open()
    live.push(ticks((0.5, 5.0), (1.5, 1.0)))
    assert live.answer().num_rows == 0
    live.advance(to="2024-01-01T00:00:02")
    assert prices(live.answer()) == [1.0]
    live.push(ticks((5.9, 2.0)))
    assert prices(live.answer()) == [1.0]
    live.push(ticks((6.0, 4.0)))
    assert prices(live.answer()) == [2.0]


def test_late_rows_are_dropped_and_counted_or_refused() -> None:
    window = st.last("10 seconds", on="ts", late="drop")
    dropping = st.skyline(st.low("price")).over(window).open()
    dropping.push(ticks((5, 5.0), (3, 1.0), (6, 4.0)))
    dropping.push(ticks((2, 0.0)))
    assert prices(dropping.answer()) == [4.0]
    assert dropping.stats().dropped == 2
    strict = st.skyline(st.low("price")).over(st.last("10 seconds", on="ts")).open()
    strict.push(ticks((5, 5.0)))
    before = strict.save()
    with pytest.raises(st.LateRows, match=r"row 1 of this push.*\n?.*late=\"drop\""):
        strict.push(ticks((5, 5.0), (4, 1.0)))
    with pytest.raises(st.LateRows, match="cannot go back"):
        strict.advance(to="2023-01-01")
    assert same_engine(strict, before)


def test_a_late_first_push_does_not_fix_the_columns() -> None:
    live = st.skyline(st.low("price")).over(st.last("10 seconds")).open()
    with pytest.raises(st.LateRows):
        live.push(ticks((5, 5.0), (4, 1.0)))
    live.push(ticks((5, 5.0)).append_column("more", pa.array(["x"])))
    assert live.answer().column_names == ["ts", "price", "more"]


def test_very_old_times_and_very_long_windows() -> None:
    old = pa.table({"ts": pa.array([np.datetime64("1680-01-01", "s")]), "price": [1.0]})
    live = st.skyline(st.low("price")).over(st.last("100000 days")).open()
    with live.watch() as watch:
        live.push(old)
        live.advance(to="2200-01-01")
        assert live.answer().num_rows == 0
        assert watch.changes().num_rows == 0


@pytest.mark.parametrize("name", ALGORITHMS)
def test_times_before_1970(name: str) -> None:
    window = st.last("10 days")
    live = st.top(1, st.low("price")).over(window).open(algorithm=name)
    days = pa.array([np.datetime64("1960-01-01", "s"), np.datetime64("1960-01-08", "s")])
    with live.watch() as watch:
        live.push({"ts": days, "price": [1.0, 2.0]})
        assert prices(live.answer()) == [1.0]
        live.advance(to="1960-01-12")
        assert prices(live.answer()) == [2.0]
        assert prices(watch.changes()) == [2.0]


def test_everything_never_expires() -> None:
    live = st.skyline(st.low("price")).over(st.everything()).open()
    live.push({"price": [1.0]})
    live.push({"price": [float(p) for p in range(5, 500)]})
    assert prices(live.answer()) == [1.0]
    assert prices(live.answer(last=2)) == [498.0]


def test_history_answers_about_the_past() -> None:
    live = st.skyline(st.low("price")).over(st.last(5, history=True)).open()
    live.push({"price": [9.0, 2.0, 8.0, 3.0, 1.0, 7.0]})
    assert prices(live.answer(between=(1, 5))) == [1.0]
    assert prices(live.answer(between=(3, 5))) == [2.0]
    assert prices(live.answer(between=(3, 3))) == [3.0]
    assert prices(live.answer(between=(4, 4))) == [8.0]
    assert live.stats().kept == 5


def test_history_of_time() -> None:
    window = st.last("1 minute", history=True)
    live = st.skyline(st.low("price")).over(window).open()
    live.push(ticks((0, 1.0), (20, 5.0), (40, 3.0)))
    assert prices(live.answer(between=("10 seconds", "30 seconds"))) == [5.0]
    assert prices(live.answer(between=("0 seconds", "30 seconds"))) == [3.0]


# -- ties and ranks ----------------------------------------------------------------------------


def test_equal_rows_all_count_or_only_the_newest() -> None:
    rows = pa.table({"price": [1.0, 1.0, 1.0], "id": [1, 2, 3]})
    for ties, ids in (("all", [1, 2, 3]), ("newest", [3])):
        live = st.skyline(st.low("price"), ties=ties).over(st.last(5)).open()  # type: ignore[arg-type]
        live.push(rows)
        assert live.answer()["id"].to_pylist() == ids
    live = st.skyband(2, st.low("price"), ties="newest").over(st.last(5)).open()
    live.push(rows)
    assert live.answer()["id"].to_pylist() == [2, 3]


def test_a_top_k_comes_best_first_and_of_equals_the_younger() -> None:
    rows = pa.table({"price": [5.0, 9.0, 7.0, 9.0], "id": [1, 2, 3, 4]})
    live = st.top(3, st.high("price")).over(st.last(5)).open()
    live.push(rows)
    assert live.answer()["id"].to_pylist() == [4, 2, 3]
    assert st.top(3, st.high("price")).over(st.last(5)).answer(rows)["id"].to_pylist() == [4, 2, 3]


def test_a_top_k_of_more_than_there_are() -> None:
    live = st.top(10, st.high("price")).over(st.last(3)).open()
    live.push({"price": [1.0, 2.0, 3.0, 4.0]})
    assert prices(live.answer()) == [4.0, 3.0, 2.0]


# -- watches and explanations ------------------------------------------------------------------


def test_the_changes_add_up_to_the_answer() -> None:
    rng = np.random.default_rng(7)
    live = BEST.over(st.last(200)).open()
    watches = [(n, live.watch(last=n)) for n in (1, 10, 50, 200)]
    held: dict[int, set[Any]] = {n: set() for n, _ in watches}
    for size in rng.integers(1, 80, 40):
        live.push(pa.table({"price": rng.random(size), "volume": rng.random(size)}))
        for n, watch in watches:
            for row in watch.changes().to_pylist():
                kind, _, *values = row.values()
                (held[n].add if kind == "insert" else held[n].remove)(tuple(values))
            now = {tuple(row.values()) for row in live.answer(last=n).to_pylist()}
            assert held[n] == now


def test_a_watch_without_snapshot_tells_only_what_comes() -> None:
    live = st.skyline(st.low("price")).over(st.last(5)).open()
    live.push({"price": [3.0]})
    with live.watch(snapshot=False) as quiet, live.watch() as full:
        assert quiet.changes().num_rows == 0
        assert full.changes()["_change_type"].to_pylist() == ["insert"]
        live.push({"price": [2.0]})
        assert quiet.changes().to_pylist() == [
            {"_change_type": "delete", "_change_at": 2, "price": 3.0},
            {"_change_type": "insert", "_change_at": 2, "price": 2.0},
        ]
        assert prices(full.answer()) == [2.0]
    with pytest.raises(st.QueryError, match="closed"):
        full.changes()
    assert live.stats().watches == 0


def test_unread_changes_do_not_pile_up() -> None:
    live = st.skyline(st.low("price")).over(st.last(50)).open()
    watch = live.watch()
    rng = np.random.default_rng(2)
    for _ in range(300):
        live.push({"price": rng.random(60)})
    assert live.stats().bytes < 200_000
    assert watch.changes().num_rows == live.answer().num_rows


def test_the_time_of_a_change() -> None:
    live = st.skyline(st.low("price")).over(st.last("10 seconds")).open()
    watch = live.watch()
    live.push(ticks((1, 5.0)))
    live.advance(to="2024-01-01T00:01:00")
    assert watch.changes().num_rows == 0  # it came and went
    live.push(ticks((61, 5.0)))
    changes = watch.changes()
    assert changes["_change_at"].type == pa.timestamp("ns")
    assert changes["_change_at"].to_numpy().tolist() == at(61).to_numpy().tolist()


def test_explain_names_what_beats_a_row() -> None:
    live = BEST.over(st.last(5)).open()
    live.push(deals((1, 1), (2, 5), (9, 9)))
    assert prices(live.explain({"price": 3.0, "volume": 4.0})) == [2.0]
    assert live.explain({"price": 0.5, "volume": 9.0}).num_rows == 0
    with pytest.raises(st.SchemaError, match="one row"):
        live.explain({"price": [1.0, 2.0], "volume": [1.0, 2.0]})


def test_the_changes_of_a_stream_of_batches() -> None:
    stream = ({"price": [p]} for p in (2.0, 1.0, 5.0, 6.0))
    tables = list(st.skyline(st.low("price")).over(st.last(2)).changes(stream))
    assert [t["_change_type"].to_pylist() for t in tables] == [
        ["insert"],
        ["delete", "insert"],
        [],
        ["delete", "insert"],
    ]


# -- every algorithm ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_gives_the_same_answer_and_changes(name: str) -> None:
    ranking = getattr(ALGORITHMS[name].load(), "ranking", False)
    question = st.top(9, st.low("price + volume")) if ranking else BEST
    query = question.over(st.last(300, every=7))
    usual, other = query.open(algorithm="n-of-n"), query.open(algorithm=name)
    rng = np.random.default_rng(3)
    watches = usual.watch(), other.watch()
    for size in (1, 100, 3, 400, 900, 50):
        rows = pa.table({"price": rng.integers(0, 30, size), "volume": rng.integers(0, 30, size)})
        for live in (usual, other):
            live.push(rows)
        assert usual.answer().equals(other.answer())
        assert watches[0].changes().equals(watches[1].changes())
    assert st.load(other.save()).answer().equals(usual.answer())


# -- nonsense ----------------------------------------------------------------------------------


NONSENSE: list[tuple[str, Any, type[Exception], str]] = [
    (
        "unknown column",
        {"prize": [1.0], "volume": [1.0]},
        st.SchemaError,
        "new: prize; missing: price",
    ),
    ("text", {"price": ["1"], "volume": [1.0]}, st.SchemaError, "price"),
    ("null", {"price": [None], "volume": [1.0]}, st.BadRows, "price: 1 null"),
    ("NaN", {"price": [1.0, np.nan], "volume": [1.0, 1.0]}, st.BadRows, "price: 1 NaN .row 1"),
    ("changed type", {"price": [True], "volume": ["x"]}, st.SchemaError, "volume"),
    ("ragged", {"price": [1.0], "volume": [1.0, 2.0]}, st.SchemaError, "equally long"),
    ("a number", 5, st.SchemaError, "int"),
    ("a missing column", {"price": [1.0]}, st.SchemaError, "missing: volume"),
]


@pytest.mark.parametrize(("what", "rows", "error", "says"), NONSENSE, ids=[n[0] for n in NONSENSE])
def test_bad_rows_are_refused_whole(what: str, rows: Any, error: Any, says: str) -> None:
    live = BEST.over(st.last(5)).open()
    live.push(deals((2, 2), (1, 1)))
    watch = live.watch()
    before = live.save()
    with pytest.raises(error, match=says) as caught:
        live.push(rows)
    assert "Hint:" in str(caught.value)
    assert same_engine(live, before)
    live.push(deals((0, 9)))
    assert prices(live.answer()) == [0.0]
    assert watch.changes().num_rows == 1


def test_the_first_push_has_a_say_on_columns() -> None:
    live = BEST.over(st.last(5)).open()
    with pytest.raises(st.SchemaError, match='Did you mean "volumes"'):
        live.push({"price": [1.0], "volumes": [1.0]})
    live.push(deals((1, 1)))
    assert live.answer().num_rows == 1


def test_empty_pushes_are_nothing() -> None:
    live = BEST.over(st.last(5)).open()
    for empty in ({}, [], deals(), deals((1, 1)), deals(), {}):
        live.push(empty)
    assert live.stats().seen == 1
    assert live.answer().num_rows == 1


def test_an_answer_before_the_first_row() -> None:
    live = BEST.over(st.last(5)).open()
    assert live.answer().num_rows == 0
    assert live.watch().changes().column_names == ["_change_type", "_change_at"]
    assert st.load(live.save()).answer().num_rows == 0


QUESTIONS: list[tuple[dict[str, Any], str]] = [
    ({"last": 6}, "more rows than the window keeps, 5"),
    ({"last": 0}, "last is 0"),
    ({"last": -1}, "last is -1"),
    ({"last": 2.5}, "2.5"),
    ({"last": True}, "True"),
    ({"last": "1 hour"}, "counts rows"),
    ({"between": (3, 2)}, "ends before it begins"),
    ({"between": (0, 2)}, "between is 0"),
    ({"between": (1, 6)}, "more rows than the window keeps"),
    ({"between": 3}, "no pair"),
    ({"between": (1, 2), "last": 3}, "two different windows"),
]


@pytest.mark.parametrize(("asked", "says"), QUESTIONS)
def test_impossible_questions(asked: dict[str, Any], says: str) -> None:
    live = BEST.over(st.last(5, history=True)).open()
    live.push(deals((1, 1)))
    before = live.save()
    for ask in (live.answer, live.watch):
        with pytest.raises(st.QueryError, match=says) as caught:
            ask(**asked)
        assert "Hint:" in str(caught.value) or "two different" in says
    assert same_engine(live, before)
    assert live.stats().watches == 0


def test_what_needs_history_says_so() -> None:
    live = BEST.over(st.last(5)).open()
    with pytest.raises(st.QueryError, match="history=True"):
        live.answer(between=(1, 2))
    with pytest.raises(st.QueryError, match="no clock to advance"):
        live.advance(to="2024-01-01")


def test_time_windows_are_asked_in_time() -> None:
    live = st.skyline(st.low("price")).over(st.last("10 seconds", history=True)).open()
    live.push(ticks((1, 1.0)))
    for asked, says in (
        ({"last": 5}, "no length of time"),
        ({"last": "1 minute"}, "more than the window keeps, 10 seconds"),
        ({"last": "0 s"}, "asks for no time"),
        ({"between": ("5 s", "5 s")}, "ends before it begins"),
        ({"between": ("5 s", "1 h")}, "more than the window keeps"),
    ):
        with pytest.raises(st.QueryError, match=says):
            live.answer(**asked)  # type: ignore[arg-type]
    for moment in ("soon", 5, 5.5, None, object()):
        with pytest.raises(st.QueryError, match="no moment"):
            live.advance(to=moment)


def test_the_algorithm_must_exist_and_be_able() -> None:
    with pytest.raises(st.QueryError, match='Did you mean "n-of-n"'):
        BEST.over(st.last(5)).open(algorithm="n-of-m")
    with pytest.raises(st.QueryError, match="keeps no history"):
        BEST.over(st.last(5, history=True)).open(algorithm="eager")
    with pytest.raises(st.QueryError, match="skylines only"):
        st.skyband(2, st.low("price")).over(st.last(5)).open(algorithm="lazy")
    live = BEST.over(st.last(5)).open(algorithm="eager")
    live.push(deals((1, 1)))
    with pytest.raises(st.QueryError, match="whole window only"):
        live.answer(last=2)


@pytest.mark.parametrize(
    "query",
    [
        BEST.over(st.lifetime(end="until")),
        BEST.over(st.latest("id")),
        st.top_pairs(2, st.low("abs(a.x - b.x)")).over(st.last(5)),
    ],
)
def test_questions_without_an_engine_say_so(query: Any) -> None:
    with pytest.raises(st.QueryError, match="no engine answers"):
        query.open()
    with pytest.raises(st.QueryError, match="no engine answers"):
        query.answer({"price": [1.0]})


# -- rows that stand still ---------------------------------------------------------------------


def test_one_shot_answers() -> None:
    rows = deals((1, 1), (2, 5), (9, 9), (9, 1))
    assert prices(BEST.over(st.everything()).answer(rows)) == [1.0, 2.0, 9.0]
    assert prices(BEST.over(st.last(2)).answer(rows)) == [9.0]
    assert prices(BEST.over(st.last(3, every=3)).answer(rows)) == [1.0, 2.0, 9.0]
    assert BEST.over(st.last(2)).answer(deals()).num_rows == 0


def test_one_shot_answers_of_time_need_no_order() -> None:
    rows = ticks((50, 3.0), (1, 1.0), (45, 2.0))
    query = st.skyline(st.low("price")).over(st.last("10 seconds"))
    assert prices(query.answer(rows)) == [2.0]


def test_an_engine_shows_itself_in_a_notebook_and_escapes_what_it_shows() -> None:
    live = st.skyline(st.low("price")).over(st.last(50)).open()
    live.push({"price": [1.0] * 12, "<b>": ["<script>"] * 12})
    shown = live._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "the skyline of low price over the last 50 rows" in shown
    assert "and 2 more" in shown
    assert "1 keys" in _keyed_shown()


def _keyed_shown() -> str:
    keyed = st.skyline(st.low("price")).over(st.last(5)).per("id").open()
    keyed.push({"price": [1.0], "id": ["<i>"]})
    return str(keyed._repr_html_())
