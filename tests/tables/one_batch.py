"""One batch into a table, as a task and a driver do it, without Spark; killed where a test says."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.documents.written_file import FileName
from pyspark_sluice.checkpoint_meta.files.file_columns import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.storage.local_storage import LocalDraft
from pyspark_sluice.checkpoint_meta.stores.contract import StateStore
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.connector.source.schema_json import json_of
from pyspark_sluice.reader.direct_write import place
from pyspark_sluice.reader.direct_write.file_writer import DataFileWriter
from pyspark_sluice.reader.direct_write.write_options import WriteOptions
from pyspark_sluice.reader.task import Assignment, Attempt, DirectWrite, ReaderTask
from pyspark_sluice.tables.delta_table import DeltaSink
from pyspark_sluice.tests.protocol.row_reader import SCHEMA, reader_maker
from pyspark_sluice.tests.protocol.rows import Row
from pyspark_sluice.tests.tables.sinks import written_batch

REF: Final = CheckpointRef(1, 1)
FILES: Final = [FileSplit(FileVersion(name, 4, 0), 0, 4) for name in ("a", "b")]
ROWS: Final = [(name, row) for name in ("a", "b") for row in range(4)]
_STEPS: Final[dict[str, tuple[type, str, bool]]] = {
    "when the rows are in a local file": (LocalDraft, "publish", False),
    "when the file is published": (LocalDraft, "publish", True),
    "when its reader has committed": (ReaderCommits, "publish", True),
    "before the table's commit": (DeltaSink, "_commit", False),
    "after the table's commit": (DeltaSink, "_commit", True),
}
STEPS: Final = tuple(_STEPS)


@dataclass(frozen=True)
class OneBatch:
    """A batch of one reader into a Delta table below a directory."""

    root: Path

    @property
    def store(self) -> StateStore:
        """The query's state."""
        return open_store(str(self.root / "state"))

    @property
    def place(self) -> place.Place:
        """Where data files go."""
        return place.Place(str(self.root / "table"), {})

    def run(self, step: str = "") -> None:
        """Write the rows and add the files to the table; ends at `step`, if one is given."""
        if step:
            self._kill_at(step)
        commits = ReaderCommits(self.store)
        task = ReaderTask(
            reader_maker(),
            FileSplitSerializer(),
            commits,
            frozenset(),
            may_return=False,
            writes=DirectWrite(self._writer, json_of),
        )
        (checkpoint,) = CheckpointHistory(self.store).checkpoints()
        identity = CheckpointHistory(self.store).load(checkpoint).identity
        list(task.read(Assignment(identity, 0, FILES), Attempt()))
        commit = commits.find(identity, 0)
        assert commit is not None
        DeltaSink(str(self.root / "table"), {}).add(written_batch(commit.written_files or ()))

    def files(self) -> list[str]:
        """The files that the table names."""
        return DeltaTable(str(self.root / "table")).file_uris()

    def rows(self) -> list[Row]:
        """What is in the table, in order."""
        found = [pa.parquet.read_table(path).to_pylist() for path in self.files()]
        return sorted((row["file"], row["row"]) for rows in found for row in rows)

    def _writer(self, assignment: Assignment[FileSplit]) -> DataFileWriter:
        name = FileName(assignment.checkpoint, assignment.reader, secrets.token_hex(6))
        return DataFileWriter(self.place, name, SCHEMA, WriteOptions(), None, None)

    def _kill_at(self, step: str) -> None:
        owner, name, after = _STEPS[step]
        method: Callable[..., Any] = getattr(owner, name)

        def dies(*arguments: Any) -> None:
            if after:
                method(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(owner, name, dies)
