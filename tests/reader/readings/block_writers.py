"""One table through every writer at hand: pyarrow, DuckDB, polars, fastavro, Spark.

A writer takes the chance that its options are drawn by, a table, a path and the session; it
returns what it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather, ipc, orc

from pyspark_sluice.tests.reader.readings.kinds import quoted


class CannotWriteError(Exception):
    """The writer has no such type, or no such name."""


def of(file_format: str) -> Iterable[Callable[..., str]]:
    """The writers of a format."""
    return {
        "parquet": (_parquet_pyarrow, _parquet_duckdb, _parquet_polars, _parquet_spark),
        "orc": (_orc_pyarrow, _orc_spark),
        "avro": (_avro_fastavro, _avro_polars),
        "arrow": (_arrow_file, _arrow_stream, _arrow_polars),
    }[file_format]


def _tried(write: Callable[[], object], label: str) -> str:
    """The writer's label; its refusals are not ours to judge, as long as they are refusals."""
    try:
        write()
    except Exception as error:
        raise CannotWriteError(f"{label}: {error}") from error
    return label


def _drawn(chance: Random, options: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: chance.choice(values) for name, values in options.items()}


def _parquet_pyarrow(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    options = _drawn(
        chance,
        {
            "version": ["1.0", "2.4", "2.6"],
            "data_page_version": ["1.0", "2.0"],
            "compression": ["none", "snappy", "gzip", "zstd", "lz4"],
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
        },
    )
    return _tried(lambda: pq.write_table(table, path, **options), f"pyarrow {options}")


def _parquet_duckdb(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    import duckdb

    options = _drawn(
        chance,
        {
            "PARQUET_VERSION": ["V1", "V2"],
            "CODEC": ["'uncompressed'", "'snappy'", "'gzip'", "'zstd'", "'lz4_raw'"],
            "ROW_GROUP_SIZE": [2048, 122880],
            "DICTIONARY_SIZE_LIMIT": [1, 10000],
        },
    )
    settings = ", ".join(f"{name} {value}" for name, value in options.items())

    def write() -> None:
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.register("data", table)
            connection.execute(f"COPY data TO '{path}' (FORMAT parquet, {settings})")

    return _tried(write, f"duckdb {settings}")


def _parquet_polars(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    import polars as pl

    options = _drawn(
        chance,
        {
            "compression": ["uncompressed", "snappy", "gzip", "zstd", "lz4"],
            "statistics": [True, False],
            "row_group_size": [5, 1000],
            "data_page_size": [64, 1 << 20],
        },
    )
    _without_maps(table)
    return _tried(lambda: pl.from_arrow(table).write_parquet(path, **options), f"polars {options}")


def _without_maps(table: pa.Table) -> None:
    if any("map<" in str(field.type) for field in table.schema):
        raise CannotWriteError("polars has no maps")


def _parquet_spark(chance: Random, table: pa.Table, path: Path, spark: Any) -> str:
    options = _drawn(
        chance,
        {
            "compression": ["none", "snappy", "gzip", "zstd", "lz4_raw"],
            "parquet.writer.version": ["PARQUET_1_0", "PARQUET_2_0"],
            "parquet.enable.dictionary": ["true", "false"],
            "parquet.page.size": ["64", "1048576"],
            "parquet.bloom.filter.enabled": ["true", "false"],
        },
    )
    return _by_spark(table, path, spark, "parquet", options)


def _by_spark(table: pa.Table, path: Path, spark: Any, kind: str, options: dict[str, str]) -> str:
    from pyspark.sql import functions

    target = path.parent / "written"
    between = path.parent / "between.parquet"

    def write() -> None:
        pq.write_table(table, between)
        frame = spark.read.parquet(str(between)).coalesce(1)
        for field in table.schema:
            if pa.types.is_timestamp(field.type) and not field.type.tz:
                column = functions.col(quoted(field.name)).cast("timestamp_ntz")
                frame = frame.withColumn(field.name, column)
        frame.write.format(kind).options(**options).save(str(target))
        (part,) = target.glob("part-*")
        part.rename(path)

    return _tried(write, f"spark {options}")


def _orc_pyarrow(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    options = _drawn(
        chance,
        {
            "file_version": ["0.11", "0.12"],
            "compression": ["uncompressed", "zlib", "snappy", "lz4", "zstd"],
            "stripe_size": [1024, 64 * 1024 * 1024],
            "compression_block_size": [65536, 262144],
            "dictionary_key_size_threshold": [0.0, 1.0],
            "row_index_stride": [1000, 10000],
            "batch_size": [3, 1024],
        },
    )
    if table.num_columns > 1 and chance.random() < 0.5:
        options["bloom_filter_columns"] = [0]
    return _tried(lambda: orc.write_table(table, path, **options), f"pyarrow {options}")


def _orc_spark(chance: Random, table: pa.Table, path: Path, spark: Any) -> str:
    options = _drawn(
        chance,
        {
            "compression": ["none", "snappy", "zlib", "lz4", "zstd"],
            "orc.stripe.size": ["2048", "67108864"],
            "orc.row.index.stride": ["1000", "10000"],
            "orc.dictionary.key.threshold": ["0", "1"],
            "orc.bloom.filter.columns": ["", table.column_names[0]],
        },
    )
    return _by_spark(table, path, spark, "orc", options)


def _arrow_options(chance: Random) -> ipc.IpcWriteOptions:
    return ipc.IpcWriteOptions(compression=chance.choice([None, "lz4", "zstd"]))


def _arrow_file(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    options, rows = _arrow_options(chance), chance.choice([7, 1000])

    def write() -> None:
        with ipc.new_file(path, table.schema, options=options) as sink:
            sink.write_table(_encoded(chance, table), max_chunksize=rows)

    if chance.random() < 0.2:
        return _tried(lambda: feather.write_feather(table, str(path)), "pyarrow feather")
    return _tried(write, f"pyarrow file, {rows} rows a batch")


def _arrow_stream(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    options, rows = _arrow_options(chance), chance.choice([7, 1000])

    def write() -> None:
        with ipc.new_stream(path, table.schema, options=options) as sink:
            sink.write_table(_encoded(chance, table), max_chunksize=rows)

    return _tried(write, f"pyarrow stream, {rows} rows a batch")


def _encoded(_: Random, table: pa.Table) -> pa.Table:
    return table.combine_chunks()


def _arrow_polars(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    import polars as pl

    _without_maps(table)
    compression: Any = chance.choice(["uncompressed", "lz4", "zstd"])
    write = lambda: pl.from_arrow(table).write_ipc(path, compression=compression)  # noqa: E731
    return _tried(write, f"polars {compression}")


def _avro_fastavro(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    import fastavro

    from pyspark_sluice.tests.reader.readings.avro_schema import avro_type, avro_value

    codec = chance.choice(["null", "deflate", "bzip2", "xz", "snappy", "zstandard"])
    interval = chance.choice([30, 16000])
    columns = [
        {"name": f.name, "type": avro_type(f.type, f"r{n}")} for n, f in enumerate(table.schema)
    ]
    schema = {"type": "record", "name": "row", "fields": columns}
    rows = [
        {f.name: avro_value(row[f.name], f.type) for f in table.schema} for row in table.to_pylist()
    ]

    def write() -> None:
        with path.open("wb") as sink:
            fastavro.writer(sink, schema, rows, codec=codec, sync_interval=interval)

    return _tried(write, f"fastavro {codec} {interval}")


def _avro_polars(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    import polars as pl

    _without_maps(table)
    if any("decimal" in str(field.type) for field in table.schema):
        raise CannotWriteError("polars leaves out the sign of decimals whose first byte is full")
    codec: Any = chance.choice(["uncompressed", "snappy", "deflate"])
    return _tried(
        lambda: pl.from_arrow(table).write_avro(path, compression=codec), f"polars {codec}"
    )
