"""The options of reading as one frozen model.

First those of every format, then those of every format of lines, of JSON, CSV, XML, dates and
times.
"""

from __future__ import annotations

from pydantic import AliasChoices, BaseModel, Field, JsonValue

from ....checkpoint_meta.storage.written_values import ByteSize, Glob
from .schema_options import SchemaOptions
from .values import (
    CODEC_SUFFIXES,
    ENTRY_POINTS,
    AmericanEnglish,
    Compression,
    Encoding,
    FieldSeparator,
    FileFormatName,
    FormatName,
    MissingFiles,
    OneCharacter,
    ParseMode,
    RebaseMode,
    Secret,
    SecretObject,
    StopAtDelimiter,
    TextObject,
)

_BYTES: dict[str, JsonValue] = {"unit": "bytes"}
_HIDDEN: dict[str, JsonValue] = {"hidden": True}
"""Options that the reference has in one sentence."""


class BadRecordsOptions(BaseModel):
    """The options that write elsewhere what is left out of the rows."""

    bad_records_path: str = Field(
        "",
        description="Directory or bucket that receives malformed records (and files that "
        "ignoreCorruptFiles or ignoreMissingFiles skips) as JSON lines with path, position, "
        "record and reason, exactly once. The stream does not return these records: mode is then "
        "DROPMALFORMED.",
        json_schema_extra={"common": True},
    )


class CommonOptions(SchemaOptions, BadRecordsOptions):
    """The options of every format: what is read, bad records and files, and line ends."""

    file_format: FormatName = Field(
        FileFormatName.JSON.value,
        description=f"Format of the files: {', '.join(FileFormatName)} "
        "(also called feather or ipc); or package.module:Class of your own format, or the name "
        f"of an entry point in the group {ENTRY_POINTS}.",
        json_schema_extra={"common": True},
    )
    format_options: TextObject = Field(
        default_factory=dict,
        description="JSON object for your own format; the options that it declares can also be "
        "set under their own names.",
    )
    compression: Compression = Field(
        Compression.AUTO,
        description=f"Codec of the files; auto follows the suffix ({' '.join(CODEC_SUFFIXES)}).",
    )
    mode: ParseMode = Field(
        # Spark's PERMISSIVE turns damaged records into nulls without a word.
        ParseMode.FAILFAST,
        description="What happens to a record that does not parse: PERMISSIVE (nulls, and its "
        "text in columnNameOfCorruptRecord), DROPMALFORMED (dropped and counted), FAILFAST (the "
        "query fails, and the error names file and position). Spark's default is PERMISSIVE.",
        json_schema_extra={"common": True},
    )
    column_name_of_corrupt_record: str = Field(
        "_corrupt_record",
        description="String column of the schema that receives the text of a malformed record.",
    )
    rescued_data_column: str = Field(
        "",
        description="String column that receives, as JSON, the fields that are not in the schema "
        "or do not fit it; empty for no such column.",
    )
    ignore_corrupt_files: bool = Field(
        False, description="Skip the rest of a file that cannot be decoded, and count it."
    )
    ignore_missing_files: MissingFiles = Field(
        MissingFiles.FAIL,
        description="true skips a file that was deleted before it is read, and counts it. replaced "
        "does so only if its directory was written again: it has data files, and all of them are "
        "newer than the deleted one.",
    )
    batch_bytes: ByteSize = Field(
        16 * 1024 * 1024,
        ge=64 * 1024,
        le=1024 * 1024 * 1024,
        description="Input bytes decoded at a time; for the memory of a reader see "
        "[Memory](formats.md#the-bound).",
        json_schema_extra=_BYTES,
    )
    max_record_bytes: ByteSize = Field(
        64 * 1024 * 1024,
        ge=1024 * 1024,
        le=1024 * 1024 * 1024,
        description="Maximum length of a record, document, row or block, decompressed. A longer "
        "one is refused, and the error names it; for the memory of a reader see "
        "[Memory](formats.md#the-bound).",
        json_schema_extra=_BYTES,
    )
    storage_options: SecretObject = Field(
        default_factory=Secret,
        description="JSON object for paths with a protocol: keys, endpoint, region and so on, "
        "named as in fsspec. Errors and the state never contain its secrets.",
        json_schema_extra={"common": True},
    )
    base_path: str = Field(
        "",
        description="Directory below which key=value path parts are partition columns; if empty, "
        "each loaded path, up to its first wildcard.",
    )
    archive_path_filter: Glob | None = Field(
        None,
        description="Of archives, read only members whose whole name, directories "
        "included, matches this pattern, in Hadoop's syntax: *.json, stops.txt, data/{a,b}*. Here "
        "* matches slashes, too.",
        json_schema_extra={"spark": "archivePathFilter"},
    )
    recursive_file_lookup: bool | None = Field(
        None,
        description="true reads all directories, without columns from their names. false reads "
        "only partitions (directories named key=value). By default, all directories are read, and "
        "partitions become columns.",
        json_schema_extra={"spark": "recursiveFileLookup", "autoLoader": "recursiveFileLookup"},
    )
    filter: str = Field(
        "",
        description="Condition on columns, such as day >= '2026-01-01' AND region IN ('eu', "
        "'us'); rows that do not meet it are left out, and row groups and files are skipped where "
        "possible.",
    )

    line_sep: str = Field(
        "", description="Separator of records, literally; empty for any of \\r, \\r\\n and \\n."
    )
    # Spark knows it by both names.
    encoding: Encoding = Field(
        "utf-8",
        alias="encoding",
        validation_alias=AliasChoices("encoding", "charset"),
        description="Character encoding of JSON, CSV, XML and text files. XML files that declare "
        "another encoding are read in that one, unless this option is set to one other than UTF-8.",
    )
    multi_line: bool = Field(
        False,
        description="Records can span lines: a JSON document per file, or quoted line breaks in "
        "CSV; such files are not split.",
    )
    wholetext: bool = Field(False, description="Text: each file is one row.")


