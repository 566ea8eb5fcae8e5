"""Which options of reading each format supports.

The one table from which refusals and documentation come: every option is in it, so that none
can be ignored silently by a format that does not support it. Not here: what an option means.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..options import FileFormatName, ReaderOptions
from ..options.values import is_built_in

__all__ = [
    "INERT",
    "counts_rows",
    "formats_of",
    "has_time_statistics",
    "known_to",
    "own_options",
    "refused",
]

_EVERY = tuple(FileFormatName)
_JSON, _CSV, _TEXT = (FileFormatName.JSON,), (FileFormatName.CSV,), (FileFormatName.TEXT,)
_RECORDS = (*_JSON, *_CSV)
_XML = (FileFormatName.XML,)
_LINES = (*_RECORDS, *_TEXT)
_MANY_ROWS = tuple(f for f in _EVERY if f is not FileFormatName.BINARY_FILE)
_NAMED = tuple(f for f in _EVERY if f not in (FileFormatName.TEXT, FileFormatName.BINARY_FILE))

_KNOWN: dict[tuple[FileFormatName, ...], str] = {
    _EVERY: "file_format ignore_corrupt_files ignore_missing_files bad_records_path batch_bytes "
    "storage_options base_path recursive_file_lookup filter time_zone",
    _MANY_ROWS: "max_record_bytes",
    (*_LINES, *_XML): "compression encoding",
    _LINES: "line_sep",
    (*_RECORDS, *_XML): "mode column_name_of_corrupt_record date_format timestamp_format "
    "timestamp_ntz_format locale",
    _RECORDS: "multi_line",
    _XML: "row_tag root_tag attribute_prefix value_tag exclude_attribute ignore_namespace "
    "ignore_surrounding_spaces wildcard_col_name row_validation_xsd_path",
    _JSON: "single_variant_column allow_comments allow_unquoted_field_names allow_single_quotes "
    "allow_numeric_leading_zeros allow_backslash_escaping_any_character "
    "allow_unquoted_control_chars allow_non_numeric_numbers primitives_as_string prefers_decimal "
    "ignore_null_fields drop_field_if_all_null",
    _CSV: "sep quote escape char_to_escape_quote_escaping comment skip_rows header enforce_schema "
    "empty_value nan_value positive_inf negative_inf ignore_leading_white_space "
    "ignore_trailing_white_space unescaped_quote_handling",
    (*_CSV, *_XML): "null_value",
    _TEXT: "wholetext",
    (): "format_options",
    (FileFormatName.PARQUET, FileFormatName.AVRO): "datetime_rebase_mode",
    (FileFormatName.PARQUET,): "int96_rebase_mode",
    _NAMED: "rescued_data_column schema_hints schema_evolution_mode infer_column_types "
    "infer_sample_files infer_sample_bytes",
}
_FORMATS = {name: formats for formats, names in _KNOWN.items() for name in names.split()}

INERT = {
    "primitives_as_string": "it affects schema inference only, as in Spark",
    "prefers_decimal": "it affects schema inference only",
    "drop_field_if_all_null": "it affects schema inference only",
    "ignore_null_fields": "it affects writing only",
    "root_tag": "it affects writing only",
    "locale": "only en-US is supported, and is the default",
    "unescaped_quote_handling": "only the default is supported",
}
"""Options that are accepted for Spark's sake and change nothing, with the reason."""


def formats_of(name: str) -> tuple[FileFormatName, ...]:
    """The formats that know the option of this field of `ReaderOptions`."""
    return _FORMATS[name]


def refused(options: ReaderOptions) -> Iterator[str]:
    """A sentence for each option that was given a value its format would not look at.

    The default value is no problem: it asks for what happens anyway.
    """
    own = () if is_built_in(options.file_format) else known_to(options.file_format)
    for name in sorted(options.model_fields_set & ReaderOptions.model_fields.keys()):
        field, value = ReaderOptions.model_fields[name], getattr(options, name)
        is_default = value == field.get_default(call_default_factory=True)
        if is_default or name in own or options.file_format in _FORMATS[name]:
            continue
        known = ", ".join(known.value for known in _FORMATS[name]) or "of one's own"
        yield (
            f"{field.alias}: found {str(value)!r} with fileFormat={options.file_format}, "
            f"which does not support it; expected no such option, or one of the formats {known}"
        )


def counts_rows(file_format: str) -> bool:
    """True if a file's metadata says how many rows each of its blocks has."""
    from .registry import format_class

    return format_class(file_format).counts_rows


def has_time_statistics(file_format: str) -> bool:
    """True if a file's metadata says the least and the greatest value of a column of times."""
    from .registry import format_class

    return format_class(file_format).has_time_statistics


def own_options(own_format: str) -> frozenset[str]:
    """The names of the options that a format of the user's own declares.

    Raises:
        OptionError: there is no such format.
    """
    from .registry import format_class

    return format_class(own_format).own_options


def known_to(own_format: str) -> frozenset[str]:
    """The fields of `ReaderOptions` that a format of the user's own looks at.

    Raises:
        OptionError: there is no such format.
    """
    from .registry import format_class

    # A format of one's own takes part in what the reader itself does.
    of_every_format = {name for name, formats in _FORMATS.items() if formats == _EVERY}
    return format_class(own_format).knows | of_every_format | {"format_options"}
