"""What travels from the coordinator to one reader, and where custom events wait for the next cut.

Not here: holding events back (`gateway.py`), splits that wait for the next cut (`tracker.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class AddSplits:
    """Splits for a reader, frozen: already in the columns they have in a checkpoint."""

    splits: pa.RecordBatch

    def __deepcopy__(self, memo: object) -> AddSplits:
        # A record batch cannot be changed, so the gateway need not copy it to freeze it.
        return self


@dataclass(frozen=True)
class CustomEvent:
    """Any JSON value from the enumerator."""

    value: Any


class Inboxes:
    """Custom events that have passed the gateways and not left with a checkpoint yet."""

    def __init__(self) -> None:
        self._events: dict[int, list[Any]] = {}

    def deliver(self, reader: int, event: CustomEvent) -> None:
        """Take in one event of a gateway."""
        self._events.setdefault(reader, []).append(event.value)

    def take(self, readers: Iterable[int]) -> Mapping[str, list[Any]]:
        """Take out the events of these readers: they have splits in the checkpoint being cut.

        The events of a reader without splits wait for its next ones.
        """
        return {str(r): self._events.pop(r) for r in sorted(readers) if r in self._events}

    @property
    def waiting(self) -> Mapping[str, list[Any]]:
        """Reader -> custom events that have not left yet."""
        return {str(reader): list(self._events[reader]) for reader in sorted(self._events)}

    def put_back(self, events: Mapping[str, list[Any]]) -> None:
        """Undo `take` after an aborted checkpoint: older content goes first."""
        later, self._events = self._events, {}
        for name, values in events.items():
            self._events[int(name)] = list(values)
        for reader, values in later.items():
            self._events.setdefault(reader, []).extend(values)
