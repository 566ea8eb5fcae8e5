"""The gate between the coordinator and one reader.

Flink's SubtaskGatewayImpl (FLINK-26029, FLINK-28606, FLINK-28941): an event sent after the cut of
a checkpoint reaches the reader only after that reader has completed the checkpoint. Several
checkpoints may be closed at once; each holds its own list of events.

Not here: when a checkpoint is cut and when it is complete (`open_coordinator.py`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ..errors import ProtocolError

EventT = TypeVar("EventT")


class SubtaskGateway(Generic[EventT]):
    """Holds events for one reader while a checkpoint is between its cut and its completion.

    An event is delivered exactly when the reader has completed every checkpoint whose close
    preceded the send. Whatever the order of acknowledgements, events arrive in the order of
    sending. Not thread-safe: the coordinator's lock orders all calls.
    """

    def __init__(self, deliver: Callable[[EventT], Any]) -> None:
        """`deliver` is called with each released event, in order."""
        self._deliver = deliver
        self._held: dict[int, list[EventT]] = {}
        """Checkpoint id -> its events, ids ascending; a key exists while closed for that id."""
        self._latest: int | None = None
        """Highest id ever closed."""

    def close(self, checkpoint_id: int) -> None:
        """Hold events from now on until `checkpoint_id` is opened.

        Ids ascend: one at or below the newest ever closed is late, and holds nothing.
        """
        if self._latest is None or checkpoint_id > self._latest:
            self._latest = checkpoint_id
            self._held[checkpoint_id] = []

    def send(self, event: EventT, *, waits: bool = True) -> None:
        """Deliver `event`, or hold it under the newest closed checkpoint.

        The event is frozen now: what the sender changes in it later is not seen.

        Args:
            event: what to send.
            waits: false for what its reader may have before it has completed anything. It passes
                closed checkpoints, but never an event that was sent before it.
        """
        frozen: EventT = copy.deepcopy(event)
        if self._held and (waits or self.held_events):
            self._held[max(self._held)].append(frozen)
        else:
            self._deliver(frozen)

    def open(self, checkpoint_id: int) -> None:
        """The reader has completed (or will never run) `checkpoint_id`: let its events go.

        They are delivered if no older checkpoint is closed, else they queue up behind the
        events of the next older one. An id that was seen but is not closed any more is a late,
        repeated or aborted one: nothing happens.

        Raises:
            ProtocolError: the id is newer than any that was closed.
        """
        if self._latest is None or checkpoint_id > self._latest:
            raise ProtocolError(
                "a gateway was opened for a checkpoint it has never seen",
                "",
                f"checkpoint {checkpoint_id}",
                f"at most checkpoint {self._latest}",
            )
        events = self._held.pop(checkpoint_id, [])
        older = [held for held in self._held if held < checkpoint_id]
        if older:
            self._held[max(older)].extend(events)
        else:
            for event in events:
                self._deliver(event)

    @property
    def held_events(self) -> int:
        """Number of events waiting: no checkpoint is cut while there are any."""
        return sum(len(events) for events in self._held.values())
