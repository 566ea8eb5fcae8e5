"""Records of JSON under a path, joined documents, and bad records that take no other with them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.files.file_split import FileVersion
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.errors import MalformedDataError, OptionError
from pyspark_sluice.reader.files.evolution.new_columns import NewColumnsSeen
from pyspark_sluice.reader.files.formats.json.record_path import NotPlainJson, records_at
from pyspark_sluice.reader.files.formats.registry import make_format
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.schemas.inference import inferred_schema
from pyspark_sluice.reader.files.testing import read, read_rows, whole

FILE = FileVersion("/in/a.json", 1, 1)
SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string()), ("_corrupt_record", pa.string())])
RECORDS: dict[str, Any] = {"multi_line": True, "record_path": "Records"}
JOINED: dict[str, Any] = {"multi_line": True, "record_path": "$"}

LONGER = (
    '{"x":[{"Records":[1]}],"Records" : [ {"a":"]},\\"{"}, {"a":[1,2]}\n ,{}],"t":[[1]]}\n'
    '{"Records":[ ]}{"Records":[{"a":3}]}'
)
NO_ARRAY = "a document without an array at recordPath=Records"
FOUND: list[tuple[str, str, list[str]]] = [
    ("Records", LONGER, ['{"a":"]},\\"{"}', '{"a":[1,2]}', "{}", '{"a":3}']),
    ("$", '{"a":1}{"a":"}{"} {"a":[{}]}\n[{"a":4}]',
     ['{"a":1}', '{"a":"}{"}', '{"a":[{}]}', '[{"a":4}]']),
    ("of.it", '{"it":[9],"x":{"it":[8]},"of":{"c":[7],"it":[1,{"i":2}],"d":{"it":[5]}}}',
     ["1", '{"i":2}']),
    ("Records", '{"Re\\u0063ords":[{"a":1}]}', ['{"a":1}']),
    ("Records", "", []),
    ("$", " \n", []),
]  # fmt: skip
ODD: list[tuple[str, str, int, str, str]] = [
    ("Records", '{"Records":[{"a":1},,{"a":2}]}', 1, "an element without content", ","),
    ("Records", '{"Records":[{"a":1},]}', 1, "an element without content", "]"),
    ("Records", '{"Records":[,{"a":1}]}', 0, "an element without content", ","),
    ("Records", '{"Records":[{"a":1}]}{"O":[1]}', 1, NO_ARRAY, "}"),
    ("Records", '{"Records":{"a":1}}', 0, NO_ARRAY, "{"),
    ("Records", '{"Records":null}', 0, NO_ARRAY, "}"),
    ("Records", '{"v":{"Records":[1]}}', 0, NO_ARRAY, "}"),
    ("Records", '[{"Records":[1]}]', 0, NO_ARRAY, "["),
    ("Records", '{"Records":[{"a":1},{"a":', 1, "a document that does not end", '{"a":'),
    ("Records", '{"Records":[{"a":1}}', 0, "'}' without an opening bracket", '{"a":1}}'),
    ("Records", '{"Records":[1]}  x', 1, "text outside of a document", "x"),
    ("Records", "{\"Records\":[1,{'a':1}]}", 1, "single quotes", "{'"),
    ("Records", '{"Records":[1,{"a":"x\ny"}]}', 1, "a line break in a string", '{"a":"x '),
    ("$", '{"a":1},{"a":2}', 1, "text outside of a document", ","),
    ("$", '{"a":1}{"a":', 1, "a document that does not end", '{"a":'),
    ("$", '{"a":1}\\', 1, "a document that does not end", "\\"),
]


def cut_at(path, content, size):
    """The records of content that comes in pieces of one size, and what ends them, if anything."""
    data, records = content.encode(), []
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    try:
        for lines, source in records_at(path, FILE, pieces, ReaderOptions()):
            offset = 0
            for line in lines.split(b"\n"):
                if record := line.strip():
                    begin = offset + line.index(record[:1])
                    assert source.locate(begin) == (0, f"/in/a.json, byte {data.index(record)}")
                    records.append(record.decode())
                offset += len(line) + 1
    except NotPlainJson as odd:
        return records, odd
    return records, None


@pytest.mark.parametrize(("path", "content", "records"), FOUND)
def test_records_do_not_depend_on_where_the_content_is_cut(path, content, records):
    for size in range(1, len(content) + 2):
        assert cut_at(path, content, size) == (records, None), size


@pytest.mark.parametrize(("path", "content", "count", "problem", "rest"), ODD)
def test_an_error_does_not_depend_on_where_the_content_is_cut(path, content, count, problem, rest):
    for size in range(1, len(content) + 1):
        records, odd = cut_at(path, content, size)
        text = odd.text.decode().replace("\n", ",")
        assert (len(records), str(odd), text[-len(rest) :]) == (count, problem, rest), size
        kept = content[odd.position : odd.position + len(text)].replace("\n", " ")
        assert text == kept


MISFIT = '{"a":"x","s":"kept"}'


@pytest.mark.parametrize(
    ("options", "content", "place", "text", "values"),
    [
        (RECORDS, f'{{"Records":[{{"a":1}},\n{MISFIT},{{"a":3}}]}}', 20, MISFIT, [1, None, 3]),
        (JOINED, f'{{"a":1}}{MISFIT}{{"a":3}}', 7, MISFIT, [1, None, 3]),
        (RECORDS, '{"Records":[{"a":1}]}\n{"O":1}', 22, '{"O":1}', [1, None]),
    ],
    ids=["element", "joined", "document without the array"],
)
def test_a_bad_record_takes_no_other_with_it(tmp_path, options, content, place, text, values):
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(MalformedDataError, match=rf"a\.json, byte {place};"):
        read_rows([path], SCHEMA, **options)
    rows = read_rows([path], SCHEMA, mode="PERMISSIVE", **options)
    assert [row["a"] for row in rows] == values
    assert rows[1]["s"] == ("kept" if text == MISFIT else None)
    assert rows[1]["_corrupt_record"].strip() == text
    table, (report,) = read([whole(path)], SCHEMA, mode="DROPMALFORMED", **options)
    assert (table.column("a").to_pylist(), report.dropped_records) == ([v for v in values if v], 1)
    chosen = ReaderOptions(bad_records_path="/bad", mode="DROPMALFORMED", **options)
    decoded = make_format(chosen, SCHEMA).decode(whole(path))
    (bad,) = [bad for parsed in decoded for bad in parsed.bad]
    assert (bad.path, bad.position, bad.record.strip()) == (str(path), f"byte {place}", text)


def test_a_member_that_is_left_out_may_be_longer_than_a_record(tmp_path):
    path = tmp_path / "a.json"
    long = json.dumps(["x" * 1000] * 3000)
    path.write_text(f'{{"before":{long},"Records":[{{"a":1}}],"after":{long}}}')
    assert [row["a"] for row in read_rows([path], SCHEMA, max_record_bytes="1m", **RECORDS)] == [1]
    path.write_text(f'{{"Records":[{{"a":1}},{{"s":{json.dumps("x" * 2_100_000)}}}]}}')
    with pytest.raises(MalformedDataError, match=r"longer than maxRecordBytes.*byte 20"):
        read_rows([path], SCHEMA, max_record_bytes="1m", **RECORDS)


def test_columns_are_inferred_from_records_and_a_wrong_path_is_named(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"n":1,"Records":[{"id":1},{"at":{"x":2}}]}')
    file = whole(path).file
    schema = inferred_schema([file], ReaderOptions(**RECORDS))
    assert {"id", "at"} <= set(schema.names)
    assert "n" not in schema.names
    with pytest.raises(
        MalformedDataError, match=r"a\.json, byte .*without an array at recordPath=records"
    ):
        inferred_schema([file], ReaderOptions(multi_line=True, record_path="records"))


@pytest.mark.parametrize(
    ("options", "content"),
    [
        (RECORDS, '{"Records":[{"a":1},{"b":1}]}{"Records":[{"c":"x"}]}'),
        (JOINED, '{"b":1}{"c":"x"}'),
    ],
)
def test_all_new_columns_of_a_file_are_seen_at_once(tmp_path, options, content):
    path = tmp_path / "a.json"
    path.write_text(content)
    chosen = ReaderOptions(
        schema_evolution_mode="addNewColumns", infer_column_types=True, **options
    )
    with pytest.raises(NewColumnsSeen) as seen:
        list(make_format(chosen, SCHEMA).decode(whole(path)))
    assert [field.name for field in seen.value.found] == ["b", "c"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"recordPath": "Records"}, "recordPath: found without multiLine"),
        ({"recordPath": "$", "multiLine": "true", "lineSep": "|"}, "lineSep"),
        ({"recordPath": "$", "multiLine": "true", "allowComments": "true"}, "allowComments"),
        ({"recordPath": "$.Records[*]", "multiLine": "true"}, "recordPath"),
        ({"recordPath": "of..it", "multiLine": "true"}, "recordPath"),
    ],
)
def test_options_that_do_not_go_with_a_path_are_named(options, named):
    with pytest.raises(OptionError, match=named):
        parse_options({"path": "/in", "fileFormat": "json", **options}, streaming=False)


def test_line_feeds_within_records_that_end_in_crlf_are_blanks(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'{\n  "a": 1\n}\r\n{\n  "a": 2\n}\r\n{"a":3}\r\n')
    assert [row["a"] for row in read_rows([path], SCHEMA, line_sep="\r\n")] == [1, 2, 3]
    path.write_bytes(b'{\n"a":1}\r{"a":\n2}\r')
    assert [row["a"] for row in read_rows([path], SCHEMA, line_sep="\r")] == [1, 2]


def test_an_array_with_a_misfit_is_one_malformed_record(tmp_path):
    path = tmp_path / "a.json"
    document = "[" + ",".join(f'{{"a":{i}}}' for i in range(30)) + ',{"a":"x","s":"kept"}]'
    path.write_text(document)
    rows = read_rows([path], SCHEMA, mode="PERMISSIVE", multi_line=True)
    assert [row["a"] for row in rows] == [*range(30), None]
    assert {row["_corrupt_record"] for row in rows} == {document}
    table, (report,) = read([whole(path)], SCHEMA, mode="DROPMALFORMED", multi_line=True)
    assert (table.num_rows, report.dropped_records) == (0, 1)


TIMES = pa.struct([("at", pa.timestamp("us", "UTC"))])
TWICE = pa.schema([("a", pa.int64()), ("o", TIMES), ("_corrupt_record", pa.string())])


@pytest.mark.parametrize(
    "twice", ['"a":"x","a":1', '"o":[],"o":{}', '"o":{"at":"x"},"o":{}', '"o":{"at":"x","at":null}']
)
def test_the_last_value_of_a_name_counts_next_to_any_others(tmp_path, twice):
    path = tmp_path / "a.json"
    path.write_text(f"{{{twice}}}\n")
    (alone,) = read_rows([path], TWICE, mode="PERMISSIVE")
    assert alone["_corrupt_record"] is None
    # What is not JSON is malformed before any later value of its name.
    broken = '{"a":z,"a":1}'
    path.write_text(f"{{{twice}}}\n{broken}\n")
    beside, bad = read_rows([path], TWICE, mode="PERMISSIVE")
    assert (beside, bad["_corrupt_record"]) == (alone, broken)


def test_an_unknown_field_may_be_deep_within_a_struct_next_to_a_misfit(tmp_path):
    path = tmp_path / "a.json"
    deep = "[" * 990 + "]" * 990
    path.write_text(f'{{"a":"x","o":{{"at":null,"u":{deep}}}}}\n')
    (row,) = read_rows([path], TWICE, mode="PERMISSIVE")
    assert row["o"] == {"at": None}
