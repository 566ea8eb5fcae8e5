"""Bad JSON is one bad record: it takes no neighbour with it, and no file."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_sluice.tests.reader.files.reading import read, read_rows, whole

SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string()), ("_corrupt_record", pa.string())])
POISON = [
    b'{"a":' + b"9" * 4300 + b"}",
    b'{"a":' + b"[" * 450 + b"]" * 450 + b"}",
    b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"s":' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"s":"\xff"}',
]


@pytest.mark.parametrize("ignored", [False, True])
def test_a_poison_record_leaves_the_good_rows_of_its_file(tmp_path, ignored):
    path = tmp_path / "a.json"
    for poison in POISON:
        path.write_bytes(b'{"a":1}\n' + poison + b'\n{"a":2}\n')
        rows = read_rows([path], SCHEMA, mode="PERMISSIVE", ignore_corrupt_files=ignored)
        assert [row["a"] for row in rows] == [1, None, 2]
        assert rows[1]["_corrupt_record"] == poison.decode("utf-8", "replace")
        table, (report,) = read([whole(path)], SCHEMA, mode="DROPMALFORMED")
        assert table.column("a").to_pylist() == [1, 2]
        assert report.dropped_records == 1


def test_five_hundred_arrays_and_half_a_character_in_a_string_column_are_its_text(tmp_path):
    path = tmp_path / "a.json"
    texts = ["[" * 500 + "]" * 500, '["\\ud83d",{"k" :1, "k":2}]', "1" * 60, "-0"]
    path.write_text("".join(f'{{"a":1,"s":{text}}}\n' for text in texts))
    assert [row["s"] for row in read_rows([path], SCHEMA)] == texts


def test_line_feeds_within_records_that_end_in_crlf_are_blanks(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'{\n  "a": 1\n}\r\n{\n  "a": 2\n}\r\n{"a":3}\r\n')
    assert [row["a"] for row in read_rows([path], SCHEMA, line_sep="\r\n")] == [1, 2, 3]
    path.write_bytes(b'{\n"a":1}\r{"a":\n2}\r')
    assert [row["a"] for row in read_rows([path], SCHEMA, line_sep="\r")] == [1, 2]


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED", "FAILFAST"])
def test_an_array_is_read_element_by_element_into_the_same_rows(tmp_path, mode):
    path = tmp_path / "a.json"
    count = 60_000
    elements = (f'{{"a": {i},\r\n  "s": "row {i}, \\"x\\" [{{"}}' for i in range(count))
    path.write_text("\ufeff \n[" + " ,\n".join(elements) + "\n]\n", encoding="utf-8")
    table, _ = read([whole(path)], SCHEMA, mode=mode, multi_line=True)
    assert table.column("a").to_pylist() == list(range(count))
    assert len(table.column("a").chunks) > 1


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
    path.write_text(f'{{{twice}}}\n{{"a":\n')
    beside, bad = read_rows([path], TWICE, mode="PERMISSIVE")
    assert (beside, bad["_corrupt_record"]) == (alone, '{"a":')


def test_a_value_that_is_not_json_is_malformed_before_any_later_value_of_its_name(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a":z,"a":1}\n')
    (row,) = read_rows([path], TWICE, mode="PERMISSIVE")
    assert row["_corrupt_record"] == '{"a":z,"a":1}'
