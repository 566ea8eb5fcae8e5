"""The options of direct writes: where data files go, their form, what is done to rows."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field

from ...checkpoint_meta.storage.written_values import ByteSize, LowerCase


def _names(value: object) -> object:
    if isinstance(value, str):
        return [name.strip().strip("`") for name in value.split(",") if name.strip()]
    return value


_Names = Annotated[list[str], BeforeValidator(_names)]


class WriteOptions(BaseModel):
    """Rows go into data files, and the stream has a row for each file."""

    write_to: str = Field(
        "",
        description="Directory or bucket of a table's data files: readers write rows into Parquet "
        "files there, and the stream has one row per file. Rows never enter the JVM.",
        json_schema_extra={"common": True},
    )
    write_copy: Annotated[Literal["always", "never"], LowerCase] = Field(
        "always",
        description="Direct write: with never, nothing is written, and the stream has one row for "
        "each Parquet file that is read; the file stays where it is. The file must already have "
        "the columns of the schema.",
    )
    write_schema: str = Field(
        "",
        description="Direct write: names and types of the rows that are read, as in .schema(...), "
        "which describes the stream of files here. Without it, the schema is inferred and evolves.",
    )
    write_compression: Annotated[
        Literal["zstd", "snappy", "gzip", "lz4", "brotli", "none"], LowerCase
    ] = Field("zstd", description="Direct write: how the columns of data files are compressed.")
    write_file_bytes: ByteSize = Field(
        128 * 1024 * 1024,
        ge=1024 * 1024,
        le=4 * 1024**3,
        description="Direct write: a reader closes a data file at this size and starts the next.",
        json_schema_extra={"unit": "bytes"},
    )
    write_partition_by: _Names = Field(
        default_factory=list,
        description="Direct write: comma-separated columns whose values become directories as in "
        "Hive (day=2024-01-02/) instead of columns of the files.",
    )
    write_sort_by: _Names = Field(
        default_factory=list,
        description="Direct write: comma-separated columns by which the rows of each data file are "
        "sorted. Each file then contains what is sorted in memory at once, 64 MiB.",
    )
    write_transform: str = Field(
        "",
        description="Direct write: package.module:function, from a pyarrow record batch to "
        "another, applied to all rows before they are written. Needs writeTransformSchema.",
    )
    write_transform_schema: str = Field(
        "",
        description="Direct write: names and types of the rows that writeTransform returns, as in "
        ".schema(...); the returned rows are checked.",
    )
    write_file_column: str = Field(
        "",
        description="Direct write: name of a string column with the key of each row's file: 32 hex "
        "digits, the fingerprint of its path. By it, rows of a file can be replaced or counted in "
        "the table. writeTransform gets the column, and must return it.",
    )
