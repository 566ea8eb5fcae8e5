"""The batch that a run would begin with, without a trace in the state or the log."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from typing_extensions import override

from ...checkpoint_meta.storage.urls import hadoop_path
from ...checkpoint_meta.stores.contract import StateStore
from ...checkpoint_meta.stores.open_store import open_store
from ...checkpoint_meta.stores.testing import MemoryStateStore
from ..options.model import parse_options
from ..query.driver import StreamDriver
from ..source.schemas import canonical, schema_of_rows
from ..source.state_location import open_state
from .batch_log import BatchLog, BatchLoop
from .embedded_query import sizes_of


@dataclass(frozen=True)
class PlannedBatch:
    """The batch that comes next."""

    number: int
    splits: int
    bytes: int
    is_repeated: bool
    """True if a host has begun it and has not finished it."""


def planned_batch(texts: Mapping[str, str]) -> PlannedBatch | None:
    """The batch that a run with these options would begin with; None if nothing is new.

    A query that runs on the checkpoint is not disturbed.

    Raises:
        SluiceError: the options, the log or the state are not usable.
    """
    options = parse_options(texts, streaming=True, names_format=True)
    place = open_store(hadoop_path(options.checkpoint_location or ""), options.storage_options)
    log = BatchLog(Rehearsal(place))
    # An inferred schema would be stored, and does not change which files are read.
    stateless = {"checkpoint_location": None, "state_location": None}
    schema, inferred = schema_of_rows(options.model_copy(update=stateless))
    state = Rehearsal(open_state(options))
    driver = StreamDriver(texts, canonical(schema), inferred=inferred, rehearsal=state)
    try:
        loop = BatchLoop(log, driver)
        driver.coordinator.prepare_available_now()
        is_repeated = loop.is_repeating
        partitions = loop.begin()
        if partitions is None:
            return None
        sizes = [size for partition in partitions for size in sizes_of(partition)]
        splits, total_bytes = sum(count for count, _ in sizes), sum(size or 0 for _, size in sizes)
        return PlannedBatch(log.newest, splits, total_bytes, is_repeated)
    finally:
        driver.coordinator.close()


class Rehearsal(MemoryStateStore):
    """A store whose changes stay in memory."""

    def __init__(self, inner: StateStore) -> None:
        super().__init__(inner.location)
        self._inner = inner
        self._deleted: set[str] = set()

    @override
    def publish(self, name: str, data: bytes) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.read(name)
            raise FileExistsError(name)
        super().publish(name, data)

    @override
    def read(self, name: str) -> bytes:
        is_changed = name in self.objects or name in self._deleted
        return super().read(name) if is_changed else self._inner.read(name)

    @override
    def list(self, directory: str) -> list[str]:
        names = {*self._inner.list(directory), *super().list(directory)}
        return sorted(name for name in names if f"{directory}/{name}" not in self._deleted)

    @override
    def delete(self, name: str) -> None:
        super().delete(name)
        self._deleted.add(name)
