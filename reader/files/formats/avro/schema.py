"""Avro schemas as Arrow types, and Avro's Python values as Arrow arrays of those types.

Logical types are taken off before decoding and put on as Arrow types afterwards, column by column:
so no date, decimal or timestamp is ever a Python object. Decimals are bytes of any length with the
highest first, and become Arrow's of 16 bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from .....errors import WITHOUT_THE_FILE
from ...values.convert import Misfit
from ...values.map_nested import UUID, Change, Path, map_nested
from ...values.rows import in_place_of

_PRIMITIVES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
_NAMED = ("record", "error", "enum", "fixed")
_WIDER = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}
_EXPECTED = "a type that Arrow and Spark support"
_REMEDY = f"No type reads it: pass .schema(...) without the column. {WITHOUT_THE_FILE}"


@dataclass(frozen=True, slots=True)
class Column:
    """The decoder of one column's values into an Arrow array."""

    name: str

    raw: pa.DataType
    """What the decoded Python values are built as."""

    final: pa.DataType
    refine: Change | None = None
    """From `raw` to `final`; None where they are the same."""

    def array(self, values: list[Any]) -> pa.Array:
        """Return the values of one column."""
        return self.refined(pa.array(values, self.raw))

    def refined(self, raw: pa.Array) -> pa.Array:
        """Return what was decoded with its logical types.

        Raises:
            Misfit: a decimal has more digits than its type.
        """
        try:
            return raw if self.refine is None else self.refine(raw)
        except ValueError as err:
            raise Misfit(self.name, str(err), f"values of {self.final}") from err


