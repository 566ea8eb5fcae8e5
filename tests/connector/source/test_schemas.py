"""Schemas as Spark's JSON, and those that are inferred from files that differ."""

import json

import pyarrow as pa
import pyarrow.feather as pa_feather
import pyarrow.orc as pa_orc
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pyspark_sluice.connector.source.schema_json import arrow_schema_of, json_of
from pyspark_sluice.connector.spark.data_source import SluiceDataSource
from pyspark_sluice.connector.spark.types import arrow_schema
from pyspark_sluice.errors import OptionError
from pyspark_sluice.reader.files.evolution.hints import parse_columns
from pyspark_sluice.tests.reader.files.formats.table_files import avro_file
from pyspark_sluice.tests.spark.versions import AS_NEWEST

DDL = """
    a boolean, b byte, c short, d int, e long, f float, g double, h string, i binary, j date,
    k timestamp, l timestamp_ntz, m decimal(10,2), n decimal(38,0), o variant NOT NULL,
    p array<struct<x: int, y: array<string>>>, q map<string, map<string, timestamp>>,
    r struct<s: variant, t: struct<u: decimal(5,5)>>, `odd name` string NOT NULL
"""
SCHEMAS = {
    "all types": pa.schema(parse_columns(DDL, "schema")),
    "types that Spark does not tell apart": pa.schema(
        [
            ("a", pa.large_string()),
            ("b", pa.large_binary()),
            ("c", pa.binary(4)),
            ("d", pa.timestamp("ns", "Europe/Paris")),
            ("e", pa.timestamp("ms")),
            ("f", pa.time64("us")),
            ("g", pa.duration("s")),
            ("h", pa.null()),
            ("i", pa.large_list(pa.int8())),
            ("j", pa.list_(pa.field("item", pa.int8(), nullable=False))),
            ("k", pa.map_(pa.string(), pa.field("v", pa.int8(), nullable=False))),
        ]
    ),
}


@pytest.mark.parametrize(
    "name", ["all types", pytest.param("types that Spark does not tell apart", marks=AS_NEWEST)]
)
def test_the_json_is_that_of_pyspark(name):
    schema = SCHEMAS[name]
    theirs = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    assert json_of(schema) == theirs.jsonValue()
    # Digests of schemas are of their text.
    assert str(arrow_schema_of(json_of(schema))) == str(arrow_schema(theirs))
    assert arrow_schema_of(json_of(schema)).equals(arrow_schema(theirs), check_metadata=True)


def test_types_that_only_spark_writes_are_read():
    names = ["char(3)", "varchar(10)", "time(3)", "interval day", "string collate UTF8_LCASE"]
    fields = [{"name": n, "type": n, "nullable": True, "metadata": {}} for n in names]
    found = arrow_schema_of({"type": "struct", "fields": fields})
    text, time, days = pa.string(), pa.time64("ns"), pa.duration("us")
    assert found.types == [text, text, time, days, text]


@AS_NEWEST
def test_metadata_of_columns_stays():
    stored = {"type": "struct", "fields": []}
    stored["fields"].append(
        {"name": "a", "type": "long", "nullable": False, "metadata": {"comment": "key"}}
    )
    assert json_of(arrow_schema_of(stored)) == stored
    assert arrow_schema_of(stored).equals(
        arrow_schema(StructType.fromJson(json.loads(json.dumps(stored)))), check_metadata=True
    )


@pytest.mark.parametrize("kind", [pa.uint8(), pa.dictionary(pa.int8(), pa.string())])
def test_a_type_that_spark_does_not_have_is_refused(kind):
    with pytest.raises(OptionError, match="Spark has no type"):
        json_of(pa.schema([("a", kind)]))


FILES = (
    pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]}),
    pa.table({"name": ["c"], "price": [2.5], "id": pa.array([3], pa.int64())}),
)
ROWS = [(1, "a", None, "eu"), (2, "b", None, "eu"), (3, "c", 2.5, "us")]


WRITERS = {
    "orc": pa_orc.write_table,
    "avro": lambda table, path: path.write_bytes(avro_file(table)),
    "arrow": lambda table, path: pa_feather.write_feather(table, str(path)),
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_schema_is_inferred_and_merged_over_files(tmp_path, name):
    for table, region in zip(FILES, ("eu", "us"), strict=True):
        (tmp_path / f"region={region}").mkdir()
        WRITERS[name](table, tmp_path / f"region={region}" / "0")
    source = SluiceDataSource({"path": str(tmp_path), "fileformat": name})
    schema = source.schema()
    assert isinstance(schema, StructType)
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    assert types == {"id": "bigint", "name": "string", "price": "double", "region": "string"}
    reader = source.reader(schema)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert (
        sorted(tuple(row[key] for key in ("id", "name", "price", "region")) for row in rows) == ROWS
    )
