"""Reads files with dlt, polars or DuckDB into a table: a program of the environment that has them.

Arguments: the tool, the format, the folder with the files, and the folder for the table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def by_polars(file_format: str, files: str, table: str) -> None:
    """All files into a Delta table."""
    import polars as pl  # type: ignore[import-not-found,unused-ignore]

    scans: dict[str, Any] = {
        "json": pl.scan_ndjson,
        "csv": lambda path: pl.scan_csv(path, try_parse_dates=True),
        "parquet": pl.scan_parquet,
    }
    scans[file_format](files).collect().write_delta(table)


def by_duckdb(file_format: str, files: str, table: str) -> None:
    """All files into one Parquet file."""
    import duckdb  # type: ignore[import-not-found,unused-ignore]

    function = "read_json" if file_format == "json" else f"read_{file_format}"
    Path(table).mkdir()
    duckdb.sql(f"COPY (FROM {function}('{files}')) TO '{table}/0.parquet' (FORMAT parquet)")


def by_dlt(file_format: str, files: str, table: str) -> None:
    """New files alone into a Delta table; its state is next to it."""
    import dlt  # type: ignore[import-not-found,unused-ignore]
    from dlt.sources.filesystem import (  # type: ignore[import-not-found,unused-ignore]
        filesystem,
        read_csv,
        read_jsonl,
        read_parquet,
    )

    readers = {"json": read_jsonl, "csv": read_csv, "parquet": read_parquet}
    folder, _, pattern = files.rpartition("/")
    listed = filesystem(bucket_url=f"file://{folder}", file_glob=pattern)
    listed.apply_hints(incremental=dlt.sources.incremental("modification_date"))
    pipeline = dlt.pipeline(
        "peer",
        pipelines_dir=f"{table}.state",
        destination=dlt.destinations.filesystem(f"file://{table}"),
        dataset_name="data",
    )
    rows = (listed | readers[file_format]()).with_name("rows")
    pipeline.run(rows, table_format="delta", write_disposition="append")


TOOLS: dict[str, Callable[[str, str, str], None]] = {
    "polars": by_polars,
    "duckdb": by_duckdb,
    "dlt": by_dlt,
}

if __name__ == "__main__":
    tool, kind, source, target = sys.argv[1:]
    TOOLS[tool](kind, f"{source}/*.{kind}", target)
