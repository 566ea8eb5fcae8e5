"""Bad JSON is one bad record: it takes no neighbour with it, and no file."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_sluice.tests.reader.files.reading import read, read_rows, whole

SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string()), ("_corrupt_record", pa.string())])


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
