"""Small JSON documents with a checksum of their own, so that a single flipped bit is found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json
from xxhash import xxh3_128_hexdigest

from ...errors import StateCorruptError
from ..stores.contract import StateStore
from .checkpoint import newer_format
from .checkpoint_ref import CheckpointIdentity, CheckpointRef
from .layout import numbered, numbers_in

KEY: Final = "checksum"


def with_checksum(document: Mapping[str, Any]) -> bytes:
    """Canonical JSON: sorted keys, UTF-8, one trailing newline; with its checksum."""
    body = {name: value for name, value in document.items() if name != KEY}
    return _written({**body, KEY: xxh3_128_hexdigest(_written(body))})


def without_checksum(data: bytes, document: Any = None) -> dict[str, Any]:
    """The document without its checksum; `document` is what `data` says as JSON, if known.

    Raises:
        ValueError: it is no JSON object, has no checksum, or is not what was written.
    """
    document = from_json(data) if document is None else document
    if not isinstance(document, dict):
        raise ValueError("not a JSON object")
    if KEY not in document:
        raise ValueError("no checksum")
    checksum = document.pop(KEY)
    # Cut out where it was put in: what is left is the text that it was computed of. To write a
    # document again only to compare takes many times as long.
    member = json.dumps({KEY: checksum})[1:-1].encode()
    before, found, after = data.partition(member)
    text = before + after[2:] if after[:2] == b", " else before.removesuffix(b", ") + after
    computed = xxh3_128_hexdigest(text)
    if not found or computed != checksum:
        # The damaged value may be of any type and length.
        raise ValueError(f"checksum {computed} instead of {str(checksum)[:40]}")
    return document


class Document(BaseModel):
    """A document of the state, exactly as on disk. Unknown keys are kept."""

    model_config = ConfigDict(frozen=True, defer_build=True, extra="allow")

    noun: ClassVar[str]
    """What errors call it, such as "a reader commit"."""

    remedy: ClassVar[str] = ""
    """What errors advise if it is damaged."""

    format: Literal[1] = 1

    def to_bytes(self) -> bytes:
        """Canonical JSON with a checksum: sorted keys, UTF-8, one trailing newline."""
        return with_checksum(self.model_dump(mode="json", by_alias=True))

    @classmethod
    def read(cls, store: StateStore, name: str) -> Self:
        """The document of that name; raises FileNotFoundError, or like `from_bytes`."""
        return cls.from_bytes(store.read(name), f"{store.location}/{name}")

    @classmethod
    def newest(cls, store: StateStore, folder: str) -> Self | None:
        """The document with the greatest number; None without one; raises like `read`."""
        numbers = numbers_in(store.list(folder))
        return cls.read(store, numbered(folder, numbers[-1])) if numbers else None

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Self:
        """The document in an object at `where`, of any released version.

        A newer one is reported as newer, even if it cannot be read.

        Raises:
            StateVersionError: written by a newer release.
            StateCorruptError: it is not what was written.
        """
        newest: int = cls.model_fields["format"].default
        try:
            document = from_json(data)
            version = document["format"]
            # Before anything else is looked at: a newer one may have another shape and checksum.
            if version > newest:
                raise newer_format(where, version, newest)
            return cls.model_validate(without_checksum(data, document))
        except (ValueError, KeyError, TypeError, ValidationError) as error:
            raise StateCorruptError(
                f"{cls.noun} is damaged",
                where,
                str(error).splitlines()[0],
                f"a JSON document of format version {newest}",
                cls.remedy,
            ) from error


class OfCheckpoint(Document):
    """A document about one checkpoint."""

    checkpoint: int
    epoch: int

    @property
    def ref(self) -> CheckpointRef:
        """The checkpoint that it is about."""
        return CheckpointRef(self.checkpoint, self.epoch)


class OfIdentity(OfCheckpoint):
    """A document about one checkpoint, and about no other of that name."""

    lineage: str
    checkpoint_checksum: str
    """The first digits of the checkpoint's checksum."""

    @property
    def identity(self) -> CheckpointIdentity:
        """The checkpoint that it is about, with what tells it from others of that name."""
        return CheckpointIdentity(self.ref, self.lineage, self.checkpoint_checksum)


def _written(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, sort_keys=True, ensure_ascii=False) + "\n").encode()
