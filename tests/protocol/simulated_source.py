"""The source of countable rows as the simulator runs it, with the product's cleaner."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from pyspark_sluice.checkpoint_meta.documents.file_split import FileVersion
from pyspark_sluice.enumerator.files.cleaning.file_cleaner import CleaningPolicy, FileCleaner
from pyspark_sluice.enumerator.files.cleaning.places import Place
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
        self._place = None if query is None else _SimulatedPlace(world, number, query)

    def create_cleaner(self, state: OpenState) -> SourceCleaner | None:
        if self._place is None:
            return None
        self._place.opened_at = self._place.world.scheduler.now
        return SourceCleanup(_Cleaner(self._place), cast("FilesSource", self), state)


class _Cleaner(FileCleaner):
    def __init__(self, place: Place) -> None:
        super().__init__(CleaningPolicy("delete", ()), {})
        self._places = {True: place, False: place}


@dataclass
class _SimulatedPlace(Place):
    world: QueryLife
    number: int
    query: Query

    workers: int = field(default=1)
    opened_at: float = 0.0

    def present(self, file: FileVersion) -> FileVersion | None:
        self.world.scheduler.point()
        there = [known for known in self.world.files[self.number].files if known.path == file.path]
        return there[0] if there else None

    def delete(self, file: FileVersion) -> None:
        self.world.scheduler.point()
        if self.query.process.dead:
            raise scheduling.SimulatedCrash
        if self.world.weather.has("no permission to delete", self.world.scheduler.now):
            raise PermissionError(file.path)
        for known in list(self.world.files[self.number].files):
            if known.path == file.path:
                self.world.deleted(self.number, known, self.query, self.opened_at)

    def move(self, file: FileVersion, target: str) -> None:
        raise NotImplementedError
