"""Records under a path of JSON documents, and documents that are joined without a line end."""

from __future__ import annotations

import gzip
import json
import random
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.file_split import FileVersion
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.errors import MalformedDataError, OptionError
from pyspark_sluice.reader.files.evolution.new_columns import NewColumnsSeen
from pyspark_sluice.reader.files.formats.json.record_path import Odd, records_at
from pyspark_sluice.reader.files.formats.registry import make_format
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.schemas.inference import inferred_schema
from pyspark_sluice.tests.reader.files.reading import read, read_rows, whole

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
    except Odd as odd:
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


@pytest.mark.parametrize("seed", range(4))
def test_the_rows_are_those_of_the_same_records_as_lines(tmp_path, seed):
    chance = random.Random(seed)
    texts = ["x", '"[{', "\\", "ä\n", "'", ""]
    rows = [
        {"s": chance.choice(texts), "a": n, "o": [{"Records": [n]}] * chance.randint(0, 3)}
        for n in range(3000)
    ]
    lines, nested = tmp_path / "lines.json", tmp_path / "nested.json.gz"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    documents, left = "", rows
    while left:
        count = chance.randint(0, 900)
        others = [("A", [left[:5]]), ("Records", left[:count]), ("z", {"Records": [{"a": 1}]})]
        chance.shuffle(others)
        documents += json.dumps(dict(others), indent=chance.choice([None, 1]))
        left = left[count:]
    nested.write_bytes(gzip.compress(documents.encode()))
    expected = read_rows([lines], SCHEMA)
    assert read_rows([nested], SCHEMA, batch_bytes="64k", **RECORDS) == expected
    nested.write_bytes(gzip.compress("".join(map(json.dumps, rows)).encode()))
    assert read_rows([nested], SCHEMA, batch_bytes="64k", **JOINED) == expected


@pytest.mark.parametrize(
    ("options", "content", "place"),
    [
        (RECORDS, '{"Records":[{"a":1},\n{"a":"x","s":"kept"},{"a":3}]}', 20),
        (JOINED, '{"a":1}{"a":"x","s":"kept"}{"a":3}', 7),
    ],
)
def test_a_bad_record_takes_no_other_with_it(tmp_path, options, content, place):
    path = tmp_path / "a.json"
    path.write_text(content)
    text = '{"a":"x","s":"kept"}'
    with pytest.raises(MalformedDataError, match=rf"a\.json, byte {place};"):
        read_rows([path], SCHEMA, **options)
    rows = read_rows([path], SCHEMA, mode="PERMISSIVE", **options)
    assert [row["a"] for row in rows] == [1, None, 3]
    assert rows[1]["s"] == "kept"
    assert rows[1]["_corrupt_record"].strip() == text
    table, (report,) = read([whole(path)], SCHEMA, mode="DROPMALFORMED", **options)
    assert (table.column("a").to_pylist(), report.dropped_records) == ([1, 3], 1)
    (bad,) = bad_records(path, **options)
    assert (bad.path, bad.position, bad.record.strip()) == (str(path), f"byte {place}", text)


def bad_records(path, **options):
    chosen = ReaderOptions(bad_records_path="/bad", mode="DROPMALFORMED", **options)
    decoded = make_format(chosen, SCHEMA).decode(whole(path))
    return [bad for parsed in decoded for bad in parsed.bad]


def test_a_document_without_the_array_is_one_malformed_record(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"Records":[{"a":1},{"a":2}]}\n{"Error":"throttled"}')
    with pytest.raises(MalformedDataError, match=rf"a\.json, byte 30; found {NO_ARRAY}"):
        read_rows([path], SCHEMA, **RECORDS)
    rows = read_rows([path], SCHEMA, mode="PERMISSIVE", **RECORDS)
    assert [(row["a"], row["_corrupt_record"]) for row in rows] == [
        (1, None), (2, None), (None, '{"Error":"throttled"}'),
    ]  # fmt: skip
    table, (report,) = read([whole(path)], SCHEMA, mode="DROPMALFORMED", **RECORDS)
    assert (table.num_rows, report.dropped_records) == (2, 1)
    (bad,) = bad_records(path, **RECORDS)
    assert (bad.reason, bad.position) == (NO_ARRAY, "byte 30")


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
