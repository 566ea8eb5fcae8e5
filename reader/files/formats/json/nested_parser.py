"""Nested JSON records through two parsers at once: one proves, the other makes columns.

arrow-json (Rust's, as arro3-io) makes structs, arrays and maps two to three times as fast as
pyarrow's parser, and is lax: it takes text for numbers, 1.5 for the integer 1, `01`, commas that
are missing or too many. msgspec is strict, and passes over what it is not asked for at a gigabyte
a second. So it is asked for the numbers only: it proves that the text is JSON and that each number
of the schema is a number of its kind, and drops them. For strings, booleans, structs, arrays and
maps arrow-json takes nothing else by itself, and it keeps every entry of a map, as Spark does.

Not here: whether each line held one record (`record_boundaries.py`), flat records
(`flat_parser.py`), for which the proof alone is half of the work.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

import msgspec
import pyarrow as pa

from ...values.column_fitter import columns_of
from ...values.gc_pause import without_collection
from .flat_parser import NAME_ESCAPED, record_type
from .intermediate_schema import holds_floats, wire_type

_types = pa.types

_CACHED = 400_000
"""Bytes of text that are turned into columns at a time: what stays in a core's cache."""

_MANY = 64
"""Fields from which on msgspec is faster if it knows all of them, in their order."""

# Types that are put together while the program runs.
_ARRAY: Any = list
_OBJECT: Any = dict
_LONG = Annotated[int, msgspec.Meta(ge=-(1 << 63))]
"""arrow-json rounds what is just below to the least number."""


class NestedRecords:
    """Decodes lines of objects; every type but decimals and floats in maps."""

    def __init__(self, wire: pa.Schema, proof: Any) -> None:
        """`proof` is what msgspec decodes a record to; see `of`."""
        self._schema = wire
        self._decoder = msgspec.json.Decoder(proof)

    @classmethod
    def of(cls, data: pa.Schema, *, known_only: bool) -> Self | None:
        """For the columns of `data`; None if they are flat, or cannot be had this way.

        With `known_only`, records with other fields are refused.
        """
        kinds = [wire_type(field.type, maps=True) for field in data]
        if None in kinds or not any(map(_types.is_nested, kinds)):
            return None
        wire = pa.schema(list(zip(data.names, kinds, strict=True)))
        if len(set(wire.names)) < len(wire):
            return None
        try:
            return cls(wire, _proof(pa.struct(list(wire)), known_only=known_only) or msgspec.Raw)
        except TypeError:
            return None

    def columns(self, data: bytes) -> tuple[list[pa.Array], int]:
        """One array for each column of the schema, and the number of records.

        Raises:
            ArrowException: a value is not of its type.
            Exception: one of `structs.REFUSALS`, for anything else that is not exactly JSON.
        """
        from arro3.io import read_json

        with without_collection():
            proven = len(self._decoder.decode_lines(data))
        rows = max(1, proven * _CACHED // max(1, len(data)))
        table = pa.table(read_json(data, self._schema, batch_size=rows))
        if table.num_rows != proven:
            raise pa.ArrowInvalid(f"{table.num_rows} records; expected {proven}")
        return list(columns_of(table).values()), proven


def _proof(kind: pa.DataType, *, known_only: bool) -> Any:
    """The type by which msgspec proves all numbers in `kind`; None if nothing is to be proven.

    With `known_only` it proves that no field is unknown, too.

    Raises:
        TypeError: it has numbers that arrow-json reads otherwise than Spark.
    """
    if _types.is_struct(kind):
        parts = [(field.name, _proof(field.type, known_only=known_only)) for field in kind]
        if any(NAME_ESCAPED.search(name) for name, _ in parts):
            raise TypeError("a name that is escaped")
        all_of_them = known_only or len(parts) > _MANY
        asked = [
            (name, part | None if part else msgspec.Raw)
            for name, part in parts
            if part or all_of_them
        ]
        return record_type(asked, known_only=known_only) if asked else None
    if _types.is_list(kind):
        value = _proof(kind.value_type, known_only=known_only)
        return value and _ARRAY[value | None]
    if _types.is_map(kind):
        if holds_floats(kind):
            raise TypeError("floats in a map, where nobody looks whether one is -0")
        value = _proof(kind.item_type, known_only=known_only)
        return value and _OBJECT[str, value | None]
    if _types.is_decimal(kind):
        raise TypeError("decimals, which are cut instead of rounded")
    if _types.is_integer(kind):
        return _LONG if kind == pa.int64() else int
    return float if _types.is_floating(kind) else None
