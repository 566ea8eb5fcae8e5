"""The options of reading that say how text turns into values: JSON, CSV, dates and times."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from .common import CommonOptions
from .values import AmericanEnglish, FieldSeparator, OneCharacter, RebaseMode, StopAtDelimiter


class JsonOptions(CommonOptions):
    """What JSON is taken as a record, by the names of Spark's reader."""

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


class CsvOptions(JsonOptions):
    """How the fields of CSV are told apart and what they stand for."""

    sep: FieldSeparator = Field(
        ",",
        alias="sep",
        validation_alias=AliasChoices("sep", "delimiter"),
        description="CSV: separator of fields, one or more characters. A backslash begins one of "
        "the escapes \\t, \\r, \\b, \\f, \\\", \\' and \\\\.",
    )
    quote: OneCharacter = Field('"', description="CSV: character around values; empty for none.")
    escape: OneCharacter = Field(
        "\\", description="CSV: character before a quote inside a quoted value."
    )
    char_to_escape_quote_escaping: OneCharacter | None = Field(
        None, description="CSV: character before an escape character; by default the escape."
    )
    comment: OneCharacter = Field(
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
    unescaped_quote_handling: StopAtDelimiter = Field(
        "STOP_AT_DELIMITER", description="CSV: what a quote inside an unquoted value means."
    )


class TimeOptions(CsvOptions):
    """Patterns, zones and calendars of dates and timestamps."""

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
    locale: AmericanEnglish = Field(
        "en-US",
        description="How months, AM and PM, and decimals are written; en-US is the only one "
        "implemented, and any other is refused.",
    )
