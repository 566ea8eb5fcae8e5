"""Spark's `variant` out of what files keep of it, shredded into columns or not.

Parquet may take values of the usual types out of a variant's binary value and keep them as columns
(VariantShredding.md in apache/parquet-format); Spark 4.3 does so unless told otherwise. Here they
are put back, into the very bytes that Spark's reader makes. The bytes themselves are in
`variant_encoding.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from ...evolution.type_growth import is_list
from ..map_nested import plain
from .variant_encoding import (
    Names,
    Scalar,
    array_of,
    copied,
    fields_of,
    metadata_of,
    names_of,
    object_of,
    scalar_of,
)

Build = Callable[[int, list[str], Names], bytes | None]


def is_shredded(kind: pa.DataType) -> bool:
    """Return whether `kind` keeps a variant, at least in part, in columns of its own."""
    return bool(pa.types.is_struct(kind) and kind.get_field_index("typed_value") >= 0)


def reassembler(source: pa.StructType, target: pa.StructType) -> Callable[[pa.Array], pa.Array]:
    """Return the way from a shredded variant to `target`, the struct that Spark has for it.

    Both this and the way itself raise ValueError for shapes and types that Spark's variants lack.
    """
    if source.get_field_index("metadata") < 0:
        raise ValueError("a shredded variant without metadata")
    _check_group(source)

    def convert(array: pa.StructArray) -> pa.StructArray:
        stored = array.field("metadata").to_pylist()
        valid = array.is_valid().to_pylist()
        build = _group(array)
        # Rows of one writer mostly share their dictionary of names.
        names_by_metadata: dict[bytes, list[str]] = {}
        rows = [
            _variant(index, build, stored[index], names_by_metadata) if valid[index] else None
            for index in range(len(array))
        ]
        return pa.array(rows, target)

    return convert


def _variant(
    index: int, build: Build, stored: bytes | None, names_by_metadata: dict[bytes, list[str]]
) -> dict[str, bytes]:
    if stored is None:
        raise ValueError("a variant without metadata")
    if stored not in names_by_metadata:
        names_by_metadata[stored] = names_of(stored)
    names: Names = {}
    value = build(index, names_by_metadata[stored], names)
    if value is None:
        raise ValueError("a variant without any value")
    return {"value": value, "metadata": metadata_of(names)}


def _check_group(kind: pa.DataType) -> None:
    """Refuse what cannot be put together before any row is read."""
    names = {field.name for field in kind} if pa.types.is_struct(kind) else set()
    if not names & {"value", "typed_value"}:
        raise ValueError(f"{kind} within a shredded variant")
    if "typed_value" not in names:
        return
    typed, _ = plain(kind.field("typed_value").type)
    if pa.types.is_struct(typed):
        for field in typed:
            _check_group(field.type)
    elif is_list(typed):
        _check_group(typed.value_type)
    elif scalar_of(typed) is None:
        raise ValueError(f"a shredded variant with values of type {typed}")


def _group(array: pa.StructArray) -> Build:
    """Builds the value at an index of a `value` and `typed_value` pair; None where it is absent."""
    has_value = array.type.get_field_index("value") >= 0
    values = array.field("value").to_pylist() if has_value else [None] * len(array)
    if array.type.get_field_index("typed_value") < 0:
        return _untyped(values)
    typed = array.field("typed_value")
    simple, unwrap = plain(typed.type)
    typed = typed if unwrap is None else unwrap(typed)
    if pa.types.is_struct(simple):
        return _object(typed, values)
    if is_list(simple):
        return _either(_list(typed), values)
    scalar = scalar_of(simple)
    assert scalar is not None
    return _either(_scalar(scalar, typed), values)


def _untyped(values: list[bytes | None]) -> Build:
    def build(index: int, old: list[str], names: Names) -> bytes | None:
        value = values[index]
        return None if value is None else copied(value, old, names)

    return build


def _either(typed: Build, values: list[bytes | None]) -> Build:
    untyped = _untyped(values)

    def build(index: int, old: list[str], names: Names) -> bytes | None:
        # By VariantShredding.md only an object may have both, the shredded fields and the rest.
        value = typed(index, old, names)
        return untyped(index, old, names) if value is None else value

    return build


def _scalar(scalar: Scalar, typed: pa.Array) -> Build:
    raw = (typed if scalar.stored is None else typed.view(scalar.stored)).to_pylist()

    def build(index: int, old: list[str], names: Names) -> bytes | None:
        del old, names
        return None if raw[index] is None else scalar.encoded(raw[index])

    return build


def _list(typed: pa.ListArray) -> Build:
    element = _group(typed.values)
    # Of a slice, offsets count from where the values of the whole array begin, as `values` does.
    starts = typed.offsets.to_pylist()
    valid = typed.is_valid().to_pylist()

    def build(index: int, old: list[str], names: Names) -> bytes | None:
        if not valid[index]:
            return None
        parts = [element(at, old, names) for at in range(starts[index], starts[index + 1])]
        if None in parts:
            raise ValueError("an element of a variant without any value")
        return array_of([part for part in parts if part is not None])

    return build


def _object(typed: pa.StructArray, values: list[bytes | None]) -> Build:
    valid = typed.is_valid().to_pylist()
    children = {field.name: typed.field(i) for i, field in enumerate(typed.type)}
    fields = {name: _group(child) for name, child in children.items()}
    there = {name: _is_there(child).to_pylist() for name, child in children.items()}
    untyped = _untyped(values)

    def build(index: int, old: list[str], names: Names) -> bytes | None:
        if not valid[index]:
            return untyped(index, old, names)
        parts: dict[str, bytes] = {}
        for name, field in fields.items():
            if there[name][index]:
                # A name counts before the names within its value do.
                names.setdefault(name, len(names))
                # `_is_there` has said that it has a value.
                parts[name] = field(index, old, names) or b""
        rest = values[index]
        for name, at in () if rest is None else fields_of(rest, old):
            if name in fields:
                raise ValueError(f"the field {name!r} of a variant both shredded and not")
            names.setdefault(name, len(names))
            parts[name] = copied(rest or b"", old, names, at)
        return object_of(parts, names)

    return build


def _is_there(group: pa.StructArray) -> pa.Array:
    """Return whether a field has a value at all: the others are missing from their object."""
    kinds = [name for name in ("value", "typed_value") if group.type.get_field_index(name) >= 0]
    validity = [group.field(name).is_valid() for name in kinds]
    return validity[0] if len(validity) == 1 else pc.or_(*validity)
