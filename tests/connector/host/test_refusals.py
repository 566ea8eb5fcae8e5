"""Rows that a table does not take: refused before there is a trace, or written as they are."""

import datetime as dt
import math
import re

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, IntegerType, LongType, NestedField, StringType, StructType

from pyspark_sluice.connector.spark.data_source import SluiceDataSource
from pyspark_sluice.errors import MalformedDataError, NewColumnsError, OptionError, TableError
from pyspark_sluice.reader.direct_write.write_options import WriteOptions
from pyspark_sluice.tests.tables.iceberg_lake import IcebergLake

AT = dt.datetime(2024, 1, 2, 3, 4, 5, 1, tzinfo=dt.UTC)


LONG, NTZ, INSTANT = pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC")
STRUCT = pa.struct([("a", pa.list_(pa.int32()))])


@pytest.mark.parametrize(
    ("columns", "row", "schema", "told", "hints"),
    [
        ([("v", pa.int32())], {"v": 7}, "", "v is long, and integer in", "v integer"),
        ([("v", pa.string())], {"v": 7}, "v long", "v is long, and string in", "v string"),
        (
            [("v", pa.decimal128(17, 2))],
            {"v": 1.25},
            "v decimal(10,2)",
            r"v is decimal\(10,2\), and decimal\(17,2\) in",
            "v decimal(17,2)",
        ),
        (
            [("v", NTZ)],
            {"v": "2024-01-02T03:04:05"},
            "v timestamp",
            "v is timestamp, and timestamp_ntz in",
            "v timestamp_ntz",
        ),
        (
            [("o", STRUCT)],
            {"o": {"a": [1]}},
            "",
            "o.a.element is long, and integer in",
            "o.a array<integer>",
        ),
        ([("ID", LONG)], {"id": 1}, "", "id is ID in the table", ""),
        ([("o", STRUCT)], {"o": {"A": [1]}}, "", "o.A is o.a in the table", ""),
        ([], {"s": {"a": 1, "A": 2}}, "", "s.A is s.a in the rows as well", ""),
        ([], {"v": 1}, "v interval day to second", "v is interval day to second, a type that", ""),
        (
            [pa.field("id", LONG, nullable=False), ("v", LONG)],
            {"v": 1},
            "",
            "id is NOT NULL in the table, and not in the rows",
            "",
        ),
    ],
)
def test_a_column_is_refused_with_both_types_and_its_hint_is_the_remedy(
    landing, columns, row, schema, told, hints
):
    if columns:
        landing.create(*columns)
    landing.json("1.json", row)
    given = {"writeSchema": schema} if schema else {}
    landing.refused(told, **given)
    if hints:
        # A schema that was passed has the types itself.
        more = {"writeSchema": hints} if schema else {"schemaHints": hints}
        with pytest.raises(TableError, match=re.escape(f"schemaHints='{hints}'")):
            landing.run(**given)
        landing.run(**more)
        (name,) = row
        assert [*landing.rows()[0]] == [name]


def test_a_partition_column_that_was_forgotten_or_is_too_many(landing):
    landing.json("1.json", {"day": "b", "v": 2})
    # Without a table, the option alone is wrong.
    landing.refused("columns of the rows", error=OptionError, writePartitionBy="dey")
    landing.create(("day", pa.string()), ("v", LONG), partition_by=["day"])
    landing.refused("found no writePartitionBy; .* Set the option writePartitionBy=day")
    landing.refused("found writePartitionBy=v", writePartitionBy="v")
    landing.run(writePartitionBy="day")
    assert landing.rows() == [{"day": "b", "v": 2}]


def test_a_null_where_the_table_allows_none_ends_the_task_before_it_commits(landing):
    inner = pa.struct([pa.field("x", pa.string(), nullable=False)])
    landing.create(pa.field("id", LONG, nullable=False), ("o", inner))
    landing.json("1.json", {"id": 1, "o": {"x": "a"}}, {"o": {"x": "b"}}, {"id": 3, "o": {}})
    with pytest.raises(TableError, match=r"in id, in 1 of 3 rows.*filter='id IS NOT NULL', fill"):
        landing.run()
    # A filter names whole columns only.
    with pytest.raises(TableError, match=r"in o\.x, in 1 of 2 rows.* the table\. Fill the column"):
        landing.run(filter="id IS NOT NULL")
    landing.run(filter="id IS NOT NULL AND id < 3")
    assert landing.rows() == [{"id": 1, "o": {"x": "a"}}]


