"""The fast parsers of JSON take only what the exact one reads the same way."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.documents.file_split import FileVersion
from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.files.formats.json import format as json_format
from pyspark_sluice.reader.files.formats.json.fast_parsers import NestedRecords, rows_by_file
from pyspark_sluice.reader.files.formats.json.format import JsonFormat
from pyspark_sluice.reader.files.formats.json.json_values import may_exceed
from pyspark_sluice.reader.files.formats.json.plain_records import REFUSALS, FlatRecords
from pyspark_sluice.reader.files.formats.record_format import Origin
from pyspark_sluice.reader.files.options import ReaderOptions

pytestmark = pytest.mark.slow

FLAT = pa.schema(
    [
        ("a", pa.int64()),
        ("small", pa.int8()),
        ("s", pa.string()),
        ("f", pa.float64()),
        ("b", pa.bool_()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
NESTED = FLAT.append(pa.field("o", pa.struct([("x", pa.int64()), ("l", pa.list_(pa.string()))])))
MAPS = NESTED.append(pa.field("m", pa.map_(pa.string(), pa.string()))).append(
    pa.field("n", pa.map_(pa.string(), pa.int8()))
)
DEEP = pa.schema(
    [
        ("a", pa.list_(pa.float64())),
        ("small", pa.struct([("x", pa.float32()), ("y", pa.float64()), ("k", pa.bool_())])),
        ("s", pa.list_(pa.struct([("x", pa.int16()), ("at", pa.timestamp("us", "UTC"))]))),
        ("b", pa.map_(pa.string(), pa.timestamp("us", "UTC"))),
        ("o", pa.struct([("x", pa.map_(pa.string(), pa.int64())), ("l", pa.list_(pa.string()))])),
        ("m", pa.map_(pa.string(), pa.struct([("x", pa.int64()), ("y", pa.string())]))),
        ("n", pa.list_(pa.list_(pa.int32()))),
    ]
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


def _parsed(
    data: bytes, schema: pa.Schema, options: ReaderOptions
) -> tuple[list[dict[str, Any]], int] | str:
    source = Origin((FileVersion("a.json", len(data), 0),), (0,))
    try:
        parsed = JsonFormat(schema, options).parse(data, source)
    except MalformedDataError as err:
        return str(err)
    return parsed.batch.to_pylist(), parsed.dropped_records


def _comparable(value: Any) -> Any:
    """Rows in which NaN equals NaN; -0.0 and 0.0 are one number."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


@pytest.mark.sample("flat", "PERMISSIVE-deep", "DROPMALFORMED-nested", why="more shapes of records")
@pytest.mark.parametrize(
    "schema", [FLAT, NESTED, MAPS, DEEP], ids=["flat", "nested", "maps", "deep"]
)
@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED", "FAILFAST"])
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
@example(data=b'{"at":9223372036854775807}\n{"at":5}\n{"at":"999999-01-01T00:00:00Z"}\n')
def test_with_and_without_the_fast_parsers_the_rows_are_the_same(
    data: bytes, mode: str, schema: pa.Schema
) -> None:
    options = ReaderOptions(file_format="json", mode=mode)
    fast = _parsed(data, schema, options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_format, "parseable", lambda _: False)
        exact = _parsed(data, schema, options)
    if isinstance(fast, str) or isinstance(exact, str):
        assert fast == exact
        return
    assert fast[1] == exact[1]
    assert [{k: _comparable(v) for k, v in row.items()} for row in fast[0]] == [
        {k: _comparable(v) for k, v in row.items()} for row in exact[0]
    ]


def test_flat_records_take_the_path_of_msgspec_and_nested_ones_do_not() -> None:
    wire = pa.schema([(n, pa.string() if n == "at" else FLAT.field(n).type) for n in FLAT.names])
    flat = FlatRecords.of(wire, known_only=False)
    assert flat is not None
    columns, count = flat.columns(b'{"a":1,"s":"x","f":2}\n{"b":true,"unknown":[]}\n')
    assert count == 2
    assert [column.to_pylist() for column in columns] == [
        [1, None], [None, None], ["x", None], [2.0, None], [None, True], [None, None]
    ]  # fmt: skip
    assert FlatRecords.of(NESTED, known_only=False) is None
    assert FlatRecords.of(pa.schema([("f", pa.float32())]), known_only=False) is None


