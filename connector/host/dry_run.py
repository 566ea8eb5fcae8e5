"""The batch that a run would begin with, without a trace in the state or the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...checkpoint_meta.storage.urls import hadoop_path
from ...checkpoint_meta.stores.open_store import open_store
from ...errors import OptionError
from ..options.model import parse_options
from ..query.driver import StreamDriver
from ..source.rehearsal import Rehearsal, checked_schema
from ..source.schemas import canonical
from ..source.state_location import open_state
from .batch_log import BatchLog, BatchLoop
from .embedded_query import SinkTarget, sizes_of


@dataclass(frozen=True)
class PlannedBatch:
    """The batch that comes next."""

    number: int
    splits: int
    bytes: int
    is_repeated: bool
    """True if a host has begun it and has not finished it."""


def planned_batch(texts: Mapping[str, str], target: SinkTarget) -> PlannedBatch | None:
    """The batch that a run with these options would begin with; None if nothing is new.

    A query that runs on the checkpoint is not disturbed.

    Raises:
        SluiceError: the options, the log or the state are not usable, or the table refuses rows.
    """
    options = parse_options(texts, streaming=True, names_format=True)
    place = open_store(hadoop_path(options.checkpoint_location or ""), options.storage_options)
    log = BatchLog(Rehearsal(place))
    state = Rehearsal(open_state(options))
    try:
        schema, inferred = checked_schema(options, target.sink, state)
    except OptionError as error:
        if error.lacks_input:
            return None
        raise
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
