"""Small JSON documents with a checksum of their own, so that a single flipped bit is found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from xxhash import xxh3_128_hexdigest

from ...errors import StateCorruptError
from .checkpoint import newer_format

KEY: Final = "checksum"

DocumentT = TypeVar("DocumentT", bound=BaseModel)


def with_checksum(document: Mapping[str, Any]) -> bytes:
    """Canonical JSON: sorted keys, UTF-8, one trailing newline; with its checksum."""
    body = {name: value for name, value in document.items() if name != KEY}
    return _written({**body, KEY: _checksum(body)})


def without_checksum(data: bytes) -> dict[str, Any]:
    """The document without its checksum.

    Raises:
        ValueError: it is no JSON object, has no checksum, or is not what was written.
    """
    document = json.loads(data)
    if not isinstance(document, dict):
        raise ValueError("not a JSON object")
    if KEY not in document:
        raise ValueError("no checksum")
    body = {name: value for name, value in document.items() if name != KEY}
    if document[KEY] != _checksum(body):
        # The damaged value may be of any type and length.
        raise ValueError(f"checksum {_checksum(body)} instead of {str(document[KEY])[:40]}")
    # A key that is there twice, or white space that was something else.
    if _written(document) != data:
        raise ValueError("not canonical JSON")
    return body


def parsed(
    model: type[DocumentT], data: bytes, where: str, what: str, remedy: str = ""
) -> DocumentT:
    """A document as its model; a newer one is reported as newer, even if it cannot be read.

    Args:
        model: what it has to be; `format` has the newest version as its default.
        data: the object.
        where: its place, for the error.
        what: it is, for the error: "a reader commit".
        remedy: for the error.

    Raises:
        StateVersionError: written by a newer release.
        StateCorruptError: it is not what was written.
    """
    known: int = model.model_fields["format"].default
    try:
        found = json.loads(data)["format"]
        # Before anything else is looked at: a newer document may have another shape and checksum.
        if found > known:
            raise newer_format(where, found, known)
        return model.model_validate(without_checksum(data))
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise StateCorruptError(
            f"{what} is damaged",
            where,
            str(error).splitlines()[0],
            f"a JSON document of format version {known}",
            remedy,
        ) from error


def _checksum(body: Mapping[str, Any]) -> str:
    return xxh3_128_hexdigest(_written(body))


def _written(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, sort_keys=True, ensure_ascii=False) + "\n").encode()
