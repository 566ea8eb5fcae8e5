"""JSON read by Spark and by us, in a form in which the two can be held against each other."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyspark_sluice.checkpoint_meta.documents.file_split import FileVersion
from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.files.formats.json.format import JsonFormat
from pyspark_sluice.reader.files.formats.record_format import Origin
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.tests.reader.readings.of_spark import set_for_a_while
from pyspark_sluice.tests.reader.readings.values import with_bytes

ZONE = "Europe/Berlin"
CORRUPT = "_corrupt_record"
BORDER = b'{"s":"border"}'

FLAT = (
    "a int, l bigint, d double, s string, b boolean, x binary, dt date, ts timestamp, "
    f"tn timestamp_ntz, {CORRUPT} string"
)
NESTED = (
    "a int, t smallint, l bigint, f float, d double, s string, b boolean, x binary, dt date, "
    "ts timestamp, tn timestamp_ntz, de decimal(10,2), db decimal(38,0), "
    "o struct<x:int,s:string,y:array<string>,n:struct<x:double,z:int>>, ar array<int>, "
    f"ao array<struct<x:int,s:string>>, ad array<double>, {CORRUPT} string"
)
MAPS = (
    "a int, s string, m map<string,int>, mo map<string,struct<x:int,s:string>>, "
    f"o struct<x:int,m:map<string,string>>, {CORRUPT} string"
)
STRINGS = f"s string, a string, l bigint, {CORRUPT} string"
ALL = {"flat": FLAT, "nested": NESTED, "maps": MAPS, "strings": STRINGS}

Rows = list[dict[str, Any]]


def spark_lines(
    spark: Any, folder: Path, records: Sequence[bytes], ddl: str, **options: str
) -> list[Rows]:
    """Rows of each record, all of them lines of one file that Spark reads once."""
    (folder / "lines.json").write_bytes(b"".join(r + b"\n" + BORDER + b"\n" for r in records))
    found: list[Rows] = [[]]
    for row in _spark_rows(spark, folder / "lines.json", ddl, options):
        if row.get("s") == "border":
            found.append([])
        else:
            found[-1].append(row)
    assert len(found) == len(records) + 1
    return found[:-1]


def spark_files(spark: Any, folder: Path, ddl: str, **options: str) -> list[Rows]:
    """Rows of each file of a folder, which Spark reads at once."""
    found: dict[str, Rows] = {path.name: [] for path in sorted(folder.iterdir())}
    for row in _spark_rows(spark, folder, ddl, options, file=True):
        found[row.pop("file")].append(row)
    return [*found.values()]


def _spark_rows(
    spark: Any, path: Path, ddl: str, options: dict[str, str], *, file: bool = False
) -> Rows:
    from pyspark.sql import functions
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(ddl)
    with set_for_a_while(spark, {"spark.sql.session.timeZone": ZONE}):
        frame = spark.read.schema(schema).options(**options).json(str(path))
        # Spark carries text that is not UTF-8 along, which only binary columns can show.
        columns = [functions.col(f.name).cast(with_bytes(f.dataType)).alias(f.name) for f in schema]
        if file:
            columns.append(functions.col("_metadata.file_name").alias("file"))
        return plain_rows(frame.select(*columns).toArrow())


def json_format(schema: pa.Schema, **options: Any) -> JsonFormat:
    """Our reader's format."""
    known = {"file_format": "json", "time_zone": ZONE, "mode": "PERMISSIVE", **options}
    return JsonFormat(schema, ReaderOptions(**known))


def our_rows(reader: JsonFormat, data: bytes) -> Rows | str:
    """Rows of a block of whole lines, or `malformed`."""
    try:
        parsed = reader.parse(data, Origin((FileVersion("a.json", len(data), 0),), (0,)))
    except MalformedDataError:
        return "malformed"
    return plain_rows(pa.Table.from_batches([parsed.batch]))


def plain_rows(table: pa.Table) -> Rows:
    """Rows without nulls in which equal values are equal: NaN like NaN, far times as numbers."""
    for index, field in enumerate(table.schema):
        if pa.types.is_date32(field.type):
            table = table.set_column(index, field.name, table.column(index).cast(pa.int32()))
        elif pa.types.is_timestamp(field.type):
            table = table.set_column(index, field.name, table.column(index).cast(pa.int64()))
    return [_plain(row) for row in table.to_pylist()]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return f"float {value!r}"
    if isinstance(value, bool):
        return f"bool {value}"
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value
