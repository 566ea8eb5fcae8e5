"""The same bytes through Spark's readers and through ours give the same rows.

Where they do not, on purpose, docs/differences.md says so.
"""

from __future__ import annotations

import json
import math

import pytest
from pyspark.sql.types import VariantVal

from pyspark_sluice.reader.files.testing import read_rows
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


CASES = {
    "csv: empty quoted values": (b'"",x\n,y\n"NA",NA\nNA,z\n', STRINGS, {}),
    "csv: null value": (b'"",x\n,y\n"NA",NA\nNA,z\n', STRINGS, {"nullValue": "NA"}),
    "csv: empty value": (b'"",x\n,y\n', STRINGS, {"emptyValue": "EMPTY"}),
    "csv: blanks kept": (b"1, 2\n 3 ,4\n", STRINGS, {}),
    "csv: blanks dropped": (
        b' 1 , "2" \n 3 ,4\n',
        STRINGS,
        {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"},
    ),
    "csv: numbers": (
        b'1.0,2\nx,2\n1,1e3\n+1,.5\n1,5d\n,\n"1","2"\n1,Infinity\n1,inf\n',
        f"a int, b double, {CORRUPT}",
        {},
    ),
    "csv: booleans": (b"true\nTRUE\nTrue\n1\nyes\nfalse\n", f"a boolean, {CORRUPT}", {}),
    "csv: binary": (b"abc\n", f"a binary, {CORRUPT}", {}),
    "csv: no escape in a line separator": (b"a,b\\tc,\td", STRINGS, {"lineSep": r"\t"}),
    "csv: no UTF-8": (b"\xff,1\n", STRINGS, {}),
    "csv: not numbers": (b"NaN,Inf\n-Inf,nan\n", f"a double, b float, {CORRUPT}", {}),
    "csv: small integers": (b"127\n128\n-129\n", f"a tinyint, {CORRUPT}", {}),
    "json: allowed spellings": (
        b'{a:1}\n{"a":NaN}\n{"a":\'x"y\'}\n{"a":/*c*/1}\n{"a":"\\\'z"} // d',
        f"a string, {CORRUPT}",
        {"allowUnquotedFieldNames": "true", "allowComments": "true"},
    ),
    "json: lone CR": (b'{"a":1}\r{"a":2}\r\n{"a":3}', f"a int, {CORRUPT}", {}),
    "json: primitives as string": (
        b'{"a":1,"b":true}\n{"a":"x","b":null}',
        STRINGS,
        {"primitivesAsString": "true"},
    ),
    "json: variants": (
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
    "json: long variants": (_long_variants(), f"a variant, b int, {CORRUPT}", {}),
    "json: variants within": (
        b'{"a":{"v":{"x":1}},"b":[1,"x"]}\n{"a":{"v":null},"b":[null]}\n{"a":{}}',
        "a struct<v:variant>, b array<variant>",
        {},
    ),
    "json: whole records as variants": (
        b'{"a":1,"b":{"c":[2.25,null]}}\n[1,2]\n5\nnull\n{"a":\n\n{"b":"x"}',
        f"v variant, {CORRUPT}",
        {"singleVariantColumn": "v"},
    ),
    "json: no escape in a line separator": (
        b'{"a":1}\\n{"a":2}',
        f"a int, {CORRUPT}",
        {"lineSep": r"\n"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_bytes_give_the_same_rows(spark_answers, tmp_path, case):
    name, (data, schema, options) = case.partition(":")[0], CASES[case]
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
