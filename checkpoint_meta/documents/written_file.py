"""Files that a reader has written: rows that do not go to Spark, and bad records.

Its name says whose it is, so that an unreferenced file can be distinguished from one that is
still being written: lineage of the query, checkpoint, epoch, digits of the checkpoint's checksum,
reader, a token of the attempt, a number. After a restore from a backup the same checkpoint and
epoch exist twice, and only the digits tell them apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict

from .checkpoint_ref import CheckpointIdentity, CheckpointRef

SUFFIX: Final = ".parquet"
BAD_RECORDS_SUFFIX: Final = ".json"
_NAME = re.compile(
    r"(?P<lineage>[0-9a-f]{16})-(?P<checkpoint>\d{10})-(?P<epoch>\d{10})"
    r"-(?P<checksum>[0-9a-f]{16})-(?P<reader>\d{6})-(?P<token>[0-9a-f]{12})"
    r"-(?P<number>\d{6})(?P<suffix>\.parquet|\.json)\Z"
)


class WrittenFile(BaseModel):
    """One file, complete and durable, as a reader commit lists it."""

    model_config = ConfigDict(frozen=True, defer_build=True, extra="allow")

    path: str
    """Absolute path or URL."""

    rows: int
    bytes: int
    partition: Mapping[str, str | None] = {}
    """Partition column -> its value as text, null for null."""

    statistics: str
    """JSON as in an add action of Delta: numRecords, minValues, maxValues, nullCount."""


class Removal(BaseModel):
    """Inputs whose earlier rows leave the table in the commit that adds the files."""

    model_config = ConfigDict(frozen=True, defer_build=True, extra="allow")

    column: str
    """The column of the table that has the key of each row's input."""

    keys: Sequence[str]
    values: Mapping[str, str | None] = {}
    """Other columns that have the same value in all of these rows, as text; null for null."""


class BadRecordsFile(BaseModel):
    """One file of bad records or bad files, complete and durable, as a reader commit lists it."""

    model_config = ConfigDict(frozen=True, defer_build=True, extra="allow")

    path: str
    """Absolute path or URL."""

    records: int
    """Number of lines in the file."""


@dataclass(frozen=True)
class FileName:
    """The parts of such a file's name."""

    checkpoint: CheckpointIdentity
    reader: int
    token: str
    """Names one attempt, since attempt numbers repeat."""

    number: int = 0
    suffix: str = SUFFIX

    def __str__(self) -> str:
        checkpoint = self.checkpoint
        return (
            f"{checkpoint.lineage}-{checkpoint.ref.name}-{checkpoint.checksum}"
            f"-{self.reader:06d}-{self.token}-{self.number:06d}{self.suffix}"
        )

    @classmethod
    def parse(cls, path: str) -> FileName | None:
        """Parse the name in a path or URL; None if no reader of this package has named it."""
        # In a URL as well: folders may be quoted there, but no character of such a name ever is.
        match = _NAME.match(path.rsplit("/", 1)[-1])
        if match is None:
            return None
        ref = CheckpointRef(int(match["checkpoint"]), int(match["epoch"]))
        return cls(
            CheckpointIdentity(ref, match["lineage"], match["checksum"]),
            int(match["reader"]),
            match["token"],
            int(match["number"]),
            match["suffix"],
        )
