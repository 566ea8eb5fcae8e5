"""Checks of the first calls: all options at once, and the interpreter that Spark runs."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from pyspark_sluice.connector.spark.data_source import SluiceDataSource
from pyspark_sluice.connector.spark.registration import use_this_interpreter
from pyspark_sluice.errors import OptionError, SluiceError
from pyspark_sluice.reader.files.reader import FileSplitReader
from pyspark_sluice.tests.connector.stream import next_offset

SCHEMA = StructType().add("value", "string")
HAS_LIMITS = find_spec("pyspark.sql.streaming.datasource") is not None


@pytest.mark.parametrize(
    "call",
    [
        lambda source: source.schema(),
        lambda source: source.reader(SCHEMA).partitions(),
        lambda source: source.streamReader(SCHEMA).initialOffset(),
        pytest.param(
            lambda source: source.streamReader(SCHEMA).prepareForTriggerAvailableNow(),
            marks=pytest.mark.skipif(not HAS_LIMITS, reason="new in Spark 4.2"),
        ),
    ],
    ids=["in load without a schema", "batch read", "stream", "stream with availableNow"],
)
def test_all_that_is_wrong_is_reported_at_the_first_call_and_nothing_is_claimed(call, tmp_path):
    given = {"path": "/in", "fileformat": "text", "maxfilespertriger": "5", "batchbytes": "many"}
    given["checkpointlocation"] = str(tmp_path)
    with pytest.raises(OptionError, match="did you mean maxFilesPerTrigger") as error:
        call(SluiceDataSource(given))
    assert "batchBytes: found 'many'" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_query_must_name_the_format_of_its_files():
    with pytest.raises(OptionError, match="fileFormat: found nothing; expected one of json, csv"):
        SluiceDataSource({"path": "/in"}).schema()


@pytest.mark.parametrize(
    ("given", "schema", "told"),
    [
        ({}, None, "no schema was passed"),
        ({"singlevariantcolumn": "value"}, SCHEMA, "columns other than the one variant value"),
        ({"startingstate": "<root>/other@7"}, SCHEMA, "checkpoints retained there: none"),
    ],
)
def test_what_the_options_alone_do_not_show_is_named_before_anything_is_read(
    tmp_path, given, schema, told
):
    given = {name: text.replace("<root>", str(tmp_path)) for name, text in given.items()}
    usual = {"path": str(tmp_path / "in"), "statelocation": str(tmp_path / "state")}
    given = {**usual, "fileformat": "json", **given}
    (tmp_path / "in").mkdir()
    source = SluiceDataSource(given)

    def start():
        stream = source.streamReader(schema)
        end = next_offset(stream, stream.initialOffset())
        for part in stream.partitions(stream.initialOffset(), end):
            list(stream.read(part))

    if schema is not None:
        (tmp_path / "in" / "a.json").write_text("{}\n")
    with pytest.raises(SluiceError, match=told):
        source.schema() if schema is None else start()


def test_a_batch_read_of_an_empty_directory_has_no_rows(tmp_path):
    reader = SluiceDataSource({"path": str(tmp_path), "fileformat": "text"}).reader(SCHEMA)
    assert [batch for part in reader.partitions() for batch in reader.read(part)] == []


def test_a_batch_read_refuses_what_only_a_stream_can_do(tmp_path):
    given = {"path": str(tmp_path), "fileformat": "text", "cleansource": "delete"}
    with pytest.raises(OptionError, match="cleanSource: found delete in a batch read"):
        SluiceDataSource(given).reader(SCHEMA).partitions()


def test_a_batch_read_closes_its_reader_also_after_an_error_and_after_a_limit(
    tmp_path, monkeypatch
):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    given = {"path": str(tmp_path), "fileformat": "text"}
    reader = SluiceDataSource(given).reader(SCHEMA)
    (part,) = reader.partitions()
    closed = []

    def noting(reader):
        closed.append(reader)

    monkeypatch.setattr(FileSplitReader, "close", noting)
    for _ in reader.read(part):
        pass
    assert len(closed) == 1
    limited = reader.read(part)
    next(limited)
    assert len(closed) == 1
    limited.close()
    assert len(closed) == 2
    (tmp_path / "a.txt").unlink()
    with pytest.raises(SluiceError):
        next(reader.read(part))
    assert len(closed) == 3


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The PATH: one folder with another environment's `python3` in it."""
    (tmp_path / "python3").symlink_to(os.path.realpath(sys.executable))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", "")
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "")
    return tmp_path


def test_another_environment_on_the_path_is_set_aside(path):
    use_this_interpreter()
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_an_activated_environment_is_left_alone(path, monkeypatch):
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}:{path}")
    use_this_interpreter()
    assert os.environ["PYSPARK_PYTHON"] == ""


@pytest.mark.parametrize("name", ["PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"])
def test_what_somebody_has_said_counts(path, monkeypatch, name):
    monkeypatch.setenv(name, "/opt/python3")
    use_this_interpreter()
    assert os.environ[name] == "/opt/python3"
    assert os.environ["PYSPARK_PYTHON"] in ("", "/opt/python3")
