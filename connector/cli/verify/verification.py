"""`sluice verify`: walks every object, reference and checksum of a state directory.

What is gone without a trace cannot be distinguished from what was never written: a base where an
older one and all checkpoints after it are there, the newest epoch if it has published nothing, the
newest version of a schema, a record of an abandoned reader that has a commit. No restore needs any
of those, but for the schema's.

Not here: what restores do about damage (`checkpoint_meta/history.py`,
`enumerator/coordinator/restore.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from xxhash import xxh3_128_hexdigest

from ....checkpoint_meta.documents.checkpoint import Checkpoint
from ....checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef, refs_in
from ....checkpoint_meta.documents.epochs import FORMAT_DOCUMENT, KEPT
from ....checkpoint_meta.documents.layout import (
    ABANDONED,
    BASES,
    CHECKPOINTS,
    EPOCHS,
    FORMAT,
    HEARTBEATS,
    INDEX,
    READERS,
    checkpoint_object,
    epoch_object,
    order_object,
    reader_object,
)
from ....checkpoint_meta.documents.orders import Orders
from ....checkpoint_meta.documents.reader_assignment import readers_of
from ....checkpoint_meta.documents.reader_commit import Abandonment, ReaderCommit
from ....checkpoint_meta.stores.contract import StateStore
from ....errors import SluiceError
from ...views.state_view import in_parallel
from .document_checks import Records


class Verification(Records):
    """One walk over one state directory; nothing is written."""

    def __init__(self, store: StateStore, referred: Sequence[CheckpointRef] = ()) -> None:
        """`referred` are checkpoints that Spark's offset log names and would start from."""
        super().__init__(store)
        self._referred = referred
        self._checkpoints: dict[CheckpointRef, Checkpoint] = {}
        self._whole_bases: set[CheckpointRef] = set()
        self._bad_commits: set[CheckpointRef] = set()

    def run(self) -> Verification:
        """Check every object of the state, and collect what is wrong."""
        self._format()
        self._all_checkpoints()
        self._all_bases()
        self._epochs()
        self._links()
        self._all_commits()
        self._all_abandoned()
        self._records()
        self._orders()
        return self

    # Kinds of objects -----------------------------------------------------------------------

    def _format(self) -> None:
        data = self._read(FORMAT)
        if data is None:
            self._missing(FORMAT, "the directory does not record its version")
        elif data != FORMAT_DOCUMENT:
            self._damaged(FORMAT, f"{data[:40]!r}, which no release writes")

    def _all_checkpoints(self) -> None:
        for leaf in self._store.list(CHECKPOINTS):
            ref = _ref_of(leaf)
            name = f"{CHECKPOINTS}/{leaf}"
            found = self._document(name, ref, "delta")
            if found is not None and ref is not None:
                self._checkpoints[ref] = found
                self._attachments(found)

    def _all_bases(self) -> None:
        for leaf in self._store.list(BASES):
            ref = _ref_of(leaf)
            found = self._document(f"{BASES}/{leaf}", ref, "base")
            if found is not None and ref is not None and self._attachments(found):
                self._whole_bases.add(ref)

    def _document(self, name: str, ref: CheckpointRef | None, kind: str) -> Checkpoint | None:
        data = self._read(name)
        if data is None or ref is None:
            return None
        try:
            found = Checkpoint.from_bytes(data, name)
        except SluiceError as error:
            self._damaged(name, f"{error.found}, expected {error.expected}")
            return None
        if found.ref != ref or found.header.kind != kind:
            self._damaged(name, f"it is the {found.header.kind} of {found.ref}")
            return None
        return found

    def _attachments(self, of: Checkpoint) -> bool:
        """True if a restore can use what the document refers to; a run's names it does not need."""
        whole = True
        for attachment in of.header.attachments:
            name = f"{INDEX}/{attachment.name}"
            known = [found for found in self.findings if found.object == name]
            data = None if known else self._read(name)
            sound = data is not None and xxh3_128_hexdigest(data) == attachment.checksum
            if data is None and not known:
                self._missing(name, f"{of.ref} refers to it")
            elif not sound and not known:
                self._damaged(name, f"its checksum differs from the one in {of.ref}")
            whole = whole and (sound or not name.endswith("keys.arrow"))
        return whole

    def _epochs(self) -> None:
        names = {leaf: leaf.removesuffix(".json") for leaf in self._store.list(EPOCHS)}
        claimed = {int(stem) for stem in names.values() if stem.isdecimal()}
        wrote = {ref.epoch for d in (CHECKPOINTS, BASES) for ref in refs_in(self._store.list(d))}
        stems = [leaf.partition("-")[0] for leaf in self._store.list(INDEX)]
        wrote |= {int(stem) for stem in stems if stem.isdecimal()}
        newest = max(claimed | wrote, default=0)
        for epoch in range(max(1, newest - KEPT + 1), newest + 1):
            if epoch not in claimed:
                self._missing(
                    epoch_object(epoch), f"epochs are claimed consecutively up to {newest}"
                )
        for epoch in sorted(claimed):
            claim = self._json(epoch_object(epoch))
            if claim is not None and claim.get("epoch") != epoch:
                self._damaged(epoch_object(epoch), f"it claims epoch {claim.get('epoch')}")
        for leaf in self._store.list(HEARTBEATS):
            self._json(f"{HEARTBEATS}/{leaf}")

    # How they belong together ---------------------------------------------------------------

    def _links(self) -> None:
        listed = set(refs_in(self._store.list(CHECKPOINTS)))
        oldest = min((ref.checkpoint for ref in listed), default=0)
        bases = set(refs_in(self._store.list(BASES)))
        for ref, checkpoint in sorted(self._checkpoints.items()):
            parent = checkpoint.header.parent
            # Retention begins at the oldest one, so nothing is gone below it and there above.
            is_pruned = parent.checkpoint < oldest and bool({parent, ref} & bases)
            if parent != NO_CHECKPOINT and parent not in listed and not is_pruned:
                self._missing(checkpoint_object(parent), f"the parent of {ref}")
            found = self._checkpoints.get(parent)
            if found is not None and found.identity != checkpoint.parent:
                self._damaged(
                    checkpoint_object(parent), f"not the checkpoint that {ref} was cut after"
                )
        read = {r for d in (READERS, ABANDONED) for r in refs_in(self._store.list(d))}
        for ref in sorted(read - listed):
            # Retention lets the checkpoint go first.
            why = "readers have acknowledged it"
            if ref.checkpoint < oldest:
                why += "; unless a query was killed while it deleted old state"
            self._missing(checkpoint_object(ref), why)
        for ref in sorted(set(self._referred) - listed):
            self._missing(checkpoint_object(ref), "Spark's offset log refers to it")

    def _all_commits(self) -> None:
        names = [
            (ref, leaf)
            for ref in refs_in(self._store.list(READERS))
            for leaf in self._store.list(f"{READERS}/{ref.name}")
        ]
        in_parallel(lambda name: self._commit(*name), names)
        self._absent_commits({(ref, leaf) for ref, leaf in names})

    def _commit(self, ref: CheckpointRef, leaf: str) -> None:
        name = f"{READERS}/{ref.name}/{leaf}"
        if self._json(name) is None:
            self._bad_commits.add(ref)
            return
        try:
            commit = ReaderCommit.from_bytes(self._store.read(name), name)
        except (SluiceError, FileNotFoundError) as error:
            self._damaged(name, error)
            self._bad_commits.add(ref)
            return
        checkpoint = self._checkpoints.get(ref)
        wrong = (commit.ref, f"{commit.reader:05d}.json") != (ref, leaf)
        if checkpoint is not None and not wrong:
            splits = sum(b.num_rows for r, b in checkpoint.assigned if r == commit.reader)
            wrong = splits != len(commit.rows)
        if wrong:
            self._damaged(name, f"it acknowledges reader {commit.reader} of {commit.ref}")
            self._bad_commits.add(ref)

    def _absent_commits(self, there: set[tuple[CheckpointRef, str]]) -> None:
        through: set[CheckpointRef] = set()
        for ref in sorted({ref for ref, _ in there}, reverse=True):
            parent = self._checkpoints[ref].header.parent if ref in self._checkpoints else None
            # Spark begins a batch when the one before is complete, so all ancestors of a checkpoint
            # that has commits have theirs.
            while parent is not None and parent not in through:
                through.add(parent)
                known = self._checkpoints.get(parent)
                parent = known.header.parent if known is not None else None
        # The last of Spark's offsets may still run.
        through.update(self._referred[:-1])
        for ref in sorted(through & set(self._checkpoints)):
            for reader in readers_of(self._checkpoints[ref]):
                leaf = f"{reader:05d}.json"
                if (ref, leaf) not in there:
                    why = f"{ref} is complete; unless its task never ran, because of a limit"
                    self._missing(reader_object(ref, reader), why)

    def _all_abandoned(self) -> None:
        for ref in refs_in(self._store.list(ABANDONED)):
            for leaf in self._store.list(f"{ABANDONED}/{ref.name}"):
                name = f"{ABANDONED}/{ref.name}/{leaf}"
                document = self._json(name)
                if document is not None:
                    self._check(name, partial(Abandonment.model_validate, document))

    def _orders(self) -> None:
        orders = Orders(self._store)
        done = max((found.header.orders for found in self._checkpoints.values()), default=0)
        for number in range(1, max(orders.newest(), done) + 1):
            name = order_object(number)
            if self._read(name) is None:
                self._missing(name, "orders are numbered consecutively")
            else:
                self._check(name, partial(orders.read, number))

    # What is left -----------------------------------------------------------------------------

    def restorable(self) -> Iterator[tuple[CheckpointRef, bool]]:
        """Every checkpoint that is there, oldest first, and whether a query can start from it."""
        for ref in refs_in(self._store.list(CHECKPOINTS)):
            if ref not in self._checkpoints or ref in self._bad_commits:
                yield ref, False
                continue
            at = ref
            while at != NO_CHECKPOINT and at not in self._whole_bases:
                if at not in self._checkpoints:
                    break
                at = self._checkpoints[at].header.parent
            yield ref, at == NO_CHECKPOINT or at in self._whole_bases


