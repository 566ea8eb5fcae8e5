"""Blocks of whole lines as columns, by the fast parsers; each refuses what it is not sure of.

msgspec takes flat records (`plain_records.py`). For nested ones there are two parsers at once:
arrow-json (Rust's, as arro3-io) makes structs, arrays and maps two to three times as fast as
pyarrow's parser, and is lax: it takes text for numbers, 1.5 for the integer 1, `01`, commas that
are missing or too many. msgspec is strict, and passes over what it is not asked for at a gigabyte
a second. So it is asked for the numbers only: it proves that the text is JSON and that each number
of the schema is a number of its kind, and drops them. For strings, booleans, structs, arrays and
maps arrow-json takes nothing else by itself, and it keeps every entry of a map, as Spark does. Of
flat records the proof alone would be half of the work.

pyarrow's parser with an explicit schema takes what these two do not: decimals, and 32 bit floats in
flat records. It knows no maps, which come by arrow-json even then. What it refuses too is tried by
msgspec again, which then takes any value in columns of strings, as it is written. What they are
known to read otherwise than Spark is looked for here: a negative zero that is an integer, bytes
that are not UTF-8, words for no number, numbers with too many digits.

Dates, timestamps and binary are parsed as strings first, because Spark's reading of them depends on
options: the schema that a parser is given is not the target's.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated, Any, Self

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json

from ...evolution.type_growth import is_variant
from ...options import ReaderOptions
from ...values.numbers import decimals
from ...values.rows import batch_of, columns_of, gc_paused, null_mask
from ...values.strings import has_lone_return, is_utf8
from ...values.times.temporal import Temporal
from ..records.record_format import Origin
from .json_values import may_exceed, plain_base64
from .plain_records import NAME_ESCAPED, REFUSALS, FlatRecords, record_type


def intermediate_schema(data: pa.Schema, *, maps: bool) -> pa.Schema | None:
    """Return what a parser is asked for; None if it cannot parse a type, or a name comes twice."""
    kinds = [intermediate_type(kind, maps=maps) for kind in data.types]
    if None in kinds or len(set(data.names)) < len(data):
        return None
    return pa.schema(list(zip(data.names, kinds, strict=True)))


def intermediate_type(kind: pa.DataType, *, maps: bool) -> pa.DataType | None:
    """Return the type that a parser is asked for; None if it cannot parse `kind`, as most maps."""
    if is_variant(kind):
        return None
    if _types.is_struct(kind):
        names = [child.name for child in kind]
        kinds = [intermediate_type(child.type, maps=maps) for child in kind]
        # No parser makes a struct without fields.
        return pa.struct(zip(names, kinds, strict=True)) if kinds and None not in kinds else None
    if _types.is_list(kind):
        value = intermediate_type(kind.value_type, maps=maps)
        return None if value is None else pa.list_(pa.field(kind.value_field.name, value))
    if _types.is_map(kind) and maps and _types.is_string(kind.key_type):
        item = intermediate_type(kind.item_type, maps=maps)
        return None if item is None else pa.map_(kind.key_type, item)
    if _types.is_date(kind) or _types.is_timestamp(kind) or _types.is_binary(kind):
        return pa.string()
    if _types.is_decimal(kind):
        # pyarrow does not notice what goes beyond 128 bits. 38 digits stay within 256 at any scale.
        return pa.decimal256(38, kind.scale)
    simple = _types.is_integer(kind) or _types.is_floating(kind)
    return kind if simple or _types.is_string(kind) or _types.is_boolean(kind) else None


def holds_floats(kind: pa.DataType) -> bool:
    """Return whether a number in `kind` is a float, at any depth."""
    children = [kind.field(at).type for at in range(kind.num_fields)]
    return _types.is_floating(kind) or any(map(holds_floats, children))


def finish(array: pa.Array, target: pa.DataType, temporal: Temporal) -> pa.Array:
    """A parsed column in its target type. Raises ValueError where the exact path has to decide."""
    if array.type == target:
        return array
    if _types.is_decimal(target):
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
        return pa.array([None if text is None else plain_base64(text) for text in texts], target)
    return temporal.column(array, target)


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

    def __init__(self, intermediate: pa.Schema, proof: Any) -> None:
        """`proof` is what msgspec decodes a record to; see `of`."""
        self._schema = intermediate
        self._decoder = msgspec.json.Decoder(proof)

    @classmethod
    def of(cls, data: pa.Schema, *, known_only: bool) -> Self | None:
        """For the columns of `data`; None if they are flat, or cannot be had this way.

        With `known_only`, records with other fields are refused.
        """
        intermediate = intermediate_schema(data, maps=True)
        if intermediate is None or not any(map(_types.is_nested, intermediate.types)):
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
        if holds_floats(kind):
            raise TypeError("floats in a map, where nobody looks whether one is -0")
        value = _proof(kind.item_type, known_only=known_only)
        return value and _OBJECT[str, value | None]
    if _types.is_decimal(kind):
        raise TypeError("decimals, which are cut instead of rounded")
    if _types.is_integer(kind):
        return _LONG if kind == pa.int64() else int
    return float if _types.is_floating(kind) else None


_MINUS_ZERO = re.compile(rb"-0(?![0-9.eE])")
_LIKE_AN_EXPONENT = re.compile(rb"-(?<=[eE]-)[0-9]{6}")
_FAR_EXPONENT = re.compile(rb"[\s\":,\[]-?[0-9.]+[eE]-[0-9]{6}")
_NO_NUMBER = re.compile(rb"[:\[,][ \t]*-?(?:NaN|Inf)")


class FastRecords:
    """The fast parsers for one schema."""

    def __init__(
        self, schema: pa.Schema, data: pa.Schema, options: ReaderOptions, temporal: Temporal
    ) -> None:
        """`schema` is that of the batches, `data` that of what records hold."""
        self._schema, self._data = schema, data
        self._options, self._temporal = options, temporal
        maps = [
            field
            for field in data
            if intermediate_type(field.type, maps=True)
            and not intermediate_type(field.type, maps=False)
        ]
        # What pyarrow's parser is to find: all columns without maps.
        plain = pa.schema([field for field in data if field not in maps])
        self._maps = NestedRecords.of(pa.schema(maps), known_only=False)
        self._map_names = [field.name for field in maps]
        can_all = self._maps is not None or not maps
        self._intermediate = intermediate_schema(plain, maps=False) if can_all else None
        self._has_decimals = "decimal" in str(self._intermediate)
        self._floats = [at for at, kind in enumerate(data.types) if holds_floats(kind)]
        known_only = options.checks_unknown_fields
        self._strict: FlatRecords | NestedRecords | None
        self._strict = NestedRecords.of(data, known_only=known_only)
        self._written: FlatRecords | None = None
        if self._strict is None and not maps:
            flat = self._intermediate
            self._strict = FlatRecords.of(flat, known_only=known_only)
            texts = [f.name for f in data if _types.is_string(f.type) or _types.is_decimal(f.type)]
            if texts:
                self._written = FlatRecords.of(flat, known_only=known_only, written=texts)

    def batch(self, data: bytes) -> pa.RecordBatch | None:
        """Return the records in `data`; None where a parser refuses or might be wrong."""
        if not is_utf8(data) or may_exceed(data):
            return None
        parsed = (
            self._by_msgspec(self._strict, data)
            or self._by_pyarrow(data)
            or self._by_msgspec(self._written, data)
        )
        if parsed is None:
            return None
        intermediate, rows = parsed
        if (
            b"-" in data
            and any(_has_minus_zero(intermediate[at]) for at in self._floats)
            and _MINUS_ZERO.search(data)
        ):
            return None
        try:
            return self._assembled(intermediate, rows)
        except (ValueError, pa.ArrowException):
            return None

    def _by_msgspec(
        self, records: FlatRecords | NestedRecords | None, data: bytes
    ) -> tuple[list[pa.Array], int] | None:
        if records is None:
            return None
        try:
            return records.columns(data)
        except (*REFUSALS, ValueError, pa.ArrowException):
            return None

    def _by_pyarrow(self, data: bytes) -> tuple[list[pa.Array], int] | None:
        if self._intermediate is None or _has_word_for_no_number(data):
            return None
        # The parser ends the process for a decimal such as 1e-99999999. The first look for one is
        # the faster one; what it finds may be a part of a UUID.
        if self._has_decimals and _LIKE_AN_EXPONENT.search(data) and _FAR_EXPONENT.search(data):
            return None
        try:
            table = self._table(data, self._intermediate)
            maps, rows = self._maps.columns(data) if self._maps else ([], table.num_rows)
        except (*REFUSALS, ValueError, pa.ArrowException):
            return None
        # Two parsers of the same bytes that find different records: one of them is too lax.
        if rows != table.num_rows:
            return None
        columns = columns_of(table) | dict(zip(self._map_names, maps, strict=False))
        return [columns[name] for name in self._data.names], rows

    def _table(self, data: bytes, intermediate: pa.Schema) -> pa.Table:
        ignored = "error" if self._options.checks_unknown_fields else "ignore"
        options = pa_json.ParseOptions(
            explicit_schema=intermediate, unexpected_field_behavior=ignored
        )
        # One block: a record that reaches across two is an error to pyarrow.
        reading = pa_json.ReadOptions(use_threads=False, block_size=len(data) + 1)
        return pa_json.read_json(pa.BufferReader(data), reading, options)

    def _assembled(self, intermediate: list[pa.Array], rows: int) -> pa.RecordBatch:
        columns = {
            field.name: finish(column, field.type, self._temporal)
            for field, column in zip(self._data, intermediate, strict=True)
        }
        return batch_of(self._schema, rows, columns)


def _has_word_for_no_number(data: bytes) -> bool:
    """Return whether a word may be there that pyarrow takes for a number, such as -NaN or Inf."""
    raw = np.frombuffer(data, np.uint8)
    for word in (b"NaN", b"Inf"):
        # Three times as fast as looking for the word.
        places = np.flatnonzero(raw[:-2] == word[0])
        if ((raw[places + 1] == word[1]) & (raw[places + 2] == word[2])).any():
            return _NO_NUMBER.search(data) is not None
    return False


def _has_minus_zero(array: pa.Array) -> bool:
    """Return whether a float is -0.0. For Spark the integer -0 in a column of floats is 0.0."""
    if _types.is_struct(array.type):
        return any(_has_minus_zero(array.field(index)) for index in range(array.type.num_fields))
    if _types.is_list(array.type):
        return _has_minus_zero(array.values)
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
