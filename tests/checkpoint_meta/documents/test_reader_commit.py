"""The first acknowledgement of a reader wins, and is what it was for ever."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.documents.checkpoint import Continuation
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import (
    CheckpointIdentity,
    CheckpointRef,
)
from pyspark_sluice.checkpoint_meta.documents.checksummed_json import with_checksum
from pyspark_sluice.checkpoint_meta.documents.layout import reader_directory, reader_object
from pyspark_sluice.checkpoint_meta.documents.reader_assignment import resolved
from pyspark_sluice.checkpoint_meta.documents.reader_commit import (
    NotBegun,
    ReaderCommit,
    ReaderCommits,
    ReturnedSplit,
    UnfinishedSplit,
    about,
)
from pyspark_sluice.checkpoint_meta.documents.serializer import JsonSerializer
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.errors import StateCorruptError, StateNotSharedError, StateVersionError

CHECKPOINT = CheckpointIdentity(CheckpointRef(7, 2), "ab" * 8, "cd" * 8)
TEXT = st.text('aé\U0001f600"\\\n\0', max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner),
    max_leaves=5,
)


def commit(**more):
    fields = {
        **about(CHECKPOINT),
        "reader": 3,
        "attempt": 0,
        "rows": [5, 0],
        "input_bytes": [50, 0],
        "microseconds": [1, 1],
    }
    return ReaderCommit(**{**fields, **more})


@pytest.mark.parametrize(("index", "rest"), [(None, [2, 3, 4]), (3, [4]), (0, [None])])
def test_a_continuation_of_a_part_is_all_that_its_commit_leaves(index, rest):
    """Under a limit on rows: one split is read, one is unfinished, two have not begun."""
    numbers = JsonSerializer(1, lambda number: number, lambda _, value: value)
    unfinished = UnfinishedSplit(index=1, remainder=numbers.serialize([2]).to_pydict())
    left = NotBegun(indexes=[2, 3], splits=numbers.serialize([3, 4]).to_pydict())
    before = commit(rows=[5, 2, 0, 0], unfinished=[unfinished], not_begun=left)
    continuation = Continuation(split="", checkpoint=7, epoch=2, index=index)
    assert resolved(continuation, before, numbers) == rest


@pytest.fixture
def store():
    return MemoryStateStore("/ck/sluice")


@given(events=st.lists(st.tuples(TEXT, JSON), max_size=3))
def test_what_goes_in_comes_out(events):
    written = commit(
        events=events,
        returned=[ReturnedSplit(index=1, reason="gone")],
        unfinished=[UnfinishedSplit(index=0, remainder={"start": [5]})],
        dropped_records={0: 2},
        skipped={1: "too old"},
    )
    data = written.to_bytes()
    assert (
        data == (json.dumps(json.loads(data), sort_keys=True, ensure_ascii=False) + "\n").encode()
    )
    read = ReaderCommit.from_bytes(data, "here")
    assert read.to_bytes() == data
    assert [tuple(event) for event in read.events] == events
    assert read.first_difference(written) is None


class _ShowsLate(MemoryStateStore):
    """Shows an object only after so many refreshes, as a network file system may."""

    def __init__(self, refreshes):
        super().__init__("/ck/sluice")
        self.hidden_for = refreshes

    def read(self, name):
        if self.hidden_for:
            raise FileNotFoundError(name)
        return super().read(name)

    def refresh(self, directory):
        if directory == reader_directory(CHECKPOINT):
            self.hidden_for -= 1


@pytest.mark.parametrize("refreshes", [0, 1, 2])
def test_a_later_attempt_follows_a_commit_that_the_store_shows_late(refreshes):
    store = _ShowsLate(refreshes)
    commits = ReaderCommits(store)
    commits.publish(commit(attempt=0))
    counted = commits.publish(commit(attempt=1, rows=[9, 9]), sleep=lambda seconds: None)
    assert counted.attempt == 0


def test_a_commit_that_exists_and_is_never_shown_is_an_error_that_names_it():
    commits = ReaderCommits(_ShowsLate(9))
    commits.publish(commit(attempt=0))
    with pytest.raises(StateNotSharedError, match="exists, but does not return it") as caught:
        commits.publish(commit(attempt=1), sleep=lambda seconds: None)
    assert caught.value.where.endswith(reader_object(CHECKPOINT, 3))


def test_the_readers_of_a_checkpoint_are_listed_in_order(store):
    commits = ReaderCommits(store)
    for reader in (10, 2, 0):
        commits.publish(commit(reader=reader))
    commits.publish(commit(reader=1, epoch=1))
    assert commits.readers(CHECKPOINT) == [0, 2, 10]
    assert [found.reader for found in commits.of(CHECKPOINT)] == [0, 2, 10]


def test_a_commit_of_another_checkpoint_of_the_same_name_counts_for_that_one_alone(store):
    """As an executor makes it whose query was overtaken by a restore from a backup."""
    commits, other = ReaderCommits(store), replace(CHECKPOINT, checksum="ef" * 8)
    commits.publish(commit(**about(other)))
    assert commits.find(CHECKPOINT, 3) is None
    assert commits.of(CHECKPOINT) == []
    assert commits.publish(commit(attempt=1)).attempt == 1
    found = [commits.find(checkpoint, 3) for checkpoint in (CHECKPOINT, other)]
    assert [one and (one.attempt, one.identity) for one in found] == [(1, CHECKPOINT), (0, other)]


@pytest.mark.parametrize(
    ("other", "index"),
    [
        ({"attempt": 4, "microseconds": [9, 9], "input_bytes": [1, 1]}, None),
        ({"rows": [5, 1]}, 1),
        ({"returned": [ReturnedSplit(index=1, reason="gone")]}, 1),
        ({"unfinished": [UnfinishedSplit(index=0, remainder={"start": [5]})]}, 0),
    ],
)
def test_a_difference_is_one_of_verdicts_and_never_of_figures_or_reasons(other, index):
    assert commit().first_difference(commit(**other)) == index
    returned = [commit(returned=[ReturnedSplit(index=1, reason=why)]) for why in ("gone", "lost")]
    assert returned[0].first_difference(returned[1]) is None


def test_a_newer_commit_is_refused_with_both_versions_named(store):
    with pytest.raises(StateVersionError, match=r"found format version 2; expected at most .* 1"):
        ReaderCommit.from_bytes(b'{"format": 2}', "here")


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{}", b"[1]", b'{"format": 1}', b"\xff", b'{"format": "a"}'),
        commit().to_bytes().replace(b"50", b"51"),
    ],
    ids=["empty", "no field", "a list", "format only", "not UTF-8", "format of text", "changed"],
)
def test_a_damaged_commit_is_named(data):
    with pytest.raises(StateCorruptError, match="a reader commit is damaged: /ck/readers/1"):
        ReaderCommit.from_bytes(data, "/ck/readers/1")


def test_unknown_keys_are_kept():
    document = json.loads(commit().to_bytes())
    document["from_the_future"] = [1]
    read = ReaderCommit.from_bytes(with_checksum(document), "here")
    assert json.loads(read.to_bytes())["from_the_future"] == [1]
