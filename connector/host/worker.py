"""A process that runs tasks for the embedded host, one after the other: `python -m ...worker`.

Tasks come as pickles on standard input, answers go as pickles to what was standard output. Each
has its length before it, so that half a pickle is the end of the pipe, and not a damaged pickle.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import IO, TYPE_CHECKING, Final

from ...checkpoint_meta.storage.storage_errors import alone
from ...errors import SluiceError
from ..session.processes import leave_pandas_out

if TYPE_CHECKING:
    import pyarrow as pa

    from ..query.partitions import ReaderPartition


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
        # Not before the process listens for the end of its host.
        from ...reader.direct_write.field_ids import TABLE_COLUMNS
        from ...reader.task import Attempt
        from ..query.partitions import read_partition
        from ..session.processes import task_properties

        attempt = Attempt(self.attempt, self.partition.query_id)
        with task_properties({} if self.columns is None else {TABLE_COLUMNS: self.columns}):
            return list(
                read_partition(
                    self.options, self.schema, self.partition, attempt, inferred=self.inferred
                )
            )


_LENGTH: Final = struct.Struct(">Q")


def send(pipe: IO[bytes], pickled: bytes) -> None:
    """Send a pickle through a pipe.

    Raises:
        OSError: the other end is closed.
    """
    pipe.write(_LENGTH.pack(len(pickled)))
    pipe.write(pickled)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes:
    """Receive what `send` has sent.

    Raises:
        EOFError: the pipe was closed before its end.
    """
    head = pipe.read(_LENGTH.size)
    if len(head) == _LENGTH.size:
        (length,) = _LENGTH.unpack(head)
        pickled = pipe.read(length)
        if len(pickled) == length:
            return pickled
    raise EOFError


def _answer(pickled: bytes) -> bytes:
    try:
        task: Task = pickle.loads(pickled)  # noqa: S301 - the host's own pipe
        return pickle.dumps(task.run())
    except Exception as error:  # noqa: BLE001 - the host raises it
        try:
            return pickle.dumps(alone(error))
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
    tasks: SimpleQueue[bytes] = SimpleQueue()

    def receive_all() -> None:
        try:
            while True:
                tasks.put(receive(sys.stdin.buffer))
        finally:
            # Also in the middle of a task, or of sending one: without a host its files are useless.
            os._exit(0)

    Thread(target=receive_all, daemon=True).start()
    leave_pandas_out()
    with suppress(OSError):
        while True:
            send(answers, _answer(tasks.get()))
    os._exit(0)


if __name__ == "__main__":
    main()
