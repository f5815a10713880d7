"""The current answer as a table in PostgreSQL, moved on by each micro-batch in one transaction.

The table has the columns of the rows and, in `_row`, a digest of the whole row, by which the rows
that leave are found. Equal rows stand in it as often as they are in the answer. Which micro-batch
was the last one is kept in the table `skytide_streams` and written in the same transaction, so a
micro-batch that is done again changes nothing, and whoever reads sees the answer after some
micro-batch and never half of one.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

import skytide as st
from skytide.spark.folding import TYPE, quoted, row_columns, sign

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import DataFrame

__all__ = ["PostgresSink", "type_in_postgres"]

_DIGEST = "_row"
_STREAMS = "skytide_streams"
_STAGE = "skytide_stage"
_CHUNK = 10_000  # rows that are Python objects at one time

_PLAIN: dict[type[T.DataType], str] = {
    T.StringType: "text",
    T.BooleanType: "boolean",
    T.ByteType: "smallint",
    T.ShortType: "smallint",
    T.IntegerType: "integer",
    T.LongType: "bigint",
    T.FloatType: "real",
    T.DoubleType: "double precision",
    T.DateType: "date",
    T.TimestampType: "timestamp with time zone",
    T.TimestampNTZType: "timestamp without time zone",
    T.BinaryType: "bytea",
}

# The text of a row must not depend on who is logged in.
_SETTINGS = """
    SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO, YMD'; SET LOCAL bytea_output = 'hex';
    SET LOCAL extra_float_digits = 1; SET LOCAL client_min_messages = 'warning'"""


@dataclass(frozen=True)
class PostgresSink:
    """Keeps a PostgreSQL table equal to the current answer; give it to `foreachBatch`.

    `dsn` is a connection string of libpq; what it does not say comes from the environment
    (PGHOST, PGPASSWORD, ...) as usual. The table is made from the schema of the rows, or checked
    against it. A stream that begins anew (another checkpoint) replaces what a stream before it
    wrote; rows that no stream wrote are never touched. With Spark Connect give the stream a name
    in `stream`, and another one when it begins anew.

    >>> PostgresSink("market.best_deals", dsn="host=db user=me password=secret")
    PostgresSink(table='market.best_deals', stream=None)
    """

    table: str
    dsn: str = field(default="", repr=False)
    stream: str | None = None

    def __post_init__(self) -> None:
        if not all(self.table.split(".")) or self.table.count(".") > 1:
            raise st.QueryError(f"{self.table!r} names no table", "write table or schema.table")
        if importlib.util.find_spec("psycopg") is None:
            raise st.MissingExtra("psycopg is not installed", "pip install 'skytide[postgres]'")

    def __call__(self, changes: DataFrame, batch: int) -> None:
        """Let the changes of a micro-batch happen in the table, once."""
        import psycopg

        columns = columns_of(changes)
        stream = self.stream or _stream_of(changes)
        with psycopg.connect(self.dsn) as connection, connection.cursor() as cursor:
            turn = _Turn(cursor, self.table, columns)
            if turn.begin(stream, batch):
                turn.stage(_rows(changes, columns))
                turn.apply()

    def check(self) -> None:
        """Is the server there, and may we in? Raises what psycopg raises if not.

        >>> PostgresSink("best_deals").check()  # doctest: +SKIP
        """
        import psycopg

        psycopg.connect(self.dsn, connect_timeout=10).close()


def columns_of(changes: DataFrame) -> dict[str, str]:
    """The columns of the rows and their types in PostgreSQL."""
    columns = {
        name: type_in_postgres(changes.schema[name].dataType, name)
        for name in row_columns(changes.columns)
    }
    if _DIGEST in columns:
        raise st.SchemaError(
            f"the rows have a column {_DIGEST}, which the table needs for itself",
            f'rename it: .withColumnRenamed("{_DIGEST}", ...)',
        )
    return columns


def type_in_postgres(kind: T.DataType, name: str = "") -> str:
    """What a Spark type is in PostgreSQL; what has fields or keys is jsonb.

    >>> type_in_postgres(T.DecimalType(10, 2)), type_in_postgres(T.ArrayType(T.LongType()))
    ('numeric(10,2)', 'bigint[]')
    """
    if isinstance(kind, T.DecimalType):
        return f"numeric({kind.precision},{kind.scale})"
    if isinstance(kind, T.ArrayType) and type(kind.elementType) in _PLAIN:
        return f"{_PLAIN[type(kind.elementType)]}[]"
    if isinstance(kind, T.StructType | T.MapType | T.ArrayType):
        return "jsonb"
    for known, written in _PLAIN.items():
        if isinstance(kind, known):
            return written
    raise st.SchemaError(
        f"the column {name} is a {kind.simpleString()}, which has no like in PostgreSQL",
        f'cast it before the query: .withColumn("{name}", col("{name}").cast("string")), or drop it',
    )


def _stream_of(changes: DataFrame) -> str:
    """The id that a checkpoint gives its stream."""
    try:
        found = changes.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    except Exception:  # Spark Connect has no context; which error it raises is its own affair
        found = None
    if not found:
        raise st.QueryError(
            "Spark does not say here which stream this is",
            'name it: PostgresSink(table, stream="deals-1"), another name for every new checkpoint',
        )
    return found


def _rows(changes: DataFrame, columns: dict[str, str]) -> Iterable[tuple[Any, ...]]:
    """The sign and the columns of every change, as psycopg takes them."""
    cells = [
        F.to_json(quoted(name)).alias(name) if written == "jsonb" else quoted(name)
        for name, written in columns.items()
    ]
    wanted = changes.where(F.col(TYPE) != "reject").select(sign().alias("_sign"), *cells)
    for batch in wanted.toArrow().to_batches(max_chunksize=_CHUNK):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


class _Turn:
    """One micro-batch in one transaction."""

    def __init__(self, cursor: psycopg.Cursor[Any], table: str, columns: dict[str, str]) -> None:
        from psycopg import sql

        self._cursor, self._name, self._columns = cursor, table, columns
        parts = table.split(".")
        self._names = {
            "table": sql.Identifier(*parts),
            "streams": sql.Identifier(*parts[:-1], _STREAMS),
            "stage": sql.Identifier(_STAGE),
            "digest": sql.Identifier(_DIGEST),
            "index": sql.Identifier(f"{parts[-1][:50]}{_DIGEST}"),
            "columns": sql.SQL(", ").join(map(sql.Identifier, columns)),
            "typed": sql.SQL(", ").join(
                sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(written))
                for name, written in columns.items()
            ),
        }

    def _do(self, statement: str, *values: Any) -> psycopg.Cursor[Any]:
        from psycopg import sql

        return self._cursor.execute(sql.SQL(statement).format(**self._names), values or None)

    def begin(self, stream: str, batch: int) -> bool:
        """Make ready for this micro-batch; False if it was done before."""
        self._cursor.execute(_SETTINGS)
        self._do("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", f"skytide {self._name}")
        self._do(
            "CREATE TABLE IF NOT EXISTS {streams} (answer text PRIMARY KEY, stream text NOT NULL, "
            "batch bigint NOT NULL)"
        )
        known = self._do(
            "SELECT stream, batch FROM {streams} WHERE answer = %s", self._name
        ).fetchone()
        if known and known[0] == stream and batch <= known[1]:
            return False
        if not known or known[0] != stream:
            self._take_over(batch, owned=known is not None)
        self._do(
            "INSERT INTO {streams} VALUES (%s, %s, %s) ON CONFLICT (answer) "
            "DO UPDATE SET stream = excluded.stream, batch = excluded.batch",
            *(self._name, stream, batch),
        )
        return True

    def _take_over(self, batch: int, owned: bool) -> None:
        """A stream writes this table for the first time."""
        if batch > 0:
            raise st.StateError(
                f"the table {self._name} is not what this stream left: "
                f"it goes on with micro-batch {batch}, "
                + (
                    "but another stream has taken the table over" if owned else "but wrote none yet"
                ),
                "give every stream a table of its own; to fill a table from the start, begin with "
                "a new checkpoint",
            )
        self._create_or_check()
        if owned:
            self._do("DELETE FROM {table}")
        elif self._do("SELECT 1 FROM {table} LIMIT 1").fetchone():
            raise st.StateError(
                f"the table {self._name} holds rows that no stream of skytide wrote",
                "name another table, or empty this one",
            )

    def _create_or_check(self) -> None:
        expected = {**self._columns, _DIGEST: "bytea"}
        found = self._found()
        if not found:
            self._do("CREATE TABLE {table} ({typed}, {digest} bytea NOT NULL)")
            self._do("CREATE INDEX {index} ON {table} ({digest})")
            return
        wrong = [
            f"{name} is {found.get(name, 'missing')}, not {written}"
            for name, written in expected.items()
            if found.get(name) != written
        ]
        if wrong:
            raise st.SchemaError(
                f"the table {self._name} does not fit the rows: {'; '.join(wrong)}",
                "name another table, or drop this one and it will be made anew",
            )

    def _found(self) -> dict[str, str]:
        """The columns there are and their types; none if there is no such table."""
        rows = self._do(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            self._names["table"].as_string(self._cursor),
        )
        return dict(rows.fetchall())

    def stage(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Bring the changes over, and give every row its digest."""
        from psycopg import sql

        self._do("CREATE TEMP TABLE {stage} (_sign smallint, {typed}) ON COMMIT DROP")
        with self._cursor.copy(sql.SQL("COPY {stage} FROM STDIN").format(**self._names)) as copy:
            for row in rows:
                copy.write_row(row)
        self._do("ALTER TABLE {stage} ADD COLUMN {digest} bytea")
        self._do("UPDATE {stage} SET {digest} = sha256(convert_to(ROW({columns})::text, 'UTF8'))")
        self._do("CREATE TEMP TABLE skytide_net ON COMMIT DROP AS SELECT {digest}, "
                 "sum(_sign) AS n FROM {stage} GROUP BY 1 HAVING sum(_sign) <> 0")  # fmt: skip

    def apply(self) -> None:
        """What the changes come to: rows out, then rows in."""
        going = self._do(
            "SELECT coalesce(-sum(n), 0)::bigint FROM skytide_net WHERE n < 0"
        ).fetchone()
        gone = self._do(
            "DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM (SELECT t.ctid, net.n, "
            "row_number() OVER (PARTITION BY {digest}) AS nth FROM {table} t JOIN skytide_net net "
            "USING ({digest}) WHERE net.n < 0) AS copies WHERE nth <= -n))"
        ).rowcount
        if going and gone != going[0]:
            raise st.StateError(
                f"{going[0]:,} rows were to leave the table {self._name}, but only {gone:,} of them "
                "are there: it was changed by somebody else",
                "begin with a new checkpoint, which fills the table anew",
            )
        self._do(
            "INSERT INTO {table} ({columns}, {digest}) SELECT {columns}, {digest} FROM "
            "(SELECT DISTINCT ON ({digest}) * FROM {stage}) AS one JOIN skytide_net USING ({digest}) "
            "CROSS JOIN generate_series(1, n) WHERE n > 0"
        )
