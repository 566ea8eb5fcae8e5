"""What of a record a schema does not have, at any depth, and what a reader says when it meets it.

Structs are compared everywhere: in structs, lists and maps. `NewColumnsSeen` is no error
of the tree: the caller of the reader stores the new schema first, and then says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from ....checkpoint_meta.files.file_split import FileSplit
from ....errors import WITHOUT_THE_FILE, SchemaMismatchError
from ...api import SplitFinished, SplitUnfinished
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
    is_related = {name.lower() for name in file_names} & {name.lower() for name in expected}
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


class KnownFields:
    """The names of a schema, at every depth."""

    def __init__(self, kind: pa.DataType) -> None:
        """`kind` is a struct, or any other type that may hold some."""
        self._fields: dict[str, KnownFields] | None = None
        self._elements: KnownFields | None = None
        self._entries: KnownFields | None = None
        # A variant has room for any field, so nothing in it is unknown.
        if pa.types.is_struct(kind) and not is_variant(kind):
            self._fields = {field.name: KnownFields(field.type) for field in kind}
        elif pa.types.is_map(kind):
            self._entries = KnownFields(kind.item_type)
        elif pa.types.is_list(kind):
            self._elements = KnownFields(kind.value_type)

    def unknown_part(self, value: Any) -> Any:
        """Return what of `value` the schema does not have, in its place; None if nothing.

        A null or an empty object under an unknown name is nothing: it is seen when it has a value.
        Maps are given as dictionaries, or as Arrow gives them: as lists of pairs.
        """
        if self._fields is not None and isinstance(value, dict):
            unknown = {}
            for name, inner in value.items():
                field = self._fields.get(name)
                part = _content(inner) if field is None else field.unknown_part(inner)
                if part is not None:
                    unknown[name] = part
            return unknown or None
        if self._elements is not None and isinstance(value, list):
            # An element without anything unknown keeps its place, as a null.
            parts = [self._elements.unknown_part(inner) for inner in value]
            return parts if any(part is not None for part in parts) else None
        return None if self._entries is None else _unknown_entries(self._entries, value)


def _unknown_entries(fields: KnownFields, value: Any) -> Any:
    if isinstance(value, dict):
        return {k: p for k, v in value.items() if (p := fields.unknown_part(v)) is not None} or None
    if isinstance(value, list) and all(isinstance(pair, tuple) for pair in value):
        parts = ((key, fields.unknown_part(inner)) for key, inner in value)
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
