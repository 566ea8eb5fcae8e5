"""What every enumerator of files and its source have in common: a ledger, written as changes.

Not here: who finds files and assigns them (`enumerator.py`), or does neither (`standing.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from ...checkpoint_meta.attachments import Attachments
from ...checkpoint_meta.serializer import FileSplitSerializer, VersionedSerializer
from ...checkpoint_meta.splits import FileSplit
from ..api import EnumeratorSource, SplitEnumerator
from ..large_state import FrozenState
from .ledger.ledger import Ledger
from .ledger.state import FileState, FileStateSerializer


class FilesSource(EnumeratorSource[FileSplit, FileState]):
    """Says how splits and ledgers are written down, and under which name."""

    @property
    @override
    def name(self) -> str:
        return "files"

    @property
    @override
    def split_serializer(self) -> VersionedSerializer[Sequence[FileSplit]]:
        return FileSplitSerializer()

    @property
    @override
    def state_serializer(self) -> VersionedSerializer[FileState]:
        return FileStateSerializer()

    @property
    @override
    def snapshots_are_changes(self) -> bool:
        return True


class LedgerEnumerator(SplitEnumerator[FileSplit, FileState]):
    """Hands its ledger to bases, and lets them improve it."""

    ledger: Ledger

    @override
    def freeze_state(self) -> FrozenState:
        return self.ledger.freeze()

    @property
    @override
    def can_improve_state(self) -> bool:
        return self.ledger.can_improve

    @override
    def improve_state(self, attachments: Attachments) -> bool:
        return self.ledger.improve(attachments)
