"""One checkpoint as one Arrow IPC file, readable with any Arrow tool.

Rows are what is new since the parent: splits assigned (`section` = assigned, with their reader)
and changes of the enumerator's state (`section` = state). The schema metadata carries the
versioned JSON header under the key `sluice`. `CHECKPOINTS.md` is the specification.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...errors import StateCorruptError, StateVersionError
from .attachments import Attachment
from .checkpoint_ref import CHECKSUM_DIGITS, CheckpointIdentity, CheckpointRef
from .serializer import to_ipc
from .visibility_check import VisibilityCheck

FORMAT_VERSION: Final = 1
"""The version of checkpoint files and of the state directory as a whole."""

_KEY = b"sluice"
# As long as a SHA-256 in hexadecimal, so that exchanging them moves nothing in the Arrow file.
_UNSIGNED = "unsigned" * 8
"""Is in the place of the checksum while the checksum is computed."""


class PartBudget(BaseModel):
    """Limits of a part, exactly as in a checkpoint's header; None means no limit.

    The reader stops at the first record border at which one of them is spent, and never before it
    has read one record. Of files it stops before the next one.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    files: int | None = None
    """Files that are not archives, and members of archives."""

    rows: int | None = None
    bytes: int | None = None
    """Stored bytes."""

    seconds: float | None = None
    """Wall time from the start of the task."""


class QuarantinedSplit(BaseModel):
    """A split that was given up on: sent back too often, or never to be assigned."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    split_id: str
    reason: str
    attempts: int
    checkpoint: int
    """The checkpoint whose readers sent it back for the last time, or the newest at that time."""


class Continuation(BaseModel):
    """The assignment "go on with your split", exactly as in a checkpoint's header.

    It is cut while the reader is still reading, so where it starts is not known yet. The first
    commit of that reader for the earlier checkpoint decides it, for ever: what is unfinished there
    is what this assigns, and nothing if nothing is.
    """

    model_config = ConfigDict(frozen=True, defer_build=True, extra="allow")

    split: str
    """Id of the split that was assigned first; a continuation of a continuation keeps it. Empty for
    a whole part."""

    checkpoint: int
    epoch: int
    checksum: str = ""
    """The first digits of that checkpoint's checksum."""

    index: int | None
    """Where the earlier work is in the same reader's part of that checkpoint, in the order in
    which its splits and continuations were sent. None: all that is left of the part."""

    bytes: int | None = None
    """At most so many bytes; None for no bound."""

    rows: int | None = None
    """At most so many rows; None for no bound."""

    stop: Any = None
    """Any JSON value that tells the source's reader where to stop."""

    @classmethod
    def after(cls, origin: CheckpointIdentity, index: int | None, **more: Any) -> Continuation:
        """Go on with what is left of a split of `origin`, or of a whole part."""
        names = {**asdict(origin.ref), "checksum": origin.checksum, "index": index}
        return cls(**names, **{"split": "", **more})

    @property
    def origin(self) -> CheckpointRef:
        """The checkpoint whose commit says where this starts."""
        return CheckpointRef(self.checkpoint, self.epoch)

    def identity_of_origin(self, lineage: str) -> CheckpointIdentity:
        """Return that of `origin`, where the continuation is of this lineage."""
        return CheckpointIdentity(self.origin, lineage, self.checksum)


class CustomEvent(BaseModel):
    """An event of the enumerator for a reader, exactly as in a checkpoint's header."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    event: Any
    """Any JSON value."""


Sent: TypeAlias = int | Continuation | CustomEvent
"""One entry of a reader's stream; a number means so many of the splits assigned to it."""