def test_nested_records_take_the_path_of_arrow_json_and_maps_keep_every_entry() -> None:
    nested = NestedRecords.of(MAPS, known_only=False)
    assert nested is not None
    columns, count = nested.columns(
        b'{"o":{"x":1,"l":["p",null]},"unknown":1.5,"m":{"x":"a","x":"b"},"n":{"z":1}}\n{"m":{}}\n'
    )
    found = dict(zip(MAPS.names, columns, strict=True))
    assert count == 2
    assert found["o"].to_pylist() == [{"x": 1, "l": ["p", None]}, None]
    assert found["m"].to_pylist() == [[("x", "a"), ("x", "b")], []]
    assert found["n"].to_pylist() == [[("z", 1)], None]
    assert NestedRecords.of(FLAT, known_only=False) is None


LAX = [
    '{"a":"1"}', '{"a":1.0}', '{"a":1e2}', '{"a":-9223372036854775809}', '{"f":"1.5"}',
    '{"o":{"x":"1"}}', '{"o":{"x":1.5}}', '{"n":{"k":"1"}}', '{"n":{"k":1.5}}', '{"a":"1","a":1}',
    '{"u":01}', '{"u":1 "a":2}', '{"u":1,,"a":2}', '{"u":[1,]}', '{"u":[1 2]}', '{"u":1,}',
    '{,"a":1}', '{"u":1.2.3}', '{"u":1-2}', '{"u":-}', '{"u":"a\tb"}', '{"s":"a\tb"}',
]  # fmt: skip
"""What arrow-json by itself takes, or passes over, and Spark does not."""


@pytest.mark.parametrize("record", LAX)
def test_what_arrow_json_is_lax_with_is_refused(record: str) -> None:
    nested = NestedRecords.of(MAPS, known_only=False)
    assert nested is not None
    good = b'{"a":1,"n":{"k":1}}\n'
    assert nested.columns(good)[1] == 1
    with pytest.raises((*REFUSALS, pa.ArrowException)):
        nested.columns(good + record.encode() + b"\n")


def test_nested_records_of_many_columns_are_proven_too() -> None:
    wide = pa.schema([(f"c{number}", pa.int64()) for number in range(100)])
    nested = NestedRecords.of(wide.append(NESTED.field("o")), known_only=False)
    assert nested is not None
    good = b'{"c7":1,"unknown":"x","c99":null,"o":{"l":["p"],"unknown":1}}\n'
    assert nested.columns(good)[0][7].to_pylist() == [1]
    for lax in (b'{"c7":"1"}\n', b'{"c99":1.5}\n', b'{"o":{"x":"1"}}\n'):
        with pytest.raises(REFUSALS):
            nested.columns(good + lax)


def test_records_with_fields_that_nobody_knows_are_refused_if_that_is_asked_for() -> None:
    nested = NestedRecords.of(MAPS, known_only=True)
    assert nested is not None
    known = b'{"a":1,"s":"x","o":{"l":["p"]},"m":{"any":"x"}}\n{"o":null,"at":"2024-05-06"}\n'
    assert nested.columns(known)[1] == 2
    for unknown in (b'{"a":1,"unknown":1}\n', b'{"o":{"x":1,"unknown":"x"}}\n'):
        with pytest.raises(REFUSALS):
            nested.columns(known + unknown)


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\tb", "\0", "", "a b", "é", "class", "a.b"])
def test_columns_of_any_name_are_read(name: str) -> None:
    schema = pa.schema([(name, pa.int64())])
    data = json.dumps({name: 5}).encode() + b"\n"
    assert _parsed(data, schema, ReaderOptions(file_format="json")) == ([{name: 5}], 0)


def test_columns_of_strings_take_any_value_as_it_is_written_without_the_slow_path() -> None:
    amount = pa.field("amount", pa.decimal128(10, 2))
    schema = pa.schema([("s", pa.string()), ("id", pa.int64()), amount])
    reader = JsonFormat(schema, ReaderOptions(file_format="json"))
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
    for refused in (
        '{"s":[1,]}',
        '{"s":"\\q"}',
        '{"s":["\t"]}',
        '{"s":01}',
        '{"s":"x","amount":true}',
    ):
        broken = data + b"\n" + refused.encode()
        assert reader.fast(broken, Origin((FileVersion("a", 1, 0),), (0,)), is_last=True) is None


