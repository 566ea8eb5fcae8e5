"""Records of a state that no chain refers to: schemas, seed, marks of cleaning up.

Not here: checkpoints and what they refer to (`verification.py`).
"""

from __future__ import annotations

from typing import Final

from ....checkpoint_meta.documents.bootstrap_record import Seed, find_seed
from ....checkpoint_meta.documents.checkpoint_ref import refs_in
from ....checkpoint_meta.documents.cleanup_marks import CleanedMarks
from ....checkpoint_meta.documents.epochs import newest_epoch, purpose_of
from ....checkpoint_meta.documents.layout import CHECKPOINTS, READERS, SEED, checkpoint_object
from ....checkpoint_meta.documents.schema_history import SchemaHistory
from ....enumerator.coordinator.start_position import COMPACTION
from .walk import Walk

_SCHEMAS: Final = "schemas"


class Records(Walk):
    """Looks at each of them."""

    def _records(self) -> None:
        for name, error in CleanedMarks(self._store, 0).check():
            self._damaged(name, error)
        self._schemas()
        self._seed()

    def _schemas(self) -> None:
        leaves = self._store.list(_SCHEMAS)
        versions = [int(leaf[:-5]) for leaf in leaves if leaf[:-5].isdecimal()]
        for version in range(max(versions, default=-1) + 1):
            name = f"{_SCHEMAS}/{version:010d}.json"
            if version not in versions:
                self._missing(name, f"versions are stored one by one up to {max(versions)}")
            else:
                self._json(name, {"format", "version", "schema", "reason"})
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
                self._missing(name, "a query is to begin after it")
