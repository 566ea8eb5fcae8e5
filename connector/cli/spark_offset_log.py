"""What Spark's own checkpoint says of a state below it: which checkpoints a restart would ask for.

Not here: writing to it, which only Spark does.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from ...checkpoint_meta.documents.checkpoint_ref import (
    NO_IDENTITY,
    CheckpointIdentity,
    CheckpointRef,
)
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.storage.urls import absolute
from ...checkpoint_meta.stores.contract import StateStore
from ...checkpoint_meta.stores.open_store import open_store
from ...errors import OptionError, SluiceError
from ..spark.offsets import OFFSET_VERSION, from_offset
from .bootstrap.continued_query import ContinuedQuery, continued_query
from .spark_checkpoint import numbers


def offsets_referred(
    place: str, store: StateStore, storage_options: Mapping[str, Any]
) -> list[CheckpointRef]:
    """Checkpoints of the newest two offsets, oldest first; none where Spark's log is not found.

    Of a query with several sluice sources those whose lineage is that of the state; where no
    checkpoint is left that says a lineage, nobody knows which those are.
    """
    root = absolute(place).rstrip("/")
    if not store.location.startswith(root) or store.location.rstrip("/") == root:
        return []
    log = open_store(root, storage_options)
    batches = numbers(log, "offsets")[-2:]
    named = [list(_offsets(log.read(f"offsets/{batch}"))) for batch in batches]
    lineage = _lineage(CheckpointHistory(store))
    if lineage is None and any(len(offsets) != 1 for offsets in named):
        return []
    return [
        each.ref
        for offsets in named
        for each in offsets
        if each != NO_IDENTITY and lineage in (None, each.lineage)
    ]


def _lineage(history: CheckpointHistory) -> str | None:
    for ref in reversed(history.checkpoints()):
        with contextlib.suppress(SluiceError, FileNotFoundError):
            return history.header(ref).lineage
    return None


def continued_at(store: StateStore, storage_options: Mapping[str, Any]) -> ContinuedQuery:
    """The query whose state this is, with Spark's checkpoint above it, to be continued.

    Raises:
        OptionError: Spark's checkpoint is not above the state, or the query cannot be continued.
    """
    # Where `source/state_location.py` puts the state unless stateLocation says something else.
    root, _, _ = store.location.rpartition("/sluice/")
    if not root:
        raise OptionError(
            "--continue-query: Spark's checkpoint is not found",
            store.location,
            "a state that is kept elsewhere (stateLocation)",
            "a state directory below the query's checkpointLocation",
            "Leave --continue-query out, and write into another table.",
        )
    return continued_query(root, storage_options)


def checkpoint_of(continued: ContinuedQuery) -> CheckpointRef:
    """What a query with this source had read with the batch that it committed last.

    Raises:
        StateError: it is not a query with this source.
    """
    try:
        offset = json.loads(continued.offset)
    except ValueError:
        offset = continued.offset
    return from_offset(offset).ref


def check_same(ref: CheckpointRef, continued: ContinuedQuery) -> None:
    """Raise OptionError unless `ref` is the last checkpoint of the query that is continued."""
    found = checkpoint_of(continued)
    if ref != found:
        raise OptionError(
            "--continue-query: only the end of a query can be continued",
            continued.old.location,
            f"checkpoint {ref.checkpoint} of epoch {ref.epoch}",
            f"checkpoint {found.checkpoint} of epoch {found.epoch}, of batch {continued.batch}",
            "Leave --at out; or leave --continue-query out, and write into another table: the "
            "old one has the rows of later checkpoints.",
        )


def newest_in_spark(store: StateStore, storage_options: Mapping[str, Any]) -> CheckpointRef | None:
    """The checkpoint that Spark resumes from; None where its log is not above the state.

    What was cut after it, ahead of Spark, is on no chain to come.
    """
    root, _, _ = store.location.rpartition("/sluice/")
    referred = offsets_referred(root, store, storage_options) if root else []
    return referred[-1] if referred else None


def under_way_in_spark(
    store: StateStore, storage_options: Mapping[str, Any]
) -> CheckpointRef | None:
    """The checkpoint of the batch that Spark has begun and not ended.

    None where there is no such batch, or Spark's log is not above the state.
    """
    root, _, _ = store.location.rpartition("/sluice/")
    if not root:
        return None
    log = open_store(root, storage_options)
    if numbers(log, "commits")[-1:] == numbers(log, "offsets")[-1:]:
        return None
    return newest_in_spark(store, storage_options)


def _offsets(data: bytes) -> Iterator[CheckpointIdentity]:
    # Other sources of the query have lines in any format of their own.
    for line in data.decode(errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            document = json.loads(line)
            if isinstance(document, dict) and document.get("version") == OFFSET_VERSION:
                with contextlib.suppress(SluiceError):
                    yield from_offset(document)