@pytest.mark.parametrize(
    ("data", "rows", "expected"),
    [
        (b'{"a":1}\n{"a":2}', 2, [2]),
        (b'{"a":1}\r\n{"a":2}\r\n', 2, [2]),
        (b'\n {"a":1} \n\n', 1, [1]),
        (b'{"a":1}{"a":2}\n', 2, None),
        (b'{"a":\n1}\n', 1, None),
        (b'{"x":\n{"y":1}}\n{"a":1}{"a":2}\n', 3, None),
        (b'\n{"a":1}{"a":2}', 2, None),
        (b'\n{"a":1}', 1, [1]),
        (b'\n\n{"a":1}\n{"a":2}', 2, [2]),
    ],
)
def test_a_record_is_a_line(data: bytes, rows: int, expected: list[int] | None) -> None:
    assert rows_by_file(data, Origin((FileVersion("a", 1, 0),), (0,)), rows) == expected


def test_records_that_are_decoded_in_several_pieces_keep_their_order_and_their_nulls() -> None:
    wire = pa.schema({"i": pa.int64(), "s": pa.int16(), "d": pa.float64(), "b": pa.bool_()})
    wire = wire.append(pa.field("t", pa.string()))
    rows = [
        {"i": n - 9_000, "s": n % 7, "d": n / 8, "b": n % 3 == 0, "t": f"text {n}"}
        | ({} if n < 9_000 else {"i": None, "t": None})
        for n in range(12_000)
    ]
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    flat = FlatRecords.of(wire, known_only=False)
    assert flat is not None
    columns, count = flat.columns(data)
    assert count == len(rows)
    for name, kind, column in zip(wire.names, wire.types, columns, strict=True):
        column.validate(full=True)
        assert column.type == kind
        assert column.to_pylist() == [row[name] for row in rows]


@pytest.mark.parametrize(("kind", "value"), [(pa.int16(), 1 << 15), (pa.int64(), -(1 << 63) - 1)])
def test_a_number_beyond_its_type_is_refused(kind: pa.DataType, value: int) -> None:
    flat = FlatRecords.of(pa.schema({"n": kind}), known_only=False)
    assert flat is not None
    with pytest.raises((*REFUSALS, pa.ArrowException)):
        flat.columns(b'{"n":1}\n{"n":%d}\n' % value)


SHORT = b'{"a":1}\n' * 200


@pytest.mark.parametrize("before", [0, 1, 499, 500, 501, 999])
@pytest.mark.parametrize(
    ("value", "exceeds"),
    [
        (b"1" * 1000, True),
        (b'"' + b"1 " * 700 + b'"', False),
        (b"[" * 1001 + b"]" * 1001, True),
        (b"[" * 900 + b"]" * 900, False),
        (b"[" + b'{"b":1},' * 1200 + b"{}]", False),
    ],
)
def test_what_jackson_refuses_is_found_at_any_place(
    before: int, value: bytes, exceeds: bool
) -> None:
    line = b'{"' + b"x" * before + b'":' + value + b"}\n"
    for data in (line, SHORT + line, line + SHORT, SHORT + line + SHORT):
        assert may_exceed(data) == exceeds
    assert not may_exceed(SHORT)


_READING = """
import pathlib, sys
import pyarrow as pa
from pyspark_sluice.reader.files.testing import read_rows

schema = pa.schema([("a", pa.decimal128(38, 19))])
print(read_rows([pathlib.Path(sys.argv[1])], schema, file_format="json"))
"""


def test_an_exponent_far_below_the_scale_does_not_end_the_process(tmp_path):
    path = tmp_path / "1.json"
    numbers = ["1e-99999999", '"1E-99999999"', "0e-0999999999", "-1.5e-9999999"]
    path.write_text("".join(f'{{"a":{number}}}\n' for number in numbers))
    # In a process of its own, which pyarrow's parser would end.
    asked = [sys.executable, "-c", _READING, str(path)]
    found = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stdout.count("Decimal('0E-19')")) == (0, 4), found.stderr
