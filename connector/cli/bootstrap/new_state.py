"""Prepares a directory for a new query: is it unused, and the order in which a seed is written.

Everything that belongs to the state comes first, under an epoch that is claimed for the purpose;
then Spark's own checkpoint, where the query of another one is continued; then `seed.json`, once.
Killed before that, nothing that counts has been written: the same command may be run again, and a
query that is started there is refused.

`--continue-query`: the new query keeps the id and the batch numbers of the old one. A sink
remembers which batches it has: Spark's file sink by their number, a Delta table by the query's id
and the number. A new query counts from 0, so such a sink skips its batches, or cannot tell a
repeated one. Here the new query gets a checkpoint of Spark's own that says: batch n of this query
is committed. The next batch is n + 1, and the source begins there with the prepared state. It is
written in this order: `metadata`, `commits/<n>`, `offsets/<n>`, `offsets/<n-1>`. Without a seed
these offsets name no checkpoint, so Spark asks for the beginning, which is refused
(`enumerator/coordinator/start_position.py`).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....checkpoint_meta.documents.attachments import Attachments
from ....checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ....checkpoint_meta.documents.epochs import purpose_of
from ....checkpoint_meta.documents.layout import EPOCHS, READERS
from ....checkpoint_meta.documents.query_records import Seed, find_seed, publish_seed
from ....checkpoint_meta.storage.urls import hadoop_path, join
from ....checkpoint_meta.stores.contract import StateStore
from ....checkpoint_meta.stores.open_store import open_store
from ....enumerator.coordinator.start_position import COMPACTION
from ....enumerator.offline.offline_state import OfflineClaim, OfflineState, publish_bootstrap
from ....errors import OptionError, damaged_id
from ...query.owner import who_and_where
from ...query.spark_checkpoint import (
    NO_OFFSET,
    VERSION,
    checkpoint_above,
    from_offset,
    last_committed,
    numbers,
)
from ...views.amounts import counted
from ..offline_edit import Plan

SPARKS_OWN: Final = frozenset({"metadata", "commits", "offsets"})
"""What is written next to the state."""

_WITHOUT: Final = "Leave --continue-query out, and write into another table."


@dataclass(frozen=True)
class ContinuedQuery:
    """The old query, up to the batch that it has committed last."""

    old: StateStore
    query_id: str
    batch: int
    offset: str
    """What the source had read by then, in the old source's words."""

    objects: Sequence[tuple[str, bytes]]
    """Names and bytes of the new checkpoint's objects, in the order of writing."""

    @property
    def report(self) -> dict[str, Any]:
        """For people and for the record."""
        return {"query": self.query_id, "batch": self.batch}

    def checkpoint(self) -> CheckpointRef:
        """Return what a query with this source had read with the batch it committed last."""
        try:
            offset = json.loads(self.offset)
        except ValueError:
            offset = self.offset
        return from_offset(offset).ref

    def check_ends_at(self, ref: CheckpointRef) -> None:
        """Raise OptionError unless `ref` is the last checkpoint of the query."""
        last = self.checkpoint()
        if ref != last:
            raise OptionError(
                "--continue-query: only the end of a query can be continued",
                self.old.location,
                f"checkpoint {ref.checkpoint} of epoch {ref.epoch}",
                f"checkpoint {last.checkpoint} of epoch {last.epoch}, of batch {self.batch}",
                "Leave --at out; or leave --continue-query out, and write into another table: the "
                "old one has the rows of later checkpoints.",
            )

    def write(self, new: StateStore) -> None:
        """Publish the new checkpoint.

        Raises:
            FileExistsError: something else is there.
            OptionError: the old query has gone on meanwhile.
        """
        for name, data in self.objects:
            new.publish(name, data)
        # Last, and before the seed makes it count: the old query may have run while this was
        # written.
        if continued_query(self.old.location, {}, self.old) != self:
            raise OptionError(
                "the old query has continued in the meantime",
                self.old.location,
                f"a batch after {self.batch}",
                "a stopped query",
                "Stop it, delete what is at the new checkpointLocation, and run this again.",
            )


