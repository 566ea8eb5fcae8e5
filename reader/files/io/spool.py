"""Holds the batches of a split back until the split is known to be whole.

A few stay in memory, the rest goes to a temporary Arrow file. Not here: when that is needed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Self

import pyarrow as pa


class Spool:
    """Batches of one schema: put in, then taken out in order. A context manager."""

    def __init__(self, memory_bytes: int) -> None:
        self._limit = memory_bytes
        self._held = 0
        self._memory: list[pa.RecordBatch] = []
        self._file: IO[bytes] | None = None
        self._writer: pa.RecordBatchStreamWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._memory.clear()
        if self._file is not None:
            self._file.close()

    def put(self, batch: pa.RecordBatch) -> None:
        """Keep one batch in memory, or on disk once memory would exceed the limit."""
        # Once a batch is on disk, all that follow are, so that they stay in order.
        if self._writer is None and self._held + batch.nbytes <= self._limit:
            self._memory.append(batch)
            self._held += batch.nbytes
            return
        if self._writer is None:
            self._file = tempfile.TemporaryFile(prefix="sluice-spool-")  # noqa: SIM115 - closed by __exit__
            self._writer = pa.ipc.new_stream(self._file, batch.schema)
        self._writer.write_batch(batch)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All batches in order; nothing can be put in afterwards."""
        yield from self._memory
        if self._writer is not None and self._file is not None:
            self._writer.close()
            self._file.seek(0)
            yield from pa.ipc.open_stream(self._file)
