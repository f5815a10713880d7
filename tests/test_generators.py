"""The generators give the same rows for ever, and rows of the shape they promise."""

import gzip
import pickle
from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import skytide as st
import skytide.data as data
from skytide.data.generators import CHUNK
from skytide.data.market import SYMBOLS, VENUES

POINTS = [data.independent, data.correlated, data.anti_correlated]


@pytest.mark.parametrize("generate", POINTS)
@pytest.mark.parametrize("dims", [1, 2, 5, 8])
def test_points_lie_in_the_unit_cube(generate, dims):
    points = generate(3_000, dims, seed=4)
    assert points.shape == (3_000, dims)
    assert points.dtype == np.float64
    assert points.flags.c_contiguous
    assert points.min() >= 0
    assert points.max() <= 1
    assert points.mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("generate", POINTS)
@given(
    rows=some.integers(0, 3 * CHUNK),
    more=some.integers(0, CHUNK),
    dims=some.integers(1, 4),
    seed=some.integers(0, 2**64),
)
@settings(max_examples=15, deadline=None)
def test_a_shorter_run_begins_a_longer_one(generate, rows, more, dims, seed):
    short, long = generate(rows, dims, seed), generate(rows + more, dims, seed)
    assert np.array_equal(short, long[:rows])


@given(batch=some.integers(1, 2 * CHUNK), seed=some.integers(0, 9))
@settings(max_examples=15, deadline=None)
def test_a_stream_gives_the_rows_of_one_call(batch, seed):
    batches = data.stream("anti-correlated", 2, seed, batch)
    streamed = np.vstack([next(batches) for _ in range(3)])
    assert np.array_equal(streamed, data.anti_correlated(3 * batch, 2, seed))


def test_seeds_dims_and_distributions_do_not_share_rows():
    runs = [generate(50, dims, seed) for generate in POINTS for dims in (2, 3) for seed in (0, 1)]
    firsts = {float(run[0, 0]) for run in runs}
    assert len(firsts) == len(runs)


def test_rows_are_the_same_on_every_machine():
    """Benchmarks are compared across machines: a change here changes them all."""
    known = [
        [[0.6116381, 0.8381547], [0.5655848, 0.3849983]],
        [[0.7422489, 0.5736403], [0.2521754, 0.4555574]],
        [[0.5742035, 0.4042914], [0.1677132, 0.939887]],
    ]
    for generate, rows in zip(POINTS, known, strict=True):
        assert generate(2, 2, seed=7) == pytest.approx(np.array(rows), abs=1e-7)


def test_distributions_differ_as_their_names_say():
    slopes = [np.corrcoef(generate(20_000, 2, seed=3).T)[0, 1] for generate in POINTS]
    assert slopes[0] == pytest.approx(0, abs=0.03)
    assert slopes[1] > 0.6
    assert slopes[2] < -0.8


def test_coordinates_of_one_row_are_alike():
    """No coordinate is special: the ring of shifts treats the first and the last the same."""
    for generate in POINTS:
        points = generate(50_000, 4, seed=3)
        assert np.ptp(points.mean(axis=0)) < 0.01
        assert np.ptp(points.std(axis=0)) < 0.01


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: data.independent(-1, 2), "rows is -1"),
        (lambda: data.correlated(5, 0), "dims is 0"),
        (lambda: data.stream("independent", 2, batch=0), "batch is 0"),
        (lambda: data.stream("gaussian", 2), "unknown distribution 'gaussian'.*anti-correlated"),
        (lambda: data.trades(-1), "rows is -1"),
        (lambda: data.trade_stream(batch=0), "batch is 0"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_trades_have_the_promised_columns():
    assert data.trades(5).schema == pa.schema(
        {
            "ts": pa.timestamp("us", tz="UTC"),
            "symbol": pa.string(),
            "price": pa.float64(),
            "volume": pa.int64(),
            "venue": pa.string(),
        }
    )
    assert data.trades(0).num_rows == 0


def test_trades_look_like_trades():
    table = data.trades(200_000, seed=5)
    assert set(pc.unique(table["symbol"]).to_pylist()) == set(SYMBOLS)
    assert set(pc.unique(table["venue"]).to_pylist()) == set(VENUES)
    gaps = np.diff(table["ts"].cast(pa.int64()).to_numpy())
    assert gaps.min() >= 1
    assert gaps.std() > 1.5 * gaps.mean(), "bursts: more uneven than independent arrivals"
    price = table["price"].to_numpy()
    assert np.array_equal(price, np.round(price, 2))
    assert price.min() > 50
    volume = table["volume"].to_numpy()
    assert volume.min() >= 1
    assert volume.max() > 50 * np.median(volume), "a heavy tail"


def test_prices_of_a_symbol_walk_and_do_not_jump():
    table = data.trades(4 * CHUNK, seed=2)
    for symbol in SYMBOLS:
        price = table.filter(pc.equal(table["symbol"], symbol))["price"].to_numpy()
        steps = np.abs(np.diff(price))
        assert steps.max() < 0.01 * price.mean()


@given(batch=some.integers(1, 2 * CHUNK), seed=some.integers(0, 9))
@settings(max_examples=10, deadline=None)
def test_a_stream_of_trades_gives_the_rows_of_one_call(batch, seed):
    batches = data.trade_stream(seed, batch)
    streamed = pa.concat_tables([next(batches) for _ in range(3)])
    assert streamed.combine_chunks() == data.trades(3 * batch, seed).combine_chunks()


@given(
    kind=some.sampled_from(data.KINDS),
    start=some.integers(0, 3 * CHUNK),
    rows=some.integers(0, 2 * CHUNK),
    cut=some.integers(0, 2 * CHUNK),
)
@settings(max_examples=20, deadline=None)
def test_any_part_of_a_stream_can_be_made_alone(kind, start, rows, cut):
    """A replayed task reads the same rows, however the stream was cut the first time."""
    make = {"dims": 2, "seed": 3, "keys": 5 if kind != "trades" else 0}
    whole = pa.concat_tables(data.span(kind, 0, start + rows + 1, **make))
    middle = start + min(cut, rows)
    parts = [
        *data.span(kind, start, middle, **make),
        *data.span(kind, middle, start + rows, **make),
    ]
    alone = pa.concat_tables([whole.slice(0, 0), *parts])
    assert alone.combine_chunks() == whole.slice(start, rows).combine_chunks()


def test_parts_far_out_cost_no_more():
    table = pa.concat_tables(data.span("trades", 10**12, 10**12 + 5, seed=1))
    assert table.num_rows == 5
    assert pc.min(table["price"]).as_py() > 50


def test_keys_are_few_and_all_used():
    table = next(data.span("correlated", 0, CHUNK, keys=7))
    assert sorted(pc.unique(table["key"]).to_pylist()) == list(range(7))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "trade"}, "unknown kind 'trade'.*trades"),
        ({"kind": "independent", "dims": 0}, "dims is 0"),
        ({"kind": "independent", "keys": -1}, "keys is -1"),
        ({"kind": "trades", "start": -1}, "start is -1"),
    ],
)
def test_bad_parts_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        data.span(**{"start": 0, "stop": 1, **options})


