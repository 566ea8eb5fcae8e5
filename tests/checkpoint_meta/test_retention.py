"""What is deleted, and that nothing else is."""

import pytest

from pyspark_sluice.checkpoint_meta.documents.attachments import Attachments
from pyspark_sluice.checkpoint_meta.documents.checkpoint import Continuation
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import (
    NO_CHECKPOINT,
    CheckpointIdentity,
    CheckpointRef,
    identities_in,
)
from pyspark_sluice.checkpoint_meta.documents.reader_commit import give_back, rereads_in
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.retention import Retention
from pyspark_sluice.checkpoint_meta.stores.testing import (
    Fault,
    FaultyStateStore,
    MemoryStateStore,
    SimulatedCrash,
)

from .checkpoint_chains import chain, document, names, tear


def folder(ref):
    """Of what readers write about a checkpoint."""
    return CheckpointIdentity(ref, "", "cd" * 8).name


def prune(store, head, retained, epoch=9, check=lambda: None):
    attachments = Attachments(store, epoch)
    Retention(store, CheckpointHistory(store), epoch, check, attachments).prune(head, retained)


def with_orphans():
    """1 to 20 of epochs 1 and 2, with an orphaned branch that has bases of its own."""
    store = MemoryStateStore("/ck/sluice")
    chain(store, 12, bases=(4, 8, 10, 12))
    head = chain(store, 20, epoch=2, start=CheckpointRef(9, 1), bases=(13, 16))
    for ref in CheckpointHistory(store).checkpoints():
        store.publish(f"readers/{folder(ref)}/00000.json", b"")
        store.publish(f"readers/{folder(ref)}/00001.json", b"")
    return store, head


def check_retained(store, head, retained):
    history = CheckpointHistory(store)
    ref = head
    for _ in range(retained + 1):
        assert names(history.chain(ref))[-1][1:] == (ref.checkpoint, ref.epoch)
        parent = history.load(ref).header.parent
        assert store.list(f"readers/{folder(ref)}")
        ref = parent


@pytest.mark.parametrize("retained", [0, 6, 12, 50])
def test_pruning_keeps_every_retained_chain_whole(retained):
    store, head = with_orphans()
    prune(store, head, retained)
    check_retained(store, head, min(retained, 19))


def test_pruning_deletes_what_is_below_the_floor():
    store, head = with_orphans()
    for ref in CheckpointHistory(store).checkpoints():
        store.publish(f"abandoned/{folder(ref)}/00000.json", b"")
        give_back(store, ref, 1)
    prune(store, head, 3)
    # Whose commits are there.
    assert {*rereads_in(store)} == {each.ref for each in identities_in(store.list("readers"))}
    history = CheckpointHistory(store)
    # The parent of the oldest: Spark may read that one again.
    assert history.checkpoints()[0].checkpoint == 16
    assert history.bases() == [CheckpointRef(16, 2)]
    assert len(store.list("readers")) == 5
    assert store.list("abandoned") == store.list("readers")


def test_a_base_that_another_query_left_under_the_same_name_is_no_floor():
    store = MemoryStateStore("/ck/sluice")
    head = chain(store, 20, bases=(4,))
    history = CheckpointHistory(store)
    # Its directory was deleted while it wrote; the next query in it has the same epochs.
    left = document(16, 1, CheckpointRef(15, 1), "base", history)
    history.publish_base(document(16, 1, CheckpointRef(15, 1), "base", history, lineage="f" * 16))
    prune(store, head, 3)
    retained = range(17, 21)
    assert [names(history.chain(CheckpointRef(n, 1)))[-1][1] for n in retained] == [*retained]
    history.publish_base(left)
    assert history.read_base(CheckpointRef(16, 1)).identity == left.identity


def test_pruning_may_be_killed_in_the_middle_of_any_deletion():
    for after in range(200):
        store, head = with_orphans()
        faulty = FaultyStateStore(store)
        faulty.fault = Fault("crash half-way", after, verb="delete")
        try:
            prune(faulty, head, 5)
        except SimulatedCrash:
            check_retained(store, head, 5)
            prune(store, head, 5)
            check_retained(store, head, 5)
        else:
            break
    else:
        pytest.fail("pruning never came to its end")
    assert after > 20


def test_raising_the_number_retained_after_a_pruning_is_no_error():
    store, head = with_orphans()
    prune(store, head, 2)
    prune(store, head, 15)
    check_retained(store, head, 2)


def test_a_base_that_cannot_be_read_is_no_floor():
    store, head = with_orphans()
    tear(store, "bases/0000000016-0000000002.arrow")
    prune(store, head, 3)
    check_retained(store, head, 3)
    assert names(CheckpointHistory(store).chain(head))[0] == ("base", 13, 2)


def test_before_each_deletion_it_looks_who_owns_the_state():
    store, head = with_orphans()
    counts = [len(store.objects)]

    def check():
        counts.append(len(store.objects))
        if len(counts) == 4:
            raise SimulatedCrash

    with pytest.raises(SimulatedCrash):
        prune(store, head, 3, check=check)
    assert len(store.objects) == counts[0] - 2


def test_what_a_newer_epoch_has_written_is_never_touched():
    """The older one is far ahead, and has not yet heard that it is superseded."""
    store = MemoryStateStore("/ck/sluice")
    head = chain(store, 40, epoch=1, bases=(8, 20, 30))
    newer = chain(store, 14, epoch=2, start=CheckpointRef(9, 1), bases=(12,))
    for ref in CheckpointHistory(store).checkpoints():
        store.publish(f"readers/{folder(ref)}/00000.json", b"")
    prune(store, head, 3, epoch=1)
    found = CheckpointHistory(store).chain(newer)
    assert names(found) == [("base", 12, 2), ("delta", 13, 2), ("delta", 14, 2)]
    assert store.list(f"readers/{folder(newer)}") == ["00000.json"]


