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
from pyarrow import feather, ipc, orc

from pyspark_sluice.tests.reader.readings import parquet_writers
from pyspark_sluice.tests.reader.readings.writing import (
    CannotWriteError,
    by_spark,
    drawn,
    tried,
    without_maps,
)


def of(file_format: str) -> Iterable[Callable[..., str]]:
    """The writers of a format."""
    return {
        "parquet": (
            parquet_writers.by_pyarrow,
            parquet_writers.by_duckdb,
            parquet_writers.by_polars,
            parquet_writers.by_spark,
        ),
        "orc": (_orc_pyarrow, _orc_spark),
        "avro": (_avro_fastavro, _avro_polars),
        "arrow": (_arrow_file, _arrow_stream, _arrow_polars),
    }[file_format]


def _orc_pyarrow(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    options = drawn(
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
    return tried(lambda: orc.write_table(table, path, **options), f"pyarrow {options}")


def _has_structs_in_structs(kind: pa.DataType, inside: bool = False) -> bool:
    if not pa.types.is_nested(kind):
        return False
    if inside and pa.types.is_struct(kind):
        return True
    inside = inside or pa.types.is_struct(kind)
    children = (kind.field(at).type for at in range(kind.num_fields))
    return any(_has_structs_in_structs(child, inside) for child in children)


def _orc_spark(chance: Random, table: pa.Table, path: Path, spark: Any) -> str:
    options = drawn(
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
    return by_spark(table, path, spark, "orc", options)


def _arrow_options(chance: Random) -> ipc.IpcWriteOptions:
    options = drawn(
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
        given = drawn(
            chance,
            {"compression": ["uncompressed", "lz4", "zstd"], "chunksize": [None, 7]},
        )
        write_feather = lambda: feather.write_feather(table, str(path), **given)  # noqa: E731
        return tried(write_feather, f"pyarrow feather {given}")
    return tried(write, f"pyarrow file, {rows} rows a batch, {options}")


def _arrow_stream(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    options, rows = _arrow_options(chance), chance.choice([7, 1000])

    def write() -> None:
        with ipc.new_stream(path, encoded.schema, options=options) as sink:
            sink.write_table(encoded, max_chunksize=rows)

    encoded = _encoded(chance, table)
    return tried(write, f"pyarrow stream, {rows} rows a batch, {options}")


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

    without_maps(table)
    options = drawn(
        chance,
        {
            "compression": ["uncompressed", "lz4", "zstd"],
            "compat_level": [None, pl.CompatLevel.oldest(), pl.CompatLevel.newest()],
        },
    )
    frame: Any = pl.from_arrow(table)
    if chance.random() < 0.3:
        return tried(lambda: frame.write_ipc_stream(path, **options), f"polars stream {options}")
    options["record_batch_size"] = chance.choice([None, 7])
    return tried(lambda: frame.write_ipc(path, **options), f"polars {options}")


def _avro_fastavro(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    import fastavro

    from pyspark_sluice.tests.reader.readings.avro_schema import avro_type, avro_value

    codec = chance.choice(["null", "deflate", "bzip2", "xz", "snappy", "zstandard"])
    interval = chance.choice([30, 16000])
    more: dict[str, Any] = drawn(
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

    return tried(write, f"fastavro {codec} {interval} {more}")


def _avro_polars(chance: Random, table: pa.Table, path: Path, _: Any) -> str:
    import polars as pl

    without_maps(table)
    if any("decimal" in str(field.type) for field in table.schema):
        raise CannotWriteError("polars leaves out the sign of decimals whose first byte is full")
    codec: Any = chance.choice(["uncompressed", "snappy", "deflate"])
    name = chance.choice(["", "row"])
    frame: Any = pl.from_arrow(table)
    return tried(lambda: frame.write_avro(path, codec, name), f"polars {codec} {name!r}")
