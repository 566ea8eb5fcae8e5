"""The end of `sluice verify` for people: what can be restored, and how to continue."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from xxhash import xxh3_128_hexdigest

from ....checkpoint_meta.checkpoint_snapshot import CheckpointSnapshot, committed_on, described_by
from ....checkpoint_meta.documents import layout
from ....checkpoint_meta.documents.checkpoint import Checkpoint
from ....checkpoint_meta.documents.checkpoint_ref import (
    NO_CHECKPOINT,
    CheckpointIdentity,
    CheckpointRef,
    identities_in,
    refs_in,
)
from ....checkpoint_meta.documents.checksummed_json import Document, without_checksum
from ....checkpoint_meta.documents.cleanup_marks import CleanupMark
from ....checkpoint_meta.documents.epochs import FORMAT_DOCUMENT, KEPT, newest_epoch, purpose_of
from ....checkpoint_meta.documents.orders import Orders
from ....checkpoint_meta.documents.query_records import Seed, StoredSchema, find_seed
from ....checkpoint_meta.documents.reader_assignment import part_length, readers_of
from ....checkpoint_meta.documents.reader_commit import Abandonment, ReaderCommit, rereads_in
from ....checkpoint_meta.stores.contract import StateStore, in_parallel
from ....enumerator.coordinator.start_position import COMPACTION
from ....errors import SluiceError
from ...query.spark_checkpoint import (
    committed_in_log,
    damaged_objects,
    lacks_metadata,
    offsets_referred,
)
from ...views.amounts import counted
from ..answer import Answer, Exit, Rows
from ..arguments import ViewArguments, parsed_storage_options

DocumentT = TypeVar("DocumentT", bound=Document)


@dataclass(frozen=True)
class Damage:
    """Something that is not as it was written."""

    object: str
    problem: str
    """damaged, or missing."""

    what: str


class Verification:
    """One walk over one state directory; nothing is written."""

    def __init__(self, store: StateStore, referred: Sequence[CheckpointRef] = ()) -> None:
        """`referred` are checkpoints that Spark's offset log names and would start from."""
        self._store = store
        self.findings: list[Damage] = []
        self.objects = 0
        self.bytes = 0
        self._referred = referred
        self._checkpoints: dict[CheckpointRef, Checkpoint] = {}
        self._whole_bases: set[CheckpointRef] = set()
        self._bad_commits: set[CheckpointRef] = set()
        self._commits: dict[CheckpointRef, list[ReaderCommit]] = {}
        self._closed: dict[CheckpointRef, list[Abandonment]] = {}
        self._reread = {ref: orders[-1] for ref, orders in rereads_in(store).items()}

    def run(self) -> Verification:
        """Check every object of the state, and collect what is wrong."""
        self._format()
        # Before the rest, which is compared with the checkpoints that are whole.
        self._all_checkpoints()
        self._all_bases()
        self._epochs()
        self._links()
        self._all_abandoned()
        self._all_commits()
        self._cleanup_marks()
        self._schemas()
        self._seed()
        self._orders()
        return self

    def _refs(self, directory: str) -> list[CheckpointRef]:
        return refs_in(self._store.list(directory))

    def _is_reported(self, name: str) -> bool:
        return any(finding.object == name for finding in self.findings)

    def _damaged(self, name: str, what: object) -> None:
        self.findings.append(Damage(name, "damaged", str(what)))

    def _missing(self, name: str, what: str) -> None:
        if not self._is_reported(name):
            self.findings.append(Damage(name, "missing", what))

    def _read(self, name: str) -> bytes | None:
        try:
            data = self._store.read(name)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._damaged(name, f"it cannot be read: {error}")
            return None
        self.objects += 1
        self.bytes += len(data)
        return data

    def _json(self, name: str) -> dict[str, Any] | None:
        """A document with a checksum; None, and a finding, where it has none or a wrong one."""
        data = self._read(name)
        if data is None:
            return None
        try:
            return without_checksum(data)
        except ValueError as error:
            self._damaged(name, error)
            return None

    def _document(self, name: str, kind: type[DocumentT]) -> DocumentT | None:
        """A document, as a restart reads it; None, and a finding, where it cannot be read."""
        data = self._read(name)
        try:
            return None if data is None else kind.from_bytes(data, name)
        except SluiceError as error:
            self._damaged(name, error.found)
            return None

    def _check(self, name: str, look: Callable[[], object]) -> None:
        try:
            look()
        except (SluiceError, ValueError, TypeError) as error:
            if not self._is_reported(name):
                self._damaged(name, error)

    # Kinds of objects -----------------------------------------------------------------------

    def _format(self) -> None:
        data = self._read(layout.FORMAT)
        if data is None:
            self._missing(layout.FORMAT, "the directory does not record its version")
        elif data != FORMAT_DOCUMENT:
            self._damaged(layout.FORMAT, f"{data[:40]!r}, which no release writes")

    def _all_checkpoints(self) -> None:
        for document in self._documents(layout.CHECKPOINTS, "delta"):
            self._checkpoints[document.ref] = document
            self._attachments(document)

    def _all_bases(self) -> None:
        for found in self._documents(layout.BASES, "base"):
            if self._attachments(found):
                self._whole_bases.add(found.ref)

    def _documents(self, directory: str, kind: str) -> Iterator[Checkpoint]:
        """Yield the whole documents of a directory, and what their names say."""
        for leaf in self._store.list(directory):
            name, refs = f"{directory}/{leaf}", refs_in([leaf])
            data = self._read(name)
            if data is None or not refs or leaf != f"{refs[0].name}.arrow":
                continue
            try:
                checkpoint = Checkpoint.from_bytes(data, name)
            except SluiceError as error:
                self._damaged(name, f"{error.found}, expected {error.expected}")
                continue
            if checkpoint.ref != refs[0] or checkpoint.header.kind != kind:
                self._damaged(name, f"it is the {checkpoint.header.kind} of {checkpoint.ref}")
            else:
                yield checkpoint

    def _attachments(self, document: Checkpoint) -> bool:
        """True if a restore can use what the document refers to; a run's names it does not need."""
        whole = True
        for attachment in document.header.attachments:
            name = f"{layout.INDEX}/{attachment.name}"
            is_reported = self._is_reported(name)
            data = None if is_reported else self._read(name)
            sound = data is not None and xxh3_128_hexdigest(data) == attachment.checksum
            if data is None and not is_reported:
                self._missing(name, f"{document.ref} refers to it")
            elif not sound and not is_reported:
                self._damaged(name, f"its checksum differs from the one in {document.ref}")
            # The names of a run are not loaded at a restore.
            whole = whole and (sound or name.endswith("files.arrows"))
        return whole

    def _epochs(self) -> None:
        claimed = set(layout.numbers_in(self._store.list(layout.EPOCHS)))
        wrote = {ref.epoch for ref in self._refs(layout.CHECKPOINTS) + self._refs(layout.BASES)}
        stems = [leaf.partition("-")[0] for leaf in self._store.list(layout.INDEX)]
        wrote |= {int(stem) for stem in stems if stem.isdecimal()}
        newest = max(claimed | wrote, default=0)
        # Claims that are older have been deleted.
        for epoch in range(max(1, newest - KEPT + 1), newest + 1):
            if epoch not in claimed:
                why = f"epochs are claimed consecutively up to {newest}"
                self._missing(layout.numbered(layout.EPOCHS, epoch), why)
        for epoch in sorted(claimed):
            name = layout.numbered(layout.EPOCHS, epoch)
            claim = self._json(name)
            if claim is not None and claim.get("epoch") != epoch:
                self._damaged(name, f"it claims epoch {claim.get('epoch')}")
        for folder in (layout.HEARTBEATS, layout.RUNS, layout.ENDS, layout.LISTINGS):
            for leaf in self._store.list(folder):
                self._json(f"{folder}/{leaf}")

    # How they belong together ---------------------------------------------------------------

    def _links(self) -> None:
        listed = set(self._refs(layout.CHECKPOINTS))
        oldest = min((ref.checkpoint for ref in listed), default=0)
        bases = set(self._refs(layout.BASES))
        oldest_of_chain: dict[str, CheckpointRef] = {}
        for ref, checkpoint in sorted(self._checkpoints.items()):
            parent = checkpoint.header.parent
            first = oldest_of_chain.setdefault(checkpoint.header.lineage, ref)
            # Retention begins at the oldest one, so nothing is gone below it and there above.
            is_pruned = parent.checkpoint < first.checkpoint and bool({parent, ref} & bases)
            if parent != NO_CHECKPOINT and parent not in listed and not is_pruned:
                self._missing(layout.checkpoint_object(parent), f"the parent of {ref}")
            parent_checkpoint, due = self._checkpoints.get(parent), checkpoint.header.cut_after
            if parent_checkpoint is not None and parent_checkpoint.identity != due:
                self._damaged(
                    layout.checkpoint_object(parent), f"not the checkpoint that {ref} was cut after"
                )
        folders = [*self._store.list(layout.READERS), *self._store.list(layout.ABANDONED)]
        read = {folder.ref for folder in identities_in(folders)}
        for ref in sorted(read - listed):
            # Retention lets the checkpoint go first.
            why = "readers have committed it"
            if ref.checkpoint < oldest:
                why += "; unless a query was killed while it deleted old state"
            self._missing(layout.checkpoint_object(ref), why)
        for ref in sorted(set(self._referred) - listed):
            self._missing(layout.checkpoint_object(ref), "Spark's offset log refers to it")

    def _all_commits(self) -> None:
        names = [
            (folder, leaf)
            for folder in identities_in(self._store.list(layout.READERS))
            for leaf in self._store.list(layout.reader_directory(folder))
            # Those from before their checkpoint was given back do not count.
            if layout.order_of(leaf) == self._reread.get(folder.ref, 0)
        ]
        # There may be thousands, and on a bucket the wait for each is longer than the check.
        in_parallel(lambda name: self._commit(*name), names)
        self._lengths_of_commits()
        self._absent_commits({f"{layout.reader_directory(of)}/{leaf}" for of, leaf in names})

    def _commit(self, folder: CheckpointIdentity, leaf: str) -> None:
        name, ref = f"{layout.reader_directory(folder)}/{leaf}", folder.ref
        commit = self._document(name, ReaderCommit)
        if commit is None:
            self._bad_commits.add(ref)
            return
        checkpoint = self._checkpoints.get(ref)
        if name != layout.reader_object(commit.identity, commit.reader, self._reread.get(ref, 0)):
            self._wrong(name, ref, commit)
        elif checkpoint and commit.identity == checkpoint.identity:
            # Else it is of a query that was deleted, or overtaken by a restore: it does not count.
            self._commits.setdefault(ref, []).append(commit)

    def _wrong(self, name: str, ref: CheckpointRef, commit: ReaderCommit) -> None:
        self._damaged(name, f"it acknowledges reader {commit.reader} of {commit.ref}")
        self._bad_commits.add(ref)

    def _lengths_of_commits(self) -> None:
        """Compare what commits acknowledge with the parts, which other commits decide."""
        read = {(one.identity, one.reader): one for of in self._commits.values() for one in of}
        for (identity, reader), commit in read.items():
            ref = identity.ref
            checkpoint = self._checkpoints[ref]
            length = part_length(checkpoint, reader, lambda *part: read.get(part))
            if length is not None and length != len(commit.rows):
                # As if it were not there.
                self._commits[ref].remove(commit)
                self._wrong(layout.reader_object(identity, reader), ref, commit)

    def _absent_commits(self, there: Collection[str]) -> None:
        complete = [link for link in self.snapshots() if link.is_complete]
        # The last of Spark's offsets may still run.
        referred = [self._checkpoints.get(ref) for ref in self._referred[:-1]]
        for checkpoint in [*(link.checkpoint for link in complete), *filter(None, referred)]:
            ref = checkpoint.ref
            for reader in readers_of(checkpoint):
                order = self._reread.get(ref, 0)
                name = layout.reader_object(checkpoint.identity, reader, order)
                if name not in there:
                    why = f"{ref} is complete; unless its task never ran, because of a limit"
                    self._missing(name, why)

    def snapshots(self) -> Iterator[CheckpointSnapshot]:
        """Yield the snapshots of every chain, as far as its checkpoints are whole."""
        parents = {checkpoint.header.parent for checkpoint in self._checkpoints.values()}
        for newest in sorted(self._checkpoints.keys() - parents):
            chain, ref = [self._checkpoints[newest]], newest
            while (ref := self._checkpoints[ref].header.parent) in self._checkpoints:
                chain.append(self._checkpoints[ref])
            readers = [(self._commits.get(c.ref, ()), self._closed.get(c.ref, ())) for c in chain]
            yield from described_by(chain, readers, committed=self._committed(chain))

    def _committed(self, chain: Sequence[Checkpoint]) -> int | None:
        newest = committed_in_log(self._store, chain[0].header.lineage)
        refs = [checkpoint.ref for checkpoint in chain]
        return committed_on(lambda ref: self._checkpoints[ref].header.parent, refs, newest)

    def _all_abandoned(self) -> None:
        for folder in identities_in(self._store.list(layout.ABANDONED)):
            directory = layout.abandoned_directory(folder)
            for leaf in self._store.list(directory):
                record = self._document(f"{directory}/{leaf}", Abandonment)
                checkpoint = self._checkpoints.get(folder.ref)
                if record and checkpoint and checkpoint.identity == record.identity:
                    self._closed.setdefault(folder.ref, []).append(record)

    def _orders(self) -> None:
        orders = Orders(self._store)
        # An order that a checkpoint contains must be there, even if no listing shows it.
        done = max((one.header.orders for one in self._checkpoints.values()), default=0)
        for number in range(1, max(orders.newest(), done) + 1):
            name = layout.numbered(layout.ORDERS, number)
            if self._read(name) is None:
                self._missing(name, "orders are numbered consecutively")
            else:
                self._check(name, partial(orders.read, number))

    def _cleanup_marks(self) -> None:
        for leaf in self._store.list(layout.CLEANED):
            self._document(f"{layout.CLEANED}/{leaf}", CleanupMark)

    def _schemas(self) -> None:
        versions = layout.numbers_in(self._store.list(layout.SCHEMAS))
        for version in range(max(versions, default=-1) + 1):
            name = layout.numbered(layout.SCHEMAS, version)
            if version not in versions:
                self._missing(name, f"versions are stored consecutively up to {max(versions)}")
            else:
                self._document(name, StoredSchema)

    def _seed(self) -> None:
        if self._read(layout.SEED) is not None:
            self._check(layout.SEED, lambda: self._seeded(find_seed(self._store)))
            return
        # It is not needed any more once a query has begun.
        purpose = purpose_of(self._store, newest_epoch(self._store))
        if purpose not in ("", COMPACTION):
            self._missing(layout.SEED, f"the state was prepared by `sluice {purpose}`")

    def _seeded(self, seed: Seed | None) -> None:
        if seed is not None and not self._store.list(layout.READERS):
            name = layout.checkpoint_object(seed.ref)
            if f"{seed.ref.name}.arrow" not in self._store.list(layout.CHECKPOINTS):
                self._missing(name, "a query should start after it")

    # What is left -----------------------------------------------------------------------------

    def restorable(self) -> Iterator[tuple[CheckpointRef, bool]]:
        """Every checkpoint that is there, by id, and whether a query can start from it."""
        for ref in self._refs(layout.CHECKPOINTS):
            if ref not in self._checkpoints or ref in self._bad_commits:
                yield ref, False
                continue
            at = ref
            # A restore reads deltas back to the nearest base; without one, to the very first
            # checkpoint.
            while at in self._checkpoints and at not in self._whole_bases:
                at = self._checkpoints[at].header.parent
            yield ref, at == NO_CHECKPOINT or at in self._whole_bases


