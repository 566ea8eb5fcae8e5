"""What every enumerator of files and its source have in common: a ledger, written as changes.

And the files of a state without a listing: for tools that make or tidy a state while no query runs.
What was seen is kept with versions there, independent of what the query does with them, so nothing
that the state knows is lost by being written again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from typing_extensions import override

from ...checkpoint_meta.documents.attachments import Attachment, Attachments
from ...checkpoint_meta.documents.serializer import VersionedSerializer
from ...checkpoint_meta.files.file_columns import (
    FILES,
    FileSplitSerializer,
    Flags,
    Numbers,
    changes_of,
    numbers_array,
)
from ...checkpoint_meta.files.file_split import (
    FILE_EVENTS,
    REPLACED,
    FileSplit,
    FileVersion,
    versions_of_event,
)
from ...checkpoint_meta.index.fingerprints import SeenKeys, names_in, versions_in
from ..api import SplitEnumerator, SplitEnumeratorContext
from ..batch_budget import BatchBudget
from ..large_state import FrozenState, StateDocument
from ..source_api import EnumeratorSource
from .ledger.file_state import FileState, FileStateSerializer, fold
from .ledger.index_merge import MergePolicy
from .ledger.ledger import Ledger, LedgerPolicy
from .ledger.new_files import OnOverwrite
from .ledger.seen_files import Portion


class FilesSource(EnumeratorSource[FileSplit, FileState]):
    """Says how splits and ledgers are written down, and under which name."""

    name = "files"
    reader_event_types = FILE_EVENTS
    snapshots_are_changes = True

    @property
    @override
    def split_serializer(self) -> VersionedSerializer[Sequence[FileSplit]]:
        return FileSplitSerializer()

    @property
    @override
    def state_serializer(self) -> VersionedSerializer[FileState]:
        return FileStateSerializer()

    @override
    def attachments_of(self, state: FileState) -> Sequence[Attachment]:
        # Only the snapshot of a first listing that is not to be read names runs; bases name the
        # others.
        attached = [attachment for run in state.runs for attachment in run.attachments]
        return attached if state.absent is None else [*attached, state.absent]


class LedgerEnumerator(SplitEnumerator[FileSplit, FileState]):
    """Hands its ledger to bases, and lets them improve it."""

    ledger: Ledger

    @override
    def handle_reader_event(self, reader: int, event_type: str, value: Any) -> None:
        # A file may be replaced after it was listed; only its reader sees that.
        if event_type == REPLACED:
            self.file_replaced(*versions_of_event(value))

    @override
    def left_unread(self, splits: Sequence[FileSplit]) -> None:
        self.ledger.left_unread(splits)

    def file_replaced(self, old: FileVersion, new: FileVersion) -> None:
        """A reader met `new` where it was to read `old`, and has read neither."""
        self.ledger.file_replaced(old, new, time.time_ns() // 1000)

    @override
    def freeze_state(self) -> FrozenState:
        return self.ledger.freeze()

    @property
    @override
    def can_improve_state(self) -> bool:
        return self.ledger.can_improve

    @override
    def improve_state(self) -> Callable[[Attachments], None] | None:
        return self.ledger.improve()


Wanted = Callable[[pa.Array], pa.Array]
"""For a column of paths, which of them are wanted."""


class OfflineFileSource(FilesSource):
    """The driver's half of the file source, as far as it needs no option."""

    def __init__(self, wanted: Wanted | None = None, *, details: bool = True) -> None:
        """`wanted` says which files stay pending; all if None. `details` as for `fold`."""
        self._wanted, self._details = wanted, details

    @override
    def create_enumerator(
        self, context: SplitEnumeratorContext[FileSplit], state: FileState | None
    ) -> OfflineEnumerator:
        return OfflineEnumerator(state or FileState(), self._wanted)

    @override
    def restore_state(self, chain: Sequence[StateDocument], attachments: Attachments) -> FileState:
        return fold(chain, attachments, details=self._details)


# With this policy versions and ends are kept, which the query may need later.
_KEEPS_ALL: Final = LedgerPolicy(
    on_overwrite=OnOverwrite.REPROCESS, merging=MergePolicy(thorough=True)
)


class OfflineEnumerator(LedgerEnumerator):
    """Finds nothing and assigns nothing."""

    def __init__(self, state: FileState, wanted: Wanted | None = None) -> None:
        self._wanted = wanted
        changes = [self._chosen(batch) for batch in state.changes]
        self.ledger = Ledger(_KEEPS_ALL, replace(state, changes=changes))
        self.returned: list[FileSplit] = []
        """Assigned, and not read by those they were assigned to: pending again."""

    def _chosen(self, changes: pa.RecordBatch) -> pa.RecordBatch:
        return changes if self._wanted is None else changes.filter(self._wanted(changes["path"]))

    def rename(
        self,
        renamed: Callable[[str], str],
        seen: Iterable[tuple[pa.RecordBatch, Numbers]],
        now: int,
    ) -> None:
        """Give files other paths: those that are pending, and those that were seen.

        Args:
            renamed: the path of a file by the one that it had.
            seen: for `count_as_seen`, all files that were ever seen, by their old paths.
            now: microseconds since the epoch.
        """
        pending = [changes_of(_renamed(part, renamed)) for part in self.ledger.pending.frozen()]
        contents = self.ledger.seen.contents()
        self.ledger = Ledger(_KEEPS_ALL, FileState(pending))
        self.ledger.seen.add_contents(contents, known=True)
        self.returned = [
            split._replace(file=split.file._replace(path=renamed(split.file.path)))
            for split in self.returned
        ]
        for files, ends in seen:
            self.count_as_seen(_renamed(files, renamed), ends, now)

    def count_as_seen(self, files: pa.RecordBatch, ends: Numbers, now: int) -> int:
        """These versions of files need not be read; how many of them were not known.

        Args:
            files: rows of `FILES`, each file once.
            ends: up to where each was read.
            now: microseconds since the epoch.
        """
        seen = self.ledger.seen
        names, versions = names_in(files.column("path")), versions_in(files)
        is_seen, version, _ = seen.details_of(names)
        # What is known in this version stays as it is known.
        news: Flags = ~is_seen | (version != versions)
        rows = np.flatnonzero(news)
        if not len(rows):
            return 0
        kept = files.select(FILES.names).take(numbers_array(rows))
        keys = SeenKeys.sort(names.take(rows), versions[rows], ends[rows])
        new = int(np.count_nonzero(~is_seen))
        seen.add(keys, Portion(kept, ends[rows], now), new)
        return new

    @override
    def start(self) -> None:
        return

    @override
    def plan_batch(self, budget: BatchBudget) -> None:
        return

    @override
    def add_splits_back(self, splits: Sequence[FileSplit], reader: int) -> None:
        wanted = [split for split in splits if self._is_wanted(split.file)]
        self.returned += wanted
        self.ledger.put_back(wanted)

    @override
    def file_replaced(self, old: FileVersion, new: FileVersion) -> None:
        if self._is_wanted(old):
            super().file_replaced(old, new)

    def _is_wanted(self, file: FileVersion) -> bool:
        return self._wanted is None or bool(self._wanted(pa.array([file.path]))[0].as_py())

    @override
    def snapshot_state(self, checkpoint_id: int) -> FileState:
        return self.ledger.snapshot(checkpoint_id)


def _renamed(rows: pa.RecordBatch, renamed: Callable[[str], str]) -> pa.RecordBatch:
    paths = rows.column("path")
    new_paths = pa.array(map(renamed, paths.to_pylist()), paths.type)
    return rows.set_column(rows.schema.get_field_index("path"), "path", new_paths)
