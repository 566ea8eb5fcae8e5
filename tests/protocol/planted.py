"""A coordinator with one part that is broken on purpose."""

from __future__ import annotations

from typing import Any

from pyspark_sluice.checkpoint_meta.documents.attachments import Attachments
from pyspark_sluice.enumerator.coordinator.coordinator import Coordinator
from pyspark_sluice.enumerator.coordinator.in_flight import (
    CheckpointsInFlight,
)
from pyspark_sluice.enumerator.coordinator.restore import RestoredState
from pyspark_sluice.enumerator.coordinator.running_coordinator import RunningCoordinator

Opened = RunningCoordinator[Any, Any]


class Planted(Coordinator[Any, Any]):
    """Puts a broken part in the place of a sound one, before anything happens."""

    def _build(
        self, restored: RestoredState[Any], flight: CheckpointsInFlight, attachments: Attachments
    ) -> Opened:
        opened = super()._build(restored, flight, attachments)
        self.plant(opened)
        return opened

    def plant(self, opened: Opened) -> None:
        """Break it."""
        raise NotImplementedError