def test_young_checkpoints_are_retained_however_many_they_are():
    store = MemoryStateStore("/ck/sluice")
    history = CheckpointHistory(store)
    parent = NO_CHECKPOINT
    for number in range(1, 21):
        history.publish(document(number, 1, parent, "delta", history, created=number))
        history.publish_base(document(number, 1, parent, "base", history, created=number))
        parent = CheckpointRef(number, 1)
    retention = Retention(store, history, 1, lambda: None, Attachments(store, 1))
    retention.prune(parent, 3, younger_than=8)
    assert [ref.checkpoint for ref in history.checkpoints()] == list(range(7, 21))
    retention.prune(parent, 3, younger_than=100)
    assert [ref.checkpoint for ref in history.checkpoints()] == [16, 17, 18, 19, 20]


@pytest.mark.parametrize("needs", ["counted", "continues", "counts what continues"])
def test_what_a_retained_checkpoint_needs_of_those_before_it_stays(needs):
    store = MemoryStateStore("/ck/sluice")
    history = CheckpointHistory(store)
    far, near = CheckpointRef(10, 1), CheckpointRef(14, 1)
    goes_on = Continuation(split="s", checkpoint=10, epoch=1, index=0)
    fields = {
        "counted": {17: {"counted": {far.name: [0]}}},
        "continues": {17: {"sent": {"0": [goes_on]}}},
        "counts what continues": {14: {"sent": {"0": [goes_on]}}, 17: {"counted": {near.name: []}}},
    }[needs]
    parent = NO_CHECKPOINT
    for number in range(1, 21):
        history.publish(document(number, 1, parent, "delta", history, **fields.get(number, {})))
        history.publish_base(document(number, 1, parent, "base", history))
        parent = CheckpointRef(number, 1)
        store.publish(f"readers/{folder(parent)}/00000.json", b"")
    prune(store, parent, 3, epoch=1)
    assert history.checkpoints()[0] == far
    assert store.list(f"readers/{folder(far)}")
    assert history.bases()[0] == far


def with_attachments(store, epoch=1):
    """Three bases: runs 1 and 2; 1, 2 and 3; and 4, which they were merged into."""
    history, attachments = CheckpointHistory(store), Attachments(store, epoch)
    one, two, three = (attachments.publish(("keys.arrow", b"%d" % i)) for i in range(3))
    (merged,) = attachments.publish(("keys.arrow", b"merged"))
    (unused,) = attachments.publish(("keys.arrow", b"unused"))
    parent = NO_CHECKPOINT
    for number in range(1, 10):
        history.publish(document(number, epoch, parent, history=history))
        refers = {2: [*one, *two], 5: [*one, *two, *three], 8: [merged]}.get(number)
        if refers:
            history.publish_base(
                document(number, epoch, parent, "base", history, attachments=refers)
            )
        parent = CheckpointRef(number, epoch)
    return parent, attachments, [*one, *two, *three], merged, unused


@pytest.mark.parametrize("retained", [1, 3, 5, 8])
def test_attachments_go_when_nothing_refers_to_them(retained):
    store = MemoryStateStore("/ck/sluice")
    head, attachments, old, merged, unused = with_attachments(store)
    history = CheckpointHistory(store)
    retention = Retention(store, history, 1, lambda: None, attachments, lambda: {merged.name})
    retention.prune(head, retained)
    there = set(store.list("index"))
    referred = {
        attachment.name
        for ref in history.bases()
        for attachment in history.read_base(ref).header.attachments
    }
    assert referred <= there
    assert there == referred | {merged.name}
    assert unused.name not in there
    assert {a.name for a in old} <= there or retained == 1


def test_attachments_of_a_newer_epoch_and_those_of_a_damaged_base_stay():
    store = MemoryStateStore("/ck/sluice")
    head, _, old, *_ = with_attachments(store)
    (newer,) = Attachments(store, 12).publish(("keys.arrow", b"newer"))
    tear(store, "bases/0000000005-0000000001.arrow")
    prune(store, head, 8)
    assert {a.name for a in old} | {newer.name} <= set(store.list("index"))


def test_a_base_of_which_an_attachment_is_damaged_is_no_floor():
    store = MemoryStateStore("/ck/sluice")
    head, _, old, merged, _ = with_attachments(store)
    store.objects[f"index/{merged.name}"] = b"torn"
    prune(store, head, 1)
    assert {a.name for a in old} <= set(store.list("index"))


def test_a_base_is_no_floor_for_the_process_that_wrote_it_where_a_restore_took_its_objects_away():
    store = MemoryStateStore("/ck/sluice")
    head, attachments, old, merged, _ = with_attachments(store)
    store.delete(f"index/{merged.name}")
    Retention(store, CheckpointHistory(store), 9, lambda: None, attachments).prune(head, 1)
    assert {a.name for a in old} <= set(store.list("index"))
    assert CheckpointRef(5, 1) in CheckpointHistory(store).bases()


def test_commits_are_deleted_after_those_who_need_them_were_asked():
    store, head = with_orphans()
    asked = []

    def some(folders):
        asked.extend(each.ref for each in folders)
        return [each for each in folders if each.ref.checkpoint != 5]

    history, attachments = CheckpointHistory(store), Attachments(store, 9)
    retention = Retention(store, history, 9, lambda: None, attachments, commits_go=some)
    retention.prune(head, 3)
    there = {ref for ref in asked if store.list(f"readers/{folder(ref)}")}
    assert {ref.checkpoint for ref in there} == {5}
    assert min(ref.checkpoint for ref in asked) == 1
    check_retained(store, head, 3)
