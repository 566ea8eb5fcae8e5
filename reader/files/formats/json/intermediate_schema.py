"""The schema that a parser of JSON is given, and the way from its columns to the target's.

Dates, timestamps and binary are parsed as strings first, because Spark's reading of them depends on
options. Not here: the exact path.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ...values.numbers import decimals
from ...values.times.temporal import Temporal
from ...values.variant.shredded_variants import is_variant
from .scalars import plain_base64

_types = pa.types


def wire_schema(data: pa.Schema) -> pa.Schema | None:
    """What pyarrow is asked for; None if it cannot parse a type at all."""
    fields = [_wire(child, maps=False) for child in data]
    known = [child for child in fields if child is not None]
    return (
        pa.schema(known)
        if len(known) == len(fields) and len(set(data.names)) == len(data)
        else None
    )


def _wire(target: pa.Field, *, maps: bool) -> pa.Field | None:
    kind = wire_type(target.type, maps=maps)
    return None if kind is None else pa.field(target.name, kind)


def wire_type(kind: pa.DataType, *, maps: bool) -> pa.DataType | None:
    """What a parser is asked for; None if it cannot parse the type, as none but some can maps."""
    if is_variant(kind):
        return None
    if _types.is_struct(kind):
        children = [_wire(child, maps=maps) for child in kind]
        known = [child for child in children if child is not None]
        return pa.struct(known) if children and len(known) == len(children) else None
    if _types.is_list(kind):
        value = wire_type(kind.value_type, maps=maps)
        return None if value is None else pa.list_(pa.field(kind.value_field.name, value))
    if _types.is_map(kind) and maps and _types.is_string(kind.key_type):
        item = wire_type(kind.item_type, maps=maps)
        return None if item is None else pa.map_(kind.key_type, item)
    if _types.is_date(kind) or _types.is_timestamp(kind) or _types.is_binary(kind):
        return pa.string()
    if _types.is_decimal(kind):
        # pyarrow does not notice what goes beyond 128 bits. 38 digits stay within 256 at any scale.
        return pa.decimal256(38, kind.scale)
    simple = _types.is_integer(kind) or _types.is_floating(kind)
    return kind if simple or _types.is_string(kind) or _types.is_boolean(kind) else None


def holds_floats(kind: pa.DataType) -> bool:
    """True if a number in `kind` is a float, at any depth."""
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
        return pa.StructArray.from_arrays(children, fields=fields, mask=_mask(array))
    if _types.is_list(target):
        values = finish(array.values, target.value_type, temporal)
        return pa.ListArray.from_arrays(array.offsets, values, type=target, mask=_mask(array))
    if _types.is_map(target):
        items = finish(array.items, target.item_type, temporal)
        return pa.MapArray.from_arrays(
            array.offsets, array.keys, items, type=target, mask=_mask(array)
        )
    if _types.is_binary(target):
        texts = array.to_pylist()
        return pa.array([None if text is None else plain_base64(text) for text in texts], target)
    return temporal.column(array, target)


def _mask(array: pa.Array) -> pa.Array | None:
    return pc.is_null(array) if array.null_count else None
