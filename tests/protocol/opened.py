"""A look inside a coordinator and its checkpoints, for tests."""

from __future__ import annotations

from typing import Any

from pyspark_sluice.checkpoint_meta.documents.checkpoint import CheckpointHeader, CustomEvent
from pyspark_sluice.enumerator.coordinator.coordinator import Coordinator
from pyspark_sluice.enumerator.coordinator.running_coordinator import RunningCoordinator


def opened(coordinator: Coordinator[Any, Any]) -> RunningCoordinator[Any, Any]:
    """What Spark's first call has made of it."""
    assert coordinator._opened is not None
    return coordinator._opened


def events_in(header: CheckpointHeader) -> dict[str, list[Any]]:
    """Reader -> the events that it receives with a checkpoint, in order."""
    streams = {
        reader: [sent.event for sent in stream if isinstance(sent, CustomEvent)]
        for reader, stream in header.sent.items()
    }
    return {reader: events for reader, events in streams.items() if events}
