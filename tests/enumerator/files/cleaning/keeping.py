"""A landing directory, checkpoints that have read it, and a cleaner that may die."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyspark_sluice.checkpoint_meta.documents.checkpoint import Checkpoint, CheckpointHeader
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.reader_commit import (
    ReaderCommit,
    ReaderCommits,
    about,
)
from pyspark_sluice.checkpoint_meta.files.file_columns import RANGES, FileSplitSerializer, ranges_of
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.storage.urls import loaded_paths
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.enumerator.files.cleaning.file_cleaner import CleaningPolicy, FileCleaner
from pyspark_sluice.enumerator.files.cleaning.source_cleanup import SourceCleanup
from pyspark_sluice.enumerator.files.discovery.selection.name_patterns import ReadyMarker
from pyspark_sluice.enumerator.settings import CoordinatorSettings
from pyspark_sluice.enumerator.source_api import OpenState


class _Source:
    split_serializer = FileSplitSerializer()


@dataclass
class Keeping:
    """Files, batches that read them, and one cleaning incarnation after the other."""

    root: Path
    mode: str = "delete"
    settings: CoordinatorSettings = field(
        default_factory=lambda: CoordinatorSettings(clean_while_retained=True)
    )
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    store: MemoryStateStore = field(default_factory=MemoryStateStore)
    now: float = 4_000_000_000.0
    is_ours: bool = True
    marker: str = ""

    def __post_init__(self) -> None:
        self.head = NO_CHECKPOINT
        self.landing = self.root / "in"
        self.archive = self.root / "old"
        self.landing.mkdir(exist_ok=True)
        self.epoch = 0
        self.written_by, self.lineage = 1, "0123456789abcdef"
        self.history = CheckpointHistory(self.store)

    def land(self, name: str, text: str = "") -> FileVersion:
        path = self.landing / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text or name)
        found = path.stat()
        return FileVersion(str(path), found.st_size, found.st_mtime_ns // 1000)

    def whole(self, *names: str) -> list[FileSplit]:
        files = [self.land(name) for name in names]
        return [FileSplit(file, 0, file.size) for file in files]

    def batch(
        self, *by_reader: Sequence[FileSplit], commit: Mapping[int, Mapping[str, Any] | None] = {}
    ) -> CheckpointRef:
        """One checkpoint, and the commits of its readers, but for those that are None."""
        ref = CheckpointRef(self.head.checkpoint + 1, self.written_by)
        header = CheckpointHeader(
            kind="delta",
            checkpoint=ref.checkpoint,
            epoch=ref.epoch,
            parent_checkpoint=self.head.checkpoint,
            parent_epoch=self.head.epoch,
            parent_checksum=(
                self.history.load(self.head).identity.checksum if self.head.checkpoint else ""
            ),
            lineage=self.lineage,
            enumerator="files",
            split_version=1,
            state_version=1,
            created=int(self.now * 1_000_000),
            assigned_splits=sum(map(len, by_reader)),
            state_rows=0,
        )
        assigned = [(r, ranges_of(splits)) for r, splits in enumerate(by_reader)]
        published = self.history.publish(Checkpoint(header, RANGES, pa.schema([]), assigned))
        for reader, splits in enumerate(by_reader):
            more = commit.get(reader, {})
            if more is not None:
                zeros = [0] * len(splits)
                ReaderCommits(self.store).publish(
                    ReaderCommit(
                        **about(published.identity), reader=reader, attempt=0,
                        rows=zeros, input_bytes=zeros, microseconds=zeros, **more,
                    )
                )  # fmt: skip
        self.head = ref
        return ref

    def begin_again(self, lineage: str) -> None:
        """Another chain in the same state directory."""
        self.head, self.written_by, self.lineage = NO_CHECKPOINT, self.epoch + 1, lineage

    def start(self) -> SourceCleanup:
        """A new incarnation, before its first step."""
        self.epoch += 1
        history = CheckpointHistory(self.store)
        policy = CleaningPolicy(
            self.mode,  # type: ignore[arg-type]
            loaded_paths(str(self.landing)),
            str(self.archive) if self.mode == "archive" else "",
            ReadyMarker(self.marker) if self.marker else None,
        )
        self.cleaner = FileCleaner(policy, self.storage_options)
        state = OpenState(
            self.settings, lambda: self.now, self.store, history, self.epoch, "", self.check
        )
        source: Any = _Source()
        return SourceCleanup(self.cleaner, source, state)

    def check(self) -> None:
        assert self.is_ours, "cleaned up for a query that has been superseded"

    def run(self, end: CheckpointRef | None = None) -> SourceCleanup:
        """A new incarnation does all that is due."""
        cleaning = self.start()
        cleaning.completed(end or self.head)
        while cleaning.step():
            pass
        return cleaning

    def left(self) -> list[str]:
        return _names(self.landing)

    def archived(self) -> list[str]:
        return _names(self.archive)


def _names(root: Path) -> list[str]:
    found = [Path(folder) / name for folder, _, names in os.walk(root) for name in names]
    return sorted(str(path.relative_to(root)) for path in found)
