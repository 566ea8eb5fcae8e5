"""Files that grow are read on, through the coordinator and the reader, without Spark."""

import os

import pyarrow as pa
import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.errors import FileChangedError, OptionError
from pyspark_sluice.tests.connector.source.file_trials import Runs


class Query(Runs):
    """Text that is read on, a file in each batch."""

    def __init__(self, directory, **options):
        given = {"onOverwrite": "appendTail", "maxFilesPerTrigger": "1", **options}
        super().__init__(pa.schema([("value", pa.string())]), path=str(directory), **given)

    def run(self, batches=100, deltas=2, **more):
        """The lines of all batches."""
        return [row["value"] for batch in super().run(batches, deltas, **more) for row in batch]


def append(path, text):
    with open(path, "ab") as file:
        file.write(text.encode())


@pytest.mark.parametrize(
    ("separator", "options"), [("\n", {}), ("\r\n", {}), ("\r\n", {"lineSep": "\r\n"})]
)
def test_whole_lines_are_read_once_however_the_file_grows(
    tmp_path, monkeypatch, separator, options
):
    # Separators are found across the pieces in which a file is searched.
    monkeypatch.setattr("pyspark_sluice.reader.files.io.file_version._STEP", 2)
    query = Query(tmp_path, fileFormat="text", **options)
    log = tmp_path / "app.log"
    pieces = ["one", separator, "tw", "o" + separator + "three", separator + "fo", "", "ur"]
    read = []
    for piece in pieces:
        append(log, piece)
        read.append(query.run())
    assert read == [[], ["one"], [], ["two"], ["three"], [], []]
    append(log, separator)
    assert query.run() == ["four"]
    assert query.run() == []


def test_a_file_that_grows_between_discovery_and_reading_is_the_same_still(tmp_path):
    query = Query(tmp_path, fileFormat="text")
    log = tmp_path / "app.log"
    append(log, "a\nb\n")
    assert query.run(batches=1, before_reading=lambda: append(log, "c\n")) == ["a", "b"]
    assert query.run() == ["c"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x\n", r"truncated or replaced: .*app\.log; found 2 bytes"),
        ("a longer line than both of them\n", r"was replaced: .*no end of a record before byte 8"),
    ],
)
def test_a_file_that_was_cut_short_or_replaced_is_named(tmp_path, text, found):
    query = Query(tmp_path, fileFormat="text")
    log = tmp_path / "app.log"
    append(log, "one\ntwo\n")
    assert query.run() == ["one", "two"]
    log.write_text(text)
    with pytest.raises(FileChangedError, match=found):
        query.run()


def lines(*numbers):
    """All of one width, as logs often are: a line ends where one ended before."""
    return "".join(f"{number:015}\n" for number in numbers)


def renamed_and_created_again(log):
    os.rename(log, log.with_suffix(".1"))
    append(log, lines(11, 12, 13))


def copied_and_truncated(log):
    log.with_suffix(".1").write_bytes(log.read_bytes())
    os.truncate(log, 0)
    append(log, lines(11, 12, 13))


def replaced_by_a_renamed_file(log):
    new = log.with_suffix(".new")
    append(new, lines(11, 12, 13))
    os.replace(new, log)


ROTATIONS = [renamed_and_created_again, copied_and_truncated, replaced_by_a_renamed_file]


@pytest.mark.parametrize("rotate", ROTATIONS)
@pytest.mark.parametrize("moment", ["after a run", "after another", "before it is read"])
def test_a_longer_file_in_the_place_of_one_with_lines_of_the_same_width_is_named(
    tmp_path, rotate, moment
):
    query = Query(tmp_path, fileFormat="text", pathGlobFilter="*.log")
    log = tmp_path / "app.log"
    append(log, lines(1, 2))
    if moment == "before it is read":
        with pytest.raises(FileChangedError, match=r"was replaced: .*app\.log"):
            query.run(before_reading=lambda: rotate(log))
        return
    assert len(query.run()) == 2
    if moment == "after another":
        append(tmp_path / "other.log", lines(3))
        assert len(query.run()) == 1
    rotate(log)
    with pytest.raises(FileChangedError, match=r"was replaced: .*app\.log; found another inode"):
        query.run()


def test_a_file_found_with_half_a_line_is_read_on_though_a_restart_comes_before_any_base(tmp_path):
    """The end that is restored is the one up to which there were lines, not the file's size."""
    query = Query(tmp_path, fileFormat="text")
    first, log = tmp_path / "a.log", tmp_path / "b.log"
    append(first, "first\n")
    append(log, "whole\nha")
    os.utime(first, (1, 1))
    assert query.run(batches=1, deltas=100) == ["first"]
    assert query.run(deltas=100) == ["whole"]
    append(log, "lf\nlast\n")
    assert query.run(deltas=100) == ["half", "last"]
    assert query.run(deltas=100) == []


@pytest.mark.parametrize("name", ["a.log.gz", "a.zip"])
def test_compressed_files_are_not_read_on(tmp_path, name):
    (tmp_path / name).write_bytes(b"\x1f\x8b")
    with pytest.raises(FileChangedError, match=rf"not line-based.*: .*{name}"):
        Query(tmp_path, fileFormat="text").run()


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"fileFormat": "parquet"}, "fileFormat=parquet"),
        ({"fileFormat": "csv", "multiLine": "true"}, "multiLine=true"),
    ],
)
def test_formats_that_are_not_of_lines_are_refused(tmp_path, options, found):
    given = {"path": str(tmp_path), "onOverwrite": "appendTail", **options}
    with pytest.raises(OptionError, match=f"onOverwrite: found appendTail with {found}"):
        parse_options(given, streaming=False)


def test_a_file_without_a_last_line_end_that_was_read_whole_before_is_no_error_until_it_grows(
    tmp_path,
):
    query = Query(tmp_path, fileFormat="text", onOverwrite="ignore")
    log = tmp_path / "app.log"
    append(log, "one\ntwo")
    assert query.run() == ["one", "two"]
    query.given["onOverwrite"] = "appendTail"
    assert query.run() == []
    append(log, "\nthree\n")
    with pytest.raises(FileChangedError, match="no end of a record before byte 7"):
        query.run()
