"""The end of `sluice verify` for people: what can be restored, and how to continue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ...query.spark_checkpoint import damaged_objects, lacks_metadata, offsets_referred
from ...views.amounts import counted
from ..answer import Answer, Rows
from ..arguments import ViewArguments
from ..output import Exit
from ..state_argument import parsed_storage_options
from ..verification import verified


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
