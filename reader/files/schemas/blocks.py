"""The columns of Parquet, ORC, Avro and Arrow files, out of their own metadata."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from ....checkpoint_meta.splits import FileVersion
from ....errors import OptionError, SchemaMismatchError
from ..evolution.types import fitted, merged, wider
from ..formats.blocks import opened, reading
from ..options import FileFormatName, ReaderOptions


def block_columns(file: FileVersion, options: ReaderOptions) -> pa.DataType:
    """The struct of the columns of a file, in types of Spark's.

    Raises:
        SplitReadError: the metadata cannot be read.
        SchemaMismatchError: a column is of a type that Spark does not have.
    """
    name = options.file_format
    with reading(file, f"{name} file"), opened(file, options) as source:
        found = _SCHEMAS[name](source)
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
                f"Give it one: .option('schemaHints', '{field.name} string'), or give a schema.",
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
                f"Choose one: .option('schemaHints', '{field.name} string'), or give a schema.",
            )
    raise AssertionError


def _parquet(source: pa.NativeFile) -> pa.Schema:
    import pyarrow.parquet as pq

    return pq.ParquetFile(source, coerce_int96_timestamp_unit="us").schema_arrow


def _orc(source: pa.NativeFile) -> pa.Schema:
    from pyarrow import orc

    from ..formats.orc.meaning import as_meant, changes
    from ..formats.orc.tail import read_tail

    tail = read_tail(source)
    source.seek(0)
    found = orc.ORCFile(source).schema
    # Whatever the zone is, the types are the same.
    return found if tail is None else as_meant(found, changes(found, tail, "UTC", ""))


def _arrow(source: pa.NativeFile) -> pa.Schema:
    from pyarrow import ipc

    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    return ipc.open_file(source).schema if is_file else ipc.open_stream(source).schema


def _avro(source: pa.NativeFile) -> pa.Schema:
    from ..formats.avro.container import read_header
    from ..formats.avro.schema import AvroSchema
    from ..formats.convert import Misfit

    schema = AvroSchema(read_header(source).schema)
    fields = []
    for name in schema.fields:
        try:
            fields.append((name, schema.column(name).final))
        except Misfit as err:
            raise OptionError(
                f"column {name!r} cannot be read from Avro",
                "",
                str(err),
                "a type that Arrow and Spark have",
                "Give a schema without it.",
            ) from err
    return pa.schema(fields)


_SCHEMAS: dict[FileFormatName, Callable[[pa.NativeFile], pa.Schema]] = {
    FileFormatName.PARQUET: _parquet,
    FileFormatName.ORC: _orc,
    FileFormatName.ARROW: _arrow,
    FileFormatName.AVRO: _avro,
}
