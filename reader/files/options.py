"""The options of reading: what the format is, how its bytes turn into values, what may be skipped.

Names, meanings and defaults are those of Spark's own readers, but for `mode`. Not here: options
of discovery, of batches and of state; the connector's model inherits from this one.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PrivateAttr,
)
from pydantic.alias_generators import to_camel

from ...checkpoint_meta.units import ByteSize
from .evolution.options import SchemaOptions

__all__ = [
    "Compression",
    "FileFormatName",
    "ParseMode",
    "ReaderOptions",
    "RebaseMode",
    "Secret",
]


class FileFormatName(StrEnum):
    """Formats of files."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    ORC = "orc"
    AVRO = "avro"
    TEXT = "text"
    BINARY_FILE = "binaryFile"
    ARROW = "arrow"

    @classmethod
    def _missing_(cls, value: object) -> FileFormatName | None:
        text = str(value).lower()
        names = {"feather": "arrow", "ipc": "arrow"}
        return next((m for m in cls if m.value.lower() == names.get(text, text)), None)

    @property
    def counts_rows(self) -> bool:
        """True if a file's metadata says how many rows each of its blocks has."""
        return self in _COUNT_ROWS


_COUNT_ROWS = (
    FileFormatName.PARQUET,
    FileFormatName.ORC,
    FileFormatName.AVRO,
    FileFormatName.ARROW,
)


class ParseMode(StrEnum):
    """What happens to a record that does not parse."""

    PERMISSIVE = "PERMISSIVE"
    DROPMALFORMED = "DROPMALFORMED"
    FAILFAST = "FAILFAST"

    @classmethod
    def _missing_(cls, value: object) -> ParseMode | None:
        return cls.__members__.get(str(value).upper())


class Compression(StrEnum):
    """Codecs; `auto` goes by the file name's suffix."""

    AUTO = "auto"
    NONE = "none"
    GZIP = "gzip"
    BZIP2 = "bzip2"
    ZSTD = "zstd"
    XZ = "xz"
    LZ4 = "lz4"
    SNAPPY = "snappy"
    DEFLATE = "deflate"

    @classmethod
    def _missing_(cls, value: object) -> Compression | None:
        text = str(value).lower()
        names = {"gz": "gzip", "bz2": "bzip2", "zst": "zstd", "uncompressed": "none", "": "auto"}
        return next((member for member in cls if member.value == names.get(text, text)), None)


class RebaseMode(StrEnum):
    """The calendar of files that do not say which one they keep."""

    CORRECTED = "CORRECTED"
    LEGACY = "LEGACY"
    EXCEPTION = "EXCEPTION"

    @classmethod
    def _missing_(cls, value: object) -> RebaseMode | None:
        return cls.__members__.get(str(value).upper())


class Secret(dict[str, Any]):
    """A dictionary whose values do not show in `repr`, hence in no log and no error."""

    def __repr__(self) -> str:
        return repr(dict.fromkeys(self, "***"))

    __str__ = __repr__

    def __reduce__(self) -> tuple[type[Secret], tuple[dict[str, Any]]]:
        return Secret, (dict(self),)