SERIES = get_args(data.Series)


@pytest.mark.parametrize("series", SERIES)
@given(
    stop=some.integers(0, 3 * CHUNK), start=some.integers(0, 3 * CHUNK), seed=some.integers(0, 9)
)
@settings(max_examples=15, deadline=None)
def test_any_part_of_a_series_of_scores_can_be_had_alone(series, stop, start, seed):
    start = min(start, stop)
    part = data.scores(series, stop, start, seed)
    assert part.dtype == np.float64
    assert np.array_equal(part, data.scores(series, stop, 0, seed)[start:])


def test_series_are_what_their_names_say():
    rows = 2 * CHUNK
    made = {series: data.scores(series, rows, seed=3) for series in SERIES}
    assert (np.diff(made["increasing"]) > 0).all()
    assert (np.diff(made["decreasing"]) < 0).all()
    assert len(set(made["constant"])) == 1
    assert abs(np.corrcoef(made["uniform-time"], np.arange(rows))[0, 1]) < 0.03
    assert data.scores("sin-time", 500_000, start=499_999)[0] == pytest.approx(1)
    burst = made["bursts"] > 1
    assert 50 <= burst.sum() < 1_000
    assert (np.diff(burst.astype(int)) == 1).sum() <= 2


def test_files_are_read_by_their_name(tmp_path):
    table = pa.table({"x": [1.5, 2.5], "y": [3.5, 4.5]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "a.csv")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    for name in ("a.parquet", "a.csv", "a.csv.gz"):
        assert data.read_rows(tmp_path / name).equals(table)
        assert data.read_rows(tmp_path / name, ["y"]).equals(table.select(["y"]))
    with pytest.raises(ValueError, match="neither Parquet nor CSV"):
        data.read_rows(tmp_path / "a.xls")


def test_the_scores_of_the_paper_rank_rows():
    ends = np.array(
        ["2024-01-01T11", "2024-01-01T11", "2024-01-01T10", "2024-01-01T10:30"], "M8[us]"
    )
    begins = np.array(["2024-01-01T10"] * 4, "M8[us]")
    trips = pa.table({"miles": [3.0, 9.0, 5.0, 4.0], "from": begins, "to": ends})
    fastest = st.top(2, st.high(data.speed, "miles", "from", "to")).over(st.last(9))
    live = fastest.open()
    live.push(trips)
    assert live.answer()["miles"].to_pylist() == [9, 4]
    near = st.top(1, st.low(data.DistanceTo(1.0, 1.0), "x", "y")).over(st.last(9))
    assert near.answer({"x": [0.0, 1.0], "y": [0.0, 1.5]})["y"].to_pylist() == [1.5]
    assert pickle.loads(pickle.dumps(near)) == near
    most = st.top(1, st.high(data.turnover, "price", "volume")).over(st.last(9))
    assert most.answer({"price": [2.0, 3.0], "volume": [9, 5]})["price"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: data.scores("rising", 5), "unknown series 'rising'.*increasing"),
        (lambda: data.scores("constant", 5, start=-1), "start is -1"),
        (lambda: data.scores("constant", 5, start=6), "stop is 5"),
    ],
)
def test_bad_series_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
