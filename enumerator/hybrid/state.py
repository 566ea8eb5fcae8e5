"""The state of a hybrid source: the part it is in, the position so far, and the part's own state.

A row holds one record batch of the part's own serializer as Arrow IPC, with the part's number and
the serializer's version next to it. What a checkpoint holds of a part is ignored once a later row
belongs to the next.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from typing_extensions import override

from ...checkpoint_meta.documents.attachments import Attachments
from ...checkpoint_meta.documents.checkpoint_ref import NO_IDENTITY
from ...checkpoint_meta.documents.hybrid_split import FIRST, rows_by_part
from ...checkpoint_meta.documents.serializer import VersionedSerializer, to_ipc
from ..large_state import FrozenState, StateDocument, WrittenState
from ..source_api import EnumeratorSource


@dataclass(frozen=True)
class HybridState:
    """The state of a hybrid source at a cut."""

    part: int = FIRST
    position: Any = None
    """A JSON value: what the splits of all parts but the last have come to so far."""

    snapshots: Sequence[Any] = ()
    """Snapshots of the part's enumerator, oldest first: one, or the state it began with and one."""


_ROW = pa.schema(
    [
        ("part", pa.int8()),
        ("version", pa.int32()),
        ("position", pa.string()),
        ("attachments", pa.int32()),
        # One batch of a part may be larger than the 2 GiB of a binary column.
        ("batch", pa.large_binary()),
    ]
)


def _rows(
    part: int, version: int, position: Any, batches: Sequence[pa.RecordBatch], attachments: int
) -> pa.RecordBatch:
    """Some record batches of one part, as they go into a checkpoint."""
    # Where there is no state yet, a row still says in which part the source is.
    packed: list[bytes | None] = [*map(_packed, batches)] or [None]
    # In the first row alone: a snapshot of several batches has its attachments once.
    counts = [attachments] + [0] * (len(packed) - 1)
    heads = [part, version, json.dumps(position, sort_keys=True)]
    columns = [*([head] * len(packed) for head in heads), counts, packed]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _ROW, strict=True)]
    return pa.record_batch(arrays, schema=_ROW)


class HybridStateSerializer(VersionedSerializer[HybridState]):
    """A row for each record batch of the part's own serializer."""

    version = 1

    def __init__(self, parts: Sequence[EnumeratorSource[Any, Any]]) -> None:
        self._parts = parts

    @override
    def serialize(self, value: HybridState) -> pa.RecordBatch:
        source = self._parts[value.part]
        own = source.state_serializer
        head = (value.part, own.version, value.position)
        rows = [
            _rows(*head, own.serialize_all(snapshot), len(source.attachments_of(snapshot)))
            for snapshot in value.snapshots
        ]
        return pa.concat_batches(rows or [_rows(*head, (), 0)])

    @override
    def deserialize(self, version: int, batch: pa.RecordBatch) -> HybridState:
        rows = batch.to_pylist()
        part = rows[-1]["part"]
        own = self._parts[part].state_serializer
        snapshots = [
            own.read(row["version"], _unpacked(row["batch"]))
            for row in rows
            if row["part"] == part and row["batch"] is not None
        ]
        return HybridState(part, json.loads(rows[-1]["position"]), snapshots)


@dataclass(frozen=True, slots=True)
class FrozenPart(FrozenState):
    """The whole state as of one cut, where the part's enumerator keeps that itself."""

    part: int
    version: int
    position: Any
    inner: FrozenState

    @override
    def write(self, attachments: Attachments) -> WrittenState:
        written = self.inner.write(attachments)
        count = len(written.attachments)
        rows = _rows(self.part, self.version, self.position, written.rows, count)
        return replace(written, rows=[rows])


@dataclass
class PartChain:
    """A chain as the part sees it that its last checkpoint is in."""

    part: int = FIRST
    position: Any = None
    documents: list[StateDocument] = field(default_factory=list)

    @classmethod
    def of(cls, chain: Sequence[StateDocument]) -> PartChain | None:
        """None if there is nothing in `chain`."""
        states = [[row for batch in link.state for row in batch.to_pylist()] for link in chain]
        rows = [row for state in states for row in state]
        if not rows:
            return None
        part = rows[-1]["part"]
        documents = [
            _document(part, document, state)
            for document, state in zip(chain, states, strict=True)
            if any(row["part"] == part and row["batch"] is not None for row in state)
        ]
        return cls(part, json.loads(rows[-1]["position"]), documents)


def _document(part: int, document: StateDocument, rows: Sequence[Any]) -> StateDocument:
    own = [row for row in rows if row["part"] == part and row["batch"] is not None]
    attachments = document.attachments
    if len(own) < len(rows):
        # What an aborted checkpoint of a part before needed comes before.
        count = sum(row["attachments"] for row in own)
        attachments = attachments[len(attachments) - count :]
    runs = [run for batch in document.assigned for run in rows_by_part(batch) if run[0] == part]
    return replace(
        document,
        state_version=own[-1]["version"],
        state=[_unpacked(row["batch"]) for row in own],
        split_version=runs[-1][1] if runs else 1,
        assigned=[batch for _, _, batch in runs],
        attachments=attachments,
        identity=NO_IDENTITY,
    )


def _packed(batch: pa.RecordBatch) -> bytes:
    return to_ipc(batch.schema, [batch], pa.ipc.new_stream, use_threads=False)


def _unpacked(data: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()
