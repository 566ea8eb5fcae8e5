"""Types of columns as annotations in a Parquet footer say them, where Arrow's types do not.

Spark infers types from annotations, and from its own schema in footers that it wrote. Arrow shows
some of them as the storage below. For others it refuses the whole file: then it gets a footer
without these annotations.

INT96 timestamps are read as Spark reads them, from their twelve bytes. Arrow takes the day 0 for
the filling of nulls, and days and nanoseconds as unsigned, so that values at the edges would come
out as other ones without a word. So it is shown a footer in which these columns are of twelve bytes
each, as they are in the file: eight of nanoseconds, four of the day.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...evolution.column_names import ColumnNames
from ...evolution.file_types import ForeignType, with_collations
from ...evolution.type_growth import SPARK_TYPES, holds, noted_type, retyped
from ...values.map_nested import UUID, Change, Path, changes_of, leaves_of
from ...values.rows import in_place_of
from .schema_elements import (
    BYTE_ARRAY,
    CONVERTED,
    FIXED_BYTES,
    INT96,
    LENGTH,
    LOGICAL,
    REPETITION,
    REQUIRED,
    TYPE,
    Element,
    Fields,
    number,
    schema_elements,
    with_elements,
)

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_ARROW_SCHEMA = b"ARROW:schema"
_TEXTS = {"ENUM", "JSON"}
_FOREIGN = {"INTERVAL", "GEOMETRY", "GEOGRAPHY"}

ChangeFields = Callable[[Fields], Fields]

# Of `parquet.thrift`: members of the union `LogicalType`, and numbers of `ConvertedType`.
_STRING, _MAP, _INTEGER, _VARIANT, _LAST_MEMBER = 1, 2, 10, 16, 18
_LOGICAL_TEXTS = {_STRING, 4, 12, 13}
_CONVERTED_TEXTS, _CONVERTED_MAPS = {0, 4, 19, 20}, {1, 2}
_WIDTHS = {8, 16, 32, 64}


@dataclass
class Unsupported:
    """Elements with an annotation for which Arrow refuses the file, by their place.

    Arrow also refuses it for types in the Arrow schema that some writers store, which says how the
    columns were held in memory.
    """

    has_arrow_schema: bool = False

    leaves: dict[int, tuple[int, str | None]] = field(default_factory=dict)
    """Number of the leaf, and what the type is called; None for text."""

    maps: dict[int, int] = field(default_factory=dict)
    """Number of the first leaf."""

    def metadata(self, footer: bytes, change: ChangeFields | None = None) -> pq.FileMetaData:
        """Return what Arrow makes of the footer without all of these, and changed otherwise."""

        def changed(index: int, element: Element) -> Fields:
            fields = element.fields
            # What repeats in a map may have the annotation, too.
            if index in self.leaves or not self.maps.keys().isdisjoint((index, index - 1)):
                fields = {n: v for n, v in fields.items() if n not in (CONVERTED, LOGICAL)}
            return fields if change is None else change(fields)

        if self.has_arrow_schema:
            footer = footer.replace(_ARROW_SCHEMA, _ARROW_SCHEMA.lower())
        return with_elements(footer, changed)


class LogicalTypes:
    """The types of one file's columns, by path in Arrow's schema."""

    def __init__(self, parquet: pq.ParquetFile, unsupported: Unsupported | None = None) -> None:
        self._unsupported = unsupported or Unsupported()
        self._schema = parquet.schema_arrow
        # Arrow has as many as Parquet, in the same order.
        self._leaves = leaves_of(self._schema)
        self.int96: set[Path] = set()
        self.types: dict[Path, pa.DataType] = {}
        """Types other than Arrow's; those of INT96 are in `int96`."""
        for index, (path, kind) in enumerate(self._leaves):
            column = parquet.schema.column(index)
            if column.physical_type == "INT96":
                self.int96.add(path)
            else:
                # Intervals have an annotation of the older kind only.
                is_interval = column.converted_type == "INTERVAL"
                logical = "INTERVAL" if is_interval else column.logical_type.type
                self._put(path, _annotated(logical, kind))
        for leaf, label in self._unsupported.leaves.values():
            path, kind = self._leaves[leaf]
            self._put(path, pa.string() if label is None else ForeignType(kind, label))
        for leaf in self._unsupported.maps.values():
            # The group, the repeated group, and its field.
            path = self._leaves[leaf][0][:-3]
            self._put(path, ForeignType(pa.null(), "a map with optional keys"))
        notes = (parquet.metadata.metadata or {}).get(_SPARK_SCHEMA)
        self._notes = _parsed(notes) if notes else {}
        kinds = dict(self._leaves)
        for path, name in _noted_types(self._notes, ()):
            self._put(path, noted_type(name, kinds.get(path, pa.null())))

    def _put(self, path: Path, kind: pa.DataType | None) -> None:
        if kind is not None:
            self.types[path] = kind

    def with_int96_as_bytes(self, footer: bytes) -> pq.FileMetaData:
        """Return what Arrow makes of the footer if INT96 is twelve bytes."""
        return self._unsupported.metadata(footer, _int96_as_bytes)

    def inferred(self, elements: list[Element]) -> pa.Schema:
        """Return the schema with the types that Spark infers; `elements` are the footer's."""
        instant = SPARK_TYPES["timestamp"]
        variants = dict.fromkeys(self._variants(elements), SPARK_TYPES["variant"])
        types = self.types | dict.fromkeys(self.int96, instant) | variants
        return pa.schema([
            _collated(own.with_type(retyped(own.type, types, (own.name,))), self._notes)
            for own in self._schema
        ])  # fmt: skip

    def stored(self, schema: pa.Schema) -> pa.Schema:
        """Return the file's schema in types that tell what can be read as a column of `schema`."""
        types = {path: kind for path, kind in self._needed(schema) if not pa.types.is_struct(kind)}
        if not types:
            return self._schema
        return pa.schema(
            [own.with_type(retyped(own.type, types, (own.name,))) for own in self._schema]
        )

    def changes(self, schema: pa.Schema) -> dict[Path, Change]:
        """Return the changes of leaves whose values Arrow decodes in another type."""
        kinds = dict(self._leaves)
        changes: dict[Path, Change] = dict.fromkeys(self.int96, _int96_timestamps)
        for path, kind in self._needed(schema):
            if kind == UUID and kinds[path] != UUID:
                changes[path] = lambda array: pa.ExtensionArray.from_storage(UUID, array)
            elif pa.types.is_duration(kind):
                changes[path] = lambda array: array.view(SPARK_TYPES["interval day to second"])
        return changes

    def _needed(self, schema: pa.Schema) -> Iterator[tuple[Path, pa.DataType]]:
        # An interval may be read as the number of microseconds that it is stored as.
        is_duration = pa.types.is_duration
        intervals = ColumnNames(own.name for own in schema if holds(own.type, is_duration))
        for path, kind in self.types.items():
            if not is_duration(kind) or path[0] in intervals:
                yield path, kind

    def _variants(self, elements: list[Element]) -> Iterator[Path]:
        for group, leaf in _groups(elements):
            if _VARIANT in group.logical:
                yield self._leaves[leaf][0][:-1]


