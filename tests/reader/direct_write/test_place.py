"""Data files in a place: whole, once, with any answer of the store; those that lost are swept."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.reader.direct_write.place import Place
from pyspark_sluice.reader.direct_write.unreferenced_files import sweep
from pyspark_sluice.tests.checkpoint_meta.checkpoint_chains import chain
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.tables.sinks import batch_of, commit_of, ids

MIB = 1024 * 1024
NAME = "day=1/file.parquet"


@pytest.fixture
def place(any_server, any_bucket):
    return Place(f"{any_server.scheme}://{any_bucket}/table", any_server.options)


def published(place, data):
    draft = place.begin(NAME)
    draft.sink.write(data)
    return draft.publish()


@pytest.mark.parametrize("fault", ["slow_down", "lose_answer"])
def test_a_file_is_there_once_and_whole_after_faults_of_the_store(
    place, any_server, any_bucket, fault
):
    any_server.fail_next(getattr(any_server, fault), times=2, kind="PUT")
    data = os.urandom(11_000_000)
    url = published(place, data)
    assert url == f"{any_server.path_scheme}://{any_bucket}/table/{NAME}"
    assert list(place.files()) == [url]
    assert any_server.get(any_bucket, f"table/{NAME}") == data
    if any_server.path_scheme == "s3":
        uploads = any_server.client().list_multipart_uploads(Bucket=any_bucket)
        assert uploads.get("Uploads", []) == [], "left half done"


@pytest.mark.thorough("a measurement")
def test_an_upload_takes_no_memory_for_the_file_that_it_sends(server, bucket):
    program = Path(__file__).with_name("upload_program.py")
    arguments = [f"s3://{bucket}/table", json.dumps(server.options), NAME, "100"]
    done = subprocess.run(
        [sys.executable, program, *arguments], check=True, capture_output=True, timeout=PATIENCE
    )
    assert len(server.get(bucket, f"table/{NAME}")) == 100 * MIB
    assert int(done.stdout) < 50 * MIB


def test_an_upload_that_is_killed_or_fails_leaves_no_file_on_the_machine(
    server, bucket, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    place = Place(f"s3://{bucket}/table", server.options)
    draft = place.begin(NAME)
    draft.sink.write(b"x")
    draft.sink.flush()
    # What a killed process would leave.
    assert list(tmp_path.iterdir()) == []
    draft.discard()
    assert list(place.files()) == []


def identities(store):
    history = CheckpointHistory(store)
    return [history.load(ref).identity for ref in history.checkpoints()]


@pytest.mark.parametrize("kind", ["local", "bucket"])
def test_only_files_of_attempts_that_lost_to_a_commit_are_swept(tmp_path, request, kind):
    url, storage = str(tmp_path / "table"), {}
    if kind == "bucket":
        storage = request.getfixturevalue("server").options
        url = f"s3://{request.getfixturevalue('bucket')}/table"
    store = open_store(str(tmp_path / "state"))
    chain(store, 2)
    commits = ReaderCommits(store)
    one, two = identities(store)
    won = batch_of(url, 1, ids(0), storage=storage, token="a" * 12, identity=one)
    lost = batch_of(url, 1, ids(0), storage=storage, token="b" * 12, identity=one)
    in_table = batch_of(url, 1, ids(0), storage=storage, token="c" * 12, identity=one)
    # Before the state was restored from a backup, it had another checkpoint of this number.
    before = batch_of(url, 1, ids(0), storage=storage, identity=replace(one, checksum="0" * 16))
    at_work = batch_of(url, 2, ids(3), storage=storage, identity=two)
    other = batch_of(url, 1, ids(0), storage=storage, lineage="f" * 16)
    commits.publish(commit_of(won))
    where, named = Place(url, storage), in_table.files[0].path
    kept = (in_table, before, at_work)
    for delete in (False, True):
        swept = sweep(where, store, in_table=lambda: named.__eq__, delete=delete)
        assert swept.named == [file.path for file in won.files]
        assert swept.superseded == [file.path for file in lost.files]
        assert {*swept.undecided} == {file.path for batch in kept for file in batch.files}
    left = {file.path for batch in (won, *kept, other) for file in batch.files}
    assert set(where.files()) == left


def test_a_file_that_was_never_finished_is_swept_once_its_reader_has_a_commit(tmp_path):
    store = open_store(str(tmp_path / "state"))
    chain(store, 2)
    commits = ReaderCommits(store)
    one, _ = identities(store)
    won = batch_of(tmp_path / "table", 1, ids(0), token="a" * 12, identity=one)
    torn = batch_of(tmp_path / "table", 1, ids(0), token="b" * 12, identity=one).files[0].path
    place = Place(str(tmp_path / "table"), {})
    folder, _, name = torn.rpartition("/")
    half = f"{folder}/.{name}.partial"
    (tmp_path / "table" / name).rename(half)
    assert sweep(place, store, delete=True).superseded == []
    commits.publish(commit_of(won))
    assert sweep(place, store, delete=True).superseded == [half]
    assert list(place.files()) == [won.files[0].path]


def test_only_the_checkpoints_that_are_pruned_are_swept(tmp_path):
    store = open_store(str(tmp_path / "state"))
    chain(store, 3)
    first, second, _ = identities(store)
    table, lost = tmp_path / "table", []
    for number, identity in enumerate((first, second), 1):
        lost.append(batch_of(table, number, ids(0), identity=identity, token="f" * 12))
        won = batch_of(table, number, ids(0), identity=identity)
        ReaderCommits(store).publish(commit_of(won))
    place = Place(str(table), {})
    assert sweep(place, store, [first], delete=True).superseded == [lost[0].files[0].path]
    assert [Path(batch.files[0].path).exists() for batch in lost] == [False, True]
    assert sweep(place, store, [first, second], delete=True).superseded == [lost[1].files[0].path]
    assert len(list(table.iterdir())) == 2
