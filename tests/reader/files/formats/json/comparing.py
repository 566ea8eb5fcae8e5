"""JSON read by Spark and by us, in a form in which the two can be held against each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.file_split import FileVersion
from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.files.formats.json import format as format_module
from pyspark_sluice.reader.files.formats.json.format import JsonFormat
from pyspark_sluice.reader.files.formats.record_format import Origin
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.tests.reader.readings.of_spark import comparable, set_for_a_while, with_bytes

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


def exact_rows(reader: JsonFormat, data: bytes) -> Rows | str:
    """`our_rows` without the fast parsers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(format_module, "parseable", lambda _: False)
        return our_rows(reader, data)


def plain_rows(table: pa.Table) -> Rows:
    """`comparable` rows, without nulls."""
    return [_without_nulls(row) for row in comparable(table)]


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [*map(_without_nulls, value)] if isinstance(value, list) else value
