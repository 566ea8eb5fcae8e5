"""Prepares a directory for a new query: is it unused, and the order in which a seed is written.

Everything that belongs to the state comes first, under an epoch that is claimed for the purpose;
then Spark's own checkpoint, where the query of another one is continued; then `seed.json`, once.
Killed before that, nothing that counts has been written: the same command may be run again, and a
query that is started there is refused.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....checkpoint_meta.documents.attachments import Attachments
from ....checkpoint_meta.documents.bootstrap_record import Seed, find_seed, publish_seed
from ....checkpoint_meta.documents.epochs import purpose_of
from ....checkpoint_meta.documents.layout import EPOCHS, READERS
from ....checkpoint_meta.storage.urls import hadoop_path, join
from ....checkpoint_meta.stores.contract import StateStore
from ....checkpoint_meta.stores.open_store import open_store
from ....enumerator.coordinator.start_position import COMPACTION
from ....enumerator.offline.offline_state import OfflineClaim, OfflineState, publish_bootstrap
from ....errors import OptionError
from ...query.owner import who_and_where
from ..offline_edit import Plan
from .continued_query import SPARKS_OWN, ContinuedQuery

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
