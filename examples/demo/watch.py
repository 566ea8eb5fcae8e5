"""What the files of a query's checkpoint directory say, read from outside while it runs.

Nothing here uses Sluice: the formats are those of Spark's logs and of checkpoint_meta/FORMAT.md.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint of the coordinator."""

    name: str
    """Ten digits of the checkpoint id, a dash, ten digits of the epoch."""

    @property
    def id(self) -> int:
        """The checkpoint id."""
        return int(self.name.split("-")[0])

    @property
    def epoch(self) -> int:
        """Which incarnation of the coordinator wrote it."""
        return int(self.name.split("-")[1])


class Watch:
    """Looks into one checkpoint directory."""

    def __init__(self, checkpoint: Path) -> None:
        self._spark = checkpoint
        self._state = checkpoint / "sluice" / "source"

    def offsets(self) -> set[int]:
        """Batches that Spark has decided on."""
        return _numbers(self._spark / "offsets")

    def writing_offset(self) -> bool:
        """Spark is in the middle of writing an offset: its temporary file is there."""
        folder = self._spark / "offsets"
        return folder.exists() and any(folder.glob(".*.tmp"))

    def commits(self) -> set[int]:
        """Batches that Spark has finished."""
        return _numbers(self._spark / "commits")

    def running(self) -> int | None:
        """The batch that Spark has decided on and not finished."""
        return max(self.offsets() - self.commits(), default=None)

    def epochs(self) -> set[int]:
        """Incarnations of the coordinator so far."""
        return {int(name.removesuffix(".json")) for name in _names(self._state / "epochs")}

    def checkpoints(self) -> list[Checkpoint]:
        """Oldest first."""
        names = sorted(_names(self._state / "checkpoints"))
        return [Checkpoint(name.removesuffix(".arrow")) for name in names]

    def of_batch(self, batch: int) -> Checkpoint | None:
        """The checkpoint that Spark's offset log names for `batch`."""
        lines = (self._spark / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
        if len(lines) < 3 or lines[2] == "-":
            return None
        offset = json.loads(lines[2])
        if not offset["checkpoint"]:
            return None  # Spark began this batch before the first file was found.
        return Checkpoint(f"{offset['checkpoint']:010d}-{offset['epoch']:010d}")

    def assigned(self, checkpoint: Checkpoint) -> list[int]:
        """The reader of each split that `checkpoint` assigned."""
        path = self._state / "checkpoints" / f"{checkpoint.name}.arrow"
        table = pa.ipc.open_file(pa.BufferReader(path.read_bytes())).read_all()
        rows = table.select(["section", "reader"]).to_pylist()
        return [row["reader"] for row in rows if row["section"] == "assigned"]

    def reader_commits(self, checkpoint: Checkpoint) -> int:
        """Count the readers that have committed `checkpoint`."""
        # The names of the folders end in the digits of the checkpoint's checksum.
        folders = (self._state / "readers").glob(f"{checkpoint.name}-*")
        return sum(len(_names(folder)) for folder in folders)


def _names(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if not name.startswith((".", "_"))]
    except FileNotFoundError:
        return []


def _numbers(folder: Path) -> set[int]:
    return {int(name) for name in _names(folder) if name.isdecimal()}
