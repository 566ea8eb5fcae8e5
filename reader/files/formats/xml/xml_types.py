"""Types of XML as in Spark's reader: types of elements, inference, and conversion of texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa

from ...evolution.type_growth import aligned, merged
from ...options import ReaderOptions
from ...values.numbers import floating
from ...values.text_types import TextTypes, text_converter, text_leaf
from ...values.times.temporal import Temporal
from ..records.outcome import ValueMisfit

_types = pa.types

Scalar = Callable[[str], object]

_GROUPED = re.compile(r"[+-]?\d[\d,]*(?:\.\d*)?", re.ASCII)
# Spark's XML reader takes digits as well, unlike its readers of CSV and JSON.
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


class Shape:
    """The values under one name, over all records."""

    def __init__(self, value_tag: str, types: TextTypes | None) -> None:
        """Without `types` every text is a string."""
        self._value_tag, self._types = value_tag, types
        self._leaf: pa.DataType = pa.null()
        self._fields: dict[str, tuple[str, Shape]] = {}
        self._repeats = False

    def add(self, value: Any) -> None:
        """Take one more value: text, an object of names, a list of them, or null."""
        if isinstance(value, list):
            self._repeats = True
            for one in value:
                self.add(one)
        elif isinstance(value, dict):
            seen = set[str]()
            for name, inner in value.items():
                field = self._field(name)
                # Names that differ only in case are one name for Spark.
                field._repeats |= name.lower() in seen  # noqa: SLF001 this class's own
                seen.add(name.lower())
                field.add(inner)
        elif value and not _types.is_string(self._leaf):
            self._leaf = merged(self._leaf, self._type_of(value), text_leaf)

    def _field(self, name: str) -> Shape:
        field = self._fields.get(name.lower())
        if field is None:
            field = name, Shape(self._value_tag, self._types)
            self._fields[name.lower()] = field
        return field[1]

    def _type_of(self, text: str) -> pa.DataType:
        if self._types is None:
            return pa.string()
        kind = self._types.of(text)
        # As Spark infers XML, integers beyond `bigint` are `double`.
        if _types.is_decimal(kind):
            return pa.float64()
        # Java reads 1d as a number, which Spark's XML reader does not take for one.
        is_word = _types.is_floating(kind) and text[-1] in "dDfF"
        return pa.string() if is_word else kind

    def type(self) -> pa.DataType:
        """Return the one type that takes all of them; null if there was no value."""
        kind = self._leaf
        if self._fields:
            fields = {name: shape.type() for name, shape in self._fields.values()}
            kind = _with_text(pa.struct(list(fields.items())), self._leaf, self._value_tag)
        return pa.list_(pa.field("element", kind)) if self._repeats else kind


def _with_text(kind: pa.StructType, leaf: pa.DataType, value_tag: str) -> pa.DataType:
    """Return the type for elements of which some have fields, and some only text."""
    if _types.is_null(leaf):
        return kind
    index = kind.get_field_index(value_tag)
    if index < 0:
        return pa.string()
    text_field, by = kind.field(index), partial(_leaf, value_tag)
    return pa.struct([
        field.with_type(merged(field.type, leaf, by)) if field == text_field else field
        for field in kind
    ])  # fmt: skip


def common_type(one: pa.DataType, other: pa.DataType, value_tag: str) -> pa.DataType:
    """Return the one type for what was found in two files, in the spelling of the first."""
    return merged(one, aligned(other, one), partial(_leaf, value_tag))


def _leaf(value_tag: str, one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if _types.is_list(one) or _types.is_list(other):
        first, second = (k.value_type if _types.is_list(k) else k for k in (one, other))
        value = merged(first, second, partial(_leaf, value_tag))
        return pa.list_(pa.field("element", value))
    if _types.is_struct(one):
        return _with_text(one, other, value_tag)
    if _types.is_struct(other):
        return _with_text(other, one, value_tag)
    return text_leaf(one, other)


def temporal_of(options: ReaderOptions) -> Temporal:
    """The rules of times: dates without a pattern are in the form `yyyy-MM-dd` and no other."""
    pattern = options.date_format or "yyyy-MM-dd"
    return Temporal(options.model_copy(update={"date_format": pattern}))


def scalar(kind: pa.DataType, temporal: Temporal) -> Scalar:
    """Return a function from text to what `pa.array` takes for `kind`. It raises `ValueMisfit`.

    Raises:
        TypeError: XML cannot be read into columns of this type.
    """
    convert = text_converter(kind, temporal, floats=_floating, booleans=_boolean)

    def converted(text: str) -> object:
        try:
            return convert(text)
        except (ValueError, OverflowError):
            raise ValueMisfit(f"{text[:100]!r} where {kind} is expected") from None

    return converted


def _floating(text: str, kind: pa.DataType) -> float:
    with suppress(ValueError):
        return floating(text, kind)
    # What `Double.parseDouble` refuses, `StaxXmlParser` gives to `NumberFormat`, which reads
    # `1,000`.
    if not _GROUPED.fullmatch(text):
        raise ValueError(text)
    return floating(text.replace(",", ""), kind)


def _boolean(text: str) -> bool:
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise ValueError(text)
    return value
