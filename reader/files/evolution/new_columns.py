"""What of a record a schema does not have, at any depth, and what a reader says when it meets it.

Structs are compared everywhere: in structs, lists and maps. `NewColumnsSeen` is no error
of the tree: the caller of the reader stores the new schema first, and then says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pyarrow as pa

from ....checkpoint_meta.files.file_split import FileSplit
from ....errors import WITHOUT_THE_FILE, SchemaMismatchError
from ...api import SplitFinished, SplitUnfinished
from .column_names import ColumnNames
from .type_growth import is_variant


class NewColumnsSeen(Exception):
    """Raised before any row of its block is handed out; what was read does not count.

    `found` is the struct of what the schema does not have, or has with narrower types, in types for
    all that the reader looked at; None where the file's own metadata says what its columns are.
    """

    def __init__(self, where: str, found: pa.DataType | None = None) -> None:
        super().__init__(where, found)
        self.where = where
        self.found = found
        self.begun: SplitFinished | SplitUnfinished[FileSplit] | None = None
        """What was read of the split before; finished if that was nothing, or is not known."""


def refuse_unrelated(
    where: str,
    names: Iterable[str],
    schema_names: Iterable[str],
    *,
    accept: bool,
    hint: str = "It may be an error page",
) -> None:
    """Refuse a file with the columns `names` if none of them is one of `schema_names`, in any case.

    `accept` is the option acceptUnrelatedFiles, with which every file is read; `hint` says what the
    file may be.

    Raises:
        SchemaMismatchError: names both.
    """
    file_names, expected = list(names), list(schema_names)
    is_related = any(map(ColumnNames(expected).__contains__, file_names))
    if file_names and expected and not (is_related or accept):
        raise SchemaMismatchError(
            "the file has no column of the schema",
            where,
            ", ".join(file_names)[:500],
            f"at least one of {', '.join(expected)[:500]}",
            f"{hint}. Replace it by a repaired file of the same name. {WITHOUT_THE_FILE} To read "
            "it, set acceptUnrelatedFiles.",
        )


class _Entries(list[tuple[Any, Any]]):
    """Entries of a map, in which a key may come twice."""


Unknown = Callable[[Any], Any]
"""From a value to what of it a type does not have, in its place; None if nothing."""


def unknown_part(kind: pa.DataType) -> Unknown:
    """Return what finds in values of a type, at every depth, what the type does not have.

    A null or an empty object under an unknown name is nothing: it is seen when it has a value.
    Maps are given as dictionaries, or as Arrow gives them: as lists of pairs.
    """
    # A variant has room for any field, so nothing in it is unknown.
    if pa.types.is_struct(kind) and not is_variant(kind):
        fields = {field.name: unknown_part(field.type) for field in kind}

        def of_object(value: Any) -> Any:
            items = value.items() if isinstance(value, dict) else ()
            parts = {name: fields.get(name, _content)(inner) for name, inner in items}
            return {name: part for name, part in parts.items() if part is not None} or None

        return of_object
    if pa.types.is_map(kind):
        return partial(_unknown_entries, unknown_part(kind.item_type))
    if pa.types.is_list(kind):
        element = unknown_part(kind.value_type)

        def of_list(value: Any) -> Any:
            # An element without anything unknown keeps its place, as a null.
            parts = [element(inner) for inner in value] if isinstance(value, list) else []
            return parts if any(part is not None for part in parts) else None

        return of_list
    return lambda _: None


def _unknown_entries(unknown: Unknown, value: Any) -> Any:
    if isinstance(value, dict):
        return {k: p for k, v in value.items() if (p := unknown(v)) is not None} or None
    if isinstance(value, list) and all(isinstance(pair, tuple) for pair in value):
        parts = ((key, unknown(inner)) for key, inner in value)
        return _Entries((key, part) for key, part in parts if part is not None) or None
    return None


def _content(value: Any) -> Any:
    """`value`, or None if no value is in it."""
    if isinstance(value, dict):
        return value if any(_content(inner) is not None for inner in value.values()) else None
    if isinstance(value, list):
        return value if any(_content(inner) is not None for inner in value) else None
    return value


def written(value: Any, leaf: Callable[[Any], str]) -> str:
    """A part of a record as compact JSON, for the rescued data column; `leaf` writes its leaves."""
    if isinstance(value, (dict, _Entries)):
        entries = value.items() if isinstance(value, dict) else value
        inner = (f"{_name(name)}:{written(part, leaf)}" for name, part in entries)
        return "{" + ",".join(inner) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(written(part, leaf) for part in value) + "]"
    return leaf(value)


def _name(name: Any) -> str:
    # Keys of maps may be numbers in other formats, and JSON has text only.
    return json.dumps(name if isinstance(name, str) else str(name), ensure_ascii=False)
