"""The driver's half of a stream: options, state and coordinator, opened at Spark's first call.

Not here: Spark's signatures (`stream_reader.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from ...enumerator.batch_budget import BatchLimits
from ...enumerator.coordinator.coordinator import Coordinator
from ...enumerator.settings import CoordinatorSettings
from ...reader.files.gzip_index import StoredPoints
from ..options.model import SluiceOptions, parse_options
from ..session.error_display import is_process_of_spark
from ..session.logs import configure_logging
from ..session.without_pandas import leave_pandas_out
from ..source.arrow_schema import arrow_schema
from ..source.evolution_mode import resolved
from ..source.file_source import driver_cores
from ..source.loading import load_source
from ..source.state_location import open_state, spark_query_id, starting_state
from .offsets import Offsets
from .partitions import partitions_of
from .skipped_first_batch import FirstBatch

_IDLE_SECONDS = 0.05
"""A query that is idle is asked some 16 times a second then, instead of 100 times. News wakes it.
Another source of the same query, which Spark asks after this one, has its first news so much later;
while it has batches nothing waits."""


class StreamDriver:
    """Lives in the Python process that Spark keeps on the driver for the life of the query."""

    def __init__(
        self, given: Mapping[str, str], schema: StructType, *, inferred: bool = False
    ) -> None:
        """Parses the options; state is opened at the coordinator's first call.

        Raises:
            OptionError: lists every problem with the options; or Spark's checkpoint is not where
                they say.
        """
        options = parse_options(given, streaming=True)
        configure_logging(options.log_level)
        if options.source == "files" and is_process_of_spark():
            leave_pandas_out()
        self._options = resolved(options, schema.names, inferred=inferred)
        self._query_id = spark_query_id(self._options)
        self._store = open_state(self._options)
        self._options = self._options.with_points(StoredPoints(self._store))
        source = load_source(self._options, arrow_schema(schema))
        self.coordinator = Coordinator(source, self._store, _settings(self._options))
        history = self.coordinator.history
        self._offsets = Offsets(history)
        self._first_batch = FirstBatch(
            self._store,
            history,
            self._options.acknowledgement_timeout / 1000,
            may_be_unread=self._options.allow_unread_first_batch,
        )

    def initial_offset(self) -> dict[str, Any]:
        """Before the first checkpoint."""
        return self._offsets.offset(NO_CHECKPOINT)

    def latest_offset(self, start: Mapping[str, Any], unlimited: bool) -> dict[str, Any]:
        """See `Coordinator.latest`. The first batch that is through also proves the sink."""
        ref = self._offsets.ref(start)
        self._first_batch.check(ref)
        return self._offsets.offset(self.coordinator.latest(ref, unlimited))

    def partitions(
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> Sequence[InputPartition]:
        """One partition for each reader with splits in the range."""
        between = self._offsets.ref(start), self._offsets.ref(end)
        checkpoints = self.coordinator.assignments(*between)
        waived = self.coordinator.waived
        return partitions_of(checkpoints, self._store.location, self._query_id, waived)

    def commit(self, end: Mapping[str, Any]) -> None:
        """See `Coordinator.commit`."""
        self.coordinator.commit(self._offsets.ref(end))


def _background_interval(options: SluiceOptions) -> float:
    # Each round asks the state for newer coordinators, wherever that is; listings may be cheaper.
    chosen = "discovery_interval" in options.model_fields_set
    return max(options.discovery_interval / 1000, 0.1 if chosen else 1.0)


def _settings(options: SluiceOptions) -> CoordinatorSettings:
    limits = BatchLimits(
        options.max_files_per_trigger, options.max_bytes_per_trigger, options.max_rows_per_trigger
    )
    return CoordinatorSettings(
        limits=limits,
        parallelism=options.parallelism,
        at_least_readers=driver_cores(),
        max_split_attempts=options.max_split_attempts,
        # A file that freshShare wants first must not wait behind batches that are planned already.
        checkpoints_ahead=min(options.checkpoints_ahead, 1 if options.fresh_share else 8),
        retained_checkpoints=options.min_checkpoints_to_retain,
        retained_seconds=options.retain_checkpoints_for / 1000,
        commit_patience=options.acknowledgement_timeout / 1000,
        ingest_again=options.ingest_again,
        clean_after=options.clean_source_retention / 1000,
        clean_while_retained=options.clean_source_while_retained,
        discovery_timeout=options.discovery_timeout / 1000,
        idle_patience=_IDLE_SECONDS,
        background_interval=_background_interval(options),
        starting_state=partial(starting_state, options) if options.starting_state else None,
    )