def verified(store: StateStore, referred: Sequence[CheckpointRef] = ()) -> dict[str, Any]:
    """Return what `sluice verify --json` prints."""
    walk = Verification(store, referred).run()
    if any(finding.problem == "missing" for finding in walk.findings):
        # A query that runs lets old state go between two looks.
        gone = {finding.object for finding in walk.findings}
        walk = Verification(store, referred).run()
        walk.findings = [f for f in walk.findings if f.problem != "missing" or f.object in gone]
    states = sorted(walk.restorable(), key=lambda state: state[0].by_epoch)
    complete = {link.ref for link in walk.snapshots() if link.is_complete}
    return {
        "state": store.location,
        "objects": walk.objects,
        "bytes": walk.bytes,
        "findings": [vars(finding) for finding in walk.findings],
        "restorable": [ref.name for ref, can in states if can],
        "lost": [ref.name for ref, can in states if not can],
        "complete": [ref.name for ref, can in states if can and ref in complete],
    }


def verified_lines(result: dict[str, Any]) -> Iterator[str]:
    """Print the result of `verified` for people."""
    looked = f"{counted(result['objects'], 'object')}, {counted(result['bytes'], 'byte')}"
    if not result["findings"]:
        yield f"{looked}: nothing is damaged, nothing is missing"
        return
    yield f"{looked}: {len(result['findings'])} damaged or missing"
    restorable, lost = result["restorable"], result["lost"]
    yield f"{counted(len(restorable), 'checkpoint')} can be restored, {len(lost):,} cannot"
    if lost:
        yield f"cannot be restored: {', '.join(lost[-10:])}"
    if restorable:
        newest = CheckpointRef.from_name(restorable[-1])
        yield f"the newest that can: {newest}"
        if lost and CheckpointRef.from_name(lost[-1]).by_epoch > newest.by_epoch:
            yield _advice(result)


