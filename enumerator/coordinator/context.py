"""What a coordinator is made from, and its enumerator's door to it.

Everything that the enumerator sends goes into one stream per reader.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import pyarrow as pa
from typing_extensions import override

from ...checkpoint_meta.documents.attachments import Attachments
from ...checkpoint_meta.documents.checkpoint import Continuation, CustomEvent
from ...checkpoint_meta.documents.checkpoint_ref import CheckpointIdentity
from ...checkpoint_meta.documents.reader_assignment import plain_json
from ...checkpoint_meta.documents.serializer import VersionedSerializer
from ...checkpoint_meta.stores.contract import StateStore
from ...errors import ProtocolError
from ..api import Handler, ResultT, SplitEnumeratorContext, SplitT, StateT
from ..source_api import EnumeratorSource, OpenState
from .in_flight import CheckpointRecord, Stage
from .returned_splits import ReturnedSplits
from .subtask_gateway import Gateways
from .threads import Threads


@dataclass(frozen=True)
class CoordinatorParts(OpenState, Generic[SplitT, StateT]):
    """The values that all parts of one open coordinator have in common."""

    source: EnumeratorSource[SplitT, StateT]
    threads: Threads
    attachments: Attachments
    bounded: bool
    """True for a run that ends with what is there now."""


class Readers:
    """The registered readers, 0 to count - 1. Readers are added, never removed.

    A batch need not use them all: one large batch would make every later one as wide.
    """

    def __init__(self, fixed: int | None, at_least: int, register: Callable[[int], None]) -> None:
        """`fixed` is the user's parallelism, None for one that follows the work."""
        self._fixed = fixed
        self._at_least = at_least
        self._register = register
        self.count = 0

    def start(self) -> None:
        """Register the readers that are there from the start."""
        self._grow(self._fixed or self._at_least)

    def request(self, readers: int) -> int:
        """Register readers for a batch that wants `readers`, and return how many it has."""
        if self._fixed is not None:
            return self._fixed
        wanted = max(1, readers)
        self._grow(wanted)
        return wanted

    def may_have(self, reader: int) -> bool:
        """True if a reader of this index is registered, or may be in a later batch."""
        return reader < self.count or self._fixed is None

    def _grow(self, readers: int) -> None:
        while self.count < readers:
            self.count += 1
            self._register(self.count - 1)


class CoordinatorContext(SplitEnumeratorContext[SplitT], Generic[SplitT]):
    """Readers and their streams. Under the coordinator's lock, but for `call_async`."""

    def __init__(
        self,
        gateways: Gateways,
        serializer: VersionedSerializer[Sequence[SplitT]],
        threads: Threads,
        readers: Readers,
        bounded: bool,
        returned_splits: ReturnedSplits,
        store: StateStore | None = None,
    ) -> None:
        self._flight, self._gateways = gateways.flight, gateways
        self._serializer = serializer
        self._threads = threads
        self._readers = readers
        self._returned_splits = returned_splits
        self.bounded, self.journal, self.store = bounded, threads.journal, store

    @property
    @override
    def parallelism(self) -> int:
        return self._readers.count

    @property
    @override
    def awaits_readers(self) -> bool:
        return bool(self._flight.cut_records or self._flight.open_record.readers)

    @property
    @override
    def continuing(self) -> Collection[int]:
        return self._gateways.flight.continuing.keys()

    @override
    def request_parallelism(self, readers: int) -> int:
        return self._readers.request(readers)

    @override
    def assign_splits(self, assignment: Mapping[int, Sequence[SplitT]]) -> None:
        for reader in assignment:
            self._check(reader, "assign splits to")
        # A reader without splits gets no part, and so no task.
        nonempty = {reader: splits for reader, splits in assignment.items() if splits}
        # Frozen before anything is sent: a split that cannot be written changes nothing.
        frozen = {r: self._serializer.serialize_all(s) for r, s in nonempty.items()}
        for reader, batches in frozen.items():
            for batch in filter(len, batches):
                self._gateways[reader].send(batch)

    @override
    def continue_split(
        self,
        reader: int,
        split_id: str,
        *,
        max_bytes: int | None = None,
        max_rows: int | None = None,
        stop: Any = None,
    ) -> bool:
        self._check(reader, "continue a split of")
        origin = self._find_read(reader, split_id)
        if origin is None:
            return False
        continuation = Continuation.after(
            *origin,
            split=split_id,
            bytes=max_bytes,
            rows=max_rows,
            stop=plain_json(stop, f"reader {reader}, the stop of {split_id}"),
        )
        self._gateways[reader].send(continuation)
        return True

    def _find_read(self, reader: int, split_id: str) -> tuple[CheckpointIdentity, int] | None:
        """The checkpoint, and the index in its part, that `reader` would resume from."""
        for record in reversed([*self._flight.cut_records, self._flight.open_record]):
            index = self._index_in(record, reader, split_id)
            if index is not None:
                # The newest: what is in an older one goes on in it.
                is_read = record.stage > Stage.OPEN and reader not in record.committed
                return (record.identity, index) if is_read else None
        return None

    def _index_in(self, record: CheckpointRecord, reader: int, split_id: str) -> int | None:
        ids: list[str] = []
        for event in record.sent.get(reader, ()):
            if isinstance(event, Continuation):
                ids.append(event.split)
            elif isinstance(event, pa.RecordBatch):
                splits = self._serializer.read(self._serializer.version, event)
                ids += [split.split_id for split in splits]
        return ids.index(split_id) if split_id in ids else None

    @override
    def send_event(self, reader: int, event: Any) -> None:
        self._check(reader, "send an event to")
        value = plain_json(event, f"reader {reader}")
        self._gateways[reader].send(CustomEvent(event=value))

    def _check(self, reader: int, what: str) -> None:
        if not 0 <= reader < self._readers.count:
            raise ProtocolError(
                f"cannot {what} reader {reader}",
                "",
                "not registered",
                f"one of the registered readers 0 to {self._readers.count - 1}",
            )

    @override
    def quarantine_splits(self, reasons: Mapping[str, str]) -> None:
        for split_id, reason in reasons.items():
            self._returned_splits.abandon(split_id, reason, self._flight.newest.checkpoint)
        self.request_planning()

    @override
    def call_async(
        self, call: Callable[[], ResultT], handler: Handler[ResultT], delay: float = 0.0
    ) -> None:
        self._threads.calls.call(call, handler, delay)

    @override
    def request_planning(self) -> None:
        self._threads.wake.set()
