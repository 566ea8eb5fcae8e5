"""The order in which a host does things: log, tasks, sink, log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..query.driver import BatchDriver
from ..query.partitions import ReaderPartition
from .batch_log import BatchLog


class BatchLoop:
    """Each batch is in the log before a task of it runs, and its commit once the sink has it.

    After a kill at any moment the next host repeats at most one batch.
    """

    def __init__(self, log: BatchLog, driver: BatchDriver) -> None:
        self.log = log
        self._driver = driver

    @property
    def is_repeating(self) -> bool:
        """True if the next batch was begun by a host that has not finished it."""
        return self.log.committed < self.log.newest

    def begin(self) -> Sequence[ReaderPartition] | None:
        """Write the next batch down; its tasks, or None if nothing is new."""
        initial: Mapping[str, Any] = self._driver.initial_offset()
        if self.is_repeating:
            start, end = self.log.before() or initial, self.log.offset or initial
        else:
            start = self.log.offset or initial
            end = self._driver.latest_offset(start, unlimited=False)
            if end == start:
                return None
            self.log.begin(end)
            self._driver.commit(start)
        return self._driver.partitions(start, end)

    def end(self) -> None:
        """The sink has the batch."""
        self.log.end()