def _advice(result: dict[str, Any]) -> str:
    back = "put the objects back from a copy"
    if not result["complete"]:
        return f"{back}; the sink is not known to have any checkpoint that can be restored"
    # What readers have finished and the sink does not have would be left out after a later one.
    complete = CheckpointRef.from_name(result["complete"][-1])
    return (
        f"{back}, or start a new query with startingState={result['state']}@{complete.checkpoint}, "
        "the newest that the sink is known to have; it delivers later rows again"
    )


def verify(arguments: ViewArguments) -> Answer:
    """Check all references and checksums of a state.

    Says what is damaged, and what can still be restored.
    """
    store, storage = arguments.opened(), parsed_storage_options(arguments.storage_options)
    result = verified(store, offsets_referred(arguments.state, store, storage))
    if lacks_metadata(arguments.state, store, storage):
        what = "Spark's file of the query's id: put it back from a copy, or Spark does not start"
        result["findings"].append({"object": "metadata", "problem": "missing", "what": what})
    for name, why in damaged_objects(arguments.state, store, storage):
        result["findings"].append({"object": name, "problem": "damaged", "what": why})
    # A scheduled check goes by the exit code.
    code = Exit.FOUND if result["findings"] else Exit.FINE
    findings = Rows(result["findings"], ("problem", "object", "what"))
    return Answer(result, [*([findings] if findings.rows else []), *verified_lines(result)], code)
