"""Small JSON documents with a checksum of their own, so that a single flipped bit is found.

An older release ignores the key; a document without it was written by one.

Not here: what is in the documents.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from xxhash import xxh3_128_hexdigest

KEY: Final = "checksum"


def sealed(document: Mapping[str, Any]) -> bytes:
    """Canonical JSON: sorted keys, UTF-8, one trailing newline; with its checksum."""
    body = {name: value for name, value in document.items() if name != KEY}
    return _written({**body, KEY: _checksum(body)})


def unsealed(data: bytes) -> dict[str, Any]:
    """The document without its checksum.

    Raises:
        ValueError: it is no JSON object, or not what it was when it was written.
    """
    document = json.loads(data)
    if not isinstance(document, dict):
        message = "not a JSON object"
        raise ValueError(message)
    if KEY not in document:
        return document
    body = {name: value for name, value in document.items() if name != KEY}
    if document[KEY] != _checksum(body):
        message = f"checksum {_checksum(body)} instead of {str(document[KEY])[:40]}"
        raise ValueError(message)
    # A key that is there twice, or white space that was something else.
    if _written(document) != data:
        message = "not canonical JSON"
        raise ValueError(message)
    return body


def is_sealed(data: bytes) -> bool:
    """True unless an earlier release has written it."""
    return KEY in json.loads(data)


def _checksum(body: Mapping[str, Any]) -> str:
    return xxh3_128_hexdigest(_written(body))


def _written(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, sort_keys=True, ensure_ascii=False) + "\n").encode()
