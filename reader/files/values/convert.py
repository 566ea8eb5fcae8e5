"""Converts one decoded column, with all that is nested in it, to one column of the schema.

The rule of which type may be used for which is Spark's widening, plus narrowing where every value
is checked: no cast loses anything. A number is never made out of text, nor text out of a number: a
file that needs that has another schema than was said.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ....errors import WITHOUT_THE_FILE, SchemaMismatchError
from ..evolution.column_names import ColumnNames
from ..evolution.file_types import ForeignType
from ..evolution.type_growth import holds, is_variant
from .map_nested import UUID, Change, decoded, is_list_like, lengths_of, plain, same
from .numbers import decimals
from .rows import null_mask
from .strings import uuid_text
from .times.temporal import instants_of
from .variant.shredded_variants import is_shredded, reassembler

_types = pa.types
_REMEDY = (
    "Correct the type in .schema(...) or schemaHints, or leave the column out of it; or replace "
    f"the file by one of the same name. {WITHOUT_THE_FILE}"
)


class Misfit(Exception):
    """A column that does not fit, before the file's name is known."""

    def __init__(self, column: str, found: str, expected: str, remedy: str = _REMEDY) -> None:
        super().__init__(column, found, expected, remedy)
        self.column = column
        self.found = found
        self.expected = expected
        self.remedy = remedy

    def in_file(self, path: str) -> SchemaMismatchError:
        """Return the same as the error a user sees."""
        return SchemaMismatchError(
            f"column {self.column!r} does not fit the schema",
            path,
            self.found,
            self.expected,
            self.remedy,
        )


def index_of(names: ColumnNames, wanted: str, within: str = "") -> int:
    """-1 if it is absent; an error shows `within` before the name.

    Raises:
        Misfit: several names match equally well.
    """
    hits = names.places_of(wanted)
    if len(hits) > 1:
        problem = f"{len(hits)} columns of that name: {', '.join(names.names[i] for i in hits)}"
        raise Misfit(within + wanted, problem, "exactly one")
    return hits[0] if hits else -1


def require_nullable(field: pa.Field, column: str) -> None:
    """Refuse a missing column where nulls cannot take its place."""
    if not field.nullable:
        raise Misfit(column, "no such column", f"{field.type}, not null")


def converter(source: pa.DataType, field: pa.Field, column: str, zone: str) -> Change:
    """Return the conversion from `source` to the field's type and nullability.

    Raises:
        Misfit: no value of `source` can be meant for a column of this type.
    """
    convert = _type_converter(source, field.type, column, zone)
    return convert if field.nullable else _not_null(convert, field, column)


def _type_converter(source: pa.DataType, target: pa.DataType, column: str, zone: str) -> Change:
    if source == target:
        return _checked(column, target) if holds(source, _is_bounded) else same
    if isinstance(source, ForeignType):
        _require_stored(source, target, column)
    simple, unwrap = plain(source)
    if unwrap is not None:
        inner = _type_converter(simple, target, column, zone)
        return lambda array: inner(unwrap(array))
    if _types.is_null(source):
        return lambda array: pa.nulls(len(array), target)
    # Before structs: Arrow shows both as structs.
    if is_variant(target) and is_shredded(source):
        return _variant_converter(source, target, column)
    if _types.is_struct(target) and _types.is_struct(source):
        return _struct_converter(source, target, column, zone)
    if _types.is_map(target) and _types.is_map(source):
        return _map_converter(source, target, column, zone)
    if _types.is_list(target) and is_list_like(source):
        plain_lists, decode = decoded(source)
        convert = _list_converter(plain_lists, target, column, zone)
        return convert if decode is same else lambda array: convert(decode(array))
    return _leaf_converter(source, target, column, zone)


def _require_stored(source: ForeignType, target: pa.DataType, column: str) -> None:
    stored = source.storage_type
    is_kind = (_is_bytes, _types.is_integer, _types.is_duration, _types.is_struct)
    if _types.is_string(target) or not any(is_one(stored) and is_one(target) for is_one in is_kind):
        raise Misfit(column, source.label, str(target))


