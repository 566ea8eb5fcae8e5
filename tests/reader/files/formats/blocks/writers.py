"""One table as other programs write it: pyarrow, DuckDB, polars.

Each function yields what the file is called and the file, so that a test can tell which differs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 40
UTC_INSTANT = pa.timestamp("us", "UTC")
PAIR = pa.struct([("a", pa.int32()), ("b", pa.string())])
STORED = pa.schema(
    [
        ("id", pa.int64()),
        ("flag", pa.bool_()),
        ("i8", pa.int8()),
        ("i16", pa.int16()),
        ("i32", pa.int32()),
        ("i64", pa.int64()),
        ("u8", pa.uint8()),
        ("u16", pa.uint16()),
        ("u32", pa.uint32()),
        ("u64", pa.uint64()),
        ("f32", pa.float32()),
        ("f64", pa.float64()),
        ("s", pa.string()),
        ("x", pa.binary()),
        ("d", pa.date32()),
        ("ts", UTC_INSTANT),
        ("tn", pa.timestamp("us")),
        ("d9", pa.decimal128(9, 2)),
        ("d18", pa.decimal128(18, 4)),
        ("d38", pa.decimal128(38, 10)),
        ("l", pa.list_(pa.int32())),
        ("ll", pa.list_(pa.list_(pa.string()))),
        ("ls", pa.list_(PAIR)),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("st", PAIR),
    ]
)
DDL = (
    "id bigint, flag boolean, i8 tinyint, i16 smallint, i32 int, i64 bigint, u8 smallint, u16 int, "
    "u32 bigint, u64 decimal(20,0), f32 float, f64 double, s string, x binary, d date, "
    "ts timestamp, tn timestamp_ntz, d9 decimal(9,2), d18 decimal(18,4), d38 decimal(38,10), "
    "l array<int>, ll array<array<string>>, ls array<struct<a:int,b:string>>, m map<string,int>, "
    "st struct<a:int,b:string>"
)
"""As Spark reads the table; unsigned integers become the next wider type."""

ENCODINGS = {
    "i32": "DELTA_BINARY_PACKED",
    "i64": "DELTA_BINARY_PACKED",
    "u32": "DELTA_BINARY_PACKED",
    "s": "DELTA_BYTE_ARRAY",
    "x": "DELTA_LENGTH_BYTE_ARRAY",
    "flag": "RLE",
}

STYLES: dict[str, dict[str, Any]] = {
    "dictionary": {},
    "plain": {"use_dictionary": False, "write_statistics": False},
    "delta": {"use_dictionary": False, "column_encoding": ENCODINGS},
}

File = tuple[str, Path]


def row(i: int) -> dict[str, Any]:
    """Row `i` of the table: nulls in every seventh, the types' borders in the first two."""
    if i % 7 == 6:
        return {"id": i}
    signed = [(-1) ** i * (2 ** (bits - 1) - 1 - i // 2) for bits in (8, 16, 32, 64)]
    unsigned = [2**bits - 1 - i for bits in (8, 16, 32, 64)]
    pair = {"a": i, "b": f"b{i}" if i % 2 else None}
    values = (
        i % 2 == 0,
        *signed,
        *unsigned,
        (-1.5) ** (i % 30),
        1e300 / (i + 1),
        f"text {i % 5} é\U0001f600"[: i + 3],
        bytes([i, 0, 255]) * (i % 4),
        dt.date(1969, 12, 20) + dt.timedelta(days=i * 5000 - 3000),
        dt.datetime(1969, 12, 31, 23, 59, 59, 123456, dt.UTC) + dt.timedelta(days=i * 900 - 4500),
        dt.datetime.fromisoformat("2026-03-29T02:30:00.000001") + dt.timedelta(hours=i),
        Decimal(10**9 - 1 - i).scaleb(-2) * (-1) ** i,
        Decimal(10**18 - 1 - i).scaleb(-4) * (-1) ** i,
        Decimal(f"{(-1) ** i * 1234567890123456789012345678}.{i:010d}"),
        [j if j % 3 else None for j in range(i % 5)],
        [["x", None], None, []][: i % 4],
        [pair, None][: i % 3],
        [(f"k{j}", j if j % 2 else None) for j in range(i % 4)],
        pair if i % 3 else None,
    )
    return {"id": i, **dict(zip(STORED.names[1:], values, strict=True))}


def table() -> pa.Table:
    """The table as Arrow has it."""
    return pa.Table.from_pylist([row(i) for i in range(ROWS)], STORED)


def by_pyarrow(folder: Path) -> Iterator[File]:
    """Every version, page version, codec and encoding of Arrow's writer that Spark reads too."""
    codecs = cycle(["none", "snappy", "gzip", "zstd", "lz4"])
    for version in ("1.0", "2.4", "2.6"):
        for pages in ("1.0", "2.0"):
            for how, more in STYLES.items():
                name = f"pyarrow-{version}-{pages}-{how}"
                options = {"version": version, "data_page_version": pages, **more}
                yield arrow_file(folder, name, compression=next(codecs), **options)
    yield arrow_file(folder, "pyarrow-no-notes", store_schema=False, write_page_checksum=True)
    yield arrow_file(folder, "pyarrow-item", use_compliant_nested_type=False, row_group_size=7)
    yield arrow_file(folder, "pyarrow-decimal-integers", store_decimal_as_integer=True)
    yield arrow_file(folder, "pyarrow-int96", use_deprecated_int96_timestamps=True)
    large = pa.schema([_large(field) for field in STORED])
    yield arrow_file(folder, "pyarrow-large-types", table().cast(large))
    yield arrow_file(folder, "pyarrow-millis", without("tn", "ts"), coerce_timestamps="ms")
    dictionaries = table().set_column(12, "s", table().column("s").dictionary_encode())
    yield arrow_file(folder, "pyarrow-categories", dictionaries)
    yield arrow_file(folder, "pyarrow-empty", table().slice(0, 0))
    with pq.ParquetWriter(folder / "pyarrow-no-row-groups.parquet", STORED):
        pass
    yield "pyarrow-no-row-groups", folder / "pyarrow-no-row-groups.parquet"
    yield arrow_file(folder, "pyarrow-other-columns", pa.table({"other": [1, 2]}))


def without(*names: str) -> pa.Table:
    """The table without some columns."""
    return table().drop_columns(list(names))


def _large(field: pa.Field) -> pa.Field:
    types = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    return field.with_type(types.get(field.type, field.type))


def arrow_file(folder: Path, name: str, data: pa.Table | None = None, **options: Any) -> File:
    """The table, or another one, as Arrow writes it."""
    path = folder / f"{name}.parquet"
    pq.write_table(table() if data is None else data, path, **options)
    return name, path


def by_duckdb(folder: Path) -> Iterator[File]:
    """DuckDB's writer: both versions, each codec that Spark knows."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        # Its steps beyond 32 bits in 32-bit columns are what Arrow does not decode.
        for version, data in (("V1", table()), ("V2", without("i32", "u32"))):
            connection.register("data", data)
            for codec in ("uncompressed", "snappy", "gzip", "zstd", "lz4_raw"):
                path = folder / f"duckdb-{version}-{codec}.parquet"
                connection.execute(
                    f"COPY data TO '{path}' (FORMAT parquet, PARQUET_VERSION {version}, "
                    f"CODEC '{codec}')"
                )
                yield path.stem, path


def by_polars(folder: Path) -> Iterator[File]:
    """polars' own writer, which has no maps."""
    import polars as pl

    frame = pl.from_arrow(without("m"))
    assert isinstance(frame, pl.DataFrame)
    for codec in ("uncompressed", "snappy", "gzip", "zstd", "lz4"):
        path = folder / f"polars-{codec}.parquet"
        frame.write_parquet(path, compression=codec, row_group_size=16)
        yield path.stem, path
    frame.clear().write_parquet(folder / "polars-empty.parquet")
    yield "polars-empty", folder / "polars-empty.parquet"
