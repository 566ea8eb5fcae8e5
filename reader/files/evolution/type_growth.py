"""Types found in files as types of a schema: fitted to Spark's, merged over files, grown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

import pyarrow as pa

from ....errors import WITHOUT_THE_FILE, SchemaMismatchError
from .column_names import ColumnNames
from .file_types import ForeignType, collations, with_collations

_types = pa.types
Path = tuple[str, ...]
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)

_TEXTS = (pa.string(), pa.large_string(), pa.string_view())
_BYTES = (pa.binary(), pa.large_binary(), pa.binary_view())

Merge = Callable[[pa.DataType, pa.DataType], pa.DataType | None]
"""Two different types that are not nested as one; None without such."""

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_UNSIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    # Its greatest value has twenty digits, and Spark has no integer wider than a long.
    pa.uint64(): pa.decimal128(20, 0),
}

SPARK_TYPES: Final[Mapping[str, pa.DataType]] = {
    "void": pa.null(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    # Spark takes timestamps in UTC; the session's zone counts only where they are shown.
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "time(6)": pa.time64("ns"),
    "interval day to second": pa.duration("us"),
    "variant": pa.struct(
        [
            pa.field("value", pa.binary(), nullable=False),
            pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
        ]
    ),
}
"""Spark's types without parts, by their names in its JSON."""


def is_variant(kind: pa.DataType) -> bool:
    """True for the struct, marked in its metadata, as which Spark hands variants to Arrow."""
    if not _types.is_struct(kind) or {child.name for child in kind} != {"value", "metadata"}:
        return False
    return (kind.field("metadata").metadata or {}).get(b"variant") == b"true"


def holds(kind: pa.DataType, is_one: Callable[[pa.DataType], bool]) -> bool:
    """Return whether a type, or one within it, is such a one."""
    children = (kind.field(at).type for at in range(kind.num_fields))
    return is_one(kind) or any(holds(child, is_one) for child in children)


def is_list(kind: pa.DataType) -> bool:
    """True for lists, in either of Arrow's forms of them."""
    return bool(_types.is_list(kind) or _types.is_large_list(kind))


