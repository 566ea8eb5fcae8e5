"""What Spark's own checkpoint says of a state below it: which checkpoints a restart would ask for.

Not here: writing to it, which only Spark does.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from ...checkpoint_meta.reference import NO_CHECKPOINT, CheckpointRef
from ...checkpoint_meta.state_store import StateStore
from ...checkpoint_meta.store import open_store
from ...checkpoint_meta.urls import absolute
from ...errors import SluiceError
from ..offsets import OFFSET_VERSION, from_offset


def offsets_referred(
    place: str, store: StateStore, storage_options: Mapping[str, Any]
) -> list[CheckpointRef]:
    """Checkpoints of the newest two offsets, oldest first; none where Spark's log is not found.

    None either where the query has several sluice sources: an offset does not say whose it is.
    """
    root = absolute(place).rstrip("/")
    if not store.location.startswith(root) or store.location.rstrip("/") == root:
        return []
    log = open_store(root, storage_options)
    batches = sorted(int(leaf) for leaf in log.list("offsets") if leaf.isdecimal())[-2:]
    found = [list(_offsets(log.read(f"offsets/{batch}"))) for batch in batches]
    if any(len(offsets) != 1 for offsets in found):
        return []
    return [ref for (ref,) in found if ref != NO_CHECKPOINT]


def newest_in_spark(store: StateStore, storage_options: Mapping[str, Any]) -> CheckpointRef | None:
    """The checkpoint that Spark goes on from; None where its log is not above the state.

    What was cut after it, ahead of Spark, is on no chain to come.
    """
    root, _, _ = store.location.rpartition("/sluice/")
    referred = offsets_referred(root, store, storage_options) if root else []
    return referred[-1] if referred else None


def _offsets(data: bytes) -> Iterator[CheckpointRef]:
    for line in data.decode(errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            document = json.loads(line)
            if isinstance(document, dict) and document.get("version") == OFFSET_VERSION:
                with contextlib.suppress(SluiceError):
                    yield from_offset(document)
