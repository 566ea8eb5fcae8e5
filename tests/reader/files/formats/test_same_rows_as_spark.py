"""The same bytes through Spark's readers and through ours give the same rows.

Where they do not, on purpose, docs/differences.md says so.
"""

from __future__ import annotations

import json
import math

import pytest
from pyspark.sql.types import VariantVal

from pyspark_sluice.tests.reader.files.reading import read_rows
from pyspark_sluice.tests.reader.readings.kinds import arrow_schema
from pyspark_sluice.tests.reader.readings.of_spark import set_for_a_while

ZONE = "Europe/Berlin"
CORRUPT = "_corrupt_record string"
STRINGS = f"a string, b string, {CORRUPT}"


def _long_variants() -> bytes:
    """Strings, arrays and objects whose lengths and offsets take more than one byte."""
    text = "x" * 64
    many = {f"name {number}": number for number in range(300)}
    values = [text, text * 1100, list(range(300)), [text] * 10, many, {"a": text * 1100, "b": 1}]
    return b"".join(json.dumps({"a": value, "b": 1}).encode() + b"\n" for value in values)


CSV = [
    ("empty quoted values", b'"",x\n,y\n"NA",NA\nNA,z\n', STRINGS, {}),
    ("null value", b'"",x\n,y\n"NA",NA\nNA,z\n', STRINGS, {"nullValue": "NA"}),
    ("empty value", b'"",x\n,y\n', STRINGS, {"emptyValue": "EMPTY"}),
    (
        "backslash escapes",
        b'"a""b",x\n"a\\"b",y\n"a\\nb",z\na\\nb,a\\"b\n"a\\\\b",w\n"a\\\\",v\n',
        STRINGS,
        {},
    ),
    (
        "stray quotes",
        b'a"b,x\n"ab"c,y\n"ab,z\n "q",w\nx, "y"\n"q" ,r\n',
        STRINGS,
        {},
    ),
    ("too many and too few fields", b"a\n1,2,3\n1,2\n\n  \n3,\n", STRINGS, {}),
    ("dropped", b"a\n1,2,3\n1,2\n", STRINGS, {"mode": "DROPMALFORMED"}),
    ("blanks kept", b"1, 2\n 3 ,4\n", STRINGS, {}),
    (
        "blanks dropped",
        b' 1 , "2" \n 3 ,4\n',
        STRINGS,
        {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"},
    ),
    (
        "numbers",
        b'1.0,2\nx,2\n1,1e3\n+1,.5\n1,5d\n,\n"1","2"\n1,Infinity\n1,inf\n',
        f"a int, b double, {CORRUPT}",
        {},
    ),
    ("booleans", b"true\nTRUE\nTrue\n1\nyes\nfalse\n", f"a boolean, {CORRUPT}", {}),
    (
        "timestamps",
        (
            b"2024-01-02\n2024-1-2\n2024-01-02 03:04:05\n2024-01-02T03:04:05Z\n"
            b"2024-01-02T03:04:05.123456789+02:00\n2024-10-27 02:30:00\nx\n2024-01-02 03:04\n"
        ),
        f"a timestamp, {CORRUPT}",
        {},
    ),
    ("a skipped hour", b"2024-03-31 02:30:00\n", f"a timestamp, {CORRUPT}", {}),
    (
        "dates",
        b"2024-01-02\n2024-1-2\n2024-01-02 03:04:05\n02/03/2024\n2024\n",
        f"a date, {CORRUPT}",
        {},
    ),
    (
        "timestamps without zone",
        b"2024-01-02 03:04:05\n2024-01-02T03:04:05Z\n2024-01-02T03:04:05.1\n",
        f"a timestamp_ntz, {CORRUPT}",
        {},
    ),
    ("decimals", b"1.25\n1.255\n1e2\n12345678.1\n", f"a decimal(6,2), {CORRUPT}", {}),
    ("binary", b"abc\n", f"a binary, {CORRUPT}", {}),
    ("header by position", b"c,d\n1,2\n", "a string, b string", {"header": "true"}),
    ("header and short rows", b"a,b\n1\n2,3\n", STRINGS, {"header": "true"}),
    ("longer header", b"a,b,c\n1,2,3\n1,2\n", STRINGS, {"header": "true"}),
    ("lone CR", b"a\rb\r\nc,d\n", STRINGS, {}),
    ("no escape in a line separator", b"a,b\\tc,\td", STRINGS, {"lineSep": r"\t"}),
    ("long separator", b"a||b\n1|2||3\n", STRINGS, {"sep": "||"}),
    ("other quote", b"'a,b',1\n\"x\",2\n", STRINGS, {"quote": "'"}),
    ("no UTF-8", b"\xff,1\n", STRINGS, {}),
    ("byte order mark", b"\xef\xbb\xbfa,b\n1,2\n", "a string, b string", {"header": "true"}),
    ("not numbers", b"NaN,Inf\n-Inf,nan\n", f"a double, b float, {CORRUPT}", {}),
    ("small integers", b"127\n128\n-129\n", f"a tinyint, {CORRUPT}", {}),
    ("latin-1", b"\xe4,\xdf\n", STRINGS, {"encoding": "ISO-8859-1"}),
    ("dropped conversion", b"1,2\n3,x\n", "a int, b int", {"mode": "DROPMALFORMED"}),
    (
        "formats",
        b"02.01.2024,2024/01/02 3:04 PM\n",
        f"a date, b timestamp, {CORRUPT}",
        {"dateFormat": "dd.MM.yyyy", "timestampFormat": "yyyy/MM/dd h:mm a"},
    ),
]

JSON = [
    (
        "anything as string",
        b'{"a":1.00}\n{"a":{"x":1}}\n{"a":true}\n{"a":[1,2]}\n{"a":"\\ud83d"}\n{"a":1e5}',
        f"a string, {CORRUPT}",
        {},
    ),
    (
        "records of every kind",
        (
            b'null\n{}\n[]\n[{"a":1},{"a":2}]\n{"a":1\n{"a":1,"a":2}\n"x"\n5\n   \n{"A":1}\n'
            b'{"a":1.0,"b":"z"}\n{"a":"1"}\n{"a":99999999999}\n{"b":"x","a":"y"}\n{"a":1,"b":"x'
        ),
        f"a int, b string, {CORRUPT}",
        {},
    ),
    (
        "doubles",
        b'{"a":NaN}\n{"a":"NaN"}\n{"a":"1.5"}\n{"a":5}\n{"a":1e400}\n{"a":Infinity}\n{"a":"-INF"}',
        f"a double, {CORRUPT}",
        {},
    ),
    (
        "decimals",
        b'{"a":1.255}\n{"a":"1.5"}\n{"a":99999}\n{"a":1e2}',
        f"a decimal(5,2), {CORRUPT}",
        {},
    ),
    ("booleans", b'{"a":1}\n{"a":"true"}\n{"a":true}', f"a boolean, {CORRUPT}", {}),
    (
        "dates",
        b'{"a":"2024-01-02"}\n{"a":"2024-1-2"}\n{"a":"2024-01-02T00:00:00"}\n{"a":5}\n{"a":""}',
        f"a date, {CORRUPT}",
        {},
    ),
    (
        "timestamps",
        (
            b'{"a":"2024-01-02 03:04:05"}\n{"a":5}\n{"a":1.5}\n'
            b'{"a":"2024-01-02T03:04:05.1234567Z"}\n{"a":""}\n{"a":"2024-01-02"}'
        ),
        f"a timestamp, {CORRUPT}",
        {},
    ),
    (
        "timestamps without zone",
        b'{"a":"2024-01-02 03:04:05"}\n{"a":"2024-01-02T03:04:05Z"}',
        f"a timestamp_ntz, {CORRUPT}",
        {},
    ),
    (
        "maps",
        b'{"a":{"x":1,"y":null}}\n{"a":[1]}\n{"a":{"x":"z"}}',
        f"a map<string,int>, {CORRUPT}",
        {},
    ),
    ("arrays", b'{"a":[1,null,2]}\n{"a":5}\n{"a":[1,"x"]}', f"a array<int>, {CORRUPT}", {}),
    (
        "structs",
        b'{"a":{"x":1,"z":2}}\n{"a":[1]}\n{"a":{"x":"q","y":"k"},"b":3}\n{"a":null}',
        f"a struct<x:int,y:string>, b int, {CORRUPT}",
        {},
    ),
    ("binary", b'{"a":"aGk="}\n{"a":"aGk"}\n{"a":"!!"}', f"a binary, {CORRUPT}", {}),
    (
        "allowed spellings",
        b'{a:1}\n{"a":01}\n{"a":"x\ty"}\n{"a":/*c*/1}\n{"a":"\\z"}',
        f"a string, {CORRUPT}",
        {
            "allowUnquotedFieldNames": "true",
            "allowNumericLeadingZeros": "true",
            "allowUnquotedControlChars": "true",
            "allowComments": "true",
            "allowBackslashEscapingAnyCharacter": "true",
        },
    ),
    ("a document", b'{"a":\n1}\n', f"a int, {CORRUPT}", {"multiLine": "true"}),
    ("an array", b'[{"a":1},\n{"a":2}]', f"a int, {CORRUPT}", {"multiLine": "true"}),
    ("nothing for a number", b'{"a":""}\n{"a":null}', f"a int, {CORRUPT}", {}),
    ("lone CR", b'{"a":1}\r{"a":2}\r\n{"a":3}', f"a int, {CORRUPT}", {}),
    ("dropped", b'{"a":1}\n{"a":"x"}\n{"a"', "a int", {"mode": "DROPMALFORMED"}),
    (
        "formats",
        b'{"a":"02.01.2024","b":"02/01/2024 5 PM"}',
        f"a date, b timestamp, {CORRUPT}",
        {"dateFormat": "dd.MM.yyyy", "timestampFormat": "dd/MM/yyyy h a"},
    ),
    (
        "primitives as string",
        b'{"a":1,"b":true}\n{"a":"x","b":null}',
        STRINGS,
        {"primitivesAsString": "true"},
    ),
    (
        "variants",
        (
            b'{"a":null}\n{}\n{"a":true}\n{"a":0}\n{"a":-128}\n{"a":128}\n{"a":-32769}\n{"a":2147483648}\n'
            b'{"a":9223372036854775808}\n{"a":1.5}\n{"a":-0.001}\n{"a":1234567890.12}\n{"a":1e3}\n{"a":1.0}\n'
            b'{"a":123456789012345678901.5}\n{"a":1234567890123456789012345678901234567890}\n{"a":0.0}\n'
            b'{"a":"short"}\n{"a":""}\n{"a":[]}\n{"a":{}}\n{"a":[1,[2,"x"],null]}\n{"a":"\xe4\xb8\xad\xf0\x9f\x98\x80"}\n'
            b'{"a":["\\ud83d",{"\\ude00x":1}]}\n{"a":{"z":1,"b":{"z":[2.5],"a":null},"":"e"}}\n{"a":{"\xef\xbf\xbd":1,"\xf0\x9f\x98\x80":2}}\n{"a":1'
        ),
        f"a variant, {CORRUPT}",
        {},
    ),
    ("long variants", _long_variants(), f"a variant, b int, {CORRUPT}", {}),
    (
        "variants within",
        b'{"a":{"v":{"x":1}},"b":[1,"x"]}\n{"a":{"v":null},"b":[null]}\n{"a":{}}',
        "a struct<v:variant>, b array<variant>",
        {},
    ),
    (
        "whole records as variants",
        b'{"a":1,"b":{"c":[2.25,null]}}\n[1,2]\n5\nnull\n{"a":\n\n{"b":"x"}',
        f"v variant, {CORRUPT}",
        {"singleVariantColumn": "v"},
    ),
    ("line separator", b'{"a":1}|{"a":2}|', f"a int, {CORRUPT}", {"lineSep": "|"}),
    (
        "no escape in a line separator",
        b'{"a":1}\\n{"a":2}',
        f"a int, {CORRUPT}",
        {"lineSep": r"\n"},
    ),
]

TEXT = [
    ("separators", b"a\rb\r\nc\n\nd\xff", "value string", {}),
    ("byte order mark", b"\xef\xbb\xbfa\nb", "value string", {}),
    ("own separator", b"a||b\n||c", "value string", {"lineSep": "||"}),
    ("no escape in a separator", b"a\\tb\tc", "value string", {"lineSep": r"\t"}),
    ("whole", b"a\nb\n", "value string", {"wholetext": "true"}),
]


def _cases():
    for name, table in (("csv", CSV), ("json", JSON), ("text", TEXT)):
        for title, data, schema, options in table:
            yield pytest.param(name, data, schema, options, id=f"{name}: {title}")


@pytest.mark.parametrize(("name", "data", "schema", "options"), list(_cases()))
def test_the_same_bytes_give_the_same_rows(spark_answers, tmp_path, name, data, schema, options):
    path = tmp_path / f"data.{name}"
    path.write_bytes(data)

    def by_spark(spark):
        with set_for_a_while(spark, {"spark.sql.session.timeZone": ZONE}):
            rows = spark.read.format(name).schema(schema).options(**options).load(str(path))
            # Spark carries bytes that are no UTF-8 along, and its toArrow() fails for variants that
            # are null; only collect() can show either.
            if b"\xff" not in data and "variant" not in schema:
                return _plain(rows.toArrow().to_pylist())
            return [_plain(row.asDict(True)) for row in rows.collect()]

    options = {"mode": "PERMISSIVE", **options}
    ours = read_rows([path], arrow_schema(schema), fileFormat=name, timeZone=ZONE, **options)
    assert _plain(ours) == spark_answers(by_spark, data, schema, options)


def _plain(value: object) -> object:
    if isinstance(value, VariantVal):
        return {"value": bytes(value.value), "metadata": bytes(value.metadata)}
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def test_the_arrow_types_of_the_suite_are_those_of_spark(spark_answers):
    from pyspark.sql.pandas.types import to_arrow_schema

    schemas = sorted({case.values[2] for case in _cases()})
    found = [str(arrow_schema(schema)) for schema in schemas]
    assert found == spark_answers(
        lambda spark: [
            str(to_arrow_schema(spark.createDataFrame([], schema).schema, timezone="UTC"))
            for schema in schemas
        ],
        schemas,
    )
