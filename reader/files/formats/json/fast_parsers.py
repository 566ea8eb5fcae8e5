"""Blocks of whole lines as columns, by the fast parsers; each refuses what it is not sure of.

msgspec takes flat records (`flat_records.py`). For others there are two parsers at once: arrow-json
(Rust's, as arro3-io) makes structs, arrays, maps and decimals fast, and is lax: it takes text for
numbers, 1.5 for the integer 1, `01`, commas that are missing or too many. msgspec is strict, and
passes over what it is not asked for at a gigabyte a second. So it is asked for the numbers only: it
proves that the text is JSON and that each number of the schema is a number of its kind, and drops
them. For strings, booleans, structs, arrays and maps arrow-json takes nothing else by itself, and
it keeps every entry of a map, as Spark does. Of flat records the proof alone would be half of the
work.

What they refuse is tried by msgspec again if it is flat: then it takes any value in columns of
strings, as it is written. What they are known to read otherwise than Spark is looked for here: a
negative zero that is an integer, and bytes that are not UTF-8.

Dates, timestamps and binary are parsed as strings first, because Spark's reading of them depends on
options: the schema that a parser is given is not the target's.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, Self

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...evolution.type_growth import holds, is_variant
from ...options import ReaderOptions
from ...values.numbers import decimals
from ...values.rows import batch_of, columns_of, gc_paused, null_mask
from ...values.strings import has_lone_return, is_utf8
from ...values.times.temporal import Temporal
from ..records.record_format import Origin
from .flat_records import LONG, MINUS_ZERO, NAME_ESCAPED, REFUSALS, FlatRecords, record_type
from .json_values import base64_of


def intermediate_schema(data: pa.Schema) -> pa.Schema | None:
    """Return what a parser is asked for; None if it cannot parse a type, or a name comes twice."""
    kinds = [intermediate_type(kind) for kind in data.types]
    if None in kinds or len(set(data.names)) < len(data):
        return None
    return pa.schema(list(zip(data.names, kinds, strict=True)))


def intermediate_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type that a parser is asked for; None if it cannot parse `kind`."""
    if is_variant(kind):
        return None
    if _types.is_struct(kind):
        names = [child.name for child in kind]
        kinds = [intermediate_type(child.type) for child in kind]
        # No parser makes a struct without fields.
        return pa.struct(zip(names, kinds, strict=True)) if kinds and None not in kinds else None
    if _types.is_list(kind):
        value = intermediate_type(kind.value_type)
        return None if value is None else pa.list_(pa.field(kind.value_field.name, value))
    if _types.is_map(kind) and _types.is_string(kind.key_type):
        item = intermediate_type(kind.item_type)
        return None if item is None else pa.map_(kind.key_type, item)
    if _types.is_date(kind) or _types.is_timestamp(kind) or _types.is_binary(kind):
        return pa.string()
    if _types.is_decimal(kind):
        # arrow-json cuts digits off; with one more than are wanted, they can be rounded.
        return pa.decimal256(min(76, kind.precision + 1), kind.scale + 1)
    simple = _types.is_integer(kind) or _types.is_floating(kind)
    return kind if simple or _types.is_string(kind) or _types.is_boolean(kind) else None