def continued_query(
    place: str, options: Mapping[str, Any], store: StateStore | None = None
) -> ContinuedQuery:
    """The query with the checkpoint at `place`, which must have ended with a committed batch.

    Args:
        place: its `checkpointLocation`.
        options: of the storage.
        store: of the place, if it is open already.
    """
    store = store or open_store(hadoop_path(place), options, to_read=True)
    metadata, query_id = _identity(store)
    batch = last_committed(store)
    begun = numbers(store, "offsets")
    # What was begun can only be run again by the old query, whose source knows what its offset
    # means.
    if batch is None or begun[-1] != batch.number:
        raise OptionError(
            "--continue-query: the old query has not ended with a committed batch",
            store.location,
            f"batch {begun[-1] if begun else 'none'} in offsets/, "
            f"{batch.number if batch else 'none'} in commits/",
            "the same batch in both: a sink may have the rows of a batch that is not committed",
            "Start the old query again with trigger(availableNow=True), wait until it "
            "ends, and run this again.",
        )
    # Every source needs a new offset, and a state is prepared for one of them.
    if len(batch.offsets) != 1:
        raise OptionError(
            "--continue-query: the old query has several sources",
            store.location,
            f"{counted(len(batch.offsets), 'offset')} in offsets/{batch.number}",
            "one",
            _WITHOUT,
        )
    # Its state is stored by batch in this directory, and Spark does not start without that of batch
    # n.
    if store.list("state"):
        raise OptionError(
            "--continue-query: the old query is stateful, and only Spark can restore its state",
            store.location,
            "aggregations, joins or duplicates in state/",
            "a stateless query",
            _WITHOUT,
        )
    # The header has the watermark and the settings that Spark takes over when it restarts a query.
    nothing_yet = f"{VERSION}\n{batch.header}\n{NO_OFFSET}".encode()
    before = [(f"offsets/{batch.number - 1}", nothing_yet)] if batch.number else []
    objects = [
        ("metadata", metadata),
        (f"commits/{batch.number}", store.read(f"commits/{batch.number}")),
        (f"offsets/{batch.number}", nothing_yet),
        *before,  # Spark starts only where it finds the offsets of the last two batches.
    ]
    return ContinuedQuery(store, query_id, batch.number, batch.offsets[0], objects)


def continued_at(store: StateStore, storage_options: Mapping[str, Any]) -> ContinuedQuery:
    """The query whose state this is, with Spark's checkpoint above it, to be continued."""
    root = checkpoint_above(store)
    if not root:
        raise OptionError(
            "--continue-query: Spark's checkpoint is not found",
            store.location,
            "a state that is kept elsewhere (stateLocation)",
            "a state directory below the query's checkpointLocation",
            _WITHOUT,
        )
    return continued_query(root, storage_options)


def _identity(store: StateStore) -> tuple[bytes, str]:
    try:
        metadata = store.read("metadata")
        return metadata, str(json.loads(metadata)["id"])
    except FileNotFoundError as error:
        raise damaged_id(f"{store.location}/metadata", "no such object") from error
    except (ValueError, LookupError, TypeError) as error:
        raise damaged_id(f"{store.location}/metadata", str(error)) from error


_OURS: Final = "sluice"


