"""Changes the innermost values of a column, however deep they lie, and leaves its shape alone."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

Change = Callable[[pa.Array], pa.Array]
Path = tuple[str, ...]
Leaf = Callable[[pa.DataType, Path], Change | None]


def is_within(leaf: Path, paths: frozenset[Path]) -> bool:
    """Return whether `leaf` is one of `paths`, or within one."""
    # A file may have thousands of columns: no search through all paths for each of them.
    return any(leaf[:length] in paths for length in range(1, len(leaf) + 1))


def plain(kind: pa.DataType) -> tuple[pa.DataType, Change | None]:
    """The type beneath an encoding (dictionary, run-end, view, extension) and the way down to it.

    The second value is None if `kind` is no encoding.
    """
    if pa.types.is_dictionary(kind):
        return kind.value_type, lambda array: array.dictionary_decode()
    if pa.types.is_run_end_encoded(kind):
        return kind.value_type, pc.run_end_decode
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type, lambda array: array.storage
    if pa.types.is_string_view(kind):
        return pa.string(), lambda array: array.cast(pa.string())
    if pa.types.is_binary_view(kind):
        return pa.binary(), lambda array: array.cast(pa.binary())
    return kind, None


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


def map_nested(kind: pa.DataType, leaf: Leaf, path: Path = ()) -> Change | None:
    """Return the change of a column of type `kind`, made of what `leaf` says of the types in it.

    `leaf` gets a type without children and its path, and answers None where nothing is to be done;
    so does this if it always did. Elements of lists are called `element`, of maps `key` and
    `value`.
    """
    simple, unwrap = plain(kind)
    if unwrap is not None:
        beneath = map_nested(simple, leaf, path)
        return None if beneath is None else _after(unwrap, beneath)
    if pa.types.is_struct(kind):
        changes = {f.name: map_nested(f.type, leaf, (*path, f.name)) for f in kind}
        return _on_struct(changes) if any(changes.values()) else None
    if pa.types.is_map(kind):
        key = map_nested(kind.key_type, leaf, (*path, "key"))
        value = map_nested(kind.item_type, leaf, (*path, "value"))
        return _on_map(key or same, value or same) if key or value else None
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = map_nested(kind.value_type, leaf, (*path, "element"))
        return None if element is None else _on_list(element)
    if is_list_like(kind):
        # Seldom, so by way of plain lists.
        plain_list = pa.list_(kind.value_field)
        inner = map_nested(plain_list, leaf, path)
        return None if inner is None else _after(lambda array: array.cast(plain_list), inner)
    return leaf(kind, path)


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
    def change(array: pa.ListArray) -> pa.ListArray:
        values = element(array.values)
        field = array.type.value_field.with_type(values.type)
        kind = pa.large_list(field) if pa.types.is_large_list(array.type) else pa.list_(field)
        own = array.buffers()[:2]
        # `ListArray.from_arrays` takes no validity together with the offsets of a slice.
        return pa.Array.from_buffers(kind, len(array), own, -1, array.offset, [values])

    return change


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