def finish(array: pa.Array, target: pa.DataType, temporal: Temporal) -> pa.Array:
    """A parsed column in its target type. Raises ValueError where the exact path has to decide."""
    if array.type == target:
        return array
    if _types.is_decimal(target):
        if _types.is_decimal(array.type):
            array = pc.round(array, target.scale, "half_towards_infinity")
        return decimals(array, target)
    if _types.is_struct(target):
        fields = list(target)
        children = [finish(array.field(i), f.type, temporal) for i, f in enumerate(fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=null_mask(array))
    if _types.is_list(target):
        values = finish(array.values, target.value_type, temporal)
        return pa.ListArray.from_arrays(array.offsets, values, type=target, mask=null_mask(array))
    if _types.is_map(target):
        items = finish(array.items, target.item_type, temporal)
        return pa.MapArray.from_arrays(
            array.offsets, array.keys, items, type=target, mask=null_mask(array)
        )
    if _types.is_binary(target):
        texts = array.to_pylist()
        return pa.array([None if text is None else base64_of(text) for text in texts], target)
    return temporal.column(array, target)


_types = pa.types

_CACHED = 400_000
"""Bytes of text that are turned into columns at a time: what stays in a core's cache."""

_MANY = 64
"""Fields from which on msgspec is faster if it knows all of them, in their order."""

# Types that are put together while the program runs.
_ARRAY: Any = list
_OBJECT: Any = dict


class NestedRecords:
    """Decodes lines of objects; every type but decimals and floats in maps."""

    def __init__(self, intermediate: pa.Schema, proof: Any) -> None:
        """`proof` is what msgspec decodes a record to; see `of`."""
        self._schema = intermediate
        self._decoder = msgspec.json.Decoder(proof)

    @classmethod
    def of(cls, intermediate: pa.Schema | None, *, known_only: bool) -> Self | None:
        """For a schema out of `intermediate_schema`; None if it cannot be had this way.

        With `known_only`, records with other fields are refused.
        """
        if intermediate is None:
            return None
        try:
            proof = _proof(pa.struct(list(intermediate)), known_only=known_only)
        except TypeError:
            return None
        return cls(intermediate, proof or msgspec.Raw)

    def columns(self, data: bytes) -> tuple[list[pa.Array], int]:
        """Return one array for each column of the schema, and the number of records.

        Raises:
            ArrowException: a value is not of its type.
            Exception: one of `REFUSALS`, for anything else that is not exactly JSON.
        """
        from arro3.io import read_json

        with gc_paused():
            proven = len(self._decoder.decode_lines(data))
        rows = max(1, proven * _CACHED // max(1, len(data)))
        table = pa.table(read_json(data, self._schema, batch_size=rows))
        # arrow-json is lax: it may find other records than the ones that msgspec has proven.
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
        value = _proof(kind.item_type, known_only=known_only)
        return value and _OBJECT[str, value | None]
    if _types.is_integer(kind):
        return LONG if kind == pa.int64() else int
    return float if _types.is_floating(kind) or _types.is_decimal(kind) else None


class FastRecords:
    """The fast parsers for one schema."""

    def __init__(
        self, schema: pa.Schema, data: pa.Schema, options: ReaderOptions, temporal: Temporal
    ) -> None:
        """`schema` is that of the batches, `data` that of what records hold."""
        self._schema, self._data = schema, data
        self._options, self._temporal = options, temporal
        self._floats = [at for at, kind in enumerate(data.types) if holds(kind, _types.is_floating)]
        known_only = options.checks_unknown_fields
        intermediate = intermediate_schema(data)
        self._strict: FlatRecords | NestedRecords | None
        self._strict = FlatRecords.of(intermediate, known_only=known_only)
        if self._strict is None:
            self._strict = NestedRecords.of(intermediate, known_only=known_only)
        self._written: FlatRecords | None = None
        texts = [f.name for f in data if _types.is_string(f.type) or _types.is_decimal(f.type)]
        if texts:
            self._written = FlatRecords.of(intermediate, known_only=known_only, written=texts)

    def batch(self, data: bytes) -> pa.RecordBatch | None:
        """Return the records in `data`; None where a parser refuses or might be wrong."""
        if not is_utf8(data):
            return None
        parsed = self._columns(self._strict, data) or self._columns(self._written, data)
        if parsed is None:
            return None
        intermediate, rows = parsed
        if (
            b"-" in data
            and any(_has_minus_zero(intermediate[at]) for at in self._floats)
            and MINUS_ZERO.search(data)
        ):
            return None
        try:
            return self._assembled(intermediate, rows)
        except (ValueError, pa.ArrowException):
            return None

    def _columns(
        self, records: FlatRecords | NestedRecords | None, data: bytes
    ) -> tuple[list[pa.Array], int] | None:
        if records is None:
            return None
        try:
            return records.columns(data)
        except (*REFUSALS, ValueError, pa.ArrowException):
            return None

    def _assembled(self, intermediate: list[pa.Array], rows: int) -> pa.RecordBatch:
        columns = {
            field.name: finish(column, field.type, self._temporal)
            for field, column in zip(self._data, intermediate, strict=True)
        }
        return batch_of(self._schema, rows, columns)


def _has_minus_zero(array: pa.Array) -> bool:
    """Return whether a float is -0.0. For Spark the integer -0 in a column of floats is 0.0."""
    if _types.is_struct(array.type):
        return any(_has_minus_zero(array.field(index)) for index in range(array.type.num_fields))
    if _types.is_list(array.type):
        return _has_minus_zero(array.values)
    if _types.is_map(array.type):
        return _has_minus_zero(array.items)
    if not _types.is_floating(array.type) or not len(array):
        return False
    # Its sign bit and nothing else; a null is a zero beneath.
    bits = np.frombuffer(array.buffers()[1], f"u{array.type.byte_width}")
    return bool((bits == 1 << (array.type.bit_width - 1)).any())


_OPENS = re.compile(rb"\s*\{")


def parseable(data: bytes) -> bool:
    """Return whether the fast parsers may be given these bytes at all.

    They begin with an object, and every carriage return belongs to a line feed: a lone one ends a
    line for Spark.
    """
    return _OPENS.match(data) is not None and not has_lone_return(data)


def rows_by_file(data: bytes, source: Origin, rows: int) -> list[int] | None:
    """Records of each file if each line held exactly one, or nothing but blanks; None if not.

    `rows` is what a parser found in `data`, which is valid JSON if blanks may be anywhere.
    Every line feed between `}` and `{` then is a boundary between two records: inside of one, a
    comma would be between them. With as many records as lines, each line has one.
    """
    raw = np.frombuffer(data, np.uint8)
    feeds = np.flatnonzero(raw == ord("\n"))
    inner = feeds[:-1] if data.endswith(b"\n") else feeds
    clean = (
        data.startswith(b"{")
        and (raw[inner - 1] == ord("}")).all()
        and (raw[inner + 1] == ord("{")).all()
    )
    if clean and rows == len(inner) + 1:
        if len(source.files) == 1:
            return [rows]
        return source.by_file(feeds, len(data))
    return _rows_by_line(data, source, rows)


def _rows_by_line(data: bytes, source: Origin, rows: int) -> list[int] | None:
    """Return the same for lines with blanks around the records, and for blank lines."""
    counts = []
    for begin, end in pairwise([*source.starts, len(data)]):
        lines = [line.strip() for line in data[begin:end].split(b"\n")]
        records = [line for line in lines if line]
        if not all(line.startswith(b"{") and line.endswith(b"}") for line in records):
            return None
        counts.append(len(records))
    return counts if sum(counts) == rows else None
