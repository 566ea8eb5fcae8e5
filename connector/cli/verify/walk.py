"""What a walk over a state directory finds, object by object.

Not here: which objects there ought to be (`verification.py`, `records.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ....checkpoint_meta.documents.checksummed_json import unsealed
from ....checkpoint_meta.stores.contract import StateStore
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

    def _json(self, name: str, keys: set[str]) -> dict[str, Any] | None:
        """A sealed document; one of an earlier release has no seal, and no unknown keys."""
        data = self._read(name)
        if data is None:
            return None
        try:
            document = unsealed(data)
            strange = set(document) - keys
            if strange and "checksum" not in json.loads(data):
                message = f"no checksum, and unknown keys: {', '.join(sorted(strange))}"
                raise ValueError(message)
        except ValueError as error:
            self._damaged(name, error)
            return None
        return document

    def _check(self, name: str, look: Callable[[], object]) -> None:
        try:
            look()
        except (SluiceError, ValueError, TypeError) as error:
            if not any(known.object == name for known in self.findings):
                self._damaged(name, error)
