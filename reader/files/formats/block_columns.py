"""The columns that files say they have, in types of Spark's."""

from __future__ import annotations

import pyarrow as pa

from ....checkpoint_meta.documents.file_split import FileVersion
from ....errors import SchemaMismatchError
from ..evolution.type_growth import fitted, merged, quoted, wider


def spark_columns(found: pa.Schema, file: FileVersion) -> pa.DataType:
    """The struct of the columns that `file` says it has, in types of Spark's.

    Raises:
        SchemaMismatchError: a column is of a type that Spark does not have.
    """
    fields = []
    for field in found:
        try:
            fields.append((field.name, fitted(field.type)))
        except TypeError as err:
            raise SchemaMismatchError(
                f"column {field.name!r} is of a type that Spark does not have",
                file.path,
                str(err),
                "a type of Spark's",
                f"Give it one: .option('schemaHints', '{quoted(field.name)} string'), or give a "
                "schema.",
            ) from None
    return pa.struct(fields)


def merged_blocks(one: pa.DataType, other: pa.DataType, file: FileVersion) -> pa.DataType:
    """The columns of several files as one struct.

    Raises:
        SchemaMismatchError: a column has types that no one type takes.
    """
    kind = merged(one, other, wider)
    if kind is not None:
        return kind
    known = {field.name: field.type for field in one}
    for field in other:
        before = known.get(field.name, field.type)
        if merged(before, field.type, wider) is None:
            raise SchemaMismatchError(
                f"column {field.name!r} has types that do not go together",
                file.path,
                str(field.type),
                f"{before}, as in files before",
                f"Choose one: .option('schemaHints', '{quoted(field.name)} string'), or give "
                "a schema.",
            )
    raise AssertionError
