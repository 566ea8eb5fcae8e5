"""Marks of batches in an Iceberg table, and the snapshots from which the table derives.

A rollback leaves the table's properties. So a mark counts if its snapshot is an ancestor of the
current one, or may be one that has expired.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..checkpoint_meta.documents.batch_mark import BatchMark, TableInput
from .batch_order import TableMark

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

MARK: Final = "sluice."
"""The beginning of the names of properties that are marks."""


@dataclass(frozen=True)
class Snapshots:
    """The snapshots that a table retains."""

    by_id: Mapping[int, Snapshot]
    current: int | None

    @classmethod
    def of(cls, metadata: TableMetadata) -> Snapshots:
        """Those of a table as it is now."""
        by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
        return cls(by_id, metadata.current_snapshot_id)

    def ancestors(self) -> Iterator[Snapshot]:
        """The current snapshot and those before it, newest first, as far as they are retained."""
        number = self.current
        while number is not None and (snapshot := self.by_id.get(number)) is not None:
            yield snapshot
            number = snapshot.parent_snapshot_id

    def mark(self, properties: Mapping[str, str], lineage: str) -> TableMark | None:
        """The newest batch of a query; None without one.

        Raises:
            LookupError: there is no mark, or one that a rollback took back, and the snapshots
                before it have expired.
        """
        oldest = None
        for oldest in self.ancestors():
            mark = mark_in(oldest.summary, lineage)
            if mark is not None:
                return _unless_removed(mark)
        mark = mark_in(properties, lineage)
        if oldest is None or mark is None:
            raise LookupError(lineage)
        number, _, sequence = properties[snapshot_property(lineage)].partition("-")
        oldest_sequence = oldest.sequence_number or 0
        if int(number) not in self.by_id and oldest_sequence >= int(sequence):
            return _unless_removed(mark)  # Its snapshot has expired.
        if oldest_sequence == 1:
            return None
        raise LookupError(lineage)


def _unless_removed(mark: TableMark) -> TableMark | None:
    # All batches can be removed; then the mark names none.
    return mark if mark.batch.checkpoint else None


def mark_in(properties: Any, lineage: str) -> TableMark | None:
    """The mark of a query in the summary of a snapshot or the properties of a table."""
    batch, digest = (properties and properties.get(name) for name in _names(lineage))
    return None if batch is None or digest is None else TableMark(BatchMark.parse(batch), digest)


def summary_of(lineage: str, mark: TableMark) -> dict[str, str]:
    """The mark as properties of a snapshot."""
    return dict(zip(_names(lineage), (str(mark.batch), mark.digest), strict=True))


def snapshot_property(lineage: str) -> str:
    """The property of a table that names the snapshot of the mark, and its sequence number."""
    return f"{MARK}{lineage}.snapshot"


def input_property(lineage: str) -> str:
    """The property of a table that says what a query reads and has read, as a list of texts."""
    return f"{MARK}{lineage}.input"


def fork_property(end: str) -> str:
    """The property of a table that names the fork that continues a query at its end."""
    return f"{MARK}{end}.fork"


def inputs_in(properties: Mapping[str, str]) -> Iterator[tuple[str, TableInput]]:
    """Yield what each query reads, with its lineage, by the properties of a table."""
    for name, texts in properties.items():
        lineage = name.removeprefix(MARK).partition(".")[0]
        if name == input_property(lineage):
            yield from ((lineage, TableInput.parse(text)) for text in json.loads(texts))


def removals_property(lineage: str) -> str:
    """The property of the snapshot of a batch that took rows of earlier batches out."""
    return f"{MARK}{lineage}.removals"


def added_in(snapshot: Snapshot, io: FileIO) -> Iterator[str]:
    """Yield the paths of the data files that a snapshot added."""
    for manifest in snapshot.manifests(io):
        if manifest.added_snapshot_id == snapshot.snapshot_id:
            for entry in manifest.fetch_manifest_entry(io):
                if entry.status.name == "ADDED" and entry.snapshot_id == snapshot.snapshot_id:
                    yield entry.data_file.file_path


def _names(lineage: str) -> tuple[str, str]:
    return f"{MARK}{lineage}.checkpoint", f"{MARK}{lineage}.files"