class JsonOptions(CommonOptions):
    """The options of JSON, by the names of Spark's reader."""

    record_path: str = Field(
        "",
        pattern=r"^(\$|[^.$*\[\]]+(\.[^.$*\[\]]+)*)?$",
        description="JSON with multiLine: the array in each document that holds the records, such "
        "as Records or response.items; $ if documents are the records, even on one line.",
    )
    # Spark's readers have it, and what it asks for happens in any case.
    primitives_as_string: bool = Field(False, json_schema_extra=_HIDDEN)
    single_variant_column: str = Field(
        "",
        description="JSON: variant column of the schema that receives each whole record; empty "
        "for one column per field.",
    )
    allow_comments: bool = Field(False, description="JSON: allow comments in Java and C++ style.")
    allow_unquoted_field_names: bool = Field(False, description="JSON: allow unquoted names.")
    allow_single_quotes: bool = Field(
        True, description="JSON: allow single quotes instead of double quotes."
    )
    allow_non_numeric_numbers: bool = Field(
        True, description="JSON: allow NaN, Infinity and -Infinity as numbers."
    )


class CsvOptions(JsonOptions):
    """The options of CSV: how fields are separated, and what their text means."""

    # Spark knows it by both names.
    sep: FieldSeparator = Field(
        ",",
        alias="sep",
        validation_alias=AliasChoices("sep", "delimiter"),
        description="CSV: separator of fields, one or more characters. A backslash begins one of "
        "the escapes \\t, \\r, \\b, \\f, \\\", \\' and \\\\.",
    )
    quote: OneCharacter = Field(
        '"', description="CSV: character around values; empty for no quoting."
    )
    # As in Spark; RFC 4180 doubles the quote instead, which needs `escape` to be a quote.
    escape: OneCharacter = Field(
        "\\", description="CSV: character before a quote inside a quoted value."
    )
    char_to_escape_quote_escaping: OneCharacter | None = Field(
        None, description="CSV: character before an escape character; by default the escape."
    )
    comment: OneCharacter = Field(
        "",
        description="CSV: lines that start with this character are skipped; empty for no comments.",
    )
    skip_rows: int = Field(
        0,
        ge=0,
        description="CSV: number of lines to skip at the beginning of each file, before the "
        "header; comments and blank lines count.",
    )
    header: bool = Field(False, description="CSV: the first line of each file contains the names.")
    enforce_schema: bool = Field(
        True,
        description="CSV: match columns by position, and refuse a header in another order; false "
        "matches by the header's names, and refuses one that lacks a column. With a rescued data "
        "column, columns are matched by name in any case, and may be missing.",
    )
    null_value: str | None = Field(
        None,
        description="Text that means null, in CSV and XML; by default the empty text in CSV, and "
        "no text in XML.",
    )
    empty_value: str = Field("", description="CSV: value of a quoted empty field.")
    nan_value: str = Field("NaN", description="CSV: text that means not-a-number.")
    positive_inf: str = Field("Inf", description="CSV: text that means positive infinity.")
    negative_inf: str = Field("-Inf", description="CSV: text that means negative infinity.")
    ignore_leading_white_space: bool = Field(
        False, description="CSV: drop white space before unquoted values."
    )
    ignore_trailing_white_space: bool = Field(
        False, description="CSV: drop white space after unquoted values."
    )
    unescaped_quote_handling: StopAtDelimiter = Field(
        "STOP_AT_DELIMITER", json_schema_extra=_HIDDEN
    )


