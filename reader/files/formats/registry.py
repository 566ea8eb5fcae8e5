"""Which class decodes which format, and which options of reading each format supports.

Every option of reading is in one table here, from which refusals and documentation come, so that
none can be ignored silently by a format that does not support it. Modules are imported when a
format is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any

import pyarrow as pa

from ....errors import OptionError
from ..options import FileFormatName, ReaderOptions
from ..options.values import ENTRY_POINTS, LINE_FORMATS, TEXT_FORMATS, is_built_in
from .api import NO_CONTEXT, FileFormat, FormatContext

_CLASSES: Mapping[str, str] = {
    FileFormatName.JSON: "json.format:JsonFormat",
    FileFormatName.CSV: "csv.format:CsvFormat",
    FileFormatName.XML: "xml.format:XmlFormat",
    FileFormatName.TEXT: "text.format:TextFormat",
    FileFormatName.PARQUET: "parquet.format:ParquetFormat",
    FileFormatName.ORC: "orc.format:OrcFormat",
    FileFormatName.AVRO: "avro.format:AvroFormat",
    FileFormatName.ARROW: "arrow.format:ArrowFormat",
    FileFormatName.BINARY_FILE: "binary.format:BinaryFormat",
}

_EVERY = tuple(FileFormatName)
_JSON, _CSV, _TEXT = ((each,) for each in LINE_FORMATS)
_RECORDS = (*_JSON, *_CSV)
_XML = (FileFormatName.XML,)
_MANY_ROWS = tuple(f for f in _EVERY if f is not FileFormatName.BINARY_FILE)
_NAMED = tuple(f for f in _EVERY if f not in (FileFormatName.TEXT, FileFormatName.BINARY_FILE))

_KNOWN: dict[tuple[FileFormatName, ...], str] = {
    _EVERY: "file_format ignore_corrupt_files ignore_missing_files bad_records_path batch_bytes "
    "storage_options base_path recursive_file_lookup filter time_zone",
    # A file of binaryFile is one value, and its size is known before it is read.
    _MANY_ROWS: "max_record_bytes archive_path_filter",
    TEXT_FORMATS: "compression encoding",
    LINE_FORMATS: "line_sep",
    (*_RECORDS, *_XML): "mode column_name_of_corrupt_record date_format timestamp_format "
    "timestamp_ntz_format locale",
    _RECORDS: "multi_line",
    _XML: "row_tag attribute_prefix value_tag exclude_attribute ignore_namespace "
    "ignore_surrounding_spaces wildcard_col_name row_validation_xsd_path",
    _JSON: "single_variant_column allow_comments allow_unquoted_field_names allow_single_quotes "
    "allow_non_numeric_numbers primitives_as_string record_path",
    _CSV: "sep quote escape char_to_escape_quote_escaping comment skip_rows header enforce_schema "
    "empty_value nan_value positive_inf negative_inf ignore_leading_white_space "
    "ignore_trailing_white_space unescaped_quote_handling",
    (*_CSV, *_XML): "null_value",
    _TEXT: "wholetext",
    # Values for a format of the user's own, so no built-in format takes them.
    (): "format_options",
    (FileFormatName.PARQUET, FileFormatName.AVRO): "datetime_rebase_mode",
    (FileFormatName.PARQUET,): "int96_rebase_mode",
    _NAMED: "rescued_data_column schema_hints schema_evolution_mode infer_column_types "
    "infer_sample_files infer_sample_bytes accept_unrelated_files "
    "max_bad_record_share max_new_columns",
}
_FORMATS = {name: formats for formats, names in _KNOWN.items() for name in names.split()}


def formats_of(name: str) -> tuple[FileFormatName, ...]:
    """Return the formats that know the option of this field of `ReaderOptions`."""
    return _FORMATS[name]


def refused(options: ReaderOptions) -> Iterator[str]:
    """Yield a sentence for each option that was given a value its format would not look at.

    Raises:
        OptionError: there is no such format.
    """
    own = frozenset[str]()
    if not is_built_in(options.file_format):
        # The reader itself does what every format supports, also for a format of the user's own.
        of_every_format = {name for name, formats in _FORMATS.items() if formats == _EVERY}
        own = format_class(options.file_format).knows | of_every_format | {"format_options"}
    for name in sorted(options.model_fields_set & ReaderOptions.model_fields.keys()):
        field, value = ReaderOptions.model_fields[name], getattr(options, name)
        # The default value is no problem: it asks for what happens anyway.
        is_default = value == field.get_default(call_default_factory=True)
        if is_default or name in own or options.file_format in _FORMATS[name]:
            continue
        others = ", ".join(each.value for each in _FORMATS[name]) or "of one's own"
        yield (
            f"{field.alias}: found {str(value)!r} with fileFormat={options.file_format}, "
            f"which does not support it; expected no such option, or one of the formats {others}"
        )


def make_format(
    options: ReaderOptions, schema: pa.Schema, context: FormatContext = NO_CONTEXT
) -> FileFormat:
    """Return the decoder of the format the options name, for the data columns in `schema`.

    Raises:
        OptionError: options or types of the schema that this format cannot serve.
    """
    return format_class(options.file_format)(schema, options, context)


# Looking for an entry point reads the metadata of every installed package.
@cache
def format_class(name: str) -> type[FileFormat]:
    """The class of a format: one that is built in, `package.module:Class`, or an entry point.

    Raises:
        OptionError: it is unknown, or it is not a `FileFormat`.
    """
    try:
        # Only here: a task that reads one format does not load the decoders of the others.
        place = f"{__package__}.{_CLASSES[name]}" if name in _CLASSES else name
        kind = load(place, ENTRY_POINTS)
    except (ImportError, AttributeError, ValueError) as error:
        raise _no_format(name, f"{type(error).__name__}: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, FileFormat)):
        raise _no_format(name, repr(kind))
    return kind


def load(name: str, group: str) -> Any:
    """Return what `package.module:attribute` names, or an entry point of this group.

    Raises:
        ImportError, AttributeError, ValueError: it cannot be loaded.
    """
    # A module path has a colon before its class; a name without one is an entry point's.
    if ":" in name:
        return attribute_of(name)
    from importlib.metadata import entry_points

    for entry in entry_points(group=group, name=name):
        return entry.load()
    message = f"no entry point {name!r} in the group {group!r}"
    raise ValueError(message)


def attribute_of(path: str) -> Any:
    """Return what `package.module:attribute` names.

    Raises:
        ImportError, AttributeError, ValueError: it cannot be loaded.
    """
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def _no_format(name: str, problem: str) -> OptionError:
    return OptionError(
        "fileFormat: cannot load it",
        name,
        problem,
        f"one of {', '.join(FileFormatName)}, package.module:Class of a FileFormat, or the name "
        f"of an entry point in the group {ENTRY_POINTS}",
        "The module has to be importable on the driver and on the executors.",
    )