class AvroSchema:
    """The schema of one file: a record, whose fields are the columns."""

    def __init__(self, text: str) -> None:
        """Parse `text`.

        Raises:
            ValueError: not JSON, or not the schema of a record.
        """
        root = json.loads(text)
        if not isinstance(root, dict) or root.get("type") != "record":
            raise ValueError("an Avro schema that is not a record")
        self._named: dict[str, dict[str, Any]] = {}
        try:
            self._root = self._resolved(root, "")
        except (TypeError, KeyError, AttributeError, RecursionError) as err:
            raise ValueError(f"an Avro schema that does not parse ({err})") from err
        self._own_names = {name: f"n{at}" for at, name in enumerate(self._named)}
        self.fields: dict[str, Any] = {f["name"]: f["type"] for f in self._root["fields"]}

    def column(self, name: str) -> Column:
        """Return the translation of one column.

        Raises:
            Misfit: a type that has none: recursive, or a union of different types.
        """
        leaves: dict[Path, Change] = {}
        raw = self._raw(self.fields[name], (name,), (), leaves)
        refine = map_nested(raw, lambda _, path: leaves.get(path), (name,))
        final = raw if refine is None else refine(pa.nulls(0, raw)).type
        return Column(name, raw, final, refine)

    def stripped(self, names: Iterable[str] | None = None) -> dict[str, Any]:
        """The schema without logical types, of all columns or of some: what is decoded with."""
        chosen = set(self.fields) if names is None else set(names)
        fields = [f for f in self._root["fields"] if f["name"] in chosen]
        written: set[str] = set()
        stripped: dict[str, Any] = self._strip({**self._root, "fields": fields}, written)
        return stripped

    def _resolved(self, schema: Any, space: str) -> Any:
        """With full names throughout, and every named type noted under its name."""
        if isinstance(schema, str):
            return schema if schema in _PRIMITIVES else _full_name(schema, space)
        if isinstance(schema, list):
            return [self._resolved(branch, space) for branch in schema]
        kind = schema["type"]
        if not isinstance(kind, str):
            return self._resolved(kind, space)
        if kind == "array":
            return {**schema, "items": self._resolved(schema["items"], space)}
        if kind == "map":
            return {**schema, "values": self._resolved(schema["values"], space)}
        if kind not in _NAMED:
            return schema if kind in _PRIMITIVES else _full_name(kind, space)
        # Some writers leave names out; nothing can refer to such a type.
        own_name = schema.get("name") or f"unnamed {len(self._named)}"
        name = _full_name(own_name, schema.get("namespace", space))
        named = {k: v for k, v in schema.items() if k not in ("namespace", "aliases", "doc")}
        named["name"] = name
        # Before its fields, which may refer to it.
        self._named[name] = named
        if "fields" in schema:
            inner = name.rpartition(".")[0]
            named["fields"] = [
                {"name": f["name"], "type": self._resolved(f["type"], inner)}
                for f in schema["fields"]
            ]
        return named

    def _strip(self, schema: Any, written: set[str]) -> Any:
        if isinstance(schema, list):
            return [self._strip(branch, written) for branch in schema]
        if isinstance(schema, str):
            # A named type is written out where it comes first: pruning may have cut that away.
            if schema in _PRIMITIVES or schema in written:
                return self._own_names.get(schema, schema)
            return self._strip(self._lookup(schema), written)
        kind = schema["type"]
        if kind == "array":
            return {"type": kind, "items": self._strip(schema["items"], written)}
        if kind == "map":
            return {"type": kind, "values": self._strip(schema["values"], written)}
        if kind == "enum":
            # The place of the symbol: fastavro refuses some symbols that files have.
            return "int"
        if kind not in _NAMED:
            return kind
        name = schema["name"]
        short = self._own_names[name]
        if name in written:
            return short
        written.add(name)
        if kind == "fixed":
            return {"type": kind, "name": short, "size": schema["size"]}
        fields = [
            {"name": f["name"], "type": self._strip(f["type"], written)} for f in schema["fields"]
        ]
        return {"type": "record", "name": short, "fields": fields}

    def _lookup(self, name: str) -> dict[str, Any]:
        if name not in self._named:
            raise ValueError(f"an Avro schema that uses {name!r} without defining it")
        return self._named[name]

    def _raw(
        self, schema: Any, path: Path, above: tuple[str, ...], leaves: dict[Path, Change]
    ) -> pa.DataType:
        """Return the type that values are built as; what becomes of its leaves goes to `leaves`."""
        if isinstance(schema, list):
            return self._raw(_union_member(schema, path), path, above, leaves)
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return _PRIMITIVES[schema]
            schema = self._lookup(schema)
        kind = schema["type"]
        if kind == "array":
            return pa.list_(self._raw(schema["items"], (*path, "element"), above, leaves))
        if kind == "map":
            value = self._raw(schema["values"], (*path, "value"), above, leaves)
            return pa.map_(pa.string(), value)
        if kind in ("record", "error"):
            name = schema["name"]
            if name in above:
                problem = f"the recursive Avro type {name}"
                raise Misfit(".".join(path), problem, _EXPECTED, _REMEDY)
            return pa.struct([
                (f["name"], self._raw(f["type"], (*path, f["name"]), (*above, name), leaves))
                for f in schema["fields"]
            ])  # fmt: skip
        raw, refine = _leaf(schema, kind)
        if refine is not None:
            leaves[path] = refine
        return raw


def _full_name(name: str, space: str | None) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _union_member(branches: list[Any], path: Path) -> Any:
    """Return the rest of a union without null, if that is one type, widened as Spark does."""
    members = [b for b in branches if b != "null"]
    if not members:
        return "null"
    if len(members) == 1:
        return members[0]
    kinds = frozenset(b if isinstance(b, str) else "" for b in members)
    if kinds in _WIDER:
        return _WIDER[kinds]
    names = ", ".join(b if isinstance(b, str) else str(b.get("type")) for b in members)
    expected = "one type, or null and one type"
    raise Misfit(".".join(path), f"an Avro union of {names}", expected, _REMEDY)


