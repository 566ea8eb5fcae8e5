"""What a walk over a state directory finds, and the walk over records that no chain refers to.

These are schemas, the seed and the marks of cleaning up. Not here: checkpoints and what they refer
to (`verification.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ....checkpoint_meta.documents.bootstrap_record import Seed, find_seed
from ....checkpoint_meta.documents.checkpoint_ref import refs_in
from ....checkpoint_meta.documents.checksummed_json import without_checksum
from ....checkpoint_meta.documents.cleanup_marks import CleanupMarks
from ....checkpoint_meta.documents.epochs import newest_epoch, purpose_of
from ....checkpoint_meta.documents.layout import CHECKPOINTS, READERS, SEED, checkpoint_object
from ....checkpoint_meta.documents.schema_history import SchemaHistory
from ....checkpoint_meta.stores.contract import StateStore
from ....enumerator.coordinator.start_position import COMPACTION
from ....errors import SluiceError


@dataclass(frozen=True)
class Finding:
    """Something that is not as it was written."""

    object: str
    problem: str
    """damaged, or missing."""

    what: str


class Walk:
    """Reads objects, and keeps what is wrong with them."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self.findings: list[Finding] = []
        self.objects = 0
        self.bytes = 0

    def _damaged(self, name: str, what: object) -> None:
        self.findings.append(Finding(name, "damaged", str(what)))

    def _missing(self, name: str, what: str) -> None:
        if not any(known.object == name for known in self.findings):
            self.findings.append(Finding(name, "missing", what))

    def _read(self, name: str) -> bytes | None:
        try:
            data = self._store.read(name)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._damaged(name, f"it cannot be read: {error}")
            return None
        self.objects += 1
        self.bytes += len(data)
        return data

    def _json(self, name: str) -> dict[str, Any] | None:
        """A document with a checksum; None, and a finding, where it has none or a wrong one."""
        data = self._read(name)
        if data is None:
            return None
        try:
            return without_checksum(data)
        except ValueError as error:
            self._damaged(name, error)
            return None

    def _check(self, name: str, look: Callable[[], object]) -> None:
        try:
            look()
        except (SluiceError, ValueError, TypeError) as error:
            if not any(known.object == name for known in self.findings):
                self._damaged(name, error)


_SCHEMAS: Final = "schemas"


class Records(Walk):
    """Looks at each of them."""

    def _records(self) -> None:
        for name, error in CleanupMarks(self._store, 0).check():
            self._damaged(name, error)
        self._schemas()
        self._seed()

    def _schemas(self) -> None:
        leaves = self._store.list(_SCHEMAS)
        versions = [int(leaf[:-5]) for leaf in leaves if leaf[:-5].isdecimal()]
        for version in range(max(versions, default=-1) + 1):
            name = f"{_SCHEMAS}/{version:010d}.json"
            if version not in versions:
                self._missing(name, f"versions are stored consecutively up to {max(versions)}")
            else:
                self._json(name)
        newest = f"{_SCHEMAS}/{max(versions, default=0):010d}.json"
        self._check(newest, SchemaHistory(self._store).all)

    def _seed(self) -> None:
        if self._read(SEED) is not None:
            self._check(SEED, lambda: self._seeded(find_seed(self._store)))
            return
        # Nobody asks for it any more once a query has begun.
        purpose = purpose_of(self._store, newest_epoch(self._store))
        if purpose not in ("", COMPACTION):
            self._missing(SEED, f"the state was prepared by `sluice {purpose}`")

    def _seeded(self, seed: Seed | None) -> None:
        if seed is not None and not refs_in(self._store.list(READERS)):
            name = checkpoint_object(seed.ref)
            if f"{seed.ref.name}.arrow" not in self._store.list(CHECKPOINTS):
                self._missing(name, "a query should start after it")
