"""The log of batches, in Spark's files, and the loop that drives it: log, tasks, sink, log.

Spark writes its files in this order: `metadata` before anything else; `offsets/<n>` before a task
of batch n runs; `commits/<n>` when the sink has the batch. So does the embedded host, create-only.
A kill between two of them leaves what a kill of Spark leaves, and either host can continue.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...checkpoint_meta.stores.contract import StateStore
from ...errors import FencedError
from ..query.driver import BatchDriver
from ..query.partitions import ReaderPartition
from ..query.spark_checkpoint import NO_OFFSET, VERSION, damaged, logged_batch, numbers

_RETAINED: Final = 100
"""Batches that stay in the log: Spark's own minBatchesToRetain."""


class BatchLog:
    """The batches of one query: at most one of them was begun and is not committed."""

    def __init__(self, store: StateStore) -> None:
        """`store` is of the `checkpointLocation`. Creates `metadata` in a new one."""
        self._store = store
        self._create_metadata()
        begun, committed = numbers(store, "offsets"), numbers(store, "commits")
        self.committed = committed[-1] if committed else -1
        """The number of the newest batch that the sink has; -1 without one."""
        # What the sink has was begun, even if the listing of `offsets` is older than that.
        self.newest = max(self.committed, begun[-1] if begun else -1)
        """The number of the newest batch that was begun; -1 without one."""
        self._oldest = begun[0] if begun else 0
        if self.committed < self.newest - 1:
            raise damaged(
                store,
                "commits",
                f"batch {self.committed} in commits/, {self.newest} in offsets/",
                "the same batch, or the one before it, in commits/",
            )
        self._header: dict[str, Any] = {"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": {}}
        """Header of the newest batch: Spark reads its own settings of the query there."""
        self.offset: Mapping[str, Any] | None = None
        """The end of the newest batch that was begun; None before the first one."""
        if self.newest >= 0:
            self._header, self.offset = self._read(self.newest)

    def _create_metadata(self) -> None:
        document = json.dumps({"id": str(uuid.uuid4())}, separators=(",", ":")).encode()
        try:
            self._store.read("metadata")
        except FileNotFoundError:
            try:
                self._store.publish("metadata", document)
            except FileExistsError:
                return  # Another host begins at this moment. One of the two will be refused.

    def before(self) -> Mapping[str, Any] | None:
        """The offset that the newest batch starts from; None for the first batch."""
        return None if self.newest < 1 else self._read(self.newest - 1)[1]

    def begin(self, offset: Mapping[str, Any]) -> None:
        """Write down that the next batch ends at `offset`, before any of its tasks runs.

        Raises:
            FencedError: another host has begun that batch.
        """
        header = {**self._header, "batchTimestampMs": int(time.time() * 1000)}
        text = json.dumps(header, separators=(",", ":"))
        # Spark compares offsets as text.
        self._create("offsets", self.newest + 1, f"{VERSION}\n{text}\n{json.dumps(offset)}")
        self._header, self.offset = header, offset
        self.newest += 1

    def end(self) -> None:
        """Write down that the sink has the newest batch."""
        watermark = json.dumps(
            {"nextBatchWatermarkMs": self._header.get("batchWatermarkMs", 0)},
            separators=(",", ":"),
        )
        self._create("commits", self.newest, f"{VERSION}\n{watermark}")
        self.committed = self.newest
        while self._oldest <= self.newest - _RETAINED:
            # A kill between the two leaves what the next host's log begins with.
            self._store.delete(f"commits/{self._oldest}")
            self._store.delete(f"offsets/{self._oldest}")
            self._oldest += 1

    def _create(self, directory: str, number: int, text: str) -> None:
        name = f"{directory}/{number}"
        try:
            self._store.publish(name, text.encode())
        except FileExistsError as error:
            raise FencedError(
                "another query has taken over this checkpoint",
                f"{self._store.location}/{name}",
                "a file that this query has not written",
                f"batch {number} of this query to be the newest",
                "Two queries must not share a checkpointLocation: stop one of them.",
            ) from error

    def _read(self, number: int) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
        batch, name = logged_batch(self._store, number), f"offsets/{number}"
        if len(batch.offsets) != 1:
            found = f"{len(batch.offsets)} offsets"
            raise damaged(self._store, name, found, "the offset of one source")
        try:
            offset = None if batch.offsets[0] == NO_OFFSET else json.loads(batch.offsets[0])
            return json.loads(batch.header), offset
        except ValueError as error:
            raise damaged(self._store, name, str(error), "JSON") from error


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
