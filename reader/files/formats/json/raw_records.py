"""The exact path of JSON: fields of records, by whole columns.

msgspec finds the fields of each record and leaves their text as it is. All texts of a column are
decoded at once; if one does not fit, each is by itself. A value that does not fit is null; fields
of its struct, and other elements of an array of structs, are kept, as by Spark's reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, chain
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
import pyarrow as pa

from ...evolution.type_growth import is_variant
from ...options import ReaderOptions
from ...values.times.temporal import Temporal
from ...values.variant.json_variant import encode
from .flat_records import MINUS_ZERO, REFUSALS, python_type
from .json_values import base64_of, misfit, scalar
from .strict_json import WORD_NUMBER, deep, tree_of, written

_types = pa.types

Texts = Sequence[msgspec.Raw | None]
"""The texts of the values of one column; None where a record has no such field."""

_NULL = msgspec.Raw(b"null")
_TEXT = msgspec.json.Decoder(str)


class Column(NamedTuple):
    """Values, and by their places what does not fit."""

    array: pa.Array
    misfits: dict[int, str]
    """Values that are null because they do not fit."""

    partial: dict[int, str]
    """Values of which a part fits."""


ColumnReader = Callable[[Texts], Column]
"""Reads one value for each text."""


def readers(
    fields: Iterable[pa.Field], options: ReaderOptions, temporal: Temporal
) -> dict[str, ColumnReader]:
    """Return the reader of each field.

    Raises:
        TypeError: JSON cannot be read into columns of one of these types.
    """
    return {field.name: _reader(field.type, options, temporal) for field in fields}


def _reader(kind: pa.DataType, options: ReaderOptions, temporal: Temporal) -> ColumnReader:
    if is_variant(kind):
        return _leaves(kind, None, lambda text: encode(tree_of(text, options)), takes_null=True)
    if _types.is_struct(kind):
        return _structs(kind, readers(kind, options, temporal))
    if _types.is_list(kind):
        return _lists(kind, _reader(kind.value_type, options, temporal))
    if _types.is_map(kind):
        if not _types.is_string(kind.key_type):
            raise TypeError("JSON can be read only into maps with string keys")
        return _maps(kind, _reader(kind.item_type, options, temporal))
    if _types.is_string(kind):
        return _leaves(kind, _plain(kind, str), lambda text: _token(text)[1])
    if _types.is_binary(kind):
        return _leaves(kind, None, _binary)
    convert = scalar(kind, options, temporal)
    typed = _plain(kind, python_type(kind))
    if _types.is_date(kind) or _types.is_timestamp(kind):

        def times(values: list[Any]) -> pa.Array:
            return temporal.column(pa.array(values, pa.string()), kind)

        typed = msgspec.json.Decoder(list[str | None]), times
    return _leaves(kind, typed, lambda text: convert(*_token(text)))


_Typed = tuple[msgspec.json.Decoder[Any], Callable[[list[Any]], pa.Array]]


def _plain(kind: pa.DataType, python_kind: Any) -> _Typed | None:
    if python_kind is None:
        return None
    return msgspec.json.Decoder(list[python_kind | None]), lambda values: pa.array(values, kind)


def _token(text: bytes) -> tuple[str, str]:
    """Return the kind of a value, and its text: see `scalar`."""
    if text[:1] == b'"':
        return "string", _TEXT.decode(text)
    word = written(text)
    if word in ("true", "false") or word[0] in "{[":
        return word, word
    return ("int" if word.lstrip("-").isdigit() else "float"), word


def _binary(text: bytes) -> bytes:
    if text[:1] != b'"':
        raise misfit(written(text), "base64 text")
    return base64_of(_TEXT.decode(text))


def _joined(texts: Texts) -> bytes:
    if None in texts:
        texts = [_NULL if text is None else text for text in texts]
    return b"[" + b",".join(cast("Sequence[bytes]", texts)) + b"]"


def _leaves(
    kind: pa.DataType,
    typed: _Typed | None,
    convert: Callable[[bytes], Any],
    *,
    takes_null: bool = False,
) -> ColumnReader:
    """For values without parts."""
    null, has_floats = b"" if takes_null else b"null", _types.is_floating(kind)

    def at_once(joined: bytes) -> pa.Array:
        if typed is None or (has_floats and (WORD_NUMBER in joined or MINUS_ZERO.search(joined))):
            raise ValueError("a word for no number, or an integer -0, which is 0.0 for Spark")
        decoder, array_of = typed
        return array_of(decoder.decode(joined))

    def read(texts: Texts) -> Column:
        if typed is not None:
            with suppress(*REFUSALS, pa.ArrowException):
                return Column(at_once(_joined(texts)), {}, {})
        values, misfits = list[Any](), dict[int, str]()
        for at, raw in enumerate(texts):
            text = null if raw is None else bytes(raw)
            value = None
            if raw is not None and text != null:
                try:
                    value = convert(text)
                except ValueError as err:
                    misfits[at] = str(err)
            values.append(value)
        return Column(pa.array(values, kind), misfits, {})

    return read


def _nested(
    part_type: Any, expected: str, column_of: Callable[[list[Any]], Column], hook: Any = None
) -> ColumnReader:
    """For values with parts, whose texts are found first."""
    all_of = msgspec.json.Decoder(list[part_type | None], dec_hook=hook)
    one_of = msgspec.json.Decoder(part_type | None, dec_hook=hook)

    def read(texts: Texts) -> Column:
        misfits = dict[int, str]()
        try:
            values = deep(all_of, _joined(texts))
        except msgspec.ValidationError:
            values = [None] * len(texts)
            for at, text in enumerate(texts):
                if text is not None:
                    try:
                        values[at] = deep(one_of, bytes(text))
                    except msgspec.ValidationError:
                        misfits[at] = str(misfit(written(bytes(text)), expected))
        column = column_of(values)
        return column._replace(misfits=column.misfits | misfits)

    return read


def _structs(kind: pa.StructType, fields: Mapping[str, ColumnReader]) -> ColumnReader:
    def column(values: list[Any]) -> Column:
        arrays, partial = [], dict[int, str]()
        for name, read in fields.items():
            inner = read([None if value is None else value.get(name) for value in values])
            arrays.append(inner.array)
            partial = named(name, inner) | partial
        if not arrays:
            return Column(pa.array([None if v is None else {} for v in values], kind), {}, {})
        array = pa.StructArray.from_arrays(arrays, fields=list(kind), mask=_nulls(values))
        return Column(array, {}, partial)

    return _nested(dict[str, msgspec.Raw], "an object", column)


def named(name: str, column: Column) -> dict[int, str]:
    """Return all that does not fit in the column of a field."""
    return {at: f"{name}: {why}" for at, why in (column.partial | column.misfits).items()}


def _repeated(
    inner: ColumnReader,
    parts_of: Callable[[Any], Iterable[msgspec.Raw]],
    array_of: Callable[[pa.Array, list[Any], pa.Array], pa.Array],
) -> Callable[[list[Any]], Column]:
    """For lists and maps: a part that does not fit at all takes the value with it."""

    def column(values: list[Any]) -> Column:
        there = (value for value in values if value is not None)
        parts = inner(list(chain.from_iterable(map(parts_of, there))))
        ends = list(accumulate(0 if value is None else len(value) for value in values))
        if parts.misfits:
            misfits = _by_value(parts.misfits, ends)
            rest = column([None if at in misfits else v for at, v in enumerate(values)])
            return rest._replace(misfits=misfits)
        array = array_of(pa.array([0, *ends], pa.int32()), values, parts.array)
        return Column(array, {}, _by_value(parts.partial, ends))

    return column


def _by_value(problems: dict[int, str], ends: list[int]) -> dict[int, str]:
    places = np.searchsorted(ends, list(problems), side="right").tolist()
    # Reversed, so that the first problem of a value is the one that is named.
    return dict(zip(reversed(places), reversed(problems.values()), strict=True))


def _nulls(values: list[Any]) -> pa.Array | None:
    return pa.array([value is None for value in values]) if None in values else None


def _lists(kind: pa.ListType, inner: ColumnReader) -> ColumnReader:
    def array(offsets: pa.Array, values: list[Any], parts: pa.Array) -> pa.Array:
        return pa.ListArray.from_arrays(offsets, parts, type=kind, mask=_nulls(values))

    return _nested(list[msgspec.Raw], "an array", _repeated(inner, iter, array))


class _EntryName(str):
    """A name that differs from any other, so that Spark's maps keep names that come twice."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def _maps(kind: pa.MapType, inner: ColumnReader) -> ColumnReader:
    def array(offsets: pa.Array, values: list[Any], items: pa.Array) -> pa.Array:
        names = [name for value in values if value is not None for name in value]
        keys = pa.array(names, pa.string())
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=_nulls(values))

    column = _repeated(inner, dict.values, array)
    part_type = dict[_EntryName, msgspec.Raw]
    return _nested(part_type, "an object", column, lambda _, name: _EntryName(name))
