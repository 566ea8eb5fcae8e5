"""Merges column types in Delta's JSON: those of a table with those of files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..reader.files.evolution.column_names import ColumnNames

_INTEGERS: Final = ("byte", "short", "integer")
"""Types that Parquet stores alike: files of one can be read as a wider one."""


def both(one: Any, other: Any, where: str, *, of_table: bool) -> Any:
    """A type in Delta's JSON with what a file's has in addition; new fields are nullable.

    Of a table (`of_table`) the fields stay nullable or not, otherwise both have to promise it.

    Raises:
        ValueError: the two do not fit; says where.
    """
    if one in (other, "void"):
        return other
    if isinstance(one, str) and isinstance(other, str):
        if one in _INTEGERS and other in _INTEGERS[: _INTEGERS.index(one)]:
            return one
    elif isinstance(one, dict) and isinstance(other, dict) and one["type"] == other["type"]:
        if one["type"] == "struct":
            fields = _fields(one["fields"], other["fields"], where, of_table=of_table)
            return {**one, "fields": fields}
        # Keys of maps are compared as a whole below: they have to be equal.
        inner = "elementType" if one["type"] == "array" else "valueType"
        below = both(one[inner], other[inner], f"{where}.{inner}", of_table=of_table)
        merged = {**one, inner: below}
        nullable = [key for key in one if key.lower().endswith("containsnull")]
        if all(merged[key] == other[key] for key in merged if key not in (inner, *nullable)):
            return {**merged, **dict.fromkeys(nullable, True)}
    message = f"{where.lstrip('.') or 'the rows'} is {_name(other)}, and {_name(one)} in the table"
    raise ValueError(message)


def _fields(one: Sequence[Any], other: Sequence[Any], where: str, *, of_table: bool) -> list[Any]:
    fields = {field["name"]: field for field in one}
    new_fields = {field["name"]: field for field in other}
    names = ColumnNames(fields)
    for name, field in new_fields.items():
        if name not in fields:
            if name in names:
                message = f"{where}.{name} is {names.find(name)} in the table"
                raise ValueError(message.lstrip("."))
            fields[name] = {**field, "nullable": True}
            continue
        kind = both(fields[name]["type"], field["type"], f"{where}.{name}", of_table=of_table)
        fields[name] = {**fields[name], "type": kind}
    if not of_table:
        for name, field in fields.items():
            promised = name in new_fields and not new_fields[name]["nullable"]
            fields[name] = {**field, "nullable": field["nullable"] or not promised}
    return list(fields.values())


def _name(kind: Any) -> str:
    return kind if isinstance(kind, str) else str(kind["type"])
