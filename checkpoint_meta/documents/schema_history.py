"""The schema of a query's source, version by version, if the user has not given it.

One immutable object a version; a change to the newest one creates the next one, and
finds out if another one has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import Field

from ..stores.contract import StateStore, next_created
from . import layout
from .checksummed_json import Document


class StoredSchema(Document):
    """One version of the schema."""

    noun = "a stored schema"
    remedy = "Restore the object from a copy, or delete it to use the previous version."

    version: int
    struct: Mapping[str, Any] = Field(alias="schema")
    """Spark's JSON of the struct."""

    reason: str = ""
    """What the version came from, for people."""


class SchemaHistory:
    """The versions in one state directory."""

    def __init__(self, store: StateStore) -> None:
        self._store = store

    def latest(self) -> StoredSchema | None:
        """The newest version; None before the first.

        Raises:
            StateVersionError: it was written by a newer release.
            StateCorruptError: its bytes do not add up.
        """
        return StoredSchema.newest(self._store, layout.SCHEMAS)

    def version(self, number: int) -> StoredSchema:
        """The version of this number, which exists; raises what `latest` does."""
        return StoredSchema.read(self._store, layout.numbered(layout.SCHEMAS, number))

    def all(self) -> list[StoredSchema]:
        """Every version, the oldest first; raises what `latest` does."""
        return [self.version(n) for n in layout.numbers_in(self._store.list(layout.SCHEMAS))]

    def grow(
        self, change: Callable[[StoredSchema | None], tuple[Mapping[str, Any], str]]
    ) -> StoredSchema:
        """The newest version after `change`, which is stored if it makes a difference.

        Args:
            change: from the newest version (None before the first) to a schema and the reason for
                it. Called again on what somebody else has stored meanwhile, so that nobody's
                columns are lost.
        """

        def grown() -> StoredSchema:
            before = self.latest()
            schema, reason = change(before)
            if before is not None and before.struct == schema:
                return before
            version = 0 if before is None else before.version + 1
            stored = StoredSchema(version=version, schema=schema, reason=reason)
            # The number is the lock: of two writers one fails, and grows the other's version
            # instead.
            self._store.publish(layout.numbered(layout.SCHEMAS, version), stored.to_bytes())
            return stored

        return next_created(self._store, layout.SCHEMAS, grown)
