"""Chains of checkpoints: found, folded, compacted, let go."""

from __future__ import annotations

import re

import pytest

from pyspark_sluice.checkpoint_meta.checkpoint import Checkpoint, CheckpointHeader
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.reference import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.serializer import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.testing import (
    Fault,
    FaultyStateStore,
    MemoryStateStore,
    SimulatedCrash,
)
from pyspark_sluice.errors import StateCorruptError, StateMissingError


def document(checkpoint, epoch, parent, kind="delta"):
    empty = FileSplitSerializer().serialize([])
    header = CheckpointHeader(
        kind=kind,
        checkpoint=checkpoint,
        epoch=epoch,
        parent_checkpoint=parent.checkpoint,
        parent_epoch=parent.epoch,
        enumerator="files",
        split_version=1,
        state_version=1,
        created=0,
        assigned_splits=0,
        state_rows=0,
    )
    return Checkpoint(header, empty.schema, empty.schema, (), (empty,))


def chain(store, last, epoch=1, start=NO_CHECKPOINT, bases=()):
    """Publish checkpoints after `start` up to `last`, with bases for some."""
    history = CheckpointHistory(store)
    parent = start
    for number in range(start.checkpoint + 1, last + 1):
        history.publish(document(number, epoch, parent))
        if number in bases:
            history.publish_base(document(number, epoch, parent, "base"))
        parent = CheckpointRef(number, epoch)
    return parent


@pytest.fixture
def store():
    return MemoryStateStore("/ck/sluice")


def names(checkpoints):
    return [(c.header.kind, c.ref.checkpoint, c.ref.epoch) for c in checkpoints]


def test_a_range_leads_over_dead_incarnations_and_leaves_their_orphans_out(store):
    chain(store, 4)
    head = chain(store, 5, epoch=2, start=CheckpointRef(2, 1))
    found = CheckpointHistory(store).between(CheckpointRef(1, 1), head)
    assert names(found) == [("delta", 2, 1), ("delta", 3, 2), ("delta", 4, 2), ("delta", 5, 2)]


def test_a_range_that_ends_in_an_orphan_s_cousin_is_refused(store):
    chain(store, 4)
    head = chain(store, 5, epoch=2, start=CheckpointRef(2, 1))
    with pytest.raises(StateCorruptError, match="does not descend from checkpoint 3 of epoch 1"):
        CheckpointHistory(store).between(CheckpointRef(3, 1), head)


def test_a_chain_starts_at_its_newest_base(store):
    head = chain(store, 6, bases=(2, 4))
    found = CheckpointHistory(store).chain(head)
    assert names(found) == [("base", 4, 1), ("delta", 5, 1), ("delta", 6, 1)]


def test_a_base_of_a_dead_incarnation_is_not_taken(store):
    chain(store, 4, bases=(1, 4))
    head = chain(store, 5, epoch=2, start=CheckpointRef(3, 1))
    found = CheckpointHistory(store).chain(head)
    assert names(found) == [
        ("base", 1, 1),
        ("delta", 2, 1),
        ("delta", 3, 1),
        ("delta", 4, 2),
        ("delta", 5, 2),
    ]


def test_a_checkpoint_is_published_once(store):
    chain(store, 1)
    with pytest.raises(FileExistsError):
        CheckpointHistory(store).publish(document(1, 1, NO_CHECKPOINT))


def test_a_base_that_is_there_already_is_as_good(store):
    chain(store, 1, bases=(1,))
    CheckpointHistory(store).publish_base(document(1, 1, NO_CHECKPOINT, "base"))


def test_a_missing_link_is_named_with_its_place(store):
    head = chain(store, 3)
    store.delete("checkpoints/0000000002-0000000001.arrow")
    place = "/ck/sluice/checkpoints/0000000002-0000000001.arrow"
    with pytest.raises(StateMissingError, match=re.escape(place)):
        CheckpointHistory(store).chain(head)


def test_a_checkpoint_under_another_s_name_is_refused(store):
    data = document(2, 1, CheckpointRef(1, 1)).to_bytes()
    store.publish("checkpoints/0000000009-0000000001.arrow", data)
    with pytest.raises(StateCorruptError, match="stands under another's name"):
        CheckpointHistory(store).load(CheckpointRef(9, 1))


def with_orphans():
    """1 to 20 of epochs 1 and 2, with an orphaned branch that has bases of its own."""
    store = MemoryStateStore("/ck/sluice")
    chain(store, 12, bases=(4, 8, 10, 12))
    head = chain(store, 20, epoch=2, start=CheckpointRef(9, 1), bases=(13, 16))
    for ref in CheckpointHistory(store).checkpoints():
        store.publish(f"readers/{ref.name}/00000.json", b"")
        store.publish(f"readers/{ref.name}/00001.json", b"")
    return store, head


def check_retained(store, head, retained):
    history = CheckpointHistory(store)
    ref = head
    for _ in range(retained + 1):
        assert names(history.chain(ref))[-1][1:] == (ref.checkpoint, ref.epoch)
        parent = history.load(ref).header.parent
        assert store.list(f"readers/{ref.name}")
        ref = parent


@pytest.mark.parametrize("retained", [0, 3, 6, 9, 12, 50])
def test_pruning_keeps_every_retained_chain_whole(retained):
    store, head = with_orphans()
    CheckpointHistory(store).prune(head, retained)
    check_retained(store, head, min(retained, 19))


def test_pruning_lets_go_of_what_lies_below_the_floor():
    store, head = with_orphans()
    CheckpointHistory(store).prune(head, 3)
    history = CheckpointHistory(store)
    assert history.checkpoints()[0].checkpoint == 17
    assert history.bases() == [CheckpointRef(16, 2)]
    assert len(store.list("readers")) == 4


def test_a_base_of_a_dead_incarnation_is_no_floor():
    store, head = with_orphans()
    # The oldest retained is 11 of epoch 2; the orphans 10 and 12 have bases, 9 of epoch 1 has none.
    CheckpointHistory(store).prune(head, 9)
    check_retained(store, head, 9)
    assert names(CheckpointHistory(store).chain(CheckpointRef(11, 2)))[0] == ("base", 8, 1)


@pytest.mark.parametrize("kind", ["crash before", "crash after", "crash half-way"])
def test_pruning_may_be_killed_between_any_two_deletions(kind):
    for after in range(200):
        store, head = with_orphans()
        faulty = FaultyStateStore(store)
        faulty.fault = Fault(kind, after, verb="delete")
        try:
            CheckpointHistory(faulty).prune(head, 5)
        except SimulatedCrash:
            check_retained(store, head, 5)
            CheckpointHistory(store).prune(head, 5)
            check_retained(store, head, 5)
        else:
            break
    else:
        pytest.fail("pruning never came to its end")
    assert after > 20


def test_raising_the_number_retained_after_a_pruning_is_no_error():
    store, head = with_orphans()
    CheckpointHistory(store).prune(head, 2)
    CheckpointHistory(store).prune(head, 15)
    check_retained(store, head, 2)


def test_a_reference_is_written_and_read():
    ref = CheckpointRef(7, 12)
    assert CheckpointRef.from_name(ref.name) == ref
    assert str(ref) == "checkpoint 7 of epoch 12"
    for name in ("", "7", "7-x", "1-2-3"):
        with pytest.raises(ValueError, match=r".+"):
            CheckpointRef.from_name(name)
