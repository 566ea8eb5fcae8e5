"""Decides what is read next, and by which reader."""

from .api import EnumeratorSource, SplitEnumerator, SplitEnumeratorContext
from .coordinator import Coordinator
from .gateway import SubtaskGateway
from .room import BatchLimits, BatchRoom
from .settings import CoordinatorSettings, StartingState
from .tracker import SplitAssignmentTracker

__all__ = [
    "BatchLimits",
    "BatchRoom",
    "Coordinator",
    "CoordinatorSettings",
    "EnumeratorSource",
    "SplitAssignmentTracker",
    "SplitEnumerator",
    "SplitEnumeratorContext",
    "StartingState",
    "SubtaskGateway",
]
