"""Job files: what is right is read, what is wrong is named with its line and what is allowed."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as some

import skytide as st

pytest.importorskip("pyspark")

from skytide.spark.jobs import Console, Foreign, read_job
from skytide.spark.lines import lines_of
from skytide.spark.postgres import PostgresSink
from skytide.spark.sinks import ParquetSink

GOOD = """\
checkpoint = "there"
[source]
format = "skytide"
[source.options]
rows = 1_000
[query]
low = "price"
last = 100
[sink]
format = "parquet"
path = "deals"
"""


@pytest.fixture
def job(tmp_path):
    def job(text=GOOD, **replaced):
        for old, new in replaced.items():
            assert text.count(old) == 1
            text = text.replace(old, new)
        file = tmp_path / "job.toml"
        file.write_text(text)
        return file

    return job


def test_a_job_is_read(job):
    read = read_job(job())
    assert read.name == "job"
    assert read.query == st.skyline(st.low("price")).over(st.last(100))
    assert read.source.options == {"rows": "1000"}
    assert read.sink == ParquetSink("deals")
    assert (read.checkpoint, read.trigger, read.asked, read.spark) == ("there", None, {}, {})


def test_everything_that_can_be_said_is_understood(job, monkeypatch):
    monkeypatch.setenv("SECRET", "s3cret")
    read = read_job(
        job("""
