"""Trials of queries over files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit
from pyspark_sluice.connector.options.model import SluiceOptions, parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.testing import Row, Trial
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.reader.api import ReaderContext, SplitReader


class _Fails(FileSource):
    """A source whose query ends at a file that cannot be read, as by default."""

    def create_reader(self, context: ReaderContext) -> SplitReader[FileSplit]:
        return super().create_reader(replace(context, may_return=False))


def _source(options: SluiceOptions, schema: pa.Schema) -> FileSource:
    return (FileSource if options.on_split_error == "return" else _Fails)(options, schema)


class FilesTrial(Trial):
    """A trial in which something may happen between the planning of a batch and its reading."""

    before_reading: Callable[[], object] = staticmethod(lambda: None)

    def _read(self, partitions: Any) -> list[Row]:
        self.before_reading()
        return super()._read(partitions)


def trial_of(
    path: Path | str, schema: pa.Schema, options: dict[str, str], **settings: Any
) -> FilesTrial:
    """A query of the files at a path, whose readers may send splits back."""
    given = {"path": str(path), "stateLocation": "unused", "onSplitError": "return", **options}
    made = parse_options(given, streaming=True)
    return FilesTrial(lambda: _source(made, schema), **settings)


class Runs(FilesTrial):
    """AvailableNow runs, one after another on one state, each in a process of its own."""

    def __init__(self, schema: pa.Schema, **options: str) -> None:
        self.given: dict[str, str] = options
        self.backlog: dict[str, Any] = {}
        super().__init__(lambda: _source(self._options, schema), bounded=True, parallelism=1)

    @property
    def _options(self) -> SluiceOptions:
        return parse_options(self.given, streaming=False)

    def _begin(self, deltas: int) -> None:
        limits = BatchLimits(files=self._options.max_files_per_trigger)
        self._settings = replace(self._settings, limits=limits, deltas_per_base=deltas)
        self.restart()

    def run(
        self,
        batches: int = 100,
        deltas: int = 2,
        *,
        before_reading: Callable[[], object] = lambda: None,
    ) -> list[Any]:
        """Rows of each batch."""
        self._begin(deltas)
        self.before_reading = before_reading
        found: list[Any] = []
        while len(found) < batches and self.step():
            found.append(self.sink[-1])
            self.backlog = self.coordinator.report()
        return found

    def die(self) -> None:
        """A run that ends before the host has its first batch in its log."""
        self._begin(2)
        start = self.offsets[-1] if self.offsets else NO_CHECKPOINT
        self._patiently(lambda: self.coordinator.latest(start))
