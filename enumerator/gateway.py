"""The gate between the coordinator and one reader.

Flink's SubtaskGatewayImpl (FLINK-26029, FLINK-28606, FLINK-28941): an event sent after the cut of
a checkpoint reaches the reader only after that reader has completed the checkpoint. Several
checkpoints may be closed at once; each holds its own list of events.

Not here: when a checkpoint is cut and when it is complete (`coordinator.py`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import Future
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
        self._marked: set[int] = set()
        self._held: dict[int, list[tuple[EventT, Future[None]]]] = {}
        """Checkpoint id -> its events, ids ascending; a key exists while closed for that id."""
        self._latest: int | None = None
        """Highest id ever marked."""

    def mark(self, checkpoint_id: int) -> None:
        """Announce a checkpoint. Holds nothing back; an id below the newest is ignored."""
        if self._latest is None or checkpoint_id > self._latest:
            self._marked.add(checkpoint_id)
            self._latest = checkpoint_id

    def close(self, checkpoint_id: int) -> bool:
        """Hold events from now on until `checkpoint_id` is opened.

        Returns:
            False, changing nothing, if the id is not marked (unknown, complete or aborted).
        """
        if checkpoint_id not in self._marked:
            return False
        if checkpoint_id not in self._held:
            self._held[checkpoint_id] = []
            self._held = dict(sorted(self._held.items()))
        return True

    def send(self, event: EventT) -> Future[None]:
        """Deliver `event`, or hold it under the newest closed checkpoint.

        The event is frozen now: what the sender changes in it later is not seen.

        Returns:
            Done when delivered; carries the exception if `deliver` raised one.
        """
        frozen: EventT = copy.deepcopy(event)
        sent: Future[None] = Future()
        if self._held:
            self._held[max(self._held)].append((frozen, sent))
        else:
            self._pass_on(frozen, sent)
        return sent

    def open(self, checkpoint_id: int) -> None:
        """The reader has completed (or will never run) `checkpoint_id`: let its events go.

        They are delivered if no older checkpoint is closed, else they queue up behind the
        events of the next older one. An id that was seen but is not marked any more is a late,
        repeated or aborted one: nothing happens.

        Raises:
            ProtocolError: the id is newer than any that was marked.
        """
        if not self.has_seen(checkpoint_id):
            raise ProtocolError(
                "a gateway was opened for a checkpoint it has never seen",
                "",
                f"checkpoint {checkpoint_id}",
                f"at most checkpoint {self._latest}",
            )
        self._marked.discard(checkpoint_id)
        events = self._held.pop(checkpoint_id, [])
        older = [held for held in self._held if held < checkpoint_id]
        if older:
            self._held[max(older)].extend(events)
        else:
            self._release(events)

    def open_all(self) -> None:
        """Let everything go, oldest checkpoint first, and forget what was marked."""
        held, self._held, self._marked = self._held, {}, set()
        for events in held.values():
            self._release(events)

    def has_seen(self, checkpoint_id: int) -> bool:
        """True if `open` may be called for this id."""
        return self._latest is not None and checkpoint_id <= self._latest

    @property
    def held_events(self) -> int:
        """Number of events waiting; for progress reports."""
        return sum(len(events) for events in self._held.values())

    def _release(self, events: list[tuple[EventT, Future[None]]]) -> None:
        for event, sent in events:
            self._pass_on(event, sent)

    def _pass_on(self, event: EventT, sent: Future[None]) -> None:
        try:
            self._deliver(event)
        except Exception as error:  # noqa: BLE001 - the sender judges it
            sent.set_exception(error)
        else:
            sent.set_result(None)