def verified(store: StateStore, referred: Sequence[CheckpointRef] = ()) -> dict[str, Any]:
    """What `sluice verify --json` prints."""
    walk = Verification(store, referred).run()
    if any(finding.problem == "missing" for finding in walk.findings):
        # A query that runs lets old state go between two looks.
        gone = {finding.object for finding in walk.findings}
        walk = Verification(store, referred).run()
        walk.findings = [f for f in walk.findings if f.problem != "missing" or f.object in gone]
    states = list(walk.restorable())
    return {
        "state": store.location,
        "objects": walk.objects,
        "bytes": walk.bytes,
        "findings": [vars(finding) for finding in walk.findings],
        "restorable": [ref.name for ref, can in states if can],
        "lost": [ref.name for ref, can in states if not can],
    }


def verified_lines(found: dict[str, Any]) -> Iterator[str]:
    """The end of it for people."""
    looked = f"{found['objects']:,} objects, {found['bytes']:,} bytes"
    if not found["findings"]:
        yield f"{looked}: nothing is damaged, nothing is missing"
        return
    yield f"{looked}: {len(found['findings'])} damaged or missing"
    restorable, lost = found["restorable"], found["lost"]
    yield f"{len(restorable)} checkpoints can be restored, {len(lost)} cannot"
    if lost:
        yield f"cannot be restored: {', '.join(lost[-10:])}"
    if restorable:
        newest = CheckpointRef.from_name(restorable[-1])
        yield f"the newest that can: {newest}"
        if lost and lost[-1] > restorable[-1]:
            yield (
                "put the objects back from a copy, or start a new query with "
                f"startingState={found['state']}@{newest.checkpoint}"
            )


def _ref_of(leaf: str) -> CheckpointRef | None:
    found = refs_in([leaf])
    return found[0] if found and leaf == f"{found[0].name}.arrow" else None
