"""`badRecordsPath`: each malformed record is in its files exactly once, and in no row."""

import gzip
import json
from collections import Counter
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import new_lineage
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.documents.written_file import BAD_RECORDS_SUFFIX, FileName
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.errors import OptionError
from pyspark_sluice.reader.api import SCHEMA_LEFT_OUT, LeftOut
from pyspark_sluice.reader.direct_write import bad_records
from pyspark_sluice.reader.direct_write.place import Place
from pyspark_sluice.reader.files.options import FileFormatName

pytestmark = pytest.mark.slow

SCHEMA = StructType([StructField("id", LongType()), StructField("text", StringType())])


@pytest.fixture
def begin(begin, tmp_path):
    return partial(begin, SCHEMA, badRecordsPath=str(tmp_path / "bad"))


def recorded(place, kind="bad_records"):
    """Lines of files that are visible, hidden ones left out as Spark does."""
    paths = [Path(path) for path in place.rglob("*.json") if path.name[0] != "."]
    texts = [path.read_text() for path in sorted(paths) if path.parent.name == kind]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def good(number):
    return json.dumps({"id": number, "text": "row"}) + "\n"


def bad(number):
    return f'{{"id": bad{number}}}\n'


def content(numbers):
    """Every fifth record is bad."""
    return "".join((good if n % 5 else bad)(n) for n in numbers)