class CheckpointHeader(BaseModel):
    """The JSON header, exactly as on disk. Unknown keys are kept."""

    model_config = ConfigDict(frozen=True, defer_build=True, extra="allow")

    format: Literal[1] = FORMAT_VERSION
    kind: Literal["delta", "base"]
    checkpoint: int = Field(gt=0)
    epoch: int = Field(gt=0)
    lineage: str
    """Drawn at the beginning of its chain, and the same in all of it."""

    parent_checkpoint: int = 0
    parent_epoch: int = 0
    parent_checksum: str = ""
    """The first digits of the parent's checksum; empty at the start of a chain."""

    stands_for: str = ""
    """In a base, the first digits of the checksum of the checkpoint whose state it is."""

    enumerator: str
    """Name of the source class that wrote the state."""

    split_version: int
    state_version: int
    created: int
    """Wall clock at the cut, microseconds since the epoch. For people; nothing depends on it."""

    assigned_splits: int
    state_rows: int
    attempts: dict[str, int] = {}
    """Split id -> how often it was sent back so far; whole, not a delta: only open cases."""

    quarantined: list[QuarantinedSplit] = []
    """Given up on since the parent; in a base, all."""

    sent: dict[str, list[Sent]] = {}
    """Reader -> what was sent to it, in order. A reader that is not named got splits alone."""

    budgets: dict[str, PartBudget] = {}
    """Reader -> what it may spend on its part. What is left then belongs to a continuation that was
    cut while it was reading, or else goes back to the enumerator."""

    waiting: dict[str, list[Any]] = {}
    """Reader -> custom events sent to it before this cut that go with a later one, since it got
    no splits here; whole, not a delta."""

    counted: dict[str, list[int]] = {}
    """Name of an earlier checkpoint that was in flight at this cut -> readers whose commits are in
    this state already; its other commits count later. Every checkpoint before this one that is
    not named here is counted in full."""

    cursors: dict[str, Any] = {}
    """Where the enumerator goes on looking for work, in its own words; whole, not a delta. Without
    them it looks everywhere, so a reader that does not know them loses nothing."""

    attachments: list[Attachment] = []
    """Objects below `index/` that belong to the state in addition to its rows."""

    orders: int = 0
    """Number of the newest order of this directory that the state contains (`orders.py`)."""

    released: list[str] = []
    """Ids of splits that left the quarantine since the parent, by an order; before what
    `quarantined` adds. A base has none."""

    checksum: str = _UNSIGNED
    """SHA-256 of the file with this field unsigned."""

    @property
    def ref(self) -> CheckpointRef:
        """This checkpoint's own name."""
        return CheckpointRef(self.checkpoint, self.epoch)

    @property
    def parent(self) -> CheckpointRef:
        """The checkpoint this one is a delta on; `NO_CHECKPOINT` at the start of a chain."""
        return CheckpointRef(self.parent_checkpoint, self.parent_epoch)

    @property
    def identity(self) -> CheckpointIdentity:
        """The identity of a checkpoint that is signed, or of the one that a base replaces."""
        checksum = self.stands_for or self.checksum[:CHECKSUM_DIGITS]
        return CheckpointIdentity(self.ref, self.lineage, checksum)

    @property
    def cut_after(self) -> CheckpointIdentity:
        """The identity of `parent`."""
        return CheckpointIdentity(self.parent, self.lineage, self.parent_checksum)

    @property
    def in_flight(self) -> dict[CheckpointRef, set[int]]:
        """Map what has commits not in this state to readers whose commits are; oldest first.

        That is what was in flight at this cut, and this checkpoint itself.
        """
        counted = {CheckpointRef.from_name(name): set(ids) for name, ids in self.counted.items()}
        return dict(sorted({**counted, self.ref: set[int]()}.items()))

    @property
    def origins(self) -> set[CheckpointRef]:
        """Checkpoints whose reader commits say where the continuations start."""
        streams = self.sent.values()
        return {sent.origin for part in streams for sent in part if isinstance(sent, Continuation)}


@dataclass(frozen=True)
class Checkpoint:
    """A header and its record batches, still in the source's own columns."""

    header: CheckpointHeader
    split_schema: pa.Schema
    state_schema: pa.Schema
    assigned: Sequence[tuple[int, pa.RecordBatch]] = field(default_factory=tuple)
    """(reader, splits) in the order of assignment."""

    state: Sequence[pa.RecordBatch] = field(default_factory=tuple)
    visibility: VisibilityCheck | None = field(default=None, compare=False)
    """How others recognize the object it was published as or read from."""

    file: bytes | None = field(default=None, compare=False, repr=False)
    """What `signed` has made, until it is published."""

    @cached_property
    def owners(self) -> frozenset[int]:
        """The readers that were assigned splits."""
        return frozenset(reader for reader, _ in self.assigned)

    @property
    def ref(self) -> CheckpointRef:
        """This checkpoint's own name."""
        return self.header.ref

    @property
    def identity(self) -> CheckpointIdentity:
        """Identity that its header tells."""
        return self.header.identity

    def to_bytes(self) -> bytes:
        """The file: Arrow IPC, compressed, checksummed."""
        data = self.signed().file
        assert data is not None
        return data

    def signed(self) -> Checkpoint:
        """The same with its file and the checksum in it, so that others can refer to it."""
        if self.file is not None:
            return self
        header = self.header.model_copy(update={"checksum": _UNSIGNED})
        text = json.dumps(header.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
        split_type, state_type = pa.struct(self.split_schema), pa.struct(self.state_schema)
        schema = pa.schema(
            [
                pa.field("section", pa.string()),
                pa.field("reader", pa.int32()),
                pa.field("split", split_type),
                pa.field("state", state_type),
            ],
            metadata={_KEY: text.encode()},
        )
        # Each batch is of one section and one reader, so that its first row says what all of it is.
        sections = chain(
            (_section("assigned", n, s.to_struct_array(), state_type, 2) for n, s in self.assigned),
            (_section("state", None, s.to_struct_array(), split_type, 3) for s in self.state),
        )
        batches = (pa.record_batch(columns, schema=schema) for columns in sections)
        # Most files are small, with many small columns: zstd sets up for each of them again, and
        # takes twenty times as long.
        data = to_ipc(schema, batches, compression="lz4", use_threads=False)
        checksum = hashlib.sha256(data).hexdigest()
        # The metadata is twice in an Arrow file: at its head and in its footer.
        data = data.replace(_UNSIGNED.encode(), checksum.encode())
        header = self.header.model_copy(update={"checksum": checksum})
        return replace(self, header=header, file=data)

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Checkpoint:
        """Read a file of any released version.

        Args:
            data: the whole file.
            where: the object's address, for messages.

        Raises:
            StateVersionError: written by a newer release.
            StateCorruptError: damaged; both checksums, or the decoder's words, are named.
        """
        try:
            schema = _opened(data).schema
            header = _read_header((schema.metadata or {}).get(_KEY, b"null"), data, where)
            assigned, state = _sections(data, schema)
            split_type, state_type = schema.field("split").type, schema.field("state").type
        except (pa.ArrowException, OSError, ValueError, LookupError, MemoryError) as error:
            # Any error that a flipped bit can cause in a decoder.
            raise _corrupt(
                where, f"{type(error).__name__}: {error}", "an Arrow IPC file"
            ) from error
        return cls(header, pa.schema(split_type), pa.schema(state_type), assigned, state)


def _opened(data: bytes, *columns: int) -> pa.ipc.RecordBatchFileReader:
    """A reader of some columns; of all without a choice."""
    options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=[*columns])
    return pa.ipc.open_file(pa.BufferReader(data), options=options)


