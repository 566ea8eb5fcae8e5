"""The end of `sluice verify` for people: what can be restored, and how to continue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ...views.amounts import counted


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
