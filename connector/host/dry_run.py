"""The batch that a run would begin with, without a trace in the state or the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from typing_extensions import override

from ...checkpoint_meta.storage.urls import hadoop_path
from ...checkpoint_meta.stores.contract import StateStore
from ...checkpoint_meta.stores.open_store import open_store
from ..options.model import parse_options
from ..query.driver import StreamDriver
from ..source.schemas import canonical, schema_of_rows
from ..source.state_location import open_state
from .batch_log import BatchLog
from .batch_loop import BatchLoop
from .embedded_query import sizes_of


@dataclass(frozen=True)
class PlannedBatch:
    """The batch that comes next."""

    number: int
    splits: int
    bytes: int
    is_repeated: bool
    """True if a host has begun it and has not finished it."""


def planned_batch(given: Mapping[str, str]) -> PlannedBatch | None:
    """The batch that a run with these options would begin with; None if nothing is new.

    A query that runs on the checkpoint is not disturbed.

    Raises:
        SluiceError: the options, the log or the state are not usable.
    """
    options = parse_options(given, streaming=True, names_format=True)
    place = open_store(hadoop_path(options.checkpoint_location or ""), options.storage_options)
    log = BatchLog(Rehearsal(place))
    # An inferred schema would be stored, and does not change which files are read.
    stateless = {"checkpoint_location": None, "state_location": None}
    schema, inferred = schema_of_rows(options.model_copy(update=stateless))
    state = Rehearsal(open_state(options))
    driver = StreamDriver(given, canonical(schema), inferred=inferred, rehearsal=state)
    try:
        loop = BatchLoop(log, driver)
        driver.coordinator.prepare_available_now()
        is_repeated = loop.is_repeating
        partitions = loop.begin()
        if partitions is None:
            return None
        sizes = [size for partition in partitions for size in sizes_of(partition)]
        splits, known = sum(count for count, _ in sizes), sum(size or 0 for _, size in sizes)
        return PlannedBatch(log.newest, splits, known, is_repeated)
    finally:
        driver.coordinator.close()


class Rehearsal(StateStore):
    """A store whose changes stay in memory."""

    def __init__(self, inner: StateStore) -> None:
        self._inner = inner
        self.location = inner.location
        self._written: dict[str, bytes] = {}
        self._deleted: set[str] = set()

    @override
    def publish(self, name: str, data: bytes) -> None:
        try:
            self.read(name)
        except FileNotFoundError:
            self._written[name] = data
        else:
            raise FileExistsError(name)

    @override
    def read(self, name: str) -> bytes:
        if name in self._deleted:
            raise FileNotFoundError(name)
        return self._written[name] if name in self._written else self._inner.read(name)

    @override
    def read_part(self, name: str, start: int, length: int) -> bytes:
        if name in self._written or name in self._deleted:
            return self.read(name)[start : start + length]
        return self._inner.read_part(name, start, length)

    @override
    def list(self, directory: str) -> list[str]:
        prefix = f"{directory}/"
        written = {n.removeprefix(prefix) for n in tuple(self._written) if n.startswith(prefix)}
        names = {*self._inner.list(directory), *(name.split("/")[0] for name in written)}
        return sorted(name for name in names if f"{prefix}{name}" not in self._deleted)

    @override
    def delete(self, name: str) -> None:
        for known in [n for n in tuple(self._written) if n == name or n.startswith(f"{name}/")]:
            del self._written[known]
        self._deleted.add(name)
