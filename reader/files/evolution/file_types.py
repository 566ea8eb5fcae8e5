"""Types in files that Arrow has no type for: those that Spark lacks, and collations of text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from typing_extensions import override


class ForeignType(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    """A type that Spark does not have, and the way in which its values are stored.

    Only a schema that asks for the stored values reads them: a number without its unit, or bytes
    without their meaning, should not look like the column.
    """

    def __init__(self, storage: pa.DataType, label: str) -> None:
        """`label` is what the file calls the type."""
        self.label = label
        super().__init__(storage, label)

    @override
    def __arrow_ext_serialize__(self) -> bytes:
        return self.label.encode()

    @classmethod
    @override
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> ForeignType:
        return cls(storage_type, serialized.decode())

    @override
    def __str__(self) -> str:
        return self.label


SPARK_METADATA: Final = b"SPARK::metadata::json"
"""Where Spark keeps the metadata of a column in an Arrow field."""

_COLLATIONS = "__COLLATIONS"


def collations(field: pa.Field) -> dict[str, str]:
    """Return the collations of a column of text: path within it -> provider.name."""
    metadata = (field.metadata or {}).get(SPARK_METADATA, b"{}")
    return dict(json.loads(metadata).get(_COLLATIONS, {}))


def with_collations(field: pa.Field, names: Mapping[str, str]) -> pa.Field:
    """Return the field with no other metadata than these collations."""
    metadata = {SPARK_METADATA: json.dumps({_COLLATIONS: dict(names)}).encode()} if names else None
    return field.with_metadata(metadata)
