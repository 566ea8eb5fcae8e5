"""Data files in a bucket: whole, once, and under one request, with any answer of the store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pyspark_sluice.reader.direct_write.place import Place
from pyspark_sluice.tests.patience import PATIENCE

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
    command = [sys.executable, program, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
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


def test_new_directories_are_durable_before_a_file_in_them_counts(tmp_path, monkeypatch):
    synced = []
    fsync = os.fsync

    def noting(descriptor):
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    published(Place(str(tmp_path / "lake" / "table"), {}), b"x")
    expected = {tmp_path, tmp_path / "lake", tmp_path / "lake" / "table"}
    assert {*map(str, expected)} < {*synced}