def _secret_object(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except ValueError:
            # The text is not quoted in the message: it may hold keys.
            raise ValueError("not JSON; write an object such as {'anon': true}") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _one_character(value: str) -> str:
    if len(value) > 1:
        raise ValueError("has to be one character")
    return value


def _known_encoding(value: str) -> str:
    try:
        return codecs.lookup(value).name
    except LookupError:
        raise ValueError("is not a known character encoding") from None


def _english(value: str) -> str:
    if not value.lower().startswith("en"):
        raise ValueError("has to be English, such as en-US")
    return value


def _stop_at_delimiter(value: str) -> str:
    if value.upper() != "STOP_AT_DELIMITER":
        raise ValueError("only STOP_AT_DELIMITER is supported")
    return value


def _separator(value: str) -> str:
    # Spark reads these two-character texts as the character they stand for.
    for written, meant in {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\u0000": "\0"}.items():
        value = value.replace(written, meant)
    return value


_OneCharacter = Annotated[str, AfterValidator(_one_character)]
_LineSeparator = Annotated[str, BeforeValidator(_separator)]
_Secret = Annotated[dict[str, Any], BeforeValidator(_secret_object), AfterValidator(Secret)]

_BYTES: dict[str, JsonValue] = {"unit": "bytes"}


class ReaderOptions(SchemaOptions):
    """How files are read. Frozen; built from Spark's option names or from ours."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)

    file_format: FileFormatName = Field(
        FileFormatName.JSON,
        description="Format of the files: json, csv, parquet, orc, avro, text, binaryFile, "
        "arrow (also called feather or ipc).",
    )
    compression: Compression = Field(
        Compression.AUTO,
        description="Codec of the files; auto goes by the suffix (.gz .bz2 .zst .xz .lz4 .snappy).",
    )
    mode: ParseMode = Field(
        ParseMode.FAILFAST,
        description="What a record that does not parse does: PERMISSIVE (nulls, and its text in "
        "columnNameOfCorruptRecord), DROPMALFORMED (dropped and counted), FAILFAST (fails the "
        "query, naming file and position; the default here, where Spark's is PERMISSIVE).",
    )
    column_name_of_corrupt_record: str = Field(
        "_corrupt_record",
        description="String column of the schema that takes the text of a malformed record.",
    )
    rescued_data_column: str = Field(
        "",
        description="String column that takes, as JSON, the fields that are not in the schema or "
        "do not fit it; empty for none.",
    )
    ignore_corrupt_files: bool = Field(
        False, description="Skip what is left of a file that cannot be decoded, and count it."
    )
    ignore_missing_files: bool = Field(
        False, description="Skip a file that is gone when it is read, and count it."
    )
    batch_bytes: ByteSize = Field(
        16 * 1024 * 1024,
        ge=64 * 1024,
        le=1024 * 1024 * 1024,
        description="Input decoded at a time; a reader holds a few times this.",
        json_schema_extra=_BYTES,
    )
    storage_options: _Secret = Field(
        default_factory=Secret,
        description="JSON object handed to fsspec for paths with a protocol; never shown.",
    )
    base_path: str = Field(
        "",
        description="Directory below which key=value path parts are partition columns; if empty "
        "each loaded path, up to its first wildcard.",
    )
    recursive_file_lookup: bool | None = Field(
        None,
        description="true reads files in directories of any name, and takes no columns from their "
        "names; false enters partitions (key=value) only. By default directories of any name, and "
        "columns from partitions.",
        json_schema_extra={"spark": "recursiveFileLookup", "autoLoader": "recursiveFileLookup"},
    )
    filter: str = Field(
        "",
        description="Condition on columns, such as day >= '2026-01-01' AND region IN ('eu', 'us');"
        " rows that do not fulfil it are left out, row groups and files skipped where possible.",
    )

    line_sep: _LineSeparator = Field(
        "", description="Separator of records; empty for any of \\r, \\r\\n and \\n."
    )
    encoding: Annotated[str, AfterValidator(_known_encoding)] = Field(
        "utf-8",
        alias="encoding",
        validation_alias=AliasChoices("encoding", "charset"),
        description="Character encoding of JSON, CSV and text files.",
    )
    multi_line: bool = Field(
        False,
        description="Records may span lines: a JSON document per file, or quoted line breaks in "
        "CSV; such files are not split.",
    )
    wholetext: bool = Field(False, description="Text: each file is one row.")

    primitives_as_string: bool = Field(
        False,
        description="JSON: accepted for Spark's sake; it concerns schema inference only. Numbers "
        "and booleans in string columns are read as written in any case.",
    )
    single_variant_column: str = Field(
        "",
        description="JSON: variant column of the schema that takes each whole record; "
        "empty for a column for each field.",
    )
    prefers_decimal: bool = Field(
        False, description="JSON: accepted for Spark's sake; the schema decides the types."
    )
    allow_comments: bool = Field(False, description="JSON: allow comments in Java and C++ style.")
    allow_unquoted_field_names: bool = Field(False, description="JSON: allow unquoted names.")
    allow_single_quotes: bool = Field(True, description="JSON: allow single for double quotes.")
    allow_numeric_leading_zeros: bool = Field(False, description="JSON: allow numbers like 0012.")
    allow_backslash_escaping_any_character: bool = Field(
        False, description="JSON: allow a backslash before any character."
    )
    allow_unquoted_control_chars: bool = Field(
        False, description="JSON: allow control characters such as tabs in strings."
    )
    allow_non_numeric_numbers: bool = Field(
        True, description="JSON: allow NaN, Infinity and -Infinity as numbers."
    )
    ignore_null_fields: bool = Field(
        True, description="JSON: accepted for Spark's sake; it concerns writing only."
    )
    drop_field_if_all_null: bool = Field(
        False, description="JSON: accepted for Spark's sake; it concerns schema inference only."
    )

    sep: _LineSeparator = Field(
        ",",
        alias="sep",
        validation_alias=AliasChoices("sep", "delimiter"),
        description="CSV: separator of fields, one or more characters.",
    )
    quote: _OneCharacter = Field('"', description="CSV: character around values; empty for none.")
    escape: _OneCharacter = Field(
        "\\", description="CSV: character before a quote inside a quoted value."
    )
    char_to_escape_quote_escaping: _OneCharacter | None = Field(
        None, description="CSV: character before an escape character; by default the escape."
    )
    comment: _OneCharacter = Field(
        "", description="CSV: lines that start with this character are skipped; empty for none."
    )
    header: bool = Field(False, description="CSV: the first line of each file holds the names.")
    enforce_schema: bool = Field(
        True,
        description="CSV: columns go by position; false checks the header's names against the "
        "schema and goes by name. A header with too few columns is refused either way.",
    )
    null_value: str = Field("", description="CSV: text that stands for null.")
    empty_value: str = Field("", description="CSV: value of a quoted empty field.")
    nan_value: str = Field("NaN", description="CSV: text that stands for not-a-number.")
    positive_inf: str = Field("Inf", description="CSV: text that stands for positive infinity.")
    negative_inf: str = Field("-Inf", description="CSV: text that stands for negative infinity.")
    ignore_leading_white_space: bool = Field(
        False, description="CSV: drop white space before unquoted values."
    )
    ignore_trailing_white_space: bool = Field(
        False, description="CSV: drop white space after unquoted values."
    )
    unescaped_quote_handling: Annotated[str, AfterValidator(_stop_at_delimiter)] = Field(
        "STOP_AT_DELIMITER", description="CSV: what a quote inside an unquoted value means."
    )

    date_format: str = Field("", description="Pattern of dates; empty for yyyy-MM-dd.")
    timestamp_format: str = Field(
        "", description="Pattern of timestamps; empty for ISO 8601 with optional fraction and zone."
    )
    timestamp_ntz_format: str = Field(
        "",
        alias="timestampNTZFormat",
        description="Pattern of timestamps without zone; empty for ISO 8601.",
    )
    time_zone: str = Field(
        "",
        description="Zone of timestamps that name none; empty for the session's time zone, which "
        "the connector fills in.",
    )
    datetime_rebase_mode: RebaseMode = Field(
        RebaseMode.CORRECTED,
        description="Parquet and Avro: calendar of dates and timestamps in files that do not name "
        "their writer's: CORRECTED (proleptic Gregorian, as in Spark 3 and later), LEGACY (hybrid "
        "Julian, as in Spark 2 and Hive: rebased), EXCEPTION (values that differ are refused).",
    )
    int96_rebase_mode: RebaseMode = Field(
        RebaseMode.CORRECTED,
        description="Parquet: the same for timestamps kept in INT96.",
    )
    locale: Annotated[str, AfterValidator(_english)] = Field(
        "en-US", description="Language of month and day names; only English is supported."
    )

    _schema_is_inferred: bool = PrivateAttr(False)

    def for_inferred_schema(self) -> Self:
        """The same for a schema that was merged over files: none of them has to have all of it."""
        named = self.header and self.file_format is FileFormatName.CSV
        made = self.model_copy(update={"enforce_schema": False} if named else {})
        made._schema_is_inferred = True  # noqa: SLF001 this class's own
        return made

    _all_columns: frozenset[str] = PrivateAttr(frozenset())

    def for_columns(self, names: Iterable[str]) -> Self:
        """The same for a schema of these columns, of which a format is given only a part."""
        made = self.model_copy()
        made._all_columns = frozenset(names)  # noqa: SLF001 this class's own
        return made

    @property
    def all_columns(self) -> frozenset[str]:
        """Columns that are known, though they may stand in a file's path or be made here."""
        return self._all_columns

    @property
    def schema_is_inferred(self) -> bool:
        """True if a file may lack columns of the schema; false where that shows a mistake."""
        return self._schema_is_inferred

    @property
    def minds_unknown_fields(self) -> bool:
        """True if a field that the schema does not have must not be passed over."""
        return bool(self.rescued_data_column) or self.mode_of_evolution.stops
