"""The columns of the table that files are for, which its sink passes to the tasks.

Data files have the field ids of Iceberg, so that a table finds their columns after a rename.
Columns that the table lacks get the ids that pyiceberg will give them when it adds them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Final

import pyarrow as pa

from ..files.evolution.type_growth import children, with_children

TABLE_COLUMNS: Final = "sluice.write.tableColumns"
"""Local property of Spark's jobs by which a sink passes the columns of its table to the tasks."""

_ID: Final = b"PARQUET:field_id"
_LAST: Final = b"last-column-id"
SPEC: Final = b"partition-spec"
"""Metadata of the columns of an Iceberg table: its partition spec, as JSON."""


def of_iceberg(columns: pa.Schema, last: int, spec: str) -> pa.Schema:
    """The columns of an Iceberg table, which have ids, with the last id and the spec."""
    return columns.with_metadata({_LAST: str(last), SPEC: spec})


def to_text(columns: pa.Schema) -> str:
    """The columns of a table as text for a property."""
    return base64.b64encode(columns.serialize()).decode()


def from_text(text: str) -> pa.Schema:
    """The inverse of `to_text`."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def with_field_ids(schema: pa.Schema, columns: pa.Schema) -> pa.Schema:
    """`schema` with the ids of the columns of the same name, and new ids for all others."""
    new = count(int((columns.metadata or {}).get(_LAST, 0)) + 1)
    return pa.schema(_with_ids(_by_name(list(schema)), _by_name(list(columns)), new))


def without_field_ids(schema: pa.Schema) -> pa.Schema:
    """`schema` without any metadata, at any depth."""
    return pa.schema([_plain(field) for field in schema])


def finds_by_id(columns: pa.Schema) -> bool:
    """True for the columns of an Iceberg table, which may have none yet."""
    return _LAST in (columns.metadata or {})


def has_field_ids(schema: pa.Schema) -> bool:
    """True if a column has an id."""
    return any(id_of(field) is not None for field in schema)


def id_of(field: pa.Field) -> int | None:
    """The field id of a column; None without one."""
    text = (field.metadata or {}).get(_ID)
    return None if text is None else int(text)


def _by_name(fields: Sequence[pa.Field]) -> dict[str, pa.Field]:
    return {field.name: field for field in fields}


def _with_ids(
    fields: Mapping[str, pa.Field], columns: Mapping[str, pa.Field], new: Iterator[int]
) -> list[pa.Field]:
    # In the order of pyiceberg's `union_by_name`: nested fields of columns first that are in the
    # table, then new columns.
    result = {}
    for name in [name for name in fields if name in columns]:
        kind, column = fields[name].type, columns[name]
        inner = _with_ids(dict(children(kind)), dict(children(column.type)), new)
        result[name] = _labelled(
            fields[name], with_children(kind, inner), (column.metadata or {})[_ID]
        )
    for name in fields:
        if name not in columns:
            (result[name],) = _fresh([fields[name]], new)
    return [result[name] for name in fields]


def _fresh(fields: Sequence[pa.Field], new: Iterator[int]) -> list[pa.Field]:
    ids = [str(next(new)).encode() for _ in fields]
    kinds = (
        with_children(f.type, _fresh([each for _, each in children(f.type)], new)) for f in fields
    )
    return [_labelled(f, kind, i) for f, kind, i in zip(fields, kinds, ids, strict=True)]


def _labelled(field: pa.Field, kind: pa.DataType, number: bytes) -> pa.Field:
    return field.with_type(kind).with_metadata({_ID: number})


def _plain(field: pa.Field) -> pa.Field:
    inner = [_plain(each) for _, each in children(field.type)]
    return field.with_type(with_children(field.type, inner)).remove_metadata()
