"""Publications that are repeated, what crashed writers left, and many requests at once."""

from __future__ import annotations

import os
import time

import pytest

from pyspark_sluice.checkpoint_meta.storage import local_storage
from pyspark_sluice.checkpoint_meta.stores.contract import in_parallel
from pyspark_sluice.checkpoint_meta.stores.open_store import RetryingStateStore, StorageStateStore
from pyspark_sluice.checkpoint_meta.stores.testing import SimulatedCrash


def test_a_publish_that_is_repeated_makes_the_name_durable(monkeypatch, tmp_path):
    store = RetryingStateStore(StorageStateStore(str(tmp_path / "d")), sleep=lambda _: None)
    store.publish("checkpoints/warm", b"x")
    real, failed, synced = local_storage.sync, [], []

    def sync(path):
        if str(path).endswith("checkpoints") and not failed:
            failed.append(path)
            raise OSError(5, "Input/output error")
        synced.append(str(path))
        real(path)

    monkeypatch.setattr(local_storage, "sync", sync)
    store.publish("checkpoints/1.arrow", b"content")
    assert failed
    assert str(tmp_path / "d" / "checkpoints") in synced


def test_temporary_files_of_crashed_writers_go_and_those_of_others_stay(tmp_path):
    folder = tmp_path / "d" / "checkpoints"
    folder.mkdir(parents=True)
    old, new = folder / f".1.arrow.{'a' * 32}.tmp", folder / f".2.arrow.{'b' * 32}.tmp"
    for path, age in ((old, 90_000), (new, 3600)):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age, time.time() - age))
    StorageStateStore(str(tmp_path / "d")).publish("checkpoints/3.arrow", b"x")
    assert sorted(path.name for path in folder.iterdir()) == sorted([new.name, "3.arrow"])


def test_many_requests_are_under_way_at_once_and_what_ends_the_process_gets_through():
    began = time.monotonic()

    def slow(number):
        time.sleep(0.05)
        return number

    assert in_parallel(slow, range(64)) == list(range(64))
    assert time.monotonic() - began < 2.0

    def crash(number):
        if number == 7:
            raise SimulatedCrash
        return number

    with pytest.raises(SimulatedCrash):
        in_parallel(crash, range(64))