def _sections(
    data: bytes, schema: pa.Schema
) -> tuple[list[tuple[int, pa.RecordBatch]], list[pa.RecordBatch]]:
    """The splits of each reader, and the state.

    A batch has the columns of the other section, too, as long and without a value: they are not
    decoded.
    """
    at = {name: schema.get_field_index(name) for name in ("section", "reader", "split", "state")}
    heads = _opened(data, at["section"], at["reader"])
    splits, states = _opened(data, at["split"]), _opened(data, at["state"])
    assigned, state = list[tuple[int, pa.RecordBatch]](), list[pa.RecordBatch]()
    for index in range(heads.num_record_batches):
        head = heads.get_batch(index)
        # Without a first row nothing says which section the batch is of.
        if head.num_rows == 0:
            continue
        if head.column("section")[0].as_py() == "assigned":
            batch = pa.RecordBatch.from_struct_array(splits.get_batch(index).column(0))
            assigned.append((head.column("reader")[0].as_py(), batch))
        else:
            state.append(pa.RecordBatch.from_struct_array(states.get_batch(index).column(0)))
    return assigned, state


def _section(
    name: str, reader: int | None, filled: pa.Array, empty: pa.DataType, at: int
) -> list[pa.Array]:
    rows = len(filled)
    heads = (pa.scalar(name, pa.string()), pa.scalar(reader, pa.int32()))
    columns = [*(pa.repeat(head, rows) for head in heads), pa.nulls(rows, empty)]
    columns.insert(at, filled)
    return columns


def _read_header(text: bytes, data: bytes, where: str) -> CheckpointHeader:
    # The version is looked at before anything else, so that a newer file is called newer.
    document = json.loads(text)
    if not isinstance(document, dict) or not isinstance(document.get("format"), int):
        raise _corrupt(where, "no header", "a JSON header under the key 'sluice'")
    if document["format"] > FORMAT_VERSION:
        raise newer_format(where, document["format"], FORMAT_VERSION)
    checksum = str(document.get("checksum", ""))
    # Of another length, the replacement could make a file many times as large in memory.
    if len(checksum) != len(_UNSIGNED):
        raise _corrupt(where, f"checksum {checksum!r}", f"a checksum of {len(_UNSIGNED)} digits")
    unsigned = data.replace(checksum.encode(), _UNSIGNED.encode())
    computed = hashlib.sha256(unsigned).hexdigest()
    if computed != checksum:
        raise _corrupt(where, f"checksum {computed}", f"checksum {checksum}")
    try:
        return CheckpointHeader.model_validate(document)
    except ValidationError as error:
        raise _corrupt(where, str(error), "a checkpoint header of version 1") from error


def newer_format(where: str, version: int, newest: int) -> StateVersionError:
    """The refusal of state that a newer release has written, naming both versions."""
    return StateVersionError(
        "the state was written by a newer release of pyspark-sluice",
        where,
        f"format version {version}",
        f"at most format version {newest}",
        "Upgrade pyspark-sluice on the driver and the executors.",
    )


def _corrupt(where: str, found: str, expected: str) -> StateCorruptError:
    return StateCorruptError(
        "a checkpoint is damaged",
        where,
        found,
        expected,
        "Restore the object from a copy, or start a new query with startingState at an "
        "older checkpoint.",
    )


def rows_of(batches: Iterable[pa.RecordBatch]) -> int:
    """Total number of rows."""
    return sum(batch.num_rows for batch in batches)


def quarantined_in(chain: Iterable[Checkpoint]) -> list[QuarantinedSplit]:
    """Splits that are given up on as of the last checkpoint of a chain."""
    quarantined: list[QuarantinedSplit] = []
    for link in chain:
        if link.header.released:
            released = set(link.header.released)
            quarantined = [split for split in quarantined if split.split_id not in released]
        quarantined += link.header.quarantined
    return quarantined
