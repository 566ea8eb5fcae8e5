"""Changes the innermost values of a column, however deep they lie, and leaves its shape alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from .rows import null_mask

Change = Callable[[pa.Array], pa.Array]
Path = tuple[str, ...]
Leaf = Callable[[pa.DataType, Path], Change | None]

UUID = pa.uuid()


def is_within(leaf: Path, paths: frozenset[Path]) -> bool:
    """Return whether `leaf` is one of `paths`, or within one."""
    # A file may have thousands of columns: no search through all paths for each of them.
    return any(leaf[:length] in paths for length in range(1, len(leaf) + 1))


def plain(kind: pa.DataType) -> tuple[pa.DataType, Change | None]:
    """The type beneath an encoding (dictionary, run-end, view, extension) and the way down to it.

    The second value is None if `kind` is no encoding.
    """
    if pa.types.is_dictionary(kind):
        value, unwrap = decoded(kind.value_type)
        return value, lambda array: unwrap(array.dictionary).take(array.indices)
    if pa.types.is_run_end_encoded(kind):
        return _without_runs(kind)
    # A UUID is text or bytes, as the schema says, so it is no encoding of the one.
    if isinstance(kind, pa.BaseExtensionType) and kind != UUID:
        return kind.storage_type, lambda array: array.storage
    if pa.types.is_string_view(kind):
        return pa.string(), lambda array: array.cast(pa.string())
    if pa.types.is_binary_view(kind):
        return pa.binary(), lambda array: array.cast(pa.binary())
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        wide = pa.decimal128(kind.precision, kind.scale)
        return wide, lambda array: array.cast(wide)
    return kind, None


def decoded(kind: pa.DataType) -> tuple[pa.DataType, Change]:
    """Return the type without any encoding in it, however deep, and the way there.

    Arrow takes no views, and no runs of dictionaries, out of a dictionary or runs, and many
    encodings not out of lists.
    """
    unwrap = map_nested(kind, lambda *_: None, decodes=True)
    return (kind, same) if unwrap is None else (unwrap(pa.nulls(0, kind)).type, unwrap)


def _without_runs(kind: pa.DataType) -> tuple[pa.DataType, Change]:
    value, unwrap = decoded(kind.value_type)
    plain_runs = pa.run_end_encoded(kind.run_end_type, value)

    def change(array: pa.RunEndEncodedArray) -> pa.Array:
        # The ends are those of the whole array, unlike the length of a slice.
        children = [array.run_ends, unwrap(array.values)]
        runs = pa.Array.from_buffers(plain_runs, len(array), [None], 0, array.offset, children)
        return pc.run_end_decode(runs)

    return value, change


def on_columns(batch: pa.RecordBatch, changes: dict[str, Change]) -> pa.RecordBatch:
    """`batch` with the named columns changed; their types may change as well."""
    if not changes:
        return batch
    arrays, fields = [], []
    for field, array in zip(batch.schema, batch.columns, strict=True):
        change = changes.get(field.name)
        changed = array if change is None else change(array)
        arrays.append(changed)
        fields.append(field.with_type(changed.type))
    schema = pa.schema(fields, batch.schema.metadata)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def map_nested(
    kind: pa.DataType, leaf: Leaf, path: Path = (), *, decodes: bool = False
) -> Change | None:
    """Return the change of a column of type `kind`, made of what `leaf` says of the types in it.

    `leaf` gets a type without children and its path, and answers None where nothing is to be done;
    so does this if it always did. Elements of lists are called `element`, of maps `key` and
    `value`. With `decodes`, an encoding within the type is a reason for a change, too.
    """
    simple, unwrap = plain(kind)
    if unwrap is not None:
        beneath = map_nested(simple, leaf, path, decodes=decodes)
        if beneath is None:
            return unwrap if decodes else None
        return _after(unwrap, beneath)
    nested = partial(map_nested, leaf=leaf, decodes=decodes)
    if pa.types.is_struct(kind):
        changes = {f.name: nested(f.type, path=(*path, f.name)) for f in kind}
        return _on_struct(changes) if any(changes.values()) else None
    if pa.types.is_map(kind):
        key = nested(kind.key_type, path=(*path, "key"))
        value = nested(kind.item_type, path=(*path, "value"))
        return _on_map(key or same, value or same) if key or value else None
    if is_list_like(kind):
        element = nested(kind.value_type, path=(*path, "element"))
        return None if element is None else _on_list(element)
    return leaf(kind, path)


def leaves_of(columns: Iterable[pa.Field], path: Path = ()) -> list[tuple[Path, pa.DataType]]:
    """Path and type of each type without children, in their order."""
    leaves: list[tuple[Path, pa.DataType]] = []
    for field in columns:
        map_nested(field.type, lambda kind, at: leaves.append((at, kind)), (*path, field.name))
    return leaves


def changes_of(schema: pa.Schema, leaf: Leaf) -> dict[str, Change]:
    """The changes of columns, by their names, that those of leaves lead to: see `map_nested`."""
    changes = {field.name: map_nested(field.type, leaf, (field.name,)) for field in schema}
    return {name: change for name, change in changes.items() if change is not None}


def lengths_of(array: pa.Array) -> pa.Array:
    """Return the number of elements of each list, of any kind; 0 for null."""
    return pc.if_else(array.is_null(), 0, pc.list_value_length(array).cast(pa.int64()))


def _after(first: Change, then: Change) -> Change:
    return lambda array: then(first(array))


def same(array: pa.Array) -> pa.Array:
    """No change at all."""
    return array


def is_list_like(kind: pa.DataType) -> bool:
    """True for lists of all of Arrow's kinds."""
    types = pa.types
    plain_or_large = types.is_list(kind) or types.is_large_list(kind)
    views = types.is_list_view(kind) or types.is_large_list_view(kind)
    return bool(plain_or_large or views or types.is_fixed_size_list(kind))


