"""Keeps rows in a temporary file until their data file can be written."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import IO

import pyarrow as pa


class Spill:
    """Rows of partitions without an open file, in one temporary file."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._file: IO[bytes] | None = None

    def put(self, table: pa.Table) -> int:
        """Keep some rows; returns where they are."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="sluice-write-")  # noqa: SIM115 - closed by close
        # Each table is a stream of its own, which can be read from where it starts.
        start = self._file.seek(0, 2)
        with pa.ipc.new_stream(self._file, self._schema) as writer:
            writer.write_table(table)
        return start

    def tables(self, places: Sequence[int]) -> Iterator[pa.Table]:
        """Rows that were put, in the order of their places."""
        for start in places:
            assert self._file is not None
            self._file.seek(start)
            yield pa.ipc.open_stream(self._file).read_all()

    def close(self) -> None:
        """The temporary file goes."""
        if self._file is not None:
            self._file.close()
