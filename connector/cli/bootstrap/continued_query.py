"""`--continue-query`: the new query keeps the id and the batch numbers of the old one.

A sink remembers which batches it has: Spark's file sink by their number, a Delta table by the
query's id and the number. A new query counts from 0, so such a sink skips its batches, or cannot
tell a repeated one. Here the new query gets a checkpoint of Spark's own that says: batch n of this
query is committed. The next batch is n + 1, and the source begins there with the prepared state.

Order of writing: the state, then `metadata`, `commits/<n>`, `offsets/<n>`, `offsets/<n-1>`, then
`seed.json`. Killed before the end there is no seed, and without it a query that is started there is
refused (`enumerator/coordinator/start_position.py`): the offsets name no checkpoint, so Spark asks
for the beginning. The same command can then be run again, since it writes the same content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ....checkpoint_meta.storage.urls import hadoop_path
from ....checkpoint_meta.stores.contract import StateStore
from ....checkpoint_meta.stores.open_store import open_store
from ....errors import OptionError, damaged_id
from ...query.offsets import from_offset
from ...query.spark_checkpoint import NO_OFFSET, VERSION, last_committed, numbers
from ...views.amounts import counted

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
    # Where `source/state_location.py` puts the state unless stateLocation says something else.
    root, _, _ = store.location.rpartition("/sluice/")
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