def _annotated(logical: str, kind: pa.DataType) -> pa.DataType | None:
    """Return the type of a leaf with this annotation, if it is another one than Arrow's."""
    if logical in _TEXTS:
        return pa.string()
    if logical == "UUID":
        return UUID
    if logical in _FOREIGN:
        return ForeignType(kind, f"{logical.lower()} of Parquet")
    return ForeignType(kind, f"{kind} of Arrow") if pa.types.is_duration(kind) else None


def changes(schema: pa.Schema, leaves: Mapping[Path, Change]) -> dict[str, Change]:
    """Return the changes of columns, by their name, that these changes of leaves lead to."""
    return changes_of(schema, lambda _, path: leaves.get(path)) if leaves else {}


def _parsed(notes: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(notes)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _noted_types(noted: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the types without parts of Spark's schema, by path."""
    if isinstance(noted, str):
        yield path, noted
        return
    kind = noted.get("type")
    if kind == "struct":
        for own in noted["fields"]:
            yield from _noted_types(own["type"], (*path, own["name"]))
    elif kind == "array":
        yield from _noted_types(noted["elementType"], (*path, "element"))
    elif kind == "map":
        yield from _noted_types(noted["keyType"], (*path, "key"))
        yield from _noted_types(noted["valueType"], (*path, "value"))


def _collated(own: pa.Field, noted: Any) -> pa.Field:
    """Return a column, or a field in structs of structs, with the collations of Spark's schema."""
    fields = {other["name"]: other for other in noted.get("fields", ())}
    other = fields.get(own.name)
    if other is None:
        return own
    if pa.types.is_struct(own.type) and isinstance(other["type"], dict):
        own = own.with_type(pa.struct([_collated(inner, other["type"]) for inner in own.type]))
    return with_collations(own, other.get("metadata", {}).get("__COLLATIONS", {}))


def _groups(elements: list[Element]) -> Iterator[tuple[Element, int]]:
    """Yield each element with the number of the first leaf that is it, or is within it."""
    leaf = 0
    for element in elements[1:]:
        yield element, leaf
        leaf += not element.children


def unsupported_in(footer: bytes) -> Unsupported:
    """Return the annotations for which Arrow may refuse a file."""
    unsupported = Unsupported(_ARROW_SCHEMA in footer)
    elements = schema_elements(footer)
    for at, (element, leaf) in enumerate(_groups(elements), start=1):
        logical, converted = element.logical, element.values.get(CONVERTED)
        if element.children:
            is_map = _MAP in logical or converted in _CONVERTED_MAPS
            key = elements[at + 2] if at + 2 < len(elements) else element
            if is_map and element.children == 1 and key.values.get(REPETITION) != REQUIRED:
                unsupported.maps[at] = leaf
            continue
        width = logical.get(_INTEGER, {}).get(1, 8)
        is_text = converted in _CONVERTED_TEXTS or not _LOGICAL_TEXTS.isdisjoint(logical)
        if width not in _WIDTHS:
            unsupported.leaves[at] = leaf, f"integers of {width} bits"
        elif logical and max(logical) > _LAST_MEMBER:
            unsupported.leaves[at] = leaf, f"the logical type {max(logical)} of Parquet"
        elif is_text and element.values.get(TYPE) != BYTE_ARRAY:
            unsupported.leaves[at] = leaf, None
        # They may be integers of 128 bits.
        elif unsupported.has_arrow_schema and _is_plain_bytes(element):
            unsupported.leaves[at] = leaf, "bytes of a type that pyarrow does not have"
    return unsupported


def _is_plain_bytes(element: Element) -> bool:
    has_annotation = element.logical or element.values.get(CONVERTED) is not None
    return element.values.get(TYPE) == FIXED_BYTES and not has_annotation


_DAY = 86_400_000_000
_JULIAN_DAY_OF_1970 = np.int32(2_440_588)
_PARTS = np.dtype([("nanoseconds", "<i8"), ("day", "<i4")])


def _int96_as_bytes(fields: Fields) -> Fields:
    """Return the fields of an element that are not INT96, but twelve bytes."""
    if fields.get(TYPE) != number(INT96):
        return fields
    return fields | {TYPE: number(FIXED_BYTES), LENGTH: number(_PARTS.itemsize)}


def _int96_timestamps(array: pa.FixedSizeBinaryArray) -> pa.TimestampArray:
    """Return the instants, with Spark's arithmetic: it wraps around, and cuts towards zero."""
    data = array.buffers()[1]
    parts: Any = np.frombuffer(data, _PARTS, len(array), array.offset * _PARTS.itemsize)
    nanoseconds = parts["nanoseconds"].astype(np.int64)
    microseconds = nanoseconds // 1000
    if nanoseconds.size and nanoseconds.min() < 0:
        # Spark's division cuts towards zero, numpy's goes down.
        microseconds += (nanoseconds < 0) & (nanoseconds % 1000 != 0)
    # In 32 bits, as Spark subtracts them.
    days = parts["day"] - _JULIAN_DAY_OF_1970
    return in_place_of(array, days.astype(np.int64) * _DAY + microseconds, pa.timestamp("us"))
