"""The files to be read: made once, deterministically, in a folder outside the repository."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from .shapes import Shape

SCHEMA = "id long, user string, amount double, flag boolean, at timestamp, note string"
"""What every large file holds."""

SMALL_SCHEMA = "id long, name string, value double"
ROWS = 4_000_000
FILES = 16
_CHUNK = 50_000
_EPOCH = 1_700_000_000_000_000  # microseconds; 2023-11-14


class Data:
    """Makes what a row asks for and keeps it for the next run."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def csv(self) -> Path:
        """4 M rows in 16 files with a header."""
        return self.made("csv", lambda folder: _files(folder, "csv", _write_csv))

    def json(self) -> Path:
        """The same rows, one object per line."""
        return self.made("json", lambda folder: _files(folder, "json", _write_json))

    def parquet(self) -> Path:
        """The same rows."""
        return self.made("parquet", lambda folder: _files(folder, "parquet", _write_parquet))

    def gzip_json(self) -> Path:
        """The JSON files, each compressed."""

        def make(folder: Path) -> None:
            for path in sorted(self.json().glob("*.json")):
                target = folder / f"{path.name}.gz"
                with path.open("rb") as plain, gzip.open(target, "wb", compresslevel=3) as packed:
                    shutil.copyfileobj(plain, packed, 1 << 20)

        return self.made("gzip_json", make)

    def small_json(self, count: int) -> Path:
        """One-line JSON files spread over 200 directories."""

        def make(folder: Path) -> None:
            for number in range(200):
                (folder / f"d{number:04}").mkdir()
            for number in range(count):
                write_small(folder / f"d{number % 200:04}" / f"{number:07}.json", number)

        return self.made(f"small_json_{count}", make)

    def shape(self, shape: Shape) -> Path:
        """The files of a shape."""
        name = "".join(c if c.isalnum() else "_" for c in shape.name)
        return self.made(f"{shape.file_format}_{name}_{shape.rows}", shape.make)

    def made(self, name: str, make: Callable[[Path], None]) -> Path:
        """The folder `name`; renamed into place when complete, so an aborted run leaves no half."""
        folder = self.home / name
        if not folder.exists():
            print(f"making {folder}", file=sys.stderr, flush=True)
            unfinished = self.home / f".{name}"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(parents=True)
            make(unfinished)
            unfinished.rename(folder)
        return folder


def write_small(path: Path, number: int) -> None:
    """One file with one row."""
    row = {"id": number, "name": f"name-{number}", "value": number / 8}
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")


def size_of(folder: Path) -> int:
    """Bytes below `folder`."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _files(folder: Path, suffix: str, write: Callable[[Path, range], None]) -> None:
    share = ROWS // FILES
    for number in range(FILES):
        rows = range(number * share, (number + 1) * share, _CHUNK)
        write(folder / f"part-{number:02}.{suffix}", rows)


def _tables(chunks: range) -> Iterator[pa.Table]:
    for first in chunks:
        ids = range(first, min(first + _CHUNK, chunks.stop))
        yield pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "user": [f"user{i * 7919 % 100_000}" for i in ids],
                "amount": [i * 31 % 1_000_003 / 100 for i in ids],
                "flag": [i % 3 == 0 for i in ids],
                "at": pa.array([_EPOCH + i * 1_000_000 for i in ids], pa.timestamp("us", "UTC")),
                "note": [None if i % 10 == 0 else f"n{i % 1000}" for i in ids],
            }
        )


def _write_csv(path: Path, chunks: range) -> None:
    with path.open("w", encoding="utf-8") as out:
        out.write("id,user,amount,flag,at,note\n")
        for table in _tables(chunks):
            for row in _texts(table):
                out.write(
                    f"{row['id']},{row['user']},{row['amount']},{row['flag']},{row['at']},"
                    f"{row['note'] or ''}\n"
                )


def _write_json(path: Path, chunks: range) -> None:
    with path.open("w", encoding="utf-8") as out:
        for table in _tables(chunks):
            for row in _texts(table):
                note = "" if row["note"] is None else f',"note":"{row["note"]}"'
                out.write(
                    f'{{"id":{row["id"]},"user":"{row["user"]}","amount":{row["amount"]},'
                    f'"flag":{row["flag"]},"at":"{row["at"]}"{note}}}\n'
                )


def _texts(table: pa.Table) -> Iterator[dict[str, object]]:
    """Rows with timestamp and boolean as both text formats spell them."""
    at = pa.compute.strftime(table["at"], format="%Y-%m-%dT%H:%M:%SZ")
    table = table.set_column(4, "at", pa.compute.cast(at, pa.string()))
    for row in table.to_pylist():
        row["flag"] = "true" if row["flag"] else "false"
        # Seconds carry six decimals in Arrow's text; both sources read them with three.
        row["at"] = str(row["at"])[:23] + "Z"
        yield row


def _write_parquet(path: Path, chunks: range) -> None:
    writer = None
    for table in _tables(chunks):
        writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
