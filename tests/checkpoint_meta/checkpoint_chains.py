"""Chains of checkpoints without content, for tests of what is around them."""

from pyspark_sluice.checkpoint_meta.documents.checkpoint import Checkpoint, CheckpointHeader
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.files.file_columns import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory


def document(checkpoint, epoch, parent, kind="delta", history=None, **fields):
    """A checkpoint after `parent`, or a base of the one in `history`, which tells checksums.

    Fields of the header may be others.
    """
    empty = FileSplitSerializer().serialize([])

    def checksum(ref):
        return history.load(ref).identity.checksum if history and ref != NO_CHECKPOINT else ""

    usual = {
        "kind": kind,
        "checkpoint": checkpoint,
        "epoch": epoch,
        "parent_checkpoint": parent.checkpoint,
        "parent_epoch": parent.epoch,
        "parent_checksum": checksum(parent),
        "stands_for": checksum(CheckpointRef(checkpoint, epoch)) if kind == "base" else "",
        "lineage": "0123456789abcdef",
        "enumerator": "files",
        "split_version": 1,
        "state_version": 1,
        "created": 0,
        "assigned_splits": 0,
        "state_rows": 0,
    }
    header = CheckpointHeader(**{**usual, **fields})
    return Checkpoint(header, empty.schema, empty.schema, (), (empty,))


def chain(store, last, epoch=1, start=NO_CHECKPOINT, bases=()):
    """Publish checkpoints after `start` up to `last`, with bases for some."""
    history = CheckpointHistory(store)
    parent = start
    for number in range(start.checkpoint + 1, last + 1):
        history.publish(document(number, epoch, parent, history=history))
        if number in bases:
            history.publish_base(document(number, epoch, parent, "base", history))
        parent = CheckpointRef(number, epoch)
    return parent


def names(checkpoints):
    return [(c.header.kind, c.ref.checkpoint, c.ref.epoch) for c in checkpoints]


def tear(store, name):
    store.objects[name] = store.objects[name][:-100]
