"""Decodes blocks straight into columns by pyruhvro, where the schema alone says that it can.

pyruhvro decodes single values of a schema, not files. The rows of a block are, byte for byte, an
Avro array that lacks its count and its end: so each block is handed on as one array of records, and
behind it a number that is only found there if the rows took all bytes of the block. What pyruhvro
gets is a schema of its own with the same bytes: names and logical types are gone, enums and ints
are longs, whose range is looked at here, bytes are texts, which it does not look at, and a `fixed`
is a record of doubles and floats.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from .....errors import not_installed
from ...values.rows import in_place_of
from .container import encoded
from .schema import takes_no_bytes

_types = pa.types
# Ten bytes that no block ends with by chance.
_END = 0x5EA1_0F_B10C_5EED
_SAME = ("null", "boolean", "long", "float", "double", "string")
_AS_LONG, _AS_TEXT = "long", "string"
_MOST_TYPES = 10_000
"""Types that a schema may have when each is written out where it is used."""


class _NotPlain(Exception):
    """A schema that pyruhvro does not decode, or not to the same values."""


class PlainBlocks:
    """Decodes blocks of one schema."""

    def __init__(self, schema: str, places: Iterable[tuple[int, pa.DataType]]) -> None:
        """`places` are the columns to decode: the index of the field, and the type to make."""
        self._pyruhvro = _pyruhvro()
        self._schema, self._places = schema, list(places)

    def columns(self, blocks: Sequence[tuple[int, bytes]]) -> list[pa.Array] | None:
        """Return the columns of uncompressed blocks, each with its count of rows.

        None if anything is odd: the other decoder reads it, or says what is wrong.
        """
        counts = [rows for rows, data in blocks if rows or data]
        if not all(counts):
            return None
        after = encoded(0) + encoded(_END)
        datums = [b"".join((encoded(rows), data, after)) for rows, data in blocks if rows]
        try:
            decoded = self._pyruhvro.deserialize_array(datums, self._schema)
            rows, ends = decoded.columns
            declared = np.diff(rows.offsets.to_numpy()).tolist() == counts
            if not declared or (ends.to_numpy() != _END).any():
                return None
            return [_built(rows.values.field(at), kind) for at, kind in self._places]
        except (ValueError, pa.ArrowException):
            return None


def plain_schema(stripped: dict[str, Any]) -> str | None:
    """Return the schema of blocks as pyruhvro gets it; None if it cannot decode them.

    `stripped` has no logical types, and short names.
    """
    if takes_no_bytes(stripped):
        return None
    try:
        items = _Writer().of(stripped)
    except _NotPlain:
        return None
    rows = {"name": "rows", "type": {"type": "array", "items": items}}
    fields = [rows, {"name": "end", "type": "long"}]
    return json.dumps({"type": "record", "name": "block", "fields": fields})


class _Writer:
    """Writes every type out where it is used: pyruhvro knows no references."""

    def __init__(self) -> None:
        self._named: dict[str, dict[str, Any]] = {}
        self._open: list[str] = []
        self._count = self._maps = 0

    def of(self, schema: Any) -> Any:
        """Return a schema of the same bytes.

        Raises:
            _NotPlain: pyruhvro decodes none.
        """
        self._count += 1
        if self._count > _MOST_TYPES:
            raise _NotPlain
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            return self._named_type(schema)
        kind = schema["type"]
        if kind == "array":
            return {"type": "array", "items": self.of(schema["items"])}
        if kind == "map":
            self._maps += 1
            values = self.of(schema["values"])
            self._maps -= 1
            return {"type": "map", "values": values}
        if "name" in schema:
            self._named[schema["name"]] = schema
        if kind == "fixed":
            return self._words(schema["size"])
        if kind == "record":
            return self._record(schema)
        return self.of(kind)

    def _named_type(self, name: str) -> Any:
        if name in _SAME:
            # There, pyruhvro lets nothing be null without a union.
            if name == "null" and self._maps:
                raise _NotPlain
            return name
        if name == "int":
            return _AS_LONG
        if name == "bytes":
            return _AS_TEXT
        # A type within itself has no Arrow type.
        if name in self._open or name not in self._named:
            raise _NotPlain
        return self.of(self._named[name])

    def _union(self, branches: list[Any]) -> list[Any]:
        if len(branches) != 2 or "null" not in branches:
            raise _NotPlain
        return [branch if branch == "null" else self.of(branch) for branch in branches]

    def _record(self, schema: dict[str, Any]) -> dict[str, Any]:
        self._open.append(schema["name"])
        types = [self.of(field["type"]) for field in schema["fields"]]
        self._open.pop()
        return self._struct(types)

    def _words(self, size: int) -> dict[str, Any]:
        # Nothing of a single byte takes all of its values.
        if size % 4:
            raise _NotPlain
        return self._struct(["double"] * (size // 8) + ["float"] * (size % 8 // 4))

    def _struct(self, types: list[Any]) -> dict[str, Any]:
        if not types:
            raise _NotPlain
        self._count += 1
        fields = [{"name": f"f{at}", "type": kind} for at, kind in enumerate(types)]
        return {"type": "record", "name": f"r{self._count}", "fields": fields}


def _built(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return what was decoded as the type that the values have.

    Raises:
        ValueError: there is something that this type does not have.
    """
    if _types.is_fixed_size_binary(kind):
        return _bytes_of_words(array, kind)
    if _types.is_struct(kind):
        children = [_built(array.field(at), kind[at].type) for at in range(kind.num_fields)]
        return _of_parts(array, kind, 1, children)
    if _types.is_map(kind):
        if _repeats_a_key(array):
            raise ValueError("a key twice in a map, of which the last counts")
        keys, values = _built(array.keys, kind.key_type), _built(array.items, kind.item_type)
        entries = pa.StructArray.from_arrays(
            [keys, values], fields=[kind.key_field, kind.item_field]
        )
        return _of_parts(array, kind, 2, [entries])
    if _types.is_list(kind):
        return _of_parts(array, kind, 2, [_built(array.values, kind.value_type)])
    if _types.is_string(kind):
        # Back from bytes, which looks at the text.
        return array.cast(pa.binary()).cast(kind)
    return array if array.type == kind else array.cast(kind)