def _is_bounded(kind: pa.DataType) -> bool:
    return bool(_types.is_decimal(kind) or _types.is_time(kind))


def _checked(column: str, target: pa.DataType) -> Change:
    """Decimals of more digits than their type, and times beyond a day: Arrow decodes them."""

    def convert(array: pa.Array) -> pa.Array:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as err:
            raise Misfit(column, str(err).splitlines()[0], f"values of {target}") from err
        return array

    return convert


def _not_null(convert: Change, field: pa.Field, column: str) -> Change:
    def check(array: pa.Array) -> pa.Array:
        fitted = convert(array)
        if fitted.null_count:
            first = pc.index(fitted.is_null(), True).as_py()
            raise Misfit(column, f"null in row {first} of the batch", f"{field.type}, not null")
        return fitted

    return check


def _leaf_converter(source: pa.DataType, target: pa.DataType, column: str, zone: str) -> Change:
    cast = _castable(source, target, zone)
    if cast is None:
        raise Misfit(column, str(source), str(target))

    def convert(array: pa.Array) -> pa.Array:
        try:
            return cast(array)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as err:
            reason = str(err).splitlines()[0]
            raise Misfit(column, f"{source} ({reason})", f"{target}, without loss") from err

    return convert


def _variant_converter(source: pa.StructType, target: pa.StructType, column: str) -> Change:
    expected = "a variant of types that Spark knows"
    try:
        reassemble = reassembler(source, target)
    except ValueError as err:
        raise Misfit(column, str(err), expected) from err

    def convert(array: pa.StructArray) -> pa.StructArray:
        try:
            return reassemble(array)
        except ValueError as err:
            raise Misfit(column, str(err), expected) from err

    return convert


def _struct_converter(
    source: pa.StructType, target: pa.StructType, column: str, zone: str
) -> Change:
    names = ColumnNames(field.name for field in source)
    plan: list[tuple[int, Change]] = []
    for field in target:
        name = f"{column}.{field.name}"
        index = index_of(names, field.name, f"{column}.")
        if index < 0:
            require_nullable(field, name)
            plan.append((-1, same))
        else:
            # A null below a null struct is no value, so nullness is judged with the parent's.
            plan.append((index, _type_converter(source.field(index).type, field.type, name, zone)))

    def convert(array: pa.StructArray) -> pa.StructArray:
        nulls = array.is_null()
        children = []
        for (index, inner), field in zip(plan, target, strict=True):
            if index < 0:
                children.append(pa.nulls(len(array), field.type))
                continue
            child = inner(array.field(index))
            if not field.nullable and child.null_count:
                _refuse_nulls(child, nulls, field, f"{column}.{field.name}")
            children.append(child)
        # `from_arrays` without arrays would make a column of no rows.
        if not children:
            return pa.StructArray.from_buffers(target, len(array), [None])
        return pa.StructArray.from_arrays(children, fields=list(target), mask=nulls)

    return convert


def _refuse_nulls(child: pa.Array, parent_nulls: pa.Array, field: pa.Field, column: str) -> None:
    if pc.any(pc.and_not(child.is_null(), parent_nulls)).as_py():
        raise Misfit(column, "null", f"{field.type}, not null")


def _list_converter(source: pa.DataType, target: pa.ListType, column: str, zone: str) -> Change:
    inner = converter(source.value_type, target.value_field, f"{column}.element", zone)

    def convert(array: pa.Array) -> pa.ListArray:
        # flatten() leaves out what lies under null lists, so the offsets are built again.
        values = inner(array.flatten())
        return pa.ListArray.from_arrays(
            _offsets(lengths_of(array), column), values, type=target, mask=null_mask(array)
        )

    return convert


def _offsets(lengths: pa.Array, column: str) -> pa.Array:
    ends = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])
    # Spark's Arrow types have 32 bit offsets, while a file may hold large lists.
    if ends[-1].as_py() > 2**31 - 1:
        raise Misfit(column, f"{ends[-1]} elements in one batch", "fewer than 2^31")
    return ends.cast(pa.int32())


