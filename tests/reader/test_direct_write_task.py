"""A reader task of a direct write: what is written, listed and discarded, and when."""

from __future__ import annotations

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.file_columns import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.documents.written_file import WrittenFile
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.source.schema_json import json_of
from pyspark_sluice.errors import MalformedDataError, ReplayError
from pyspark_sluice.reader.task import Assignment, Attempt, DirectWrite, ReaderTask
from pyspark_sluice.tests.protocol.row_reader import SCHEMA, reader_maker, rows_in

REF = CheckpointRef(7, 2)
A, B = (FileSplit(FileVersion(name, 4, 0), 0, 4) for name in "ab")
ASSIGNMENT = Assignment(REF, 3, [A, B])


class Writing:
    """Keeps rows in memory; a writing of its own for each attempt."""

    def __init__(self, name="own", fails_at=None):
        self.name, self.fails_at = name, fails_at
        self.rows = []
        self.schema = SCHEMA
        self.discarded = False

    def write(self, batch):
        if len(self.rows) == self.fails_at:
            raise OSError(28, "No space left on device")
        self.rows += rows_in(batch)

    def finish(self):
        return [WrittenFile(path=self.name, rows=len(self.rows), bytes=1, statistics="{}")]

    def discard(self):
        self.discarded = True


class LosesAnswers(MemoryStateStore):
    """Writes, and then says that it could not."""

    def publish(self, name, data):
        super().publish(name, data)
        raise OSError(5, "the answer is lost")


def attempt(store, writing, *script):
    task = ReaderTask(
        reader_maker(script, ""),
        FileSplitSerializer(),
        ReaderCommits(store),
        frozenset({"told"}),
        may_return=False,
        writes=None if writing is None else DirectWrite(lambda _: writing, json_of),
    )
    return task.read(ASSIGNMENT, Attempt())


def paths(batches):
    return [row["path"] for batch in batches for row in batch.to_pylist()]


def test_the_commit_lists_the_files_before_there_is_a_row_about_them():
    store, writing = MemoryStateStore(), Writing()
    rows = attempt(store, writing)
    first = next(rows)
    commit = ReaderCommits(store).find(REF, 3)
    assert commit is not None
    assert (
        [file.path for file in commit.written_files or ()]
        == first.column("path").to_pylist()
        == ["own"]
    )
    assert (len(writing.rows), writing.discarded) == (8, False)
    rows.close()
    assert ReaderCommits(store).abandoned(REF) == []


def test_a_later_attempt_reads_and_writes_nothing():
    store, late = MemoryStateStore(), Writing("late")
    assert paths(attempt(store, Writing())) == ["own"]
    assert paths(attempt(store, late, "fail")) == ["own"]
    assert (late.rows, late.discarded) == ([], False)


def test_of_two_attempts_at_once_the_files_of_the_one_that_is_late_are_discarded(monkeypatch):
    store, late = MemoryStateStore(), Writing("late")
    finish = late.finish

    def overtaken():
        assert paths(attempt(store, Writing())) == ["own"]
        return finish()

    monkeypatch.setattr(late, "finish", overtaken)
    assert paths(attempt(store, late)) == ["own"]
    assert late.discarded


@pytest.mark.parametrize(
    ("script", "fails_at", "error"), [(("fail",), None, MalformedDataError), ((), 2, OSError)]
)
def test_an_attempt_that_fails_discards_its_files_and_commits_nothing(script, fails_at, error):
    store, writing = MemoryStateStore(), Writing(fails_at=fails_at)
    with pytest.raises(error):
        paths(attempt(store, writing, *script))
    assert writing.discarded
    assert store.objects == {}


def test_files_stay_where_the_answer_to_their_commit_was_lost():
    store, writing = LosesAnswers(), Writing()
    with pytest.raises(OSError, match="the answer is lost"):
        paths(attempt(store, writing))
    assert not writing.discarded
    late = Writing("late")
    assert paths(attempt(store, late)) == ["own"]


def test_a_batch_is_read_in_one_way_only():
    for first, then, told in [
        (Writing(), None, "with writeTo"),
        (None, Writing(), "without writeTo"),
    ]:
        store = MemoryStateStore()
        list(attempt(store, first))
        with pytest.raises(ReplayError, match=told):
            list(attempt(store, then))
