"""The durable, create-only record by which a reader acknowledges a checkpoint.

The first commit of a (checkpoint, reader) wins for ever: every later attempt follows its verdicts
or fails. It is counted once, in the checkpoint after it. This closes the direction from reader to
coordinator, which Flink left open (FLINK-28639).

Not here: reading the splits (reader) and what the coordinator does with a commit (enumerator).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import StateCorruptError
from .checkpoint import FORMAT_VERSION, newer_format
from .layout import reader_directory, reader_object
from .reference import CheckpointRef
from .store import StateStore


class ReturnedSplit(BaseModel):
    """Verdict: sent back whole, no row of it was emitted."""

    model_config = ConfigDict(frozen=True)

    index: int
    reason: str


class UnfinishedSplit(BaseModel):
    """Verdict: read up to the start of the remainder."""

    model_config = ConfigDict(frozen=True)

    index: int
    remainder: dict[str, list[Any]]
    """The remainder as the split serializer's columns, one row."""


class ReaderCommit(BaseModel):
    """What one reader read of each split of one checkpoint, and what it sends back.

    Splits are named by their index in the reader's assignment, and figures are columns in that
    order, so that fifty thousand packed splits stay a small document. A split that is neither
    returned nor unfinished was read to its end.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    format: Literal[1] = FORMAT_VERSION
    checkpoint: int
    epoch: int
    reader: int
    attempt: int
    query_id: str = ""
    """Spark's `sql.streaming.queryId`, empty where there is none."""

    rows: Sequence[int]
    """Rows emitted of each split."""

    input_bytes: Sequence[int]
    microseconds: Sequence[int]
    split_version: int = 1
    """Version of the split serializer that wrote the remainders."""

    unfinished: Sequence[UnfinishedSplit] = ()
    returned: Sequence[ReturnedSplit] = ()
    dropped_records: Mapping[int, int] = {}
    """Index -> malformed records dropped; only where any were."""

    skipped: Mapping[int, str] = {}
    """Index -> why configuration skipped it."""

    events: Sequence[tuple[str, Any]] = ()
    """(type, JSON value) for the enumerator, in order."""

    @property
    def ref(self) -> CheckpointRef:
        """The checkpoint acknowledged."""
        return CheckpointRef(self.checkpoint, self.epoch)

    def verdict(self, index: int) -> str:
        """What was decided for one split; equal texts for equal outcomes, whatever the figures."""
        for split in self.returned:
            if split.index == index:
                return "sent back"
        for part in self.unfinished:
            if part.index == index:
                return f"{self.rows[index]} rows read, remainder {part.remainder}"
        return f"{self.rows[index]} rows read to the end"

    def first_difference(self, other: ReaderCommit) -> int | None:
        """Index of the first split with another verdict in `other`, None where all agree."""
        same = (list(self.rows), list(self.returned_indexes), list(self.unfinished))
        if same == (list(other.rows), list(other.returned_indexes), list(other.unfinished)):
            return None
        pairs = range(max(len(self.rows), len(other.rows)))
        return next((i for i in pairs if self.verdict(i) != other.verdict(i)), None)

    @property
    def returned_indexes(self) -> Sequence[int]:
        """Indexes of the splits sent back, ascending."""
        return sorted(split.index for split in self.returned)

    def to_bytes(self) -> bytes:
        """Canonical JSON: sorted keys, UTF-8, one trailing newline."""
        document = self.model_dump(mode="json")
        return (json.dumps(document, sort_keys=True, ensure_ascii=False) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> ReaderCommit:
        """Read a commit of any released version.

        Raises:
            StateVersionError: written by a newer release.
            StateCorruptError: not a reader commit.
        """
        try:
            document = json.loads(data)
            version = document["format"]
            if version > FORMAT_VERSION:
                raise newer_format(where, version)
            return cls.model_validate(document)
        except (ValueError, KeyError, TypeError, ValidationError) as error:
            raise StateCorruptError(
                "a reader commit is damaged",
                where,
                str(error).splitlines()[0],
                "a JSON document of format version 1",
                "Restore the object from a copy.",
            ) from error


class ReaderCommits:
    """The reader commits of a state directory."""

    def __init__(self, store: StateStore) -> None:
        self._store = store

    def publish(self, commit: ReaderCommit) -> ReaderCommit:
        """Publish `commit` unless another attempt was first; return the one that counts."""
        name = reader_object(commit.ref, commit.reader)
        try:
            self._store.publish(name, commit.to_bytes())
        except FileExistsError:
            return self._read(name)
        return commit

    def find(self, ref: CheckpointRef, reader: int) -> ReaderCommit | None:
        """The commit of `reader` for `ref`, None if it has not acknowledged yet."""
        try:
            return self._read(reader_object(ref, reader))
        except FileNotFoundError:
            return None

    def readers(self, ref: CheckpointRef) -> list[int]:
        """Readers that have acknowledged `ref`, ascending."""
        return [int(leaf.split(".")[0]) for leaf in self._store.list(reader_directory(ref))]

    def of(self, ref: CheckpointRef) -> list[ReaderCommit]:
        """All commits for `ref`, in the order of readers."""
        return [self._read(reader_object(ref, reader)) for reader in self.readers(ref)]

    def _read(self, name: str) -> ReaderCommit:
        return ReaderCommit.from_bytes(self._store.read(name), f"{self._store.location}/{name}")
