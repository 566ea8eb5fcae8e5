"""The options of reading that concern every format, and those of every format of lines."""

from __future__ import annotations

from pydantic import AliasChoices, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from ....checkpoint_meta.storage.units import ByteSize
from ..evolution.evolution_options import SchemaOptions
from .format_name import FormatName
from .values import (
    Compression,
    Encoding,
    FileFormatName,
    ParseMode,
    Secret,
    SecretObject,
    TextObject,
)

_BYTES: dict[str, JsonValue] = {"unit": "bytes"}


class CommonOptions(SchemaOptions):
    """What is read, what a bad record or file does, and how lines are told apart."""

    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True, defer_build=True
    )

    file_format: FormatName = Field(
        FileFormatName.JSON.value,
        description="Format of the files: json, csv, parquet, orc, avro, text, binaryFile, "
        "arrow (also called feather or ipc); or package.module:Class of one of your own, or the "
        "name of an entry point in the group pyspark_sluice.formats.",
    )
    format_options: TextObject = Field(
        default_factory=dict,
        description="JSON object for a format of your own; the options that it declares may also "
        "be given under their own names.",
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
    max_record_bytes: ByteSize = Field(
        64 * 1024 * 1024,
        ge=1024 * 1024,
        le=1024 * 1024 * 1024,
        description="Longest record, document, row or block that is read, decompressed. A longer "
        "one is refused, and named; a reader that meets one this long holds a few times as much.",
        json_schema_extra=_BYTES,
    )
    storage_options: SecretObject = Field(
        default_factory=Secret,
        description="JSON object for paths with a protocol: keys, endpoint, region, named as in "
        "fsspec; never shown.",
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

    line_sep: str = Field(
        "", description="Separator of records, as it is; empty for any of \\r, \\r\\n and \\n."
    )
    encoding: Encoding = Field(
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
