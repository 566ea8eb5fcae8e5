"""A reader task acknowledges or writes once, and every later attempt follows."""

import json
import re

import pytest

from pyspark_sluice import errors
from pyspark_sluice.checkpoint_meta.documents.checkpoint import CustomEvent
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import (
    CheckpointIdentity,
    CheckpointRef,
)
from pyspark_sluice.checkpoint_meta.documents.epochs import claim_epoch
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.documents.written_file import WrittenFile
from pyspark_sluice.checkpoint_meta.files.file_columns import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.stores.open_store import RetryingStateStore
from pyspark_sluice.checkpoint_meta.stores.testing import Fault, FaultyStateStore, MemoryStateStore
from pyspark_sluice.connector.source.schema_json import json_of
from pyspark_sluice.errors import FileVanishedError, MalformedDataError, ProtocolError, ReplayError
from pyspark_sluice.reader.api import (
    ReaderEvent,
    ReceivedEvent,
    SplitFinished,
    SplitReader,
    SplitReturned,
)
from pyspark_sluice.reader.task import Assignment, Attempt, DirectWrite, ReaderTask
from pyspark_sluice.tests.protocol.row_reader import SCHEMA, RowReader, reader_maker, rows_in

REF = CheckpointIdentity(CheckpointRef(7, 2), "ab" * 8, "cd" * 8)
A, B = (FileSplit(FileVersion(name, 4, 0), 0, 4) for name in "ab")
ALL = [("a", i) for i in range(4)] + [("b", i) for i in range(4)]


class Executor:
    """Tasks of one reader over one store."""

    def __init__(self, store=None):
        self.store = store or MemoryStateStore()
        self.commits = ReaderCommits(self.store)

    def begin(self, *script, number=0, make=None, writing=None, **assigned):
        task = ReaderTask(
            make or reader_maker(script, "hi"),
            FileSplitSerializer(),
            self.commits,
            frozenset({"told"}),
            assigned.pop("may_return", True),
            shape=assigned.pop("shape", {}),
            writes=None if writing is None else DirectWrite(lambda _: writing, json_of),
        )
        return task.read(self._assigned(**assigned), Attempt(number, "query"))

    @staticmethod
    def _assigned(splits=(A, B), waived=(), sent=(), reader=3, claim=0):
        given_up = frozenset(split.split_id for split in waived)
        return Assignment(REF, reader, list(splits), list(sent), waived=given_up, claim=claim)

    def read(self, *script, **more):
        return [row for batch in self.begin(*script, **more) for row in rows_in(batch)]

    def write(self, writing, *script):
        batches = self.begin(*script, may_return=False, writing=writing)
        return [row["path"] for batch in batches for row in batch.to_pylist()]

    @property
    def commit(self):
        return self.commits.find(REF, 3)


@pytest.fixture
def executor():
    return Executor()


def test_a_task_that_is_abandoned_says_so_acknowledges_nothing_and_closes_its_reader(executor):
    closed = []

    class Closing(RowReader):
        def close(self):
            closed.append(True)

    batches = executor.begin(make=Closing)
    next(batches)
    batches.close()
    assert closed == [True]
    assert executor.commit is None
    assert [each.reader for each in executor.commits.abandoned(REF)] == [3]
    (name,) = executor.store.objects
    record = json.loads(executor.store.read(name))
    assert (record["reader"], record["attempt"], record["query_id"]) == (3, 0, "query")
    assert executor.read(number=1) == ALL
    assert executor.commit.attempt == 1


def test_a_reader_that_cannot_record_its_end_ends_quietly():
    executor = Executor()
    faulty = FaultyStateStore(executor.store)
    executor.commits = ReaderCommits(RetryingStateStore(faulty, attempts=2, sleep=lambda _: None))
    batches = executor.begin()
    next(batches)
    faulty.fault = Fault("error before", times=9)
    batches.close()
    assert executor.store.objects == {}


def test_a_split_sent_back_is_left_out_by_every_later_attempt(executor):
    rows = executor.read("return", "read")
    assert rows == ALL[4:]
    assert [(s.index, s.reason) for s in executor.commit.returned] == [(0, "the disk crackles")]
    assert executor.read("read", "read", number=1) == ALL[4:]


