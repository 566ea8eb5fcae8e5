"""What every enumerator of files and its source have in common: a ledger, written as changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from typing_extensions import override

from ...checkpoint_meta.documents.attachments import Attachment, Attachments
from ...checkpoint_meta.documents.serializer import VersionedSerializer
from ...checkpoint_meta.files.file_columns import FileSplitSerializer
from ...checkpoint_meta.files.file_split import (
    FILE_EVENTS,
    REPLACED,
    FileSplit,
    FileVersion,
    versions_of_event,
)
from ..api import SplitEnumerator
from ..large_state import FrozenState
from ..source_api import EnumeratorSource
from .ledger.file_state import FileState, FileStateSerializer
from .ledger.ledger import Ledger


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
