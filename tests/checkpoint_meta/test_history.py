"""Chains of checkpoints: found, folded, compacted; an executor sees what the driver writes."""

import pickle
import socket

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.open_store import StorageStateStore
from pyspark_sluice.checkpoint_meta.stores.testing import FaultyStateStore, MemoryStateStore
from pyspark_sluice.errors import FencedError, StateCorruptError, StateNotSharedError
from pyspark_sluice.tests.checkpoint_meta.checkpoint_chains import chain, document, names, tear


@pytest.fixture
def store():
    return MemoryStateStore("/ck/sluice")


def test_a_range_leads_over_dead_incarnations_and_leaves_their_orphans_out(store):
    chain(store, 4)
    head = chain(store, 5, epoch=2, start=CheckpointRef(2, 1))
    found = CheckpointHistory(store).between(CheckpointRef(1, 1), head)
    assert names(found) == [("delta", 2, 1), ("delta", 3, 2), ("delta", 4, 2), ("delta", 5, 2)]


def test_a_chain_starts_at_its_newest_base(store):
    head = chain(store, 6, bases=(2, 4))
    found = CheckpointHistory(store).chain(head)
    assert names(found) == [("base", 4, 1), ("delta", 5, 1), ("delta", 6, 1)]


def test_a_base_of_a_dead_incarnation_is_not_taken(store):
    chain(store, 4, bases=(1, 4))
    head = chain(store, 5, epoch=2, start=CheckpointRef(3, 1))
    found = CheckpointHistory(store).chain(head)
    of_epochs = [("delta", 2, 1), ("delta", 3, 1), ("delta", 4, 2), ("delta", 5, 2)]
    assert names(found) == [("base", 1, 1), *of_epochs]


def test_a_checkpoint_is_published_once(store):
    chain(store, 1)
    with pytest.raises(FencedError, match="a checkpoint of this epoch by another query"):
        CheckpointHistory(store).publish(document(1, 1, NO_CHECKPOINT))


def test_a_base_that_cannot_be_read_is_skipped_for_the_chain_below_it(store, caplog):
    head = chain(store, 6, bases=(2, 4))
    tear(store, "bases/0000000004-0000000001.arrow")
    history = CheckpointHistory(store)
    for _ in range(2):
        assert names(history.chain(head)) == [
            ("base", 2, 1),
            *[("delta", number, 1) for number in (3, 4, 5, 6)],
        ]
    assert caplog.text.count("skipping a base") == 1
    assert "/ck/sluice/bases/0000000004-0000000001.arrow" in caplog.text
    assert history.unreadable == ["bases/0000000004-0000000001.arrow"]


def test_a_base_that_cannot_be_read_is_named_where_nothing_is_left_below_it(store):
    head = chain(store, 6, bases=(4,))
    tear(store, "bases/0000000004-0000000001.arrow")
    store.delete("checkpoints/0000000002-0000000001.arrow")
    with pytest.raises(StateCorruptError, match=r"bases/0000000004-0000000001\.arrow"):
        CheckpointHistory(store).chain(head)


def test_a_base_that_cannot_be_read_is_written_again(store):
    head = chain(store, 4, bases=(4,))
    tear(store, "bases/0000000004-0000000001.arrow")
    history = CheckpointHistory(store)
    history.publish_base(document(4, 1, CheckpointRef(3, 1), "base", history))
    assert names(CheckpointHistory(store).chain(head)) == [("base", 4, 1)]


def test_what_does_not_belong_into_a_directory_is_no_checkpoint(store):
    head = chain(store, 3, bases=(2,))
    for directory in ("bases", "checkpoints", "readers"):
        store.publish(f"{directory}/lost+found", b"")
        store.publish(f"{directory}/a-b.arrow", b"")
    assert len(CheckpointHistory(store).checkpoints()) == 3
    assert names(CheckpointHistory(store).chain(head))[0] == ("base", 2, 1)


def test_a_checkpoint_under_another_s_name_is_refused(store):
    data = document(2, 1, CheckpointRef(1, 1)).to_bytes()
    store.publish("checkpoints/0000000009-0000000001.arrow", data)
    with pytest.raises(StateCorruptError, match="under the name of another checkpoint"):
        CheckpointHistory(store).load(CheckpointRef(9, 1))


@pytest.mark.parametrize("replaced", [1, 2, 3])
@pytest.mark.parametrize("other", [{"created": 1}, {"lineage": "f" * 16}])
def test_a_link_from_another_copy_of_the_state_is_refused(store, replaced, other):
    """One checkpoint was restored from a backup, or copied from another query."""
    head, history = chain(store, 4), CheckpointHistory(store)
    name = f"checkpoints/{CheckpointRef(replaced, 1).name}.arrow"
    parent = CheckpointRef(replaced - 1, 1) if replaced > 1 else NO_CHECKPOINT
    store.objects[name] = document(replaced, 1, parent, history=history, **other).to_bytes()
    for follow in (
        lambda: CheckpointHistory(store).chain(head),
        lambda: CheckpointHistory(store).between(NO_CHECKPOINT, head),
        # The start itself is not part of the range, and its child names it.
        lambda: CheckpointHistory(store).between(CheckpointRef(replaced, 1), head),
    ):
        with pytest.raises(StateCorruptError, match="is not the expected checkpoint"):
            follow()


def published(store, **changes):
    history = CheckpointHistory(store)
    history.publish(document(1, 1, NO_CHECKPOINT, **changes))
    return history.load(CheckpointRef(1, 1)).visibility


def refused(visibility, store):
    with pytest.raises(StateNotSharedError, match="this executor does not see") as error:
        visibility.check(store, lambda _: None)
    return str(error.value)


def test_a_process_that_sees_the_object_itself_proves_it_with_one_look(tmp_path):
    store = StorageStateStore(str(tmp_path))
    visibility = pickle.loads(pickle.dumps(published(store)))
    visibility.check(StorageStateStore(str(tmp_path)))
    memory = MemoryStateStore()
    visibility = published(memory)
    faulty = FaultyStateStore(memory)
    visibility.check(faulty)
    assert faulty.operations == 1


def test_an_empty_directory_is_named_with_host_and_path(tmp_path):
    visibility = published(MemoryStateStore())
    text = refused(visibility, StorageStateStore(str(tmp_path / "other")))
    assert f"{tmp_path}/other/{visibility.name} on host {socket.gethostname()}" in text
    assert "found no such object" in text
    assert "a shared mount or an object store" in text
    assert not (tmp_path / "other").exists()


def test_another_object_of_that_name_is_no_proof():
    visibility = published(MemoryStateStore(), created=1)
    other = MemoryStateStore()
    published(other, created=2)
    assert "found another object with that name" in refused(visibility, other)
    other.objects[visibility.name] = b"short"
    assert "found another object with that name" in refused(visibility, other)


def test_a_file_system_that_is_a_little_behind_is_waited_for():
    store = MemoryStateStore()
    visibility = published(store)
    data = store.objects.pop(visibility.name)
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 2:
            store.objects[visibility.name] = data

    visibility.check(store, sleep)
    assert len(pauses) == 2
