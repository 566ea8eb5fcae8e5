"""A look inside a coordinator, for tests."""

from __future__ import annotations

from typing import Any

from pyspark_sluice.enumerator.coordinator.coordinator import Coordinator
from pyspark_sluice.enumerator.coordinator.running_coordinator import RunningCoordinator


def opened(coordinator: Coordinator[Any, Any]) -> RunningCoordinator[Any, Any]:
    """What Spark's first call has made of it."""
    assert coordinator._opened is not None
    return coordinator._opened
