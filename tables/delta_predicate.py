"""A condition on the rows of a Delta table, in delta-rs' SQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pyarrow as pa

from ..checkpoint_meta.documents.written_file import Removal
from .removed_rows import RemovedRows


def predicate_of(removals: Sequence[Removal], columns: pa.Schema) -> str:
    """The condition that exactly the removed rows fulfil."""
    rows = RemovedRows.of(removals, columns)
    conditions = [f"{_name(rows.column)} IN ({', '.join(map(_literal, rows.keys))})"]
    for column, values in rows.values.items():
        name = _name(column)
        if values:
            # Of long lists delta-rs makes no use where it leaves out files.
            texts = list(map(_literal, values))
            if pa.types.is_int32(columns.field(column).type):
                # delta-rs compares a literal of 64 bits with no narrower column in the files.
                texts = [f"CAST({text} AS INT)" for text in texts]
            first, last, among = texts[0], texts[-1], f"{name} IN ({', '.join(texts)})"
            within = f"{name} >= {first} AND {name} <= {last} AND {among}"
            conditions.append(f"(({within}) OR {name} IS NULL)")
        else:
            conditions.append(f"{name} IS NULL")
    return " AND ".join(conditions)


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _literal(value: object) -> str:
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"