def test_a_split_read_in_part_is_read_to_the_same_row_by_every_later_attempt(executor):
    rows = executor.read("part", "read")
    assert rows == [*ALL[:2], *ALL[4:]]
    (part,) = executor.commit.unfinished
    assert (part.index, part.remainder["start"]) == (0, [2])
    assert executor.read(number=1) == rows


def test_nothing_is_sent_back_where_that_is_not_allowed(executor):
    assert executor.read("return", may_return=False) == ALL


def test_of_two_attempts_at_once_the_first_to_end_wins_and_the_other_must_agree(executor):
    slow, fast = executor.begin(number=0), executor.begin(number=1)
    next(slow)
    assert len(list(fast)) == 8
    assert len(list(slow)) == 7
    assert executor.commit.attempt == 1


def test_an_attempt_that_ends_second_with_another_outcome_fails_with_both_verdicts(executor):
    slow = executor.begin("read", "read", number=0)
    next(slow)
    executor.read("read", "return", number=1)
    expected = re.escape(f"found {B.split_id}: 4 rows read to the end; expected sent back")
    with pytest.raises(ReplayError, match=expected):
        list(slow)
    assert executor.read(number=2) == ALL[:4]


def test_an_attempt_that_cannot_repeat_what_was_acknowledged_says_what_to_do(executor):
    executor.read()
    with pytest.raises(ReplayError, match=r"found MalformedDataError.*Put the file back") as error:
        executor.read("fail", number=1)
    assert isinstance(error.value.__cause__, MalformedDataError)


def test_a_file_with_fewer_rows_than_acknowledged_is_a_replay_error(executor):
    executor.read()

    class Shorter(RowReader):
        def _read(self, split, word):
            yield SplitFinished(split.split_id, 0)

    with pytest.raises(ReplayError, match="0 rows read to the end; expected 4 rows"):
        executor.read(make=Shorter, number=1)


class WithoutA(RowReader):
    """The file of split A is gone."""

    def _read(self, split, word):
        if split == A:
            raise FileVanishedError("file was deleted", "a", "no such file")
        return super()._read(split, word)


def without_a(context):
    return WithoutA(context, (), "hi")


def test_what_was_acknowledged_and_is_given_up_is_left_out_and_its_commit_stays(executor):
    executor.read()
    acknowledged = executor.commit
    with pytest.raises(ReplayError, match="sluice waive"):
        executor.read(make=without_a, number=1)
    assert executor.read(make=without_a, number=2, waived=[A]) == ALL[4:]
    assert executor.commit == acknowledged


def test_what_nobody_acknowledged_and_is_given_up_is_committed_as_skipped(executor):
    assert executor.read(make=without_a, waived=[A]) == ALL[4:]
    assert dict(executor.commit.skipped) == {0: "given up by an order"}
    assert list(executor.commit.rows) == [0, 4]


class Scripted(SplitReader[FileSplit]):
    def __init__(self, *items):
        self._items = items

    def read(self, splits):
        yield from self._items


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([SplitFinished(A.split_id, 0)], "no report on 1 of its splits"),
        ([SplitFinished(A.split_id, 0), SplitReturned(A.split_id, "")], "reported a split twice"),
        ([SplitFinished("another", 0)], "or a split that it was not assigned"),
        ([ReaderEvent("gossip", 1)], "an event of an unregistered type"),
    ],
)
def test_a_reader_that_breaks_the_contract_learns_how(executor, items, message):
    with pytest.raises(ProtocolError, match=message):
        list(executor.begin(make=lambda context: Scripted(*items)))
    assert executor.commit is None


def test_an_empty_assignment_is_acknowledged_too(executor):
    assert executor.read(splits=()) == []
    assert list(executor.commit.rows) == []


def test_the_reader_learns_its_place_and_between_which_splits_the_enumerator_sent_what(executor):
    seen = []

    def make(context):
        seen.append(context)
        return RowReader(context)

    a, b, c = (CustomEvent(event=name) for name in "abc")
    executor.read(make=make, number=2, waived=[A], sent=[a, 1, b, 1, c])
    (context,) = seen
    assert (context.checkpoint_id, context.reader, context.attempt) == (7, 3, 2)
    assert context.events == [ReceivedEvent(*event) for event in (("a", 0), ("b", 0), ("c", 1))]
    assert (context.may_return, context.must_finish) == (True, False)
    executor.read(make=make, number=3, waived=[A])
    assert (seen[1].may_return, seen[1].must_finish) == (False, True)