def is_same(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """True if a column that is stored as `kind` is one of type `wanted` without any change."""
    if _types.is_struct(kind) and _types.is_struct(wanted):
        inner = {field.name: field.type for field in kind}
        return inner.keys() == {field.name for field in wanted} and all(
            is_same(inner[field.name], field.type) for field in wanted
        )
    if is_list(kind) and is_list(wanted):
        return is_same(kind.value_type, wanted.value_type)
    if _types.is_map(kind) and _types.is_map(wanted):
        return is_same(kind.key_type, wanted.key_type) and is_same(kind.item_type, wanted.item_type)
    # A dictionary is a note of Arrow's in the file; Parquet stores the type of the values.
    if _types.is_dictionary(kind):
        kind = kind.value_type
    if _types.is_timestamp(kind) and _types.is_timestamp(wanted):
        # Parquet only knows whether a timestamp is in UTC, so the name of the zone does not matter.
        return kind.unit == wanted.unit and (kind.tz is None) == (wanted.tz is None)
    # Arrow has several forms of texts and bytes in memory, which Parquet stores alike.
    for alike in (_TEXTS, _BYTES):
        if kind in alike:
            return wanted in alike
    return bool(kind.equals(wanted))


def children(kind: pa.DataType) -> list[tuple[str, pa.Field]]:
    """The fields of a nested type; those in lists and maps have names that differ by writers."""
    if _types.is_struct(kind):
        return [(field.name, field) for field in kind]
    if _types.is_map(kind):
        return [("key", kind.key_field), ("value", kind.item_field)]
    return [("element", kind.value_field)] if hasattr(kind, "value_field") else []


def with_children(kind: pa.DataType, fields: Iterable[pa.Field]) -> pa.DataType:
    """The same nested type with other fields; the lists that Spark has no type for as plain ones.

    A type without any is given back.
    """
    if _types.is_struct(kind):
        return pa.struct(fields)
    if _types.is_map(kind):
        key, value = fields
        return pa.map_(key.with_nullable(False), value)
    if _types.is_large_list(kind):
        return pa.large_list(*fields)
    return pa.list_(*fields) if hasattr(kind, "value_field") else kind


def ddl_of(kind: pa.DataType) -> str:
    """Return a type as Spark's DDL has it, for people; Arrow's own word if Spark has no such."""
    if is_variant(kind):
        return "variant"
    if _types.is_struct(kind):
        return f"struct<{', '.join(f'{quoted(f.name)}: {ddl_of(f.type)}' for f in kind)}>"
    if _types.is_map(kind):
        return f"map<{ddl_of(kind.key_type)}, {ddl_of(kind.item_type)}>"
    if hasattr(kind, "value_field"):
        return f"array<{ddl_of(kind.value_type)}>"
    if _types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    names = {kind: name for name, kind in SPARK_TYPES.items()}
    with suppress(TypeError):
        kind = fitted(kind)
    return names.get(kind) or str(kind)


def noted_type(name: str, stored: pa.DataType) -> pa.DataType | None:
    """Return the type that Spark notes by this name, if it is another one than what is stored."""
    if name.startswith("interval"):
        of_months = "year" in name or "month" in name
        return ForeignType(stored, name) if of_months else SPARK_TYPES["interval day to second"]
    return SPARK_TYPES["variant"] if name == "variant" else None


def fitted_field(field: pa.Field) -> pa.Field:
    """Return the field in Spark's type, nullable; see `fitted`."""
    fitting = pa.field(field.name, fitted(field.type))
    return with_collations(fitting, collations(field)) if field.metadata else fitting


def fitted(kind: pa.DataType) -> pa.DataType:
    """Return the narrowest type of Spark's that takes every value of `kind`.

    Raises:
        TypeError: Spark has none.
    """
    if isinstance(kind, ForeignType):
        raise TypeError(kind.label)
    if is_variant(kind):
        return kind
    if _types.is_struct(kind):
        return pa.struct(list(map(fitted_field, kind)))
    if _types.is_map(kind):
        return pa.map_(fitted(kind.key_type), fitted(kind.item_type))
    # All kinds of lists have it: large ones, views, and those of a fixed size.
    if hasattr(kind, "value_field"):
        return pa.list_(pa.field("element", fitted(kind.value_type)))
    if _types.is_dictionary(kind) or _types.is_run_end_encoded(kind):
        return fitted(kind.value_type)
    if isinstance(kind, pa.JsonType):
        return fitted(kind.storage_type)
    # A negative scale leaves out zeros before the point, which Spark's decimals keep.
    if _types.is_decimal(kind) and (digits := kind.precision - min(kind.scale, 0)) <= 38:
        return pa.decimal128(digits, max(kind.scale, 0))
    if _types.is_timestamp(kind):
        # Spark has microseconds only, and timestamps in UTC or without a zone.
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    return _fitted_leaf(kind)


def _fitted_leaf(kind: pa.DataType) -> pa.DataType:
    if kind in _TEXTS:
        return pa.string()
    if kind in _BYTES or _types.is_fixed_size_binary(kind):
        return pa.binary()
    if _types.is_date(kind):
        return pa.date32()
    if _types.is_float16(kind):
        return pa.float32()
    if _types.is_time(kind):
        return SPARK_TYPES["time(6)"]
    if _types.is_duration(kind):
        return SPARK_TYPES["interval day to second"]
    if kind in _UNSIGNED:
        return _UNSIGNED[kind]
    if kind in (pa.null(), pa.bool_(), pa.float32(), pa.float64(), *_INTEGERS):
        return kind
    raise TypeError(kind)


def merged(one: pa.DataType, other: pa.DataType, leaf: Merge) -> pa.DataType | None:
    """Return the type that takes the values of both; None where `leaf` knows none."""
    if one == other or _types.is_null(other):
        return one
    if _types.is_null(one):
        return other
    # Before structs: a variant looks like one, but its two fields are no columns.
    if is_variant(one) or is_variant(other):
        return leaf(one, other)
    if _types.is_struct(one) and _types.is_struct(other):
        return _merged_struct(one, other, leaf)
    if _types.is_list(one) and _types.is_list(other):
        value = merged(one.value_type, other.value_type, leaf)
        return None if value is None else pa.list_(pa.field("element", value))
    if _types.is_map(one) and _types.is_map(other):
        key = merged(one.key_type, other.key_type, leaf)
        item = merged(one.item_type, other.item_type, leaf)
        return None if key is None or item is None else pa.map_(key, item)
    return leaf(one, other)


def _merged_struct(one: pa.StructType, other: pa.StructType, leaf: Merge) -> pa.StructType | None:
    fields = {field.name: field for field in one}
    for field in other:
        if field.name in fields:
            kind = merged(fields[field.name].type, field.type, leaf)
            if kind is None:
                return None
            fields[field.name] = fields[field.name].with_type(kind)
        else:
            fields[field.name] = field
    return pa.struct(list(fields.values()))


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the one type that takes every value of both numbers, or of a date and a timestamp."""
    if one in _INTEGERS and other in _INTEGERS:
        return max(one, other, key=_INTEGERS.index)
    if _types.is_floating(one) and _types.is_floating(other):
        return pa.float64()
    both = {one, other}
    if pa.float64() in both or pa.float32() in both:
        rest = (both - {pa.float64(), pa.float32()}).pop()
        # A long has more digits than a double.
        return pa.float64() if rest in _INTEGERS[:3] else None
    if _types.is_date(one) or _types.is_date(other):
        # With a zone, the instant of a date would depend on the session.
        rest = other if _types.is_date(one) else one
        return rest if rest == pa.timestamp("us") else None
    return _wider_decimal(one, other)


def wider_in_text(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the same for texts: fractions make a long a `double`, as in the first inference."""
    return pa.float64() if {one, other} == {pa.int64(), pa.float64()} else wider(one, other)


def wider_or_text(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The same for texts, as Spark infers their types: what goes together in no other way is text.

    A `double` takes integers and decimals of more digits than it has.
    """
    both = (one, other)
    numbers = all(_types.is_integer(k) or _types.is_decimal(k) or k == pa.float64() for k in both)
    if numbers and pa.float64() in both:
        return pa.float64()
    return wider(one, other) or pa.string()


def _wider_decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    # As `DecimalType.forType` has it: the decimals that hold each kind of integer.
    digits = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
    kinds = [pa.decimal128(digits[kind], 0) if kind in digits else kind for kind in (one, other)]
    if not all(_types.is_decimal(kind) for kind in kinds):
        return None
    scale = max(kind.scale for kind in kinds)
    whole = max(kind.precision - kind.scale for kind in kinds)
    return pa.decimal128(whole + scale, scale) if whole + scale <= 38 else None


def aligned(kind: pa.DataType, current: pa.DataType) -> pa.DataType:
    """`kind` with the spelling of `current` where names differ only in case.

    For formats whose columns are found without regard to case.
    """
    if _types.is_list(kind) and _types.is_list(current):
        return pa.list_(pa.field("element", aligned(kind.value_type, current.value_type)))
    if _types.is_map(kind) and _types.is_map(current):
        return pa.map_(kind.key_type, aligned(kind.item_type, current.item_type))
    if is_variant(kind) or not (_types.is_struct(kind) and _types.is_struct(current)):
        return kind
    current_names = ColumnNames(field.name for field in current)
    names = {field.name for field in kind}
    fields = []
    for field in kind:
        # An exact name goes first; a file may have `id` next to `ID`.
        name = current_names.find(field.name)
        if name is None or (name != field.name and name in names):
            fields.append(field)
        else:
            inner = aligned(field.type, current.field(name).type)
            fields.append(field.with_name(name).with_type(inner))
    return pa.struct(fields)


def retyped(kind: pa.DataType, types: Mapping[Path, pa.DataType], path: Path = ()) -> pa.DataType:
    """Return the type with others at these paths, which are those of `map_nested`."""
    if path in types:
        return types[path]
    return with_children(kind, [
        field.with_type(retyped(field.type, types, (*path, name))) for name, field in children(kind)
    ])  # fmt: skip


def grown(
    current: pa.Schema, seen: pa.Schema, *, widen: bool, is_text: bool = False, where: str = ""
) -> pa.Schema:
    """`current` with the columns and fields of `seen` that it lacks, at the end.

    Types stay as they are, or with `widen` become those that also take what was found; `is_text`
    says that it was found in text, and `where` in which file.

    Raises:
        SchemaMismatchError: two columns differ only in case, which Spark cannot tell apart.
    """
    before = pa.struct(list(current))

    def leaf(one: pa.DataType, other: pa.DataType) -> pa.DataType:
        both = wider_in_text(one, other) if is_text else wider(one, other)
        return (both if widen else None) or one

    kind = merged(before, without_null_types(pa.struct(list(seen))), leaf)
    assert kind is not None
    after = pa.schema(list(kind))
    refuse_same_names(after.names, where)
    return after


def without_null_types(kind: pa.DataType) -> pa.DataType:
    """Without fields that have only been null: null at every depth where no type is known yet."""
    if _types.is_struct(kind) and not is_variant(kind):
        fields = [field.with_type(without_null_types(field.type)) for field in kind]
        kept = [field for field in fields if not _types.is_null(field.type)]
        return pa.struct(kept) if kept else pa.null()
    if _types.is_map(kind):
        item = without_null_types(kind.item_type)
        return item if _types.is_null(item) else pa.map_(kind.key_type, item)
    if _types.is_list(kind):
        value = without_null_types(kind.value_type)
        return value if _types.is_null(value) else pa.list_(pa.field("element", value))
    return kind


def added_or_widened(
    current: pa.Schema, seen: pa.Schema, *, widen: bool, is_text: bool = False
) -> list[str]:
    """Return names of the columns and fields that growing would add or widen, in their order."""
    return differences(current, grown(current, seen, widen=widen, is_text=is_text))


def differences(before: pa.Schema, after: pa.Schema) -> list[str]:
    """Return names and types of the columns and fields of `after` that `before` has not so."""
    return _differences(pa.struct(list(before)), pa.struct(list(after)), "")


def quoted(name: str) -> str:
    """Return a name as Spark's DDL has it: in backticks where it is not a plain word."""
    return name if _WORD.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _differences(before: pa.DataType, after: pa.DataType, prefix: str) -> list[str]:
    if before == after:
        return []
    if _types.is_map(before):
        return _differences(before.item_type, after.item_type, prefix)
    if _types.is_list(before):
        return _differences(before.value_type, after.value_type, prefix)
    if not _types.is_struct(before):
        return [f"{prefix.removesuffix('.')} {after}"]
    names = []
    earlier_types = {field.name: field.type for field in before}
    for field in after:
        if field.name in earlier_types:
            names += _differences(
                earlier_types[field.name], field.type, f"{prefix}{quoted(field.name)}."
            )
        else:
            names.append(f"{prefix}{quoted(field.name)} {field.type}")
    return names


def refuse_same_names(names: list[str], where: str = "") -> None:
    """Refuse columns that differ only in case.

    Raises:
        SchemaMismatchError: names them.
    """
    twice = ColumnNames(names).twice
    if twice:
        raise SchemaMismatchError(
            "two columns have the same name to Spark, which ignores case",
            where,
            " and ".join(twice),
            "names that differ",
            "Give a schema with one of them, replace the file by a repaired one of the same "
            f"name, or set schemaEvolutionMode to rescue. {WITHOUT_THE_FILE}",
        )
