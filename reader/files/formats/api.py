"""The contract of a file format.

Not here: opening and decompressing files (`../opening.py`), reader commits, anything of Spark.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from ....checkpoint_meta.splits import FileSplit, FileVersion


class Splittability(Enum):
    """Where a file may be cut."""

    WHOLE = "whole"
    """Nowhere: compressed text, multi-line records, single-document formats."""

    RECORDS = "records"
    """At any byte: a record belongs to the split in which its first byte lies."""

    BLOCKS = "blocks"
    """At the borders of `FileFormat.blocks` only."""


@dataclass(frozen=True, slots=True)
class Block:
    """One row group, stripe, record batch or block of a file, without gaps to its neighbours.

    The first block of a file starts at byte 0 and the last ends at the file's length, so that
    headers and footers are accounted for and splits made of blocks cover the file.
    """

    start: int
    end: int
    rows: int
    """Rows in this block, -1 where the metadata does not say."""


@dataclass(slots=True)
class Decoded:
    """One batch in the target schema's data columns, and the records dropped on the way to it."""

    batch: pa.RecordBatch
    dropped_records: int = 0


class FileFormat(ABC):
    """Cuts and decodes one file format. Built once for each reader; holds no open file."""

    @abstractmethod
    def splittability(self, file: FileVersion) -> Splittability:
        """Where `file` may be cut. Called on the driver; no I/O."""

    def blocks(self, file: FileVersion) -> Sequence[Block]:
        """The blocks of `file` in order. Called on the driver, only for `BLOCKS`; reads metadata.

        Raises:
            SplitReadError: the metadata cannot be read.
        """
        raise NotImplementedError

    @abstractmethod
    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        """Yield the rows of `split` in order, in bounded memory.

        Raises:
            SplitReadError: vanished, changed, malformed or not fitting; the error names file,
                position, what was expected and the way out.
        """
