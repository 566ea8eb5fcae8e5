"""Which class decodes which format. Modules are imported when a format is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

import pyarrow as pa

from ....errors import OptionError
from ..options import FileFormatName, ReaderOptions
from ..options.values import ENTRY_POINTS
from .api import NO_CONTEXT, FileFormat, FormatContext

_CLASSES: Mapping[str, tuple[str, str]] = {
    FileFormatName.JSON: ("json", "JsonFormat"),
    FileFormatName.CSV: ("csv", "CsvFormat"),
    FileFormatName.XML: ("xml", "XmlFormat"),
    FileFormatName.TEXT: ("text", "TextFormat"),
    FileFormatName.PARQUET: ("parquet", "ParquetFormat"),
    FileFormatName.ORC: ("orc", "OrcFormat"),
    FileFormatName.AVRO: ("avro", "AvroFormat"),
    FileFormatName.ARROW: ("arrow", "ArrowFormat"),
    FileFormatName.BINARY_FILE: ("binary", "BinaryFormat"),
}


def make_format(
    options: ReaderOptions, schema: pa.Schema, context: FormatContext = NO_CONTEXT
) -> FileFormat:
    """The decoder of the format the options name, for the data columns in `schema`.

    Raises:
        OptionError: options or types of the schema that this format cannot serve.
    """
    return format_class(options.file_format)(schema, options, context)


@cache
def format_class(name: str) -> type[FileFormat]:
    """The class of a format: one that is built in, `package.module:Class`, or an entry point.

    Raises:
        OptionError: it is unknown, or it is not a `FileFormat`.
    """
    try:
        found = _find(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise _no_format(name, f"{type(error).__name__}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, FileFormat)):
        raise _no_format(name, repr(found))
    return found


def _find(name: str) -> object:
    if name in _CLASSES:
        folder, attribute = _CLASSES[name]
        # Only here: a task that reads one format does not load the decoders of the others.
        return getattr(import_module(f".{folder}.format", __package__), attribute)
    if ":" in name:
        module, _, attribute = name.partition(":")
        return getattr(import_module(module), attribute)
    for entry in entry_points(group=ENTRY_POINTS, name=name):
        return entry.load()
    message = f"no entry point {name!r} in the group {ENTRY_POINTS!r}"
    raise ValueError(message)


def _no_format(name: str, found: str) -> OptionError:
    return OptionError(
        "fileFormat: cannot load it",
        name,
        found,
        f"one of {', '.join(FileFormatName)}, package.module:Class of a FileFormat, or the name "
        f"of an entry point in the group {ENTRY_POINTS}",
        "The module has to be importable on the driver and on the executors.",
    )
