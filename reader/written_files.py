"""What a task writes next to its reader commit: data files, and what is left out of the rows.

Under a direct write the stream has a row for each data file instead.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Final, Protocol

import pyarrow as pa

from ..checkpoint_meta.documents.batch_mark import BatchMark
from ..checkpoint_meta.documents.checkpoint_ref import CheckpointIdentity
from ..checkpoint_meta.documents.reader_commit import ReaderCommit
from ..checkpoint_meta.documents.written_file import BadRecordsFile, Removal, WrittenFile
from .api import LeftOut


class RowsWriter(Protocol):
    """Takes the rows of one assignment instead of Spark, which gets a row for each data file."""

    schema: pa.Schema
    """All columns of the rows that were written, those of partitions included."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Take some rows, in order."""

    def finish(self) -> Sequence[WrittenFile]:
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


SCHEMA: Final = pa.schema(
    [
        ("path", pa.string()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("partition", pa.map_(pa.string(), pa.string())),
        ("statistics", pa.string()),
        ("removals", pa.string()),
        ("checkpoint", pa.int64()),
        ("reader", pa.int32()),
        ("lineage", pa.string()),
        ("mark", pa.string()),
        ("origin", pa.string()),
    ]
)
"""The columns of the stream.

In `removals` is JSON, in the first row of a reader, of the rows that leave the table; else nothing.
The last three are for the sink: the query, the checkpoint of the file, and its `BatchOrigin`.
"""

TABLE_LOOKS: Final = "sluice.write.tableLooks"
"""Local property of Spark's jobs by which a sink asks for a row also of a reader without files."""


NO_FILE: Final = WrittenFile(path="", rows=0, bytes=0, statistics="")
"""In the row of a reader without files, so that the sink of a batch without rows looks, too."""

# With writeCopy=never a commit may list any number of files, which one batch need not hold.
_AT_ONCE = 10_000


def removals_to_text(removals: Sequence[Removal]) -> str:
    """Removals as text for a column; empty without any."""
    return json.dumps([each.model_dump(mode="json") for each in removals]) if removals else ""


def removals_from_text(text: str) -> Sequence[Removal]:
    """The inverse of `removals_to_text`."""
    return [Removal.model_validate(each) for each in json.loads(text)] if text else ()


def rows_about(
    commit: ReaderCommit, checkpoint: CheckpointIdentity, origin: str, *, looks: bool
) -> Iterator[pa.RecordBatch]:
    """The rows about the files of one reader commit, in their order.

    `origin` is the text of the batch's `BatchOrigin`. `looks`: there is a row in any case.
    """
    has_row = looks or bool(commit.removals)
    files = commit.written_files or ([NO_FILE] if has_row else [])
    for start in range(0, len(files), _AT_ONCE):
        some = files[start : start + _AT_ONCE]
        columns = {
            "path": [file.path for file in some],
            "rows": [file.rows for file in some],
            "bytes": [file.bytes for file in some],
            "partition": [list(file.partition.items()) for file in some],
            "statistics": [file.statistics for file in some],
            "removals": [
                removals_to_text(() if start + row else commit.removals) for row in range(len(some))
            ],
            "checkpoint": [checkpoint.ref.checkpoint] * len(some),
            "reader": [commit.reader] * len(some),
            "lineage": [checkpoint.lineage] * len(some),
            "mark": [str(BatchMark.of(checkpoint))] * len(some),
            "origin": [origin] * len(some),
        }
        yield pa.RecordBatch.from_pydict(columns, schema=SCHEMA)
