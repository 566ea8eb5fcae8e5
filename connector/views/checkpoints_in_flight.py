"""The checkpoints in flight, as durable state alone shows them.

Built from the same list as the coordinator's own (`enumerator/coordinator/in_flight.py`), so what
is held is derived by one rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...enumerator.batch_budget import UNLIMITED
from ...enumerator.coordinator.in_flight import CheckpointRecord, CheckpointsInFlight, Stage
from .state_view import CheckpointView


def checkpoints_in_flight(links: Sequence[CheckpointView]) -> list[dict[str, Any]]:
    """Each checkpoint that Spark is not known to have completed, oldest first.

    Args:
        links: a chain, the newest first.
    """
    running = [link for link in reversed(links) if not link.has_finished]
    if not running:
        return []
    flight = CheckpointsInFlight(running[0].checkpoint.parent, 0, UNLIMITED)
    records = [
        CheckpointRecord.restored(link.checkpoint, Stage.HANDED_OUT, link.commits)
        for link in running
    ]
    flight.restore(records)
    return [
        {
            "checkpoint": link.ref.checkpoint,
            "readers": [_reader(flight, record, reader) for reader in record.readers],
        }
        for link, record in zip(running, records, strict=True)
    ]


def _reader(flight: CheckpointsInFlight, record: CheckpointRecord, reader: int) -> dict[str, Any]:
    splits, held = record.split_count(reader), flight.held_under(reader, record)
    return {
        "reader": reader,
        "splits": splits,
        "committed": reader in record.committed,
        "heldSplits": 0 if held is None else splits,
        "heldEvents": 0 if held is None else len(record.events(reader)),
        "heldUnder": None if held is None else held.ref.checkpoint,
    }
