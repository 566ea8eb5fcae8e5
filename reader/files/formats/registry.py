"""Which class decodes which format. Modules are imported when a format is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import cast

import pyarrow as pa

from ..options import FileFormatName, ReaderOptions
from .api import FileFormat

_CLASSES = {
    FileFormatName.JSON: ("json", "JsonFormat"),
    FileFormatName.CSV: ("csv", "CsvFormat"),
    FileFormatName.TEXT: ("text", "TextFormat"),
    FileFormatName.PARQUET: ("parquet", "ParquetFormat"),
    FileFormatName.ORC: ("orc", "OrcFormat"),
    FileFormatName.AVRO: ("avro", "AvroFormat"),
    FileFormatName.ARROW: ("arrow", "ArrowFormat"),
    FileFormatName.BINARY_FILE: ("binary", "BinaryFormat"),
}


def make_format(options: ReaderOptions, schema: pa.Schema) -> FileFormat:
    """The decoder of the format the options name, for the data columns in `schema`.

    Raises:
        OptionError: options or types of the schema that this format cannot serve.
    """
    folder, name = _CLASSES[options.file_format]
    made = getattr(import_module(f".{folder}.format", __package__), name)(schema, options)
    return cast(FileFormat, made)
