"""One table into Parquet by pyarrow, DuckDB, polars and Spark, with the options of each."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_sluice.tests.reader.readings import writing
from pyspark_sluice.tests.reader.readings.of_spark import set_for_a_while
from pyspark_sluice.tests.reader.readings.writing import (
    CannotWriteError,
    drawn,
    tried,
    without_maps,
)


def by_pyarrow(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    """By pyarrow."""
    options = drawn(
        chance,
        {
            "version": ["1.0", "2.4", "2.6"],
            "data_page_version": ["1.0", "2.0"],
            "compression": ["none", "snappy", "gzip", "zstd", "lz4", "brotli"],
            "use_dictionary": [True, False],
            "write_statistics": [True, False],
            "row_group_size": [7, 1000],
            "data_page_size": [64, 1 << 20],
            "write_batch_size": [3, 1024],
            "store_schema": [True, False],
            "store_decimal_as_integer": [True, False],
            "use_compliant_nested_type": [True, False],
            "write_page_index": [True, False],
            "write_page_checksum": [True, False],
            "use_deprecated_int96_timestamps": [False, False, True],
            "coerce_timestamps": [None, None, "us", "ms"],
            "dictionary_pagesize_limit": [None, 16],
            "max_rows_per_page": [None, 2],
            "sorting_columns": [None, [pq.SortingColumn(0)]],
            "use_content_defined_chunking": [False, True],
            "write_time_adjusted_to_utc": [False, True],
            "flavor": [None, None, None, "spark"],
        },
    )
    if options["coerce_timestamps"] == "ms":
        # The writer would end the process for others.
        _require_whole_milliseconds(table)
    if any(" " in name for name in table.column_names):
        # The writer would give them other names.
        options["flavor"] = None
    if options["compression"] in ("gzip", "zstd", "brotli"):
        options["compression_level"] = chance.choice([None, 1, 9])
    if not options["use_dictionary"]:
        options |= _encodings(chance, table)
    if chance.random() < 0.2:
        options["bloom_filter_options"] = {table.column_names[0]: chance.choice([{}, {"ndv": 5}])}
    return tried(lambda: pq.write_table(table, path, **options), f"pyarrow {options}")


def _require_whole_milliseconds(table: pa.Table) -> None:
    for field in table.schema:
        if pa.types.is_nested(field.type) and "timestamp" in str(field.type):
            raise CannotWriteError("timestamps in nested values")
        if pa.types.is_timestamp(field.type):
            try:
                table.column(field.name).cast(pa.timestamp("ms", field.type.tz))
            except pa.ArrowInvalid as error:
                raise CannotWriteError(str(error)) from error


def _encodings(chance: Random, table: pa.Table) -> dict[str, Any]:
    """How values are encoded that are in no dictionary, of each leaf or where it is possible."""
    if chance.random() < 0.3:
        return {"use_byte_stream_split": True}
    if chance.random() < 0.3:
        return {}
    encodings = {f.name: chance.choice(_encodings_of(f.type)) for f in table.schema}
    return {"column_encoding": {name: each for name, each in encodings.items() if each}}


def _encodings_of(kind: pa.DataType) -> list[str]:
    """Those that the writer has for a column's type; nested columns go by their leaves' paths."""
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"]
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]
    if pa.types.is_floating(kind):
        return ["PLAIN", "BYTE_STREAM_SPLIT"]
    if pa.types.is_decimal(kind):
        return ["PLAIN", "BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY"]
    return ["RLE", "PLAIN"] if pa.types.is_boolean(kind) else [""]


def by_duckdb(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    """By DuckDB."""
    import duckdb

    options = drawn(
        chance,
        {
            "PARQUET_VERSION": ["V1", "V2"],
            "CODEC": ["'uncompressed'", "'snappy'", "'gzip'", "'zstd'", "'lz4_raw'", "'brotli'"],
            "ROW_GROUP_SIZE": [2048, 122880],
            "DICTIONARY_SIZE_LIMIT": [1, 10000],
            "STRING_DICTIONARY_PAGE_SIZE_LIMIT": [1, 1 << 20],
            "WRITE_BLOOM_FILTER": ["true", "false"],
            "BLOOM_FILTER_FALSE_POSITIVE_RATIO": [0.01, 0.5],
            "GEOPARQUET_VERSION": ["'NONE'", "'V1'"],
        },
    )
    if options["CODEC"] == "'zstd'":
        options["COMPRESSION_LEVEL"] = chance.choice([1, 19])
    if chance.random() < 0.3:
        options["FIELD_IDS"] = "'auto'"
    settings = ", ".join(f"{name} {value}" for name, value in options.items())

    def write() -> None:
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.register("data", table)
            connection.execute(f"COPY data TO '{path}' (FORMAT parquet, {settings})")

    return tried(write, f"duckdb {settings}")


def by_polars(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    """By polars."""
    import polars as pl

    options = drawn(
        chance,
        {
            "compression": ["uncompressed", "snappy", "gzip", "zstd", "lz4", "brotli"],
            "statistics": [True, False, "full", {"min": True, "null_count": False}],
            "row_group_size": [5, 1000],
            "data_page_size": [64, 1 << 20],
        },
    )
    if options["compression"] in ("gzip", "zstd", "brotli"):
        options["compression_level"] = chance.choice([None, 1, 9])
    without_maps(table)
    return tried(lambda: pl.from_arrow(table).write_parquet(path, **options), f"polars {options}")


def by_spark(chance: Random, table: pa.Table, path: Path, spark: Any) -> str:
    """By Spark."""
    options = drawn(
        chance,
        {
            "compression": ["none", "snappy", "gzip", "zstd", "lz4_raw"],
            "parquet.writer.version": ["PARQUET_1_0", "PARQUET_2_0"],
            "parquet.enable.dictionary": ["true", "false"],
            "parquet.page.size": ["64", "1048576"],
            "parquet.dictionary.page.size": ["16", "1048576"],
            "parquet.block.size": ["1024", "134217728"],
            "parquet.page.row.count.limit": ["2", "20000"],
            "parquet.page.write-checksum.enabled": ["true", "false"],
            "parquet.bloom.filter.enabled": ["true", "false"],
        },
    )
    settings = drawn(
        chance,
        {
            "spark.sql.parquet.outputTimestampType": ["INT96", "TIMESTAMP_MICROS"],
            "spark.sql.parquet.writeLegacyFormat": ["false", "false", "true"],
            "spark.sql.parquet.fieldId.write.enabled": ["true", "false"],
            "spark.sql.parquet.datetimeRebaseModeInWrite": ["CORRECTED", "LEGACY", "EXCEPTION"],
            "spark.sql.parquet.int96RebaseModeInWrite": ["CORRECTED", "LEGACY", "EXCEPTION"],
            "spark.sql.parquet.variant.annotateLogicalType.enabled": ["true", "false"],
            "spark.sql.variant.writeShredding.enabled": ["true", "false"],
            "spark.sql.variant.inferShreddingSchema": ["true", "false"],
        },
    )
    with set_for_a_while(spark, settings):
        label = writing.by_spark(table, path, spark, "parquet", options)
    return f"{label} {settings}"