def _map_converter(source: pa.MapType, target: pa.MapType, column: str, zone: str) -> Change:
    keys_of = converter(source.key_type, target.key_field, f"{column}.key", zone)
    items_of = converter(source.item_type, target.item_field, f"{column}.value", zone)

    def convert(array: pa.MapArray) -> pa.MapArray:
        # Keys and items of a slice are those of the whole array, unlike its offsets.
        offsets = array.offsets
        start = offsets[0].as_py() if len(offsets) else 0
        length = (offsets[-1].as_py() if len(offsets) else 0) - start
        return pa.MapArray.from_arrays(
            pc.subtract(offsets, pa.scalar(start, pa.int32())),
            keys_of(array.keys.slice(start, length)),
            items_of(array.items.slice(start, length)),
            type=target,
            mask=null_mask(array),
        )

    return convert


def _castable(source: pa.DataType, target: pa.DataType, zone: str = "UTC") -> Change | None:
    """Return the checked cast between two types without children, or None if nothing fits.

    `zone` is that of timestamps that name none.
    """
    if _types.is_decimal(target):
        fits = _types.is_decimal(source) or _types.is_integer(source)
        return (lambda array: decimals(array, target)) if fits else None
    if _types.is_timestamp(target):
        return _timestamp_cast(source, target, zone)
    if _types.is_date32(target) and _types.is_date64(source):
        return _date64_cast
    if source == UUID and _types.is_string(target):
        return lambda array: uuid_text(array.storage)
    if source == UUID and _types.is_binary(target):
        return lambda array: array.storage.cast(target)
    if _types.is_floating(target) and _types.is_integer(source):
        return None if _types.is_float16(target) else lambda array: _exact_floats(array, target)
    if _types.is_time(source) and (_types.is_string(target) or _types.is_time(target)):
        return lambda array: _time_cast(array, target)
    same_kind = (_types.is_integer, _is_bytes, _types.is_duration)
    allowed = _widens(source, target) or any(
        is_kind(source) and is_kind(target) for is_kind in same_kind
    )
    return (lambda array: array.cast(target, safe=True)) if allowed else None


def _is_bytes(kind: pa.DataType) -> bool:
    """Text and bytes replace each other, as in Spark; text is checked to be UTF-8."""
    return bool(
        _types.is_string(kind)
        or _types.is_large_string(kind)
        or _types.is_binary(kind)
        or _types.is_large_binary(kind)
        or _types.is_fixed_size_binary(kind)
    )


def _widens(source: pa.DataType, target: pa.DataType) -> bool:
    """Floats only widen: Arrow does not check what a narrower float rounds away."""
    both = _types.is_floating(source) and _types.is_floating(target)
    return bool(both and source.bit_width <= target.bit_width)


def _exact_floats(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Integers as floats; Arrow alone refuses all beyond 2^53, exact ones such as 2^63 too."""
    try:
        return array.cast(target)
    except pa.ArrowInvalid:
        floats = array.cast(target, safe=False)
        whole = pa.decimal128(38, 0)
        if floats.cast(pa.float64()).cast(whole).equals(array.cast(whole)):
            return floats
        raise


def _time_cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    # fastparquet writes durations as times, of more than a day, too.
    array.validate(full=True)
    return array.cast(target, safe=True)


def _date64_cast(array: pa.Array) -> pa.Array:
    days = array.cast(pa.date32())
    if not days.cast(array.type).equals(array):
        raise pa.ArrowInvalid("a date64 value holds a time of day")
    return days


def _timestamp_cast(source: pa.DataType, target: pa.DataType, zone: str) -> Change | None:
    # As in Spark, a date becomes midnight only where no zone has to say which.
    if _types.is_date32(source) and target.tz is None:
        return lambda array: array.cast(target, safe=True)
    if not _types.is_timestamp(source):
        return None
    # An instant has no wall clock without a zone to read it in, so it is never made into one.
    if target.tz is None and source.tz is not None:
        return None
    if target.tz is not None and source.tz is None and zone != "UTC":
        return lambda array: instants_of(array, zone).cast(target, safe=True)
    return lambda array: array.cast(target, safe=True)
