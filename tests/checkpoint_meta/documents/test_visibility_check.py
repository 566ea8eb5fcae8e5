"""An executor proves that it sees the state that the driver writes."""

from __future__ import annotations

import pickle
import socket

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.open_store import StorageStateStore
from pyspark_sluice.checkpoint_meta.stores.testing import FaultyStateStore, MemoryStateStore
from pyspark_sluice.errors import StateNotSharedError

from ..checkpoint_chains import document

REF = CheckpointRef(1, 1)


def publish(store, **changes):
    checkpoint = document(1, 1, NO_CHECKPOINT)
    header = checkpoint.header.model_copy(update=changes)
    checkpoint = type(checkpoint)(
        header, checkpoint.split_schema, checkpoint.state_schema, (), checkpoint.state
    )
    history = CheckpointHistory(store)
    history.publish(checkpoint)
    return history.load(REF).visibility


def refused(visibility, store):
    with pytest.raises(StateNotSharedError, match="this executor does not see") as error:
        visibility.check(store, lambda _: None)
    return str(error.value)


def test_a_process_that_sees_the_object_itself_proves_it_with_one_look(tmp_path):
    store = StorageStateStore(str(tmp_path))
    visibility = pickle.loads(pickle.dumps(publish(store)))
    visibility.check(StorageStateStore(str(tmp_path)))
    memory = MemoryStateStore()
    publish(memory)
    visibility = CheckpointHistory(memory).load(REF).visibility
    faulty = FaultyStateStore(memory)
    visibility.check(faulty)
    assert faulty.operations == 1


def test_an_empty_directory_is_named_with_host_and_path(tmp_path):
    visibility = publish(MemoryStateStore())
    text = refused(visibility, StorageStateStore(str(tmp_path / "other")))
    assert f"{tmp_path}/other/{visibility.name} on host {socket.gethostname()}" in text
    assert "found no such object" in text
    assert "a shared mount or an object store" in text
    assert not (tmp_path / "other").exists()


def test_another_object_of_that_name_is_no_proof():
    visibility = publish(MemoryStateStore(), created=1)
    other = MemoryStateStore()
    publish(other, created=2)
    assert "found another object with that name" in refused(visibility, other)
    other.objects[visibility.name] = b"short"
    assert "found another object with that name" in refused(visibility, other)


def test_a_file_system_that_is_a_little_behind_is_waited_for():
    store = MemoryStateStore()
    visibility = publish(store)
    data = store.objects.pop(visibility.name)
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 2:
            store.objects[visibility.name] = data

    visibility.check(store, sleep)
    assert len(pauses) == 2