class XmlOptions(CsvOptions):
    """The options of XML: what is a record, and how its parts are called."""

    row_tag: str = Field(
        "ROW", min_length=1, description="XML: name of the elements that are records."
    )
    attribute_prefix: str = Field(
        "_", description="XML: prefix of the names of attributes in the names of fields."
    )
    value_tag: str = Field(
        "_VALUE",
        min_length=1,
        description="XML: field for the text of an element that also has attributes or elements.",
    )
    exclude_attribute: bool = Field(False, description="XML: leave attributes out.")
    ignore_namespace: bool = Field(
        False, description="XML: leave prefixes out of the names of elements and attributes."
    )
    ignore_surrounding_spaces: bool = Field(
        True, description="XML: drop white space around values."
    )
    wildcard_col_name: str = Field(
        "xs_any",
        description="XML: string column, or array of strings, that takes elements without a "
        "column, at any level of the schema.",
    )
    row_validation_xsd_path: str = Field(
        "",
        # `to_camel` would write Xsd.
        alias="rowValidationXSDPath",
        description="XML: local path of an XML schema; a record that is not valid by it is "
        "malformed. Needs the extra xml.",
    )


class TimeOptions(XmlOptions):
    """Patterns, zones and calendars of dates and timestamps."""

    date_format: str = Field("", description="Pattern of dates; empty for yyyy-MM-dd.")
    timestamp_format: str = Field(
        "", description="Pattern of timestamps; empty for ISO 8601 with optional fraction and zone."
    )
    timestamp_ntz_format: str = Field(
        "",
        # `to_camel` would write Ntz.
        alias="timestampNTZFormat",
        description="Pattern of timestamps without zone; empty for ISO 8601.",
    )
    time_zone: str = Field(
        "",
        description="Zone of timestamps that name no zone; empty for the session's time zone, "
        "which the connector fills in.",
    )
    datetime_rebase_mode: RebaseMode = Field(
        RebaseMode.CORRECTED,
        description="Parquet and Avro: calendar of dates and timestamps in files that do not name "
        "their writer's calendar: CORRECTED (proleptic Gregorian, as in Spark 3 and later), "
        "LEGACY (hybrid Julian, as in Spark 2 and Hive: rebased), EXCEPTION (values that differ "
        "are refused).",
    )
    int96_rebase_mode: RebaseMode = Field(
        RebaseMode.CORRECTED, description="Parquet: the same for timestamps stored as INT96."
    )
    locale: AmericanEnglish = Field("en-US", json_schema_extra=_HIDDEN)


class ReaderOptions(TimeOptions):
    """All options of reading. Frozen; built from Spark's option names or from ours."""

    @property
    def loaded_path(self) -> str:
        """Return what the query loads; empty where files are given one by one."""
        return ""

    @property
    def keeps_every_field(self) -> bool:
        """True if a value without room in the schema makes a record malformed, or is rescued."""
        is_kept = self.mode is ParseMode.FAILFAST or bool(self.bad_records_path)
        return is_kept or self.checks_unknown_fields

    @property
    def checks_unknown_fields(self) -> bool:
        """True if a field that the schema does not have must not be passed over."""
        return bool(self.rescued_data_column) or self.mode_of_evolution.stops
