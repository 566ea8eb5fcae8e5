"""The source of countable rows as the simulator runs it, with the product's cleaner."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from pyspark_sluice.checkpoint_meta.storage.contract import FileStatus, Storage
from pyspark_sluice.checkpoint_meta.storage.local_storage import LocalStorage
from pyspark_sluice.enumerator.files.cleaning.file_cleaner import CleaningPolicy, FileCleaner
from pyspark_sluice.enumerator.files.cleaning.source_cleanup import SourceCleanup
from pyspark_sluice.enumerator.files.ledger_source import FilesSource
from pyspark_sluice.enumerator.source_api import OpenState, SourceCleaner

from . import scheduler as scheduling
from .rows import POLICY, RowSource
from .spark_query import Query

if TYPE_CHECKING:
    from .query_life import QueryLife

PATIENT = replace(POLICY, interval=1.0, attempts=8)


class SimulatedSource(RowSource):
    """Rows, with the cleaner of the product."""

    def __init__(self, world: QueryLife, number: int, query: Query | None) -> None:
        super().__init__(world.files[number], policy=PATIENT)
        self._files = None if query is None else _SimulatedFiles(world, number, query)

    def create_cleaner(self, state: OpenState) -> SourceCleaner | None:
        if self._files is None:
            return None
        self._files.opened_at = self._files.world.scheduler.now
        return SourceCleanup(_Cleaner(self._files), cast("FilesSource", self), state)


class _Cleaner(FileCleaner):
    def __init__(self, storage: LocalStorage) -> None:
        super().__init__(CleaningPolicy("delete", ()), {})
        self._storage = storage

    def _storage_of(self, path: str) -> Storage:
        return self._storage


class _SimulatedFiles(LocalStorage):
    """The files of a simulated world, in place of those of this machine."""

    def __init__(self, world: QueryLife, number: int, query: Query) -> None:
        super().__init__()
        self.world, self.number, self.query = world, number, query
        self.opened_at = 0.0

    def name(self, url: str) -> str:
        return url

    def stat(self, name: str) -> FileStatus:
        self.world.scheduler.point()
        for file in self.world.files[self.number].files:
            if file.path == name:
                return FileStatus(file.size, file.modified, file.etag)
        raise FileNotFoundError(name)

    def delete(self, name: str) -> None:
        self.world.scheduler.point()
        if self.query.process.dead:
            raise scheduling.SimulatedCrash
        if self.world.weather.has("no permission to delete", self.world.scheduler.now):
            raise PermissionError(name)
        for known in list(self.world.files[self.number].files):
            if known.path == name:
                self.world.deleted(self.number, known, self.query, self.opened_at)