@dataclass(frozen=True)
class Target:
    """A place for the checkpoint of a query that has never run."""

    location: str
    """What the query is given as `checkpointLocation`."""

    store: StateStore

    spark: StateStore
    """`location` itself, where Spark keeps its own."""

    continues: ContinuedQuery | None = None
    """The query whose id and batch numbers the new one keeps; None for a new query."""

    def plan(
        self,
        purpose: str,
        report: Mapping[str, Any],
        origin: Mapping[str, Any],
        make: Callable[[Attachments], OfflineState[Any, Any]],
        notes: Sequence[str] = (),
    ) -> Plan:
        """Plan the state that `make` makes."""
        return Plan(
            {**report, "new": self.location, **self.continued},
            lambda: write_seed(self, purpose, origin, report["counts"], make),
            notes,
            f"written: start the new query with checkpointLocation={self.location}",
        )

    @property
    def continued(self) -> dict[str, Any]:
        """The query that it continues, for a report; empty for a new query."""
        return {"continues": self.continues.report} if self.continues else {}

    def check_unused(self) -> None:
        """Raise OptionError if anything is there that this command has not written; it is named."""
        claims = self.store.list(EPOCHS)
        # What a command that was killed has left may be written again: it is the same.
        ours = {_OURS} | (SPARKS_OWN if self.continues and claims else set())
        there = [leaf for leaf in self.spark.list("") if leaf not in ours]
        if there:
            raise in_use(self.location, ", ".join(sorted(there)[:5]))
        seed = find_seed(self.store)
        if seed is not None:
            found = f"a state that `sluice {seed.purpose}` has prepared"
            raise in_use(self.store.location, found)
        # A reader commit is there only if a query has run.
        if self.store.list(READERS) or any(not _is_ours(self.store, leaf) for leaf in claims):
            raise in_use(self.store.location, "the state of a query")


def target_at(
    place: str,
    source_name: str,
    options: Mapping[str, Any],
    continues: ContinuedQuery | None = None,
) -> Target:
    """The place of a new query."""
    root = hadoop_path(place)
    spark = open_store(root, options)
    store = open_store(join(root, _OURS, source_name), options)
    target = Target(root, store, spark, continues)
    target.check_unused()
    return target


def _is_ours(store: StateStore, leaf: str) -> bool:
    stem = leaf.removesuffix(".json")
    return not stem.isdecimal() or purpose_of(store, int(stem)) not in ("", COMPACTION)


def in_use(where: str, found: str) -> OptionError:
    """The error where a new query should get a directory that has something else in it."""
    return OptionError(
        "the target directory is not empty",
        where,
        found,
        "a directory that is empty or does not exist",
        "Give the new query its own checkpointLocation.",
    )


def write_seed(
    target: Target,
    purpose: str,
    origin: Mapping[str, Any],
    counts: Mapping[str, int],
    make: Callable[[Attachments], OfflineState[Any, Any]],
) -> dict[str, Any]:
    """Write what `make` makes, then the seed that names it, and return that for the report.

    Args:
        target: where.
        purpose: the name of the command.
        origin: where the state comes from, for the record.
        counts: for the record.
        make: makes the state; what it publishes goes into the attachments it is given.
    """
    store = target.store
    claim = OfflineClaim.take(store, purpose)
    # A query that began between the first look and the claim has a claim of its own by now; one
    # that begins from here on sees ours (`enumerator/coordinator/start_position.py`).
    target.check_unused()
    now = int(time.time() * 1_000_000)
    # Durable from here on, and yet nothing: without the seed no query starts after it.
    identity = publish_bootstrap(make(claim.attachments), claim, now)
    claim.check()
    if target.continues is not None:
        try:
            target.continues.write(target.spark)
        except FileExistsError as error:
            found = f"the checkpoint of another query: {error}"
            raise in_use(target.location, found) from None
    user, host = who_and_where()
    seed = Seed(
        purpose=purpose,
        checkpoint=identity.ref.checkpoint,
        epoch=identity.ref.epoch,
        lineage=identity.lineage,
        checkpoint_checksum=identity.checksum,
        origin={**origin, **target.continued},
        counts=dict(counts),
        written=now,
        host=host,
        pid=os.getpid(),
        user=user,
    )
    claim.check()
    try:
        publish_seed(store, seed)
    except FileExistsError:
        raise in_use(store.location, "a state that another process has just prepared") from None
    # A query that began in between has not seen it, and does not follow it.
    claim.check()
    return {"seed": seed.model_dump(mode="json")}
