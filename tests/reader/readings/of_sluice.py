"""Our readings of the same bytes: alone, packed, cut at any byte, next to a malformed neighbour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
from pydantic import ValidationError

from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit
from pyspark_sluice.errors import OptionError, SplitReadError
from pyspark_sluice.reader.files.formats.api import FileFormat, Splittability
from pyspark_sluice.reader.files.formats.records import record_format
from pyspark_sluice.reader.files.formats.registry import make_format
from pyspark_sluice.reader.files.formats.xml.record_scanner import starts
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.reader import FileSplitReader
from pyspark_sluice.reader.files.testing import CONTEXT, cut, version, whole
from pyspark_sluice.tests.reader.readings.model import Group, Outcome
from pyspark_sluice.tests.reader.readings.of_spark import columns_of, comparable

_BLOCK_BYTES = 31
"""Bytes parsed at a time where a file has one cut: blocks end within records, too."""


class Ours:
    """One reader for all files of a group in one mode."""

    def __init__(self, group: Group, mode: str) -> None:
        self.schema = columns_of(group, mode)
        self.refused = ""
        modes = {"mode": mode} if group.has_modes else {}
        given = {**group.options, **modes, "fileFormat": group.file_format}
        try:
            self.options = ReaderOptions.model_validate(given)
            self._reader = FileSplitReader(self.schema, self.options, CONTEXT)
            self._format: FileFormat = make_format(self.options, self.schema)
        except (ValidationError, OptionError) as error:
            self.refused = f"refused: {str(error)[:160]}"

    def read(self, splits: Sequence[FileSplit], reader: FileSplitReader | None = None) -> Outcome:
        """Rows of these splits, or the error; an error that does not name its file is a crash."""
        if self.refused:
            return self.refused
        batches = []
        try:
            for item in (reader or self._reader).read(splits):
                if isinstance(item, pa.RecordBatch):
                    item.validate(full=True)
                    batches.append(item)
            return comparable(pa.Table.from_batches(batches, self.schema))
        except SplitReadError as error:
            named = any(split.file.path in str(error) for split in splits)
            text = str(error).splitlines()[0][:160]
            return f"refused: {text}" if named else f"crash: does not name the file: {text}"
        except OptionError as error:
            return f"refused: {str(error)[:160]}"
        except Exception as error:  # noqa: BLE001 what a reader must never raise is what is looked for
            return f"crash: {type(error).__name__}: {str(error)[:160]}"

    def alone(self, path: Path) -> Outcome:
        """One file, one split."""
        return self.read([whole(path)])

    def packed(self, paths: Sequence[Path]) -> Outcome:
        """Many files, of which the small ones share a parse."""
        return self.read([whole(path) for path in paths])

    def cut(self, path: Path, borders: Iterable[int]) -> Outcome | None:
        """Splits at these bytes; None where the format is not cut."""
        if self.refused:
            return None
        where = self._format.splittability(version(path))
        if where is Splittability.WHOLE:
            return None
        if where is Splittability.BLOCKS:
            try:
                # Blocks are a million bytes apart, but may begin with any record.
                borders = starts(version(path), self.options, 1)
            except SplitReadError:
                return None
        splits = cut(path, borders)
        if len(splits) != 2:
            return self.read(splits)
        usual, record_format.BLOCK_BYTES = record_format.BLOCK_BYTES, _BLOCK_BYTES
        try:
            return self.read(splits, FileSplitReader(self.schema, self.options, CONTEXT))
        finally:
            record_format.BLOCK_BYTES = usual