def _of_parts(array: pa.Array, kind: pa.DataType, count: int, children: list[pa.Array]) -> pa.Array:
    buffers = array.buffers()[:count]
    return pa.Array.from_buffers(
        kind, len(array), buffers, array.null_count, array.offset, children
    )


def _bytes_of_words(array: pa.StructArray, kind: pa.DataType) -> pa.Array:
    words = [array.field(at) for at in range(array.type.num_fields)]
    shapes = [(len(array), word.type.bit_width // 8) for word in words]
    parts = [
        np.frombuffer(word.buffers()[1], np.uint8).reshape(shape)
        for word, shape in zip(words, shapes, strict=True)
    ]
    return in_place_of(array, np.concatenate(parts, axis=1), kind)


def _repeats_a_key(array: pa.MapArray) -> bool:
    keys = array.keys.cast(pa.binary()).dictionary_encode()
    most = len(keys.dictionary)
    lengths = np.diff(array.offsets.to_numpy())
    places = np.repeat(np.arange(len(array)) * most, lengths) + keys.indices.to_numpy()
    if len(array) * most > 16 * len(keys):
        return len(np.unique(places)) < len(keys)
    seen = np.zeros(len(array) * most, np.bool_)
    seen[places] = True
    return int(np.count_nonzero(seen)) < len(keys)


def _pyruhvro() -> ModuleType:
    try:
        return importlib.import_module("pyruhvro")
    except ImportError as err:
        raise not_installed("option fileFormat is avro", "", "pyruhvro", "avro") from err
