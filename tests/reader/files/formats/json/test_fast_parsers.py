"""The fast parsers of JSON take only what the exact one reads the same way."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.files.file_split import FileVersion
from pyspark_sluice.reader.files.formats.json.fast_parsers import NestedRecords, intermediate_schema
from pyspark_sluice.reader.files.formats.json.flat_records import REFUSALS, FlatRecords
from pyspark_sluice.reader.files.formats.records.record_format import Origin
from pyspark_sluice.tests.reader.files.formats.json.comparing import (
    exact_rows,
    json_format,
    our_rows,
)
from pyspark_sluice.tests.reader.readings.kinds import arrow_schema

pytestmark = pytest.mark.slow

FLAT_DDL = "a long, small byte, s string, f double, b boolean, at timestamp"
NESTED_DDL = f"{FLAT_DDL}, o struct<x:long,l:array<string>>"
FLAT, NESTED = arrow_schema(FLAT_DDL), arrow_schema(NESTED_DDL)
MAPS = arrow_schema(f"{NESTED_DDL}, m map<string,string>, n map<string,byte>")
DEEP = arrow_schema(
    "a array<double>, small struct<x:float,y:double,k:boolean>, "
    "s array<struct<x:smallint,at:timestamp>>, b map<string,timestamp>, "
    "o struct<x:map<string,long>,l:array<string>>, m map<string,struct<x:long,y:string>>, "
    "n array<array<int>>"
)

VALUES = [
    "1", "-1", "0", "-0", "1.0", "1.5", "1e2", "1e-400", "1e400", "01", "+1", ".5", "5.", "0x1",
    "127", "128", "-129", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
    "123456789012345678901234567890", "0.1000000000000000055511151231257827", "NaN", '"NaN"',
    '"Infinity"', "null", "true", "false", '"true"', "tru", '"1"', '""', '"text"', '"\\u0041"',
    '"\\ud83d\\ude00"', '"\\ud83d"', '"\\q"', '"a\tb"', '"\\u0000"', '"\u00e9\u4e2d"', "'single'",
    '"2024-02-30"', '"2024-05-06T07:08:09.123456Z"', '"2024-05-06"', "[]", "[1]", "{}", '{"x":1}',
    '{"x":1,"l":["p",null]}', '{"x":"1"}', '{"x":{"y":[1,{}]}}', "[1,]", "", "1 2", "1}{",
    '{"x":"a:b","y":null}', '{"x":"p","x":"q"}', '{"x":"p:","x" : "q"}', '{"\\u0078":"p","x":"q:"}',
    '{"x":"\\u003a","x":"q"}', '{"x":"q","x":"\\u003a"}', '{"x:":5,"y":127}', '{"x":1,"x":2}',
    '{"x":128}', '{"x":-0}', "[-0]", "[-0.0,5]", '[{"x":1},{"x":"1"},null]', '[{"x":1.5}]',
    '{"x":{"p":1,"p":2}}', '{"x":{"p":1.0}}', '{"k":{"x":1,"y":"t"},"k":null}', "[[1],[],null]",
    '[[1.5]]', '{"k":"2024-05-06"}', '[{"at":"2024-05-06","x":1}]', '{"x":1e39,"y":1e39}',
    '{"x":16777217,"y":-0}',
]  # fmt: skip
NAMES = ["a", "small", "s", "f", "b", "at", "o", "m", "n", "unknown", "A", "\\u0061", ""]
BLANKS = st.sampled_from(["", "", "", " ", "\t", "\r"])
FIELDS = st.tuples(st.sampled_from(NAMES), BLANKS, st.sampled_from(VALUES), BLANKS)
RECORDS = st.one_of(
    st.lists(FIELDS, max_size=4).map(
        lambda fields: "{" + ",".join(f'"{n}":{b}{v}{c}' for n, b, v, c in fields) + "}"
    ),
    st.sampled_from(["", " ", "null", "[]", '[{"a":1}]', "5", "{", "}", '{"a":', "1}", '"', "//"]),
)
ENDS = st.sampled_from(["\n", "\n", "\n", "\n", "\r\n", " \n", "\n\n", "", " ", "\r"])
LINES = st.lists(st.tuples(RECORDS, ENDS), max_size=6).map(
    lambda made: "".join(record + end for record, end in made).encode()
)


@pytest.mark.sample("flat", "nested", "deep", why="more shapes of records")
@pytest.mark.parametrize(
    "schema", [FLAT, NESTED, MAPS, DEEP], ids=["flat", "nested", "maps", "deep"]
)
@given(data=LINES)
@example(data=b'{"a":\n1}\n{"a":1}{"a":2}\n')
@example(data=b'{"unknown":\n{"a":1}}\n{"a":1}{"a":2}\n')
@example(data=b'{"a":1}\r{"a":2}\n')
@example(data=b'{"a":1,\r"b":true}\n')
@example(data=b'{"a":1,"a":2}\n{"a":1,"a":null}\n')
@example(data=b'{"s":"\xff"}\n{"unknown":"\xff","a":1}\n{"\xff":1}\n')
@example(data=b'\n{"a":1}\n \n')
@example(data=b'{"m":{"x":"p","x":"q"},"n":{"x":1}}\n{"m":null}\n{"m":{"x":"a:b"}}\n')
@example(data=b'{"n":{"x":1}}\n{"n":{"x":1,"x":2}}\n{"m":{"x":"p:","x" : "q"}}\n')
@example(data=b'{"small":1}\n{"small":128}\n')
@example(data=b'{"a":1}\n{"a":-9223372036854775809}\n')
@example(data=b'{"at":9223372036854775807}\n{"at":5}\n{"at":"999999-01-01T00:00:00Z"}\n')
def test_with_and_without_the_fast_parsers_the_rows_are_the_same(
    data: bytes, schema: pa.Schema
) -> None:
    reader = json_format(schema)
    assert our_rows(reader, data) == exact_rows(reader, data)


def test_flat_records_take_the_path_of_msgspec_and_nested_ones_that_of_arrow_json() -> None:
    flat = FlatRecords.of(FLAT.remove(FLAT.get_field_index("at")), known_only=False)
    assert flat is not None
    columns, _ = flat.columns(b'{"a":1,"s":"x","f":2}\n{"b":true,"unknown":[]}\n')
    assert [column.to_pylist() for column in columns] == [
        [1, None], [None, None], ["x", None], [2.0, None], [None, True]
    ]  # fmt: skip
    nested = NestedRecords.of(intermediate_schema(MAPS), known_only=False)
    assert nested is not None
    columns, _ = nested.columns(b'{"o":{"x":1,"l":["p",null]},"unknown":1.5,"m":{"x":"a","x":"b"}}')
    assert [column[0].as_py() for column in columns][-3:] == [
        {"x": 1, "l": ["p", None]}, [("x", "a"), ("x", "b")], None
    ]  # fmt: skip
    for schema in (NESTED, pa.schema([("f", pa.float32())])):
        assert FlatRecords.of(schema, known_only=False) is None


LAX = [
    '{"a":"1"}', '{"a":1.0}', '{"a":1e2}', '{"a":-9223372036854775809}', '{"f":"1.5"}',
    '{"o":{"x":"1"}}', '{"o":{"x":1.5}}', '{"n":{"k":"1"}}', '{"n":{"k":1.5}}', '{"a":"1","a":1}',
    '{"u":01}', '{"u":1 "a":2}', '{"u":1,,"a":2}', '{"u":[1,]}', '{"u":[1 2]}', '{"u":1,}',
    '{,"a":1}', '{"u":1.2.3}', '{"u":1-2}', '{"u":-}', '{"u":"a\tb"}', '{"s":"a\tb"}',
]  # fmt: skip
"""What arrow-json by itself takes, or passes over, and Spark does not."""


@pytest.mark.parametrize("record", LAX)
@pytest.mark.parametrize("more", [0, 100])
def test_what_arrow_json_is_lax_with_is_refused(record: str, more: int) -> None:
    fields = [pa.field(f"c{number}", pa.int64()) for number in range(more)]
    nested = NestedRecords.of(intermediate_schema(pa.schema([*MAPS, *fields])), known_only=False)
    assert nested is not None
    good = b'{"a":1,"n":{"k":1}}\n'
    assert nested.columns(good)[1] == 1
    with pytest.raises((*REFUSALS, pa.ArrowException)):
        nested.columns(good + record.encode() + b"\n")


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\tb", "\0", "", "a b", "é", "class", "a.b"])
def test_columns_of_any_name_are_read(name: str) -> None:
    reader = json_format(pa.schema([(name, pa.int64())]))
    assert our_rows(reader, json.dumps({name: 5}).encode()) == [{name: 5}]


def test_columns_of_strings_take_any_value_as_it_is_written_without_the_slow_path() -> None:
    amount = pa.field("amount", pa.decimal128(10, 2))
    schema = pa.schema([("s", pa.string()), ("id", pa.int64()), amount])
    reader = json_format(schema)
    texts: dict[str, str | None] = {
        '"a\\n\\u00e9"': "a\n\u00e9", "1.50": "1.50", "-0": "-0", "true": "true", "null": None,
        '"null"': "null", '[1, {"k" :"v"} ]': '[1, {"k" :"v"} ]', '{"\\u0061":1}': '{"\\u0061":1}',
        '""': "", '"\u00e9"': "\u00e9",
    }  # fmt: skip
    lines = [f'{{"s": {text} ,"id":1,"amount":"1,234.505"}}' for text in texts]
    data = "\n".join([*lines, '{"amount":1e1}']).encode()
    cut = reader.fast(data, Origin((FileVersion("a", len(data), 0),), (0,)), is_last=True)
    assert cut is not None
    assert cut.parsed.batch.column("s").to_pylist() == [*texts.values(), None]
    amounts = [str(value) for value in cut.parsed.batch.column("amount").to_pylist()]
    assert amounts == ["1234.51"] * len(texts) + ["10.00"]
    for refused in ('{"s":[1,]}', '{"s":"\\q"}', '{"s":["\t"]}', '{"s":01}', '{"amount":true}'):
        broken = data + b"\n" + refused.encode()
        assert reader.fast(broken, Origin((FileVersion("a", 1, 0),), (0,)), is_last=True) is None


AMOUNTS = [
    "1", "-1", "0", "-0", "1.005", "-1.005", "1.00499999999999999999", "1e2", "1.5E-1", "1e-400",
    "99999999.994", "99999999.995", "100000000", "1e400", "12345678.005", "0.00500", "-0.004",
    "1e7", "123456789e-1", "0.0000000000000000000000000000000000000000000000005", "1e-3", "5e-3",
]  # fmt: skip


def test_decimals_of_any_depth_are_rounded_half_up_as_on_the_exact_path() -> None:
    schema = arrow_schema("d decimal(10,2), o struct<d:decimal(10,2),w:decimal(38,2)>")
    reader = json_format(schema)
    fits = 0
    for amount in AMOUNTS:
        data = f'{{"d":{amount},"o":{{"d":{amount},"w":{amount}}}}}\n'.encode()
        cut = reader.fast(data, Origin((FileVersion("a", 1, 0),), (0,)), is_last=True)
        assert our_rows(reader, data) == exact_rows(reader, data), amount
        fits += cut is not None
    assert fits >= len(AMOUNTS) // 2


def test_an_exponent_far_below_the_scale_does_not_end_the_process() -> None:
    numbers = ["1e-99999999", '"1E-99999999"', "0e-0999999999", "-1.5e-9999999"]
    data = "".join(f'{{"a":{number}}}\n' for number in numbers).encode()
    reader = json_format(pa.schema([("a", pa.decimal128(38, 19))]))
    assert our_rows(reader, data) == [{"a": f"decimal {0:.19f}"}] * len(numbers)