@pytest.mark.parametrize("kind", [INSTANT, NTZ])
def test_a_table_partitioned_by_time_takes_rows_and_not_those_of_the_other_kind(landing, kind):
    names = {INSTANT: "timestamp", NTZ: "timestamp_ntz"}
    landing.create(("id", LONG), ("at", kind), partition_by=["at"])
    zone = "Z" if kind.tz else ""
    landing.json("1.json", {"id": 1, "at": f"2024-01-02T03:04:05.000001{zone}"}, {"id": 2})
    other = names[NTZ if kind == INSTANT else INSTANT]
    told = f"at is {other}, and {names[kind]} in the table"
    landing.refused(told, writePartitionBy="at", writeSchema=f"id long, at {other}")
    landing.run(writePartitionBy="at", writeSchema=f"id long, at {names[kind]}")
    expected = [(1, AT if kind.tz else AT.replace(tzinfo=None)), (2, None)]
    assert sorted((row["id"], row["at"]) for row in landing.rows()) == expected
    assert pl.read_delta(str(landing.table)).sort("id").rows() == expected


ELEMENT = pa.struct([pa.field("x", LONG, nullable=False)])


@pytest.mark.parametrize(
    ("kind", "bad", "good", "place"),
    [
        (pa.list_(ELEMENT), [{"x": 1}, {}], [{"x": 1}], "c.element.x"),
        (pa.list_(pa.field("element", LONG, nullable=False)), [1, None], [], "c.element"),
        (
            pa.map_(pa.string(), pa.field("value", LONG, nullable=False)),
            {"a": None},
            {"a": 1},
            "c.value",
        ),
        (
            pa.struct([("l", pa.list_(ELEMENT))]),
            {"l": [{}, {"x": 1}]},
            {"l": [{"x": 2}]},
            "c.l.element.x",
        ),
    ],
)
def test_a_null_within_an_array_or_a_map_is_refused_where_the_table_allows_none(
    landing, kind, bad, good, place
):
    landing.create(("c", kind))
    landing.json("1.json", {}, {"c": bad})
    schema = {"writeSchema": "c map<string,long>"} if pa.types.is_map(kind) else {}
    with pytest.raises(TableError, match=rf"nulls in {re.escape(place)};.*files repaired"):
        landing.run(**schema)
    landing.json("1.json", {"c": good})
    landing.run(**schema)
    (row,) = landing.rows()
    assert row["c"] in (good, [*good.items()] if isinstance(good, dict) else good)


def test_a_table_partitioned_by_numbers_and_time_takes_no_text_for_them(landing):
    kinds = {"f": pa.float64(), "d": pa.decimal128(5, 2), "at": NTZ}
    landing.create(("id", LONG), *kinds.items(), partition_by=[*kinds])
    at = {"at": "2024-01-02T03:04:05"}
    landing.json("1.json", {"id": 1, "f": -0.0, "d": 2, **at}, {"id": 2, "f": 1e300, "d": 2.5})
    hints = "d decimal(5,2), at timestamp_ntz"
    told = f"at is string, and timestamp_ntz in the table.*schemaHints='{re.escape(hints)}'"
    landing.refused(told, writePartitionBy="f,d,at")
    landing.run(writePartitionBy="f,d,at", schemaHints=hints)
    moment = AT.replace(tzinfo=None, microsecond=0)
    rows = [(row["id"], row["f"], float(row["d"]), row["at"]) for row in landing.rows()]
    assert sorted(rows) == [(1, -0.0, 2.0, moment), (2, 1e300, 2.5, None)]


def test_a_partition_value_of_text_is_refused_in_the_task(landing):
    landing.create(("id", LONG), ("day", pa.date32()), partition_by=["day"])
    landing.json("1.json", {"id": 1, "day": "2024-01-02"}, {"id": 2, "day": "x"})
    with pytest.raises(TableError, match=r"found day: .*'x'.* of type date"):
        landing.run(writePartitionBy="day")
    landing.run(writePartitionBy="day", filter="id < 2")
    assert landing.rows() == [{"id": 1, "day": dt.date(2024, 1, 2)}]


def test_what_a_later_file_or_a_hint_brings_is_refused_before_the_schema_is_stored(landing):
    landing.json("1.json", {"n": 1, "s": {"a": 1}})
    landing.run()
    schemas = landing.checkpoint / "sluice" / "source" / "schemas"
    stored = sorted(schemas.iterdir())
    landing.json("2.json", {"n": 2, "s": {"A": 2}})
    with pytest.raises(NewColumnsError, match=r"s\.A is s\.a in the table"):
        landing.run()
    landing.json("2.json", {"n": "x", "s": {"a": 2}})
    with pytest.raises(MalformedDataError):
        landing.run()
    landing.refused("n is string, and long in the table", schemaHints="n string")
    assert sorted(schemas.iterdir()) == stored
    # The sender repairs the file, and the hint is taken out.
    landing.json("2.json", {"n": 3, "s": {"a": 2}})
    landing.run()
    assert sorted(row["n"] for row in landing.rows()) == [1, 3]


