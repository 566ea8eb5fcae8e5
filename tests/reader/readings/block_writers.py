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

from pyspark_sluice.tests.reader.readings.kinds import schema_ddl
from pyspark_sluice.tests.reader.readings.of_spark import set_for_a_while


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
    return _tried(lambda: pq.write_table(table, path, **options), f"pyarrow {options}")


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
    """How values are encoded that are in no dictionary, of each leaf or wherever it is possible."""
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


def _parquet_duckdb(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    import duckdb

    options = _drawn(
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

    return _tried(write, f"duckdb {settings}")


def _parquet_polars(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    import polars as pl

    options = _drawn(
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
            "parquet.dictionary.page.size": ["16", "1048576"],
            "parquet.block.size": ["1024", "134217728"],
            "parquet.page.row.count.limit": ["2", "20000"],
            "parquet.page.write-checksum.enabled": ["true", "false"],
            "parquet.bloom.filter.enabled": ["true", "false"],
        },
    )
    settings = _drawn(
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
        label = _by_spark(table, path, spark, "parquet", options)
    return f"{label} {settings}"


def _by_spark(table: pa.Table, path: Path, spark: Any, kind: str, options: dict[str, str]) -> str:
    target = path.parent / "written"
    between = path.parent / "between.parquet"

    def write() -> None:
        pq.write_table(table, between)
        frame = spark.read.schema(schema_ddl(table.schema)).parquet(str(between)).coalesce(1)
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
            "compression_strategy": ["speed", "compression"],
            "padding_tolerance": [0.0, 0.5],
            "bloom_filter_fpp": [0.05, 0.5],
        },
    )
    if any(_has_structs_in_structs(field.type) for field in table.schema):
        raise CannotWriteError("a null struct within a struct shifts the values after it")
    if table.num_columns > 1 and chance.random() < 0.5:
        options["bloom_filter_columns"] = [0]
    return _tried(lambda: orc.write_table(table, path, **options), f"pyarrow {options}")


def _has_structs_in_structs(kind: pa.DataType, inside: bool = False) -> bool:
    if not pa.types.is_nested(kind):
        return False
    if inside and pa.types.is_struct(kind):
        return True
    inside = inside or pa.types.is_struct(kind)
    children = (kind.field(at).type for at in range(kind.num_fields))
    return any(_has_structs_in_structs(child, inside) for child in children)


def _orc_spark(chance: Random, table: pa.Table, path: Path, spark: Any) -> str:
    options = _drawn(
        chance,
        {
            "compression": ["none", "snappy", "zlib", "lz4", "zstd", "brotli"],
            "orc.stripe.size": ["2048", "67108864"],
            "orc.row.index.stride": ["1000", "10000"],
            "orc.dictionary.key.threshold": ["0", "1"],
            "orc.bloom.filter.columns": ["", table.column_names[0]],
            "orc.bloom.filter.fpp": ["0.05", "0.5"],
            "orc.compress.size": ["1024", "262144"],
            "orc.block.padding": ["true", "false"],
            "orc.compression.strategy": ["SPEED", "COMPRESSION"],
            "orc.encoding.strategy": ["SPEED", "COMPRESSION"],
            "orc.write.format": ["0.11", "0.12"],
            "orc.create.index": ["true", "false"],
            "orc.dictionary.implementation": ["rbtree", "hash"],
        },
    )
    return _by_spark(table, path, spark, "orc", options)


def _arrow_options(chance: Random) -> ipc.IpcWriteOptions:
    options = _drawn(
        chance,
        {
            "compression": [None, "lz4", "zstd", pa.Codec("zstd", 9)],
            "metadata_version": [ipc.MetadataVersion.V5, ipc.MetadataVersion.V4],
            "allow_64bit": [False, True],
            "use_legacy_format": [False, False, False, True],
            "emit_dictionary_deltas": [False, True],
            "unify_dictionaries": [False, True],
        },
    )
    if options["compression"]:
        # Such files of version 4 are not read by pyarrow either.
        options["metadata_version"] = ipc.MetadataVersion.V5
    return ipc.IpcWriteOptions(**options)


def _arrow_file(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    options, rows = _arrow_options(chance), chance.choice([7, 1000])

    def write() -> None:
        with ipc.new_file(path, encoded.schema, options=options) as sink:
            sink.write_table(encoded, max_chunksize=rows)

    encoded = _encoded(chance, table)
    if chance.random() < 0.2:
        drawn = _drawn(
            chance,
            {"compression": ["uncompressed", "lz4", "zstd"], "chunksize": [None, 7]},
        )
        write_feather = lambda: feather.write_feather(table, str(path), **drawn)  # noqa: E731
        return _tried(write_feather, f"pyarrow feather {drawn}")
    return _tried(write, f"pyarrow file, {rows} rows a batch, {options}")


def _arrow_stream(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    options, rows = _arrow_options(chance), chance.choice([7, 1000])

    def write() -> None:
        with ipc.new_stream(path, encoded.schema, options=options) as sink:
            sink.write_table(encoded, max_chunksize=rows)

    encoded = _encoded(chance, table)
    return _tried(write, f"pyarrow stream, {rows} rows a batch, {options}")


def _encoded(chance: Random, table: pa.Table) -> pa.Table:
    """Some columns as dictionaries, in chunks that have others."""
    for number, field in enumerate(table.schema):
        if chance.random() < 0.15 and not pa.types.is_nested(field.type):
            chunks = [
                table.column(number).slice(at, 20).combine_chunks().dictionary_encode()
                for at in range(0, max(1, table.num_rows), 20)
            ]
            column = pa.chunked_array(chunks)
            table = table.set_column(number, pa.field(field.name, column.type), column)
    return table


def _arrow_polars(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    import polars as pl

    _without_maps(table)
    options = _drawn(
        chance,
        {
            "compression": ["uncompressed", "lz4", "zstd"],
            "compat_level": [None, pl.CompatLevel.oldest(), pl.CompatLevel.newest()],
        },
    )
    frame: Any = pl.from_arrow(table)
    if chance.random() < 0.3:
        return _tried(lambda: frame.write_ipc_stream(path, **options), f"polars stream {options}")
    options["record_batch_size"] = chance.choice([None, 7])
    return _tried(lambda: frame.write_ipc(path, **options), f"polars {options}")


def _avro_fastavro(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    import fastavro

    from pyspark_sluice.tests.reader.readings.avro_schema import avro_type, avro_value

    codec = chance.choice(["null", "deflate", "bzip2", "xz", "snappy", "zstandard"])
    interval = chance.choice([30, 16000])
    more: dict[str, Any] = _drawn(
        chance,
        {
            "metadata": [None, {"key": "value"}],
            "sync_marker": [b"", b"\xd3 of no text at "],
            "validator": [False, True],
            "strict": [False, True],
        },
    )
    if codec in ("deflate", "zstandard"):
        more["codec_compression_level"] = chance.choice([None, 1, 9])
    columns = [
        {"name": f.name, "type": avro_type(f.type, f"r{n}")} for n, f in enumerate(table.schema)
    ]
    schema = {"type": "record", "name": "row", "fields": columns}
    rows = [
        {f.name: avro_value(row[f.name], f.type) for f in table.schema} for row in table.to_pylist()
    ]

    def write() -> None:
        with path.open("wb") as sink:
            fastavro.writer(sink, schema, rows, codec=codec, sync_interval=interval, **more)

    return _tried(write, f"fastavro {codec} {interval} {more}")


def _avro_polars(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    import polars as pl

    _without_maps(table)
    if any("decimal" in str(field.type) for field in table.schema):
        raise CannotWriteError("polars leaves out the sign of decimals whose first byte is full")
    codec: Any = chance.choice(["uncompressed", "snappy", "deflate"])
    name = chance.choice(["", "row"])
    frame: Any = pl.from_arrow(table)
    return _tried(lambda: frame.write_avro(path, codec, name), f"polars {codec} {name!r}")
