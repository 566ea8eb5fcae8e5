"""What travels from the coordinator to one reader, and where it waits for the next cut.

Not here: holding events back (`gateway.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """Delivered to readers since the last cut: exactly what the next checkpoint assigns."""

    def __init__(self) -> None:
        self._splits: dict[int, list[pa.RecordBatch]] = {}
        self._events: dict[int, list[Any]] = {}

    def deliver(self, reader: int, event: AddSplits | CustomEvent) -> None:
        """Take in one event of a gateway."""
        if isinstance(event, AddSplits):
            self._splits.setdefault(reader, []).append(event.splits)
        else:
            self._events.setdefault(reader, []).append(event.value)

    @property
    def has_splits(self) -> bool:
        """True if a cut now would assign anything."""
        return bool(self._splits)

    @property
    def splits(self) -> int:
        """Number of splits waiting."""
        return sum(batch.num_rows for batches in self._splits.values() for batch in batches)

    def empty(self) -> tuple[Sequence[tuple[int, pa.RecordBatch]], Mapping[str, list[Any]]]:
        """Take out (reader, splits) in order, and those readers' custom events.

        The events of a reader without splits wait for its next ones.
        """
        assigned = [(r, batch) for r in sorted(self._splits) for batch in self._splits[r]]
        events = {str(r): self._events.pop(r) for r in sorted(self._splits) if r in self._events}
        self._splits = {}
        return assigned, events

    @property
    def waiting(self) -> Mapping[str, list[Any]]:
        """Reader -> custom events that have not left yet."""
        return {str(reader): list(self._events[reader]) for reader in sorted(self._events)}

    def put_back(
        self, assigned: Sequence[tuple[int, pa.RecordBatch]], events: Mapping[str, list[Any]]
    ) -> None:
        """Undo `empty` after an aborted checkpoint: older content goes first."""
        later_splits, later_events = self._splits, self._events
        self._splits, self._events = {}, {}
        for reader, batch in assigned:
            self._splits.setdefault(reader, []).append(batch)
        for name, values in events.items():
            self._events.setdefault(int(name), []).extend(values)
        for reader, batches in later_splits.items():
            self._splits.setdefault(reader, []).extend(batches)
        for reader, values in later_events.items():
            self._events.setdefault(reader, []).extend(values)