def test_a_replay_learns_what_shaped_the_rows_and_only_where_they_were_acknowledged(executor):
    shapes = []

    def read(reader, shape, *script):
        def make(context):
            shapes.append(context.shape)
            return RowReader(context, script)

        executor.read(make=make, may_return=False, splits=[A], reader=reader, shape=shape)

    earlier, today = {"options": {"filter": "id < 5"}}, {"options": {"filter": "id > 5"}}
    read(0, earlier)
    with pytest.raises(MalformedDataError):
        read(1, earlier, "fail")
    for reader in (0, 1):
        read(reader, today)
    assert shapes == [{}, {}, earlier, {}]
    assert [executor.commits.find(REF, reader).shape for reader in (0, 1)] == [earlier, today]


@pytest.mark.parametrize("place", ["make", "read"])
def test_a_replay_that_fails_under_another_schema_names_the_schema(executor, place):
    def read(schema, make):
        executor.read(make=make, may_return=False, splits=[A], shape=schema)

    def fails(context):
        if place == "make":
            raise MalformedDataError("the filter names a column that is not there")
        return RowReader(context, ("fail",))

    read({"schema": "1"}, reader_maker())
    with pytest.raises(ReplayError, match="The schema is not what it was"):
        read({"schema": "2"}, fails)
    with pytest.raises(ReplayError, match="Put the file back"):
        read({"schema": "1"}, fails)
    read({"schema": "1"}, reader_maker())


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


@pytest.mark.parametrize("writing", [None, Writing()])
def test_no_attempt_of_a_first_batch_ends_after_another_query_s_claim(executor, writing):
    claim = claim_epoch(executor.store)
    claim_epoch(executor.store)
    rows = executor.begin(claim=claim, may_return=False, writing=writing)
    assert writing or [next(rows).num_rows for _ in range(8)] == 8 * [1]
    with pytest.raises(errors.FencedError, match="another query has taken over"):
        next(rows)


class LosesAnswers(MemoryStateStore):
    """Writes, and then says that it could not."""

    def publish(self, name, data):
        super().publish(name, data)
        raise OSError(5, "the answer is lost")


def test_the_commit_lists_the_files_before_there_is_a_row_about_them(executor):
    writing = Writing()
    rows = executor.begin(may_return=False, writing=writing)
    paths = next(rows).column("path").to_pylist()
    assert [file.path for file in executor.commit.written_files] == paths == ["own"]
    assert (len(writing.rows), writing.discarded) == (8, False)
    rows.close()
    assert executor.commits.abandoned(REF) == []


def test_a_later_attempt_reads_and_writes_nothing(executor):
    late = Writing("late")
    assert executor.write(Writing()) == ["own"]
    assert executor.write(late, "fail") == ["own"]
    assert (late.rows, late.discarded) == ([], False)


def test_of_two_attempts_at_once_the_files_of_the_one_that_is_late_are_discarded(
    executor, monkeypatch
):
    late = Writing("late")
    finish = late.finish

    def overtaken():
        assert executor.write(Writing()) == ["own"]
        return finish()

    monkeypatch.setattr(late, "finish", overtaken)
    assert executor.write(late) == ["own"]
    assert late.discarded


@pytest.mark.parametrize(
    ("script", "fails_at", "error"), [(("fail",), None, MalformedDataError), ((), 2, OSError)]
)
def test_an_attempt_that_fails_discards_its_files_and_commits_nothing(
    executor, script, fails_at, error
):
    writing = Writing(fails_at=fails_at)
    with pytest.raises(error):
        executor.write(writing, *script)
    assert writing.discarded
    assert executor.store.objects == {}


def test_files_stay_where_the_answer_to_their_commit_was_lost():
    executor, writing = Executor(LosesAnswers()), Writing()
    with pytest.raises(OSError, match="the answer is lost"):
        executor.write(writing)
    assert not writing.discarded
    assert executor.write(Writing("late")) == ["own"]


def test_a_batch_is_read_in_one_way_only():
    for first, then, found in [
        (Writing(), None, "with writeTo"),
        (None, Writing(), "without writeTo"),
    ]:
        executor = Executor()
        list(executor.begin(may_return=False, writing=first))
        with pytest.raises(ReplayError, match=found):
            list(executor.begin(may_return=False, writing=then))
