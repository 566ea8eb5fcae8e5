"""What a coordinator is made from: its source, its settings and its state directory.

Not here: what it does with them (`running_coordinator.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from ...checkpoint_meta.documents.attachments import Attachments
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.stores.contract import StateStore
from ..api import SplitT, StateT
from ..settings import CoordinatorSettings
from ..source_api import EnumeratorSource
from .threads import Threads


@dataclass(frozen=True)
class CoordinatorParts(Generic[SplitT, StateT]):
    """What is the same for a fresh and a restored coordinator."""

    source: EnumeratorSource[SplitT, StateT]
    settings: CoordinatorSettings
    clock: Callable[[], float]
    threads: Threads
    bounded: bool = False
    """True for a run that ends with what is there now."""


@dataclass(frozen=True)
class StateDirectory:
    """Where the state is, and what is known of it."""

    store: StateStore
    history: CheckpointHistory
    attachments: Attachments
    epoch: int
    check_still_ours: Callable[[], None]
    """Raises FencedError once a newer coordinator has claimed the directory."""
