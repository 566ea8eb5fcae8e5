"""A process that runs tasks for the embedded host, one after the other: `python -m ...worker`.

Tasks come as pickles on standard input, answers go as pickles to what was standard output.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread

import pyarrow as pa

from ...errors import SluiceError, without_history
from ...reader.direct_write.field_ids import TABLE_COLUMNS
from ...reader.task import Attempt
from ..query.partition_reader import read_partition
from ..query.partitions import ReaderPartition
from ..session.task_properties import task_properties


@dataclass(frozen=True)
class Task:
    """One partition of a batch, and what a process needs to read it."""

    options: Mapping[str, str]
    schema: pa.Schema
    inferred: bool
    partition: ReaderPartition
    columns: str | None
    """The columns of the table, for `TABLE_COLUMNS`."""

    attempt: int = 0

    def run(self) -> Sequence[pa.RecordBatch]:
        """Read the partition, write its rows into data files; the rows about these files."""
        attempt = Attempt(self.attempt, self.partition.query_id)
        with task_properties({} if self.columns is None else {TABLE_COLUMNS: self.columns}):
            return list(
                read_partition(
                    self.options, self.schema, self.partition, attempt, inferred=self.inferred
                )
            )


def _answer(task: Task) -> bytes:
    try:
        return pickle.dumps(task.run())
    except Exception as error:  # noqa: BLE001 - the host raises it
        try:
            return pickle.dumps(without_history(error))
        except Exception:  # noqa: BLE001 - an error of a library or of the user's own code
            text = f"{type(error).__name__}: {error}"
            return pickle.dumps(SluiceError("a task failed", "", text))


def main() -> None:
    """Run tasks until the host closes the pipe or has died."""
    # The host decides when a batch ends; a service manager signals all processes of a service.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    # What the user's code prints must not be among the answers.
    os.dup2(2, 1)
    tasks: SimpleQueue[Task] = SimpleQueue()

    def receive() -> None:
        try:
            while True:
                tasks.put(pickle.load(sys.stdin.buffer))  # noqa: S301 - the host's own pipe
        except EOFError:
            # Also in the middle of a task: without a host its files are useless.
            os._exit(0)

    Thread(target=receive, daemon=True).start()
    while True:
        answers.write(_answer(tasks.get()))
        answers.flush()


if __name__ == "__main__":
    from ..session.processes import leave_pandas_out

    leave_pandas_out()
    main()