def _on_struct(changes: dict[str, Change | None]) -> Change:
    def change(array: pa.StructArray) -> pa.StructArray:
        # By name: fields that are not wanted are not decoded.
        fields = list(array.type)
        children = [(changes[field.name] or same)(array.field(i)) for i, field in enumerate(fields)]
        changed = [
            field.with_type(child.type) for field, child in zip(fields, children, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=changed, mask=array.is_null())

    return change


def _on_list(element: Change) -> Change:
    def change(array: pa.Array) -> pa.Array:
        values = element(array.values)
        field = array.type.value_field.with_type(values.type)
        kind, own = _list_of(array.type, field)
        # `ListArray.from_arrays` takes no validity together with the offsets of a slice.
        buffers = array.buffers()[:own]
        changed = pa.Array.from_buffers(kind, len(array), buffers, -1, array.offset, [values])
        return changed if own == _OF_LISTS else _plain_list(changed)

    return change


_OF_LISTS = 2


def _list_of(kind: pa.DataType, field: pa.Field) -> tuple[pa.DataType, int]:
    """Return the type of such lists of other elements, and how many buffers are the lists' own."""
    if pa.types.is_list(kind):
        return pa.list_(field), _OF_LISTS
    if pa.types.is_large_list(kind):
        return pa.large_list(field), _OF_LISTS
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(field, kind.list_size), 1
    return (pa.list_view if pa.types.is_list_view(kind) else pa.large_list_view)(field), 3


def _plain_list(array: pa.Array) -> pa.ListArray:
    # A cast of list views to lists loses the elements of those behind a null.
    ends = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths_of(array))])
    kind = pa.list_(array.type.value_field)
    mask = null_mask(array)
    return pa.ListArray.from_arrays(ends.cast(pa.int32()), array.flatten(), type=kind, mask=mask)


def _on_map(key: Change, value: Change) -> Change:
    def change(array: pa.MapArray) -> pa.MapArray:
        keys, items = key(array.keys), value(array.items)
        kind = pa.map_(
            array.type.key_field.with_type(keys.type), array.type.item_field.with_type(items.type)
        )
        entries = pa.StructArray.from_arrays(
            [keys, items], fields=[kind.key_field, kind.item_field]
        )
        own = array.buffers()[:2]
        return pa.Array.from_buffers(kind, len(array), own, -1, array.offset, [entries])

    return change