def _leaf(schema: Mapping[str, Any], kind: str) -> tuple[pa.DataType, Change | None]:
    """Return the type of decoded values, and how they get their logical type, if they have one."""
    logical = schema.get("logicalType")
    if kind == "enum":
        symbols = pa.array(schema["symbols"], pa.string())
        return pa.int64(), symbols.take
    raw = pa.binary(schema["size"]) if kind == "fixed" else _PRIMITIVES[kind]
    if logical == "decimal" and kind in ("bytes", "fixed"):
        precision = int(schema["precision"])
        # Spark has no decimals of more digits, so such values stay bytes.
        if not 0 < precision <= 38:
            return raw, None
        decimal = pa.decimal128(precision, int(schema.get("scale", 0)))
        return raw, lambda array: decimals(array, decimal)
    if logical == "uuid" and kind == "fixed" and schema["size"] == 16:
        return raw, lambda array: pa.ExtensionArray.from_storage(UUID, array)
    # A logical type that does not go with its type is ignored, says the specification.
    final = _LOGICAL.get((kind, str(logical)))
    # The numbers stay as they are; only what they count gets a name.
    return raw, None if final is None else lambda array: array.view(final)


def has_endless_arrays(schema: Any) -> bool:
    """True if elements of an array take no bytes, so that a few bytes may claim any number."""
    if isinstance(schema, list):
        return any(map(has_endless_arrays, schema))
    if not isinstance(schema, dict):
        return False
    if schema["type"] == "array" and takes_no_bytes(schema["items"]):
        return True
    inner = (schema["type"], schema.get("items"), schema.get("values"))
    fields = schema.get("fields", ())
    return any(map(has_endless_arrays, (*inner, *(field["type"] for field in fields))))


def takes_no_bytes(schema: Any) -> bool:
    """True if values of a stripped schema are written as nothing."""
    if not isinstance(schema, dict):
        return bool(schema == "null")
    if schema["type"] == "record":
        return all(takes_no_bytes(field["type"]) for field in schema["fields"])
    return schema.get("size") == 0 or takes_no_bytes(schema["type"])


_WIDTH = 16


def decimals(array: pa.Array, final: pa.DataType) -> pa.Array:
    """Binary values as decimals; null stays null.

    Raises:
        ValueError: a number has more digits than the type.
    """
    if not len(array):
        return pa.array([], final)
    raw, ends, lengths = _places(array)
    for index in np.flatnonzero(lengths > _WIDTH).tolist():
        # Fillers before the number, or more than any decimal holds.
        if abs(int.from_bytes(array[index].as_py(), "big", signed=True)) >= 10**final.precision:
            raise _too_long(final)
    negative = np.zeros(len(array), np.bool_)
    filled = lengths > 0
    # The sign is the highest bit of the first byte; a value of no bytes is 0.
    negative[filled] = raw[ends[filled] - lengths[filled]] >= 0x80
    words = np.where(negative, np.uint8(0xFF), np.uint8(0))[:, None].repeat(_WIDTH, axis=1)
    for place in range(min(_WIDTH, lengths.max(initial=0))):
        longer = lengths > place
        words[longer, place] = raw[ends[longer] - 1 - place]
    array_of_words = in_place_of(array, words, final)
    try:
        array_of_words.validate(full=True)
    except pa.ArrowInvalid as err:
        raise _too_long(final) from err
    return array_of_words


def _places(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all bytes, and for each value where it ends and how long it is; of a null nothing."""
    buffers = array.buffers()
    first, last = array.offset, array.offset + len(array) + 1
    if pa.types.is_fixed_size_binary(array.type):
        offsets = np.arange(first, last) * array.type.byte_width
    else:
        offsets = np.frombuffer(buffers[1], np.int32)[first:last].astype(np.int64)
    lengths = np.diff(offsets)
    if array.null_count:
        lengths[array.is_null().to_numpy(zero_copy_only=False)] = 0
    data = buffers[-1] if buffers[-1] is not None else b""
    return np.frombuffer(data, np.uint8), offsets[1:], lengths


def _too_long(final: pa.DataType) -> ValueError:
    return ValueError(f"a decimal of more than {final.precision} digits")
