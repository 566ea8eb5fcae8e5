"""What a task writes next to its reader commit: data files, and what is left out of the rows.

Not here: how (`landing`), and when (`task.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import pyarrow as pa

from ..checkpoint_meta.documents.landed_file import BadRecordsFile, LandedFile
from .api import LeftOut


class Landing(Protocol):
    """Takes the rows of one assignment instead of Spark, which gets a row for each data file."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Take some rows, in order."""

    def finish(self) -> Sequence[LandedFile]:
        """The files that hold all rows, complete and durable."""

    def discard(self) -> None:
        """Remove what was written, as far as possible. Not called after a kill."""


class Recording(Protocol):
    """Takes what one attempt leaves out of the rows of one assignment."""

    def write(self, left_out: LeftOut) -> None:
        """Take some records or files."""

    def finish(self) -> Sequence[BadRecordsFile]:
        """The files that hold all of them, complete and durable."""

    def settle(self, named: Collection[str]) -> None:
        """The commit that counts has been published, and names these files."""

    def discard(self) -> None:
        """Remove what was written, as far as possible. Not called after a kill."""