name = "all"
checkpoint = "there"
trigger = "10 seconds"
metrics = "metrics.jsonl"
spark = { "spark.sql.shuffle.partitions" = 4, master.url = true }
source.format = "kafka"
source.json = "price double, ts timestamp, symbol string"
source.select = ["*", "price * 2 AS twice"]
source.options.subscribe = "trades"
watch.last = "1 minute"
[query]
question = "skyband"
k = 3
low = ["price", "twice"]
high = "abs(price)"
ties = "newest"
last = "10 minutes"
every = "1 minute"
on = "ts"
history = true
per = ["symbol"]
order_by = ["ts"]
watermark = "5 seconds"
rejects = true
[sink]
format = "postgres"
table = "market.best"
dsn = "password=${SECRET}"
""")
    )
    preferences = st.low("price"), st.low("twice"), st.high("abs(price)")
    window = st.last("10 minutes", every="1 minute", on="ts", history=True)
    asked = st.skyband(3, *preferences, ties="newest").over(window).per("symbol")
    assert read.query == asked
    assert read.asked == {
        "order_by": ("ts",),
        "watermark": "5 seconds",
        "rejects": True,
        "last": "1 minute",
    }
    assert read.sink == PostgresSink("market.best", dsn="password=s3cret")
    assert "s3cret" not in repr(read)
    assert read.spark == {"spark.sql.shuffle.partitions": "4", "master.url": "true"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('question = "top"\nk = 2\nhigh = "price"\nlast = 9', st.top(2, st.high("price"))),
        ('low = "price"\nlast = 9', st.skyline(st.low("price"))),
    ],
)
def test_questions(job, query, expected):
    text = GOOD.replace('low = "price"\nlast = 100', query)
    assert read_job(job(text)).query == expected.over(st.last(9))


def test_everything_is_a_window(job):
    assert read_job(job(**{"last = 100": "everything = true"})).query.window == st.everything()


def test_other_sinks(job):
    assert read_job(job(**{'"parquet"': '"delta"'})).sink == Foreign("delta", "deals")
    console = GOOD.replace('format = "parquet"\npath = "deals"', 'format = "console"\nrows = 3')
    console = console.replace('checkpoint = "there"\n', "")
    assert read_job(job(console)).sink == Console(None, 3)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (
            'low = "price"',
            'lwo = "price"',
            7,
            r"\[query\] has no entry 'lwo'. Did you mean \"low\"",
        ),
        ('low = "price"', "low = 5", 7, "low is 5\nHint: give text or a list"),
        ('low = "price"', 'low = ["price", 5]', 7, "low lists 5"),
        ('low = "price"', 'low = "price +"', 7, "price"),
        (
            'low = "price"',
            'low = "prize"',
            7,
            "no column 'prize'\nHint: its columns are ts, symbol",
        ),
        ('low = "price"\n', "", 6, "does not say what is better"),
        ('low = "price"', 'question = "best"\nlow = "price"', 7, "choose skyline, skyband, top"),
        ('low = "price"', 'question = "top"\nlow = "price"', 6, "has no k\nHint: say how many"),
        ('low = "price"', 'low = "price"\nk = 2', 8, "a skyline has no k"),
        ("last = 100", "", 6, "does not say which rows count"),
        ("last = 100", 'last = "100"', 8, "has no unit"),
        ("last = 100", "last = 0", 8, "number of rows is 0"),
        ("last = 100", "last = 1.5", 8, "give a whole number or text"),
        ("last = 100", "last = 100\neverything = true", 9, "says twice which rows count"),
        ("last = 100", 'everything = true\non = "ts"', 9, "on belongs to last"),
        ("last = 100", 'latest = "symbol"', 6, "no engine answers"),
        ("rows = 1_000", "rows = 0", 5, "at least 1"),
        ("rows = 1_000", "row = 5", 5, 'Did you mean "rows"'),
        ("rows = 1_000", 'kind = "${NOWHERE}"', 5, r"NOWHERE}, which is not set"),
        ('"skytide"\n', '"skytide"\nschema = "x int"\n', 4, "skytide has no schema"),
        ('"skytide"\n', '"kafka"\n', 3, "a message of Kafka is bytes"),
        ('path = "deals"', "", 9, r"\[sink\] has no path"),
        ('path = "deals"', 'path = "deals"\ntable = "x"', 12, "no entry 'table'"),
        ('"there"', '"there"\ntrigger = "daily"', 2, "trigger is 'daily'"),
        ('checkpoint = "there"\n', "", 8, "the job has no checkpoint"),
        ('"parquet"\npath = "deals"', '"console"', 1, "a console forgets"),
        ("[sink]", "[sink", 9, "this is not TOML: expected ']'"),
        ('"deals"', '"deals', 11, "this is not TOML: illegal character"),
        ("[query]", "[query]\n[watch]\nbetween = [1]\n[qeury]", 9, "a job has no entry 'qeury'"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(job, old, new, line, message):
    with pytest.raises(st.JobError, match=rf"(?s)job.toml, line {line}: .*{message}"):
        read_job(job(GOOD.replace(old, new)))


def test_a_part_that_is_missing_is_named(job):
    with pytest.raises(st.JobError, match=r"the job has no sink\nHint: add a table \[sink\]"):
        read_job(job(GOOD.partition("[sink]")[0]))
    with pytest.raises(st.JobError, match="there is no file nowhere"):
        read_job("nowhere.toml")
    with pytest.raises(st.JobError, match="the source has no end"):
        read_job(job('trigger = "available now"\n' + GOOD.replace("rows = 1_000\n", "")))


KEYS = some.sampled_from(["a", "b-1", '"c.d"', "'e f'"])
VALUES = some.sampled_from(
    ["1", '"[x] # y"', "[1,\n  2, # ]\n]", '"""a\nb = 2\n"""', "'''\n[no]\n'''", '{ z = "}" } # q']
)


@given(some.lists(some.tuples(KEYS, some.lists(some.tuples(KEYS, VALUES), max_size=4)), max_size=4))
def test_every_key_stands_on_its_line(tables):
    text, expected = "# [not]\n\n", {}
    for name, entries in {name: dict(entries) for name, entries in tables}.items():
        plain = name.strip("\"'")
        expected[(plain,)] = text.count("\n") + 1
        text += f"[{name}] # [x]\n"
        for key, value in entries.items():
            expected[(plain, key.strip("\"'"))] = text.count("\n") + 1
            text += f"  {key} = {value}\n# {key} = 1\n\n"
    tomllib.loads(text)
    assert lines_of(text) == expected
