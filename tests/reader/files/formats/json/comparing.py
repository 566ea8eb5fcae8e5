"""Records that readers of JSON differ in, and their rows, read by Spark and by us."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.files.file_split import FileVersion
from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.files.formats.json import format as format_module
from pyspark_sluice.reader.files.formats.json.format import JsonFormat
from pyspark_sluice.reader.files.formats.records.record_format import Origin
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

# fmt: off
# Surrogate escapes mean bytes as such.
NUMBERS = [
    '1', '-1', '0', '-0', '-0.0', '0.0', '1.0', '1.5', '1e2', '1E400', '1e-400', '01', '-01',
    '+1', '.5', '5.', '1.e1', '0x1', '1_000', '127', '128', '200', '255', '256', '-129', '32768',
    '2147483648', '9223372036854775807', '9223372036854775808',
    '12345678901234567890123456789012345678', "1" * 39, "9" * 38, "9" * 39, "-" + "9" * 38,
    "1" * 200, '1.255', '1.245', '-1.255', '99999999.99', '99999999.995', '16777217', '0.1',
    '1e38', '3.4028236e38', '1e39', '1.17549435e-38', 'NaN', '-NaN', 'Infinity', '-Infinity',
    '+Infinity', 'INF', '-INF', '+INF', 'nan', 'null', 'true', 'false', 'tru', 'True', 'nul',
    'nulll', 'truex', 'true1',
]
TEXTS = [
    '""', '"text"', '"1"', '"1.5"', '"-0"', '"1_000"', '"1e2"', '"+1.5"', '" 1"', '"1."', '".5"',
    '"NaN"', '"Infinity"', '"+INF"', '"-INF"', '"INF"', '"-Infinity"', '"true"', '"null"',
    '"aGk="', '"aGk"', '"aA=="', '"a"', '"aGkh"', '"aGkhaGk="', '"aGk=aGk="', '"aG k="',
    ' "a\\nGk="', '"aGk=\\n"', '"!!"', '"a=="', '"====" ', '"2024-01-02"', '"2024-02-30"',
    '"2024-1-2"', '"2024"', '"5"', '"-5"', '"20240102"', '"123456789"', '"2024-01-02T03:04:05Z"',
    '"2024-01-02 03:04:05.123456789"', '"2024-01-02T03:04:05+02:00"', '"2024-01-02 03:04"',
    '"2024-03-31 02:30:00"', '"2024-01-02T03:04:05.1"', '"\\u0041"', '"\\ud83d\\ude00"',
    '"\\ud83d"', '"\\ude00x"', '"x\\ud83dy"', '"\\uD83d\\u0041"', '"\\q"', '"\\u12"', '"\\u12g4"',
    '"a\tb"', '"a\x01b"', '"\\u0000"', '"\xe9\u4e2d\U0001f600"', '"a\\"b"', '"\\\\"', "'single'",
    '\'si"ng\'', "'a\\'b'", '"open', '"\\', '"\udc80"', '"x\udcff"', '"x\udcff,"', '"\udcc3("',
    '"\udced\udca0\udc80"', '"\udcf0\udc9f"',
]
NESTED_VALUES = [
    '[]', '{}', '[1]', '[1,2]', '[1,null]', '[1,"x",3]', '[1,{"b":5}]', '["x"]', '[null]',
    '[[1]]', '{"x":1}', '{"x":1,"s":"p"}', '{"x":"1"}', '{"x":1,"x":2}', '{"x":1,"x":"q"}',
    '{"x":1,"x":null}', '{"s":{"k" : [1, 2]}}', '{ "x" : 1 }', '{"n":{"x":1,"z":"q"},"x":3}',
    '{"n":{"x":tru},"x":3}', '{"x":tru}', '{"x":1,"y":["p",2,{"q":-0}]}', '{"y":["\\ud83d"]}',
    '{"\\ud83d":1}', '{"k":1,"k":2}', '{"k":"x","j":2}', '{"k":null}',
    '{"k":{"x":1},"j":{"x":"q","s":"ok"}}', '[{"x":1},{"x":"q","s":"ok"}]', '[{"x":1},null]',
    '[{"x":1},5]', '[1,]', '[,1]', '[1 2]', '{"x":1,}', '{,}', '{"x"}', '{"x":}', '{"x":1 "s":2}',
    '{x:1}', '[', '{', '[1', '{"x":1', '[1}', '{"x":1]', '{"s":"\udcff"}', '{"s":"\udcff","x":1}',
    '["\udcff"]', '{"y":["\udcff","x"]}', '[1e400,1]', '["\\ud83d",{"a":1}]',
    '{"a":[1, {"b" :-0}],  "a":2}', '[12345678901234567890123456789012345678901234567890]',
    '{"x":1111111111111111111111111111111111111111,"s":1111111111111111111111111111111111111111}',
    '/*c*/1', '//x',
]
ODD = [
    '', 'null', '[]', '[{"a":1}]', '[{"a":1},{"a":"x"}]', '[{"a":1},null]', '[[{"a":1}]]',
    '[{"a":1},{"b":tru}]', '[{"a":1},', '5', '"x"', '{', '}', '{"a":', '1}', '"', '//', 'tru',
    'nan', '\ufeff{"a":1}', '\x00', '[null]', '[1]', '{"a":1,"a":2}', '{"a":1,"a":"x"}',
    '{"s":1,"s":[1]}', '{"o":{"x":1},"o":{"s":"q"}}', "{'a':1}", '{a:1}', '{"a" :1}', '{"a":1,}',
    '{"z":tru,"a":1}', '{"z":{"y":tru},"a":1}', '{"a":1,"z":"\udcff"}', '{"\udcff":1,"a":2}',
    '{"\\u0061":7}', '{"\\q":7}', '{"_corrupt_record":"x","a":1}',
]
# fmt: on

Rows = list[dict[str, Any]]


def record(chance: random.Random, names: Sequence[str]) -> bytes:
    """One record with some of these columns, in which a value may be anything."""
    if chance.random() < 0.08:
        return chance.choice(ODD).encode("utf-8", "surrogateescape")
    fields = [
        _field(chance, chance.choice(names)) for _ in range(chance.choice([1, 1, 2, 2, 3, 4]))
    ]
    return ("{" + ",".join(fields) + "}").encode("utf-8", "surrogateescape")


def _field(chance: random.Random, name: str) -> str:
    value = chance.choice(chance.choices([NUMBERS, TEXTS, NESTED_VALUES], [35, 30, 35])[0])
    before, after = chance.choice(["", "", "", " ", "\t"]), chance.choice(["", "", "", " "])
    return f'"{name}"{after}:{before}{value}{after}'


def as_documented(ours: Rows | str, data: bytes, spark: Rows) -> Rows:
    """Spark's rows; ours, where docs/differences.md says that they differ.

    A text that is not JSON has no values, and of a name that comes twice the last value counts.
    """
    text = [{CORRUPT: data.decode("utf-8", "replace")}]
    # Half of a surrogate pair in an object that is read as text.
    spark = [
        {name: _with_question_marks(name, value) for name, value in row.items()} for row in spark
    ]
    if isinstance(ours, str) or not _are_malformed(ours):
        return spark
    if ours == text and (_are_malformed(spark) or b"\xc0" in data) and not _is_json(data, dict):
        return text
    return ours if _are_malformed(spark) and not _is_json(data, _once) else spark


def _with_question_marks(name: str, value: Any) -> Any:
    is_text = isinstance(value, str) and name != CORRUPT
    return value.replace("\\ud83d", "?") if is_text else value


def _are_malformed(rows: Rows) -> bool:
    return any(CORRUPT in row for row in rows)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError
    return dict(pairs)


def _is_json(data: bytes, hook: Callable[[list[tuple[str, Any]]], Any]) -> bool:
    try:
        json.loads(data.decode("utf-8-sig"), object_pairs_hook=hook, parse_int=str)
    except (ValueError, RecursionError):
        return False
    return True


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