def test_a_hint_narrows_what_was_stored_as_long_as_nothing_was_read(landing):
    landing.create(("v", pa.int32()))
    landing.json("1.json", {"v": 7})

    def loaded(**options):
        """The type of the column, as Spark loads the stream; it cannot ask the sink."""
        texts = {**landing.call(**options), "writeTo": str(landing.table)}
        source = SluiceDataSource({name.lower(): text for name, text in texts.items()})
        source.schema()
        return source._written_schema.field("v").type

    assert loaded() == LONG
    landing.refused("v is long, and integer in the table")
    assert [loaded(schemaHints=f"v {name}") for name in ("short", "int")] == [
        pa.int16(),
        pa.int32(),
    ]
    landing.run(schemaHints="v int")
    assert landing.rows() == [{"v": 7}]
    # From here on a type may have become wider than its hint.
    assert loaded(schemaHints="v short") == pa.int32()


MIXED = pa.struct([("x", pa.null()), ("y", LONG)])


def test_void_fields_are_left_out_until_they_have_a_type(landing):
    values = {"v": [None], "m": [{"x": None, "y": 1}], "l": [[{"x": None, "y": 2}]]}
    kinds = {"id": LONG, "v": pa.null(), "m": MIXED, "l": pa.list_(MIXED)}
    pq.write_table(pa.table({"id": [1], **values}, schema=pa.schema(kinds)), landing.data / "1")
    landing.run(fileFormat="parquet")
    assert landing.rows() == [{"id": 1, "m": {"y": 1}, "l": [{"y": 2}]}]
    typed = pa.table({"id": [2], "m": [{"x": "a", "y": 1}]})
    pq.write_table(typed, landing.data / "2")
    landing.run(fileFormat="parquet")
    rows = {row["id"]: row["m"]["x"] for row in landing.rows()}
    assert rows == {1: None, 2: "a"}


@pytest.mark.parametrize(("kind", "place"), [("map", "value"), ("array", "element")])
def test_a_map_or_an_array_of_nulls_is_left_out_or_has_the_type_of_a_hint(
    landing, tmp_path, kind, place
):
    void = {"map": pa.map_(pa.string(), pa.null()), "array": pa.list_(pa.null())}[kind]
    value = {"map": [("a", None)], "array": [None]}[kind]
    rows = pa.table({"id": [1], "m": pa.array([value], void)})
    pq.write_table(rows, landing.data / "1.parquet")
    landing.run(fileFormat="parquet")
    assert landing.rows() == [{"id": 1}]
    lake = IcebergLake(tmp_path, Schema(NestedField(1, "id", LongType())))
    # No table has a type for it, if a schema says so.
    with pytest.raises(TableError, match=rf"m\.{place} is void"):
        lake.sink.check_fit(rows.schema, WriteOptions())
    hint = {"map": "map<string, string>", "array": "array<string>"}[kind]
    elsewhere = {"checkpointLocation": str(tmp_path / "other"), "writeTo": str(lake.data)}
    landing.run(lake.sink, schemaHints=f"m {hint}", fileFormat="parquet", **elsewhere)
    assert lake.rows() == [{"id": 1, "m": value}]


def test_an_iceberg_table_takes_required_columns_and_both_zeros(landing, tmp_path):
    inner = StructType(NestedField(4, "x", IntegerType(), required=True))
    columns = [
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "f", DoubleType()),
        NestedField(3, "o", inner),
        NestedField(5, "t", StringType()),
    ]
    lake = IcebergLake(tmp_path, Schema(*columns), f="identity")
    to = {"to": lake.sink, "writeTo": str(lake.data)}
    rows = [{"id": 1, "f": -0.0, "o": {"x": 1}}, {"id": 2, "f": 0.0, "o": {"x": 2}}]
    landing.json("1.json", *rows, {"f": 1.0, "o": {"x": 3}})
    landing.refused("t is long, and string in the table", schemaHints="t long", **to)
    landing.refused("no writePartitionBy", writePartitionBy="f", **to)
    hints = {"schemaHints": "o.x int"}
    with pytest.raises(TableError, match="nulls in id, in 1 of 3"):
        landing.run(**to, **hints)
    landing.run(filter="id IS NOT NULL", **to, **hints)
    found = {row["id"]: (math.copysign(1, row["f"]), row["o"]) for row in lake.rows()}
    assert found == {1: (-1.0, {"x": 1}), 2: (1.0, {"x": 2})}
    parts = [math.copysign(1, each.partition[0]) for each in lake.files()]
    assert sorted(parts) == [-1.0, 1.0]
    schema = lake.table.schema()
    assert schema.find_field("id").required
    assert schema.find_field("o.x").required
