"""The gateways: what each reader may have, and what is held until it commits.

One gateway a reader, over the one list of what is in flight, in which it stores what it is sent and
which commits have opened it. All else is derived: a stored answer would have to follow every
commit, abort and restart. Everything that hands an assignment out asks here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ...checkpoint_meta.documents.checkpoint import CustomEvent
from ...checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ...errors import ProtocolError
from .in_flight import CheckpointRecord, CheckpointsInFlight, Event, Stage

_MOST_WAITING = 1000
"""Events that may wait for a reader without work: every checkpoint has them all."""


class SubtaskGateway:
    """The gateway of one reader. Under the coordinator's lock."""

    def __init__(self, reader: int, flight: CheckpointsInFlight) -> None:
        self.reader = reader
        self._flight = flight

    def send(self, event: Event) -> None:
        """Add a frozen event to the reader's stream.

        Raises:
            ProtocolError: too many events wait for the reader's next splits.
        """
        record = self._flight.open_record
        stream = record.sent.setdefault(self.reader, [])
        is_waiting = isinstance(event, CustomEvent) and not record.has_part(self.reader)
        if is_waiting and len(stream) >= _MOST_WAITING:
            raise ProtocolError(
                "too many events wait for a reader that has no splits",
                f"reader {self.reader}",
                f"{_MOST_WAITING + 1:,} events",
                f"at most {_MOST_WAITING:,}",
                "Send events together with splits, or replace several by one.",
            )
        stream.append(event)

    def open(self, ref: CheckpointRef) -> bool:
        """The reader has committed `ref`, which releases what it held; True if that is news.

        Twice, late, or of an aborted checkpoint it does nothing.

        Raises:
            ProtocolError: no checkpoint of that id was ever cut.
        """
        newest = self._flight.newest_id
        if ref.checkpoint > newest:
            raise ProtocolError(
                "a reader has committed a checkpoint that was never cut",
                f"reader {self.reader}",
                str(ref),
                f"at most checkpoint {newest}",
            )
        record = self._flight.find(ref)
        if record is None or not self._waits_for(record):
            return False
        record.committed.add(self.reader)
        return True

    def _waits_for(self, record: CheckpointRecord) -> bool:
        return record.has_part(self.reader) and self.reader not in record.committed

    def held_under(
        self, record: CheckpointRecord, among: Collection[CheckpointRef] = ()
    ) -> CheckpointRecord | None:
        """Return why the reader may not have its part of `record` yet; None once that is released.

        It is held under the newest earlier checkpoint in which the reader has a part that neither
        the reader has committed nor Spark has completed. What continues a part is held until the
        commit of that part in any case: only the commit says where it starts.

        Args:
            record: in flight.
            among: these hold nothing: the same task reads them first.
        """
        origins = {continuation.origin for continuation in record.continuations(self.reader)}
        for earlier in reversed(self._flight.before(record)):
            holds = earlier.stage < Stage.COMPLETE or earlier.ref in origins
            if holds and self._waits_for(earlier) and earlier.ref not in among:
                return earlier
        return None


class Gateways:
    """The gateways of all readers."""

    def __init__(self, flight: CheckpointsInFlight) -> None:
        self.flight = flight
        self.gateway = SubtaskGateway

    def __getitem__(self, reader: int) -> SubtaskGateway:
        # It stores nothing, so it need not be kept.
        return self.gateway(reader, self.flight)

    def held(self) -> Iterator[tuple[CheckpointRecord, int]]:
        """(record, reader) of each part or waiting event that is held."""
        for record in self.flight.records:
            for reader in record.sent:
                if self[reader].held_under(record) is not None:
                    yield record, reader

    def held_counts(self) -> dict[str, int]:
        """Return how many splits and events are held."""
        held = list(self.held())
        splits = sum(record.split_count(reader) for record, reader in held)
        events = sum(len(record.events(reader)) for record, reader in held)
        return {"heldSplits": splits, "heldEvents": events}

    def closed(self, refs: Iterable[CheckpointRef]) -> list[tuple[CheckpointRecord, int]]:
        """(record, reader) under which a part of `refs` is held that is to be handed out.

        What is not in flight is held by nothing: it is complete and counted in full.
        """
        among = set(refs)
        records = [record for ref in among if (record := self.flight.find(ref))]
        parts = ((record, reader) for record in records for reader in record.readers)
        holds = ((self[reader].held_under(record, among), reader) for record, reader in parts)
        return [(under, reader) for under, reader in holds if under is not None]


def still_held(under: CheckpointRecord, reader: int, patience: float) -> ProtocolError:
    """The error where Spark wants a part before the reader's commit that releases it."""
    return ProtocolError(
        f"the part of reader {reader} is held until the reader has committed {under.ref}",
        f"{under.ref}, reader {reader}",
        f"no reader commit after {patience:g} s, and a batch requested that comes after it",
        "batches in order: each is requested when the one before it has ended",
        "Restart the query: it begins with the batch whose commit is missing. If it happens again, "
        "please report it.",
    )