@pytest.mark.effect_of("badRecordsPath")
def test_each_bad_record_is_recorded_once_with_its_place_and_reason(begin, tmp_path):
    stream = begin(maxSplitBytes="256k", maxFilesPerTrigger="100")
    # Packed small files, and a file that is cut.
    for name, numbers in [("a", range(10)), ("b", range(10, 40)), ("c", range(40, 20_000))]:
        (tmp_path / "in" / f"{name}.data").write_text(content(numbers))
    parts = stream.await_plan()
    assert Counter(stream.read(parts)) == Counter(n for n in range(20_000) if n % 5)
    found = recorded(tmp_path / "bad")
    expected = Counter(bad(n).strip() for n in range(0, 20_000, 5))
    assert Counter(line["record"].strip() for line in found) == expected
    for line in found[:: len(found) // 50]:
        assert line.keys() == {"path", "position", "record", "reason"}
        data = Path(line["path"]).read_bytes()
        at = int(line["position"].removeprefix("byte "))
        assert data[at:].startswith(line["record"].strip().encode())
        assert line["reason"]
    assert recorded(tmp_path / "bad", "bad_files") == []


@pytest.mark.parametrize("file_format", ["json", "csv"])
def test_a_bad_record_that_spans_lines_is_recorded_whole(begin, tmp_path, file_format):
    texts = {"json": '[{"id": 1},\n {"id": "x"}]', "csv": '1,"a\nb"\nx,"a\nb"\n2,b\n'}
    stream = begin(fileFormat=file_format, multiLine="true")
    (tmp_path / "in" / "a.data").write_text(texts[file_format])
    parts = stream.await_plan()
    assert stream.read(parts) == ([1, 2] if file_format == "csv" else [])
    (line,) = recorded(tmp_path / "bad")
    expected = {"json": texts["json"], "csv": 'x,"a\nb"'}
    assert line["record"].strip() == expected[file_format]
    assert line["position"] == {"json": "byte 0", "csv": "byte 8"}[file_format]


def test_what_an_attempt_wrote_that_died_before_its_commit_is_deleted_by_the_next(
    begin, tmp_path, monkeypatch
):
    stream = begin()
    (tmp_path / "in" / "a.json").write_text(content(range(100)))
    parts = stream.await_plan()

    def dies(self, commit):
        message = "killed"
        raise OSError(message)

    with monkeypatch.context() as patched:
        patched.setattr(ReaderCommits, "publish", dies)
        with pytest.raises(Exception, match="killed"):
            stream.read(parts)
    assert len(recorded(tmp_path / "bad")) == 20
    # The next attempt, and one that repeats what was committed.
    for _ in range(2):
        assert len(stream.read(parts)) == 80
        assert len(recorded(tmp_path / "bad")) == 20


def test_of_two_attempts_at_once_only_what_the_first_to_commit_wrote_stays(
    begin, tmp_path, monkeypatch
):
    stream = begin()
    (tmp_path / "in" / "a.json").write_text(content(range(100)))
    parts = stream.await_plan()
    publish = ReaderCommits.publish
    overtakes = [True]

    def overtaken(self, commit):
        if overtakes:
            overtakes.clear()
            assert len(stream.read(parts)) == 80
        return publish(self, commit)

    monkeypatch.setattr(ReaderCommits, "publish", overtaken)
    assert len(stream.read(parts)) == 80
    assert len(recorded(tmp_path / "bad")) == 20


def test_an_attempt_that_is_abandoned_leaves_no_file(begin, tmp_path):
    stream = begin()
    (tmp_path / "in" / "a.json").write_text(content(range(20_000)))
    parts = stream.await_plan()
    rows = stream.reader.read(parts[0])
    next(rows)
    rows.close()
    assert [path for path in (tmp_path / "bad").rglob("*") if path.is_file()] == []


def test_bad_records_of_a_file_that_is_sent_back_are_not_recorded(begin, tmp_path):
    stream = begin(onSplitError="return")
    whole_file = gzip.compress(content(range(100)).encode())
    (tmp_path / "in" / "a.json.gz").write_bytes(whole_file[:-20])
    (tmp_path / "in" / "b.json").write_text(content(range(100, 200)))
    parts = stream.await_plan()
    assert len(stream.read(parts)) == 80
    assert {Path(line["path"]).name for line in recorded(tmp_path / "bad")} == {"b.json"}
    assert len(recorded(tmp_path / "bad")) == 20


def test_files_that_are_skipped_are_recorded_as_bad_files(begin, tmp_path):
    stream = begin(ignoreCorruptFiles="true", ignoreMissingFiles="true")
    corrupt, gone = (tmp_path / "in" / name for name in ("a.json.gz", "b.json"))
    corrupt.write_bytes(b"no gzip at all")
    gone.write_text(good(1))
    (tmp_path / "in" / "c.json").write_text(good(2))
    parts = stream.await_plan()
    gone.unlink()
    assert stream.read(parts) == [2]
    assert stream.read(parts) == [2]
    found = recorded(tmp_path / "bad", "bad_files")
    assert {line["path"] for line in found} == {str(corrupt), str(gone)}
    assert all(line.keys() == {"path", "reason"} and line["reason"] for line in found)
    assert recorded(tmp_path / "bad") == []


def test_a_source_of_the_user_s_gets_the_mode_that_the_option_sets_and_each_format_takes_it():
    given = {"badRecordsPath": "/bad", "stateLocation": "/s"}
    own = {**given, "source": "own:Source"}
    assert parse_options(own, streaming=True).mode == "DROPMALFORMED"
    with pytest.raises(OptionError, match="found with mode=PERMISSIVE"):
        parse_options({**own, "mode": "PERMISSIVE"}, streaming=True)
    for name in FileFormatName:
        parse_options({**given, "path": "/in", "fileFormat": name.value}, streaming=True)


def test_a_place_that_cannot_take_files_is_refused_with_the_option_named(begin, tmp_path):
    stream = begin(badRecordsPath="webhdfs://host/bad")
    (tmp_path / "in" / "a.json").write_text(good(1))
    parts = stream.await_plan()
    with pytest.raises(Exception, match="badRecordsPath: data files cannot be written there"):
        stream.read(parts)


def _batch(*records):
    rows = [{"path": "/in/a", "position": "byte 0", "record": r, "reason": "no"} for r in records]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA_LEFT_OUT)


def test_files_are_closed_at_their_size(tmp_path, monkeypatch):
    monkeypatch.setattr(bad_records, "_FILE_BYTES", 1000)
    name = FileName(new_lineage(), 0, "a" * 12, suffix=BAD_RECORDS_SUFFIX)
    writer = bad_records.BadRecordsWriter(Place(str(tmp_path), {}), name)
    for number in range(100):
        writer.write(LeftOut("bad_records", _batch(f"record {number}")))
    files = writer.finish()
    assert len(files) > 5
    assert sum(file.records for file in files) == 100
    assert [line["record"] for line in recorded(tmp_path)] == [f"record {n}" for n in range(100)]
