"""The driver's half of a stream: options, state and coordinator, opened at Spark's first call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from typing_extensions import override

from ...checkpoint_meta.documents.checkpoint_ref import (
    NO_CHECKPOINT,
    CheckpointIdentity,
    CheckpointRef,
)
from ...checkpoint_meta.documents.heartbeat import parent_process
from ...checkpoint_meta.documents.written_file import FileName
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.storage.open_storage import open_storage
from ...checkpoint_meta.storage.storage_errors import patiently
from ...checkpoint_meta.stores.contract import StateStore
from ...checkpoint_meta.stores.open_store import check_exclusive_creates
from ...enumerator.batch_budget import BatchLimits
from ...enumerator.coordinator.coordinator import Coordinator
from ...enumerator.settings import CoordinatorSettings, StartingState
from ...errors import OptionError
from ...reader.direct_write.unreferenced_files import sweep
from ...reader.files.io.cut_places import take_over
from ..options.model import SluiceOptions, parse_options
from ..options.validation import archive_of
from ..session.processes import is_process_of_spark, leave_pandas_out
from ..source.direct_write import written_places
from ..source.file_source import driver_cores, load_source
from ..source.schemas import resolved
from ..source.state_location import (
    logged_offsets,
    open_state,
    query_without_batches,
    spark_query_id,
    starting_state,
    state_root,
)
from .file_rows import RecordedRows
from .partitions import ReaderPartition, partitions_of
from .spark_checkpoint import Offsets, savepoint_at
from .start_check import StartCheck

log = logging.getLogger(__name__)

_LAYOUT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

# A query that is idle is asked some 16 times a second then, instead of 100 times. News wakes it.
# Another source of the same query, which Spark asks after this one, has its first news so much
# later; while it has batches nothing waits.
_IDLE_SECONDS = 0.05


class BatchDriver:
    """The coordinator as a host asks it: by offsets as they are in the host's log."""

    def __init__(self, coordinator: Coordinator[Any, Any], state: str, query_id: str = "") -> None:
        """`state` is where executors find the state."""
        self.coordinator = coordinator
        self._offsets = Offsets(coordinator.history)
        self._state, self._query_id = state, query_id

    def initial_offset(self) -> dict[str, Any]:
        """Before the first checkpoint."""
        return self._offsets.offset(NO_CHECKPOINT)

    def latest_offset(self, start: Mapping[str, Any], unlimited: bool) -> dict[str, Any]:
        """See `Coordinator.latest`."""
        return self._offsets.offset(self.coordinator.latest(self._offsets.ref(start), unlimited))

    def partitions(
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> Sequence[ReaderPartition]:
        """One partition for each reader with splits in the range."""
        between = self._offsets.ref(start), self._offsets.ref(end)
        checkpoints = self.coordinator.assignments(*between)
        return partitions_of(
            checkpoints,
            self._state,
            self._query_id,
            self.coordinator.waived,
            self.coordinator.claim_to_check,
            self.coordinator.rereads,
            self._origin(between[0]),
        )

    def _origin(self, start: CheckpointRef) -> str:  # noqa: ARG002 - rows go to the host
        """See `ReaderPartition.origin`."""
        return ""

    def commit(self, end: Mapping[str, Any]) -> None:
        """See `Coordinator.commit`."""
        self.coordinator.commit(self._offsets.ref(end))


class StreamDriver(BatchDriver):
    """Lives in the Python process that Spark keeps on the driver for the life of the query."""

    def __init__(
        self,
        texts: Mapping[str, str],
        schema: pa.Schema,
        *,
        inferred: bool = False,
        rehearsal: StateStore | None = None,
        sink_has: Callable[[str, int], bool] = lambda *_: False,
        start: StartCheck | None = None,
    ) -> None:
        """Parses the options; state is opened at the coordinator's first call.

        A `rehearsal` takes the place of the state directory. Nothing is cleaned or swept then.
        `sink_has` is as in `CoordinatorSettings`. `start` has compared the call with the state and
        the table; by default that is done here, as for Spark, as far as the table is known.

        Raises:
            OptionError: lists every problem with the options; or Spark's checkpoint is not where
                they say.
        """
        options = (
            start.options if start else parse_options(texts, streaming=True, names_format=True)
        )
        configure_logging(options.log_level)
        # A source of the user's own may need pandas, and so may a program that runs this by itself.
        if options.source == "files" and is_process_of_spark():
            leave_pandas_out()
        self._options = resolved(options, schema.names, inferred=inferred)
        if rehearsal is not None:
            self._options = self._options.model_copy(update={"clean_source": "off"})
        # Before any object of the state is written: a wrong checkpointLocation leaves no trace.
        query_id = "" if rehearsal else spark_query_id(self._options)
        self._store = rehearsal or (start.store if start else open_state(self._options))
        if rehearsal is None:
            _check_places(self._options)
        self._is_in_spark, self._has_begun_batch = rehearsal is None and start is None, False
        progress = partial(logged_offsets, self._options)
        self._start = start or StartCheck(self._store, self._options, progress=progress)
        if self._is_in_spark:
            self._start.compare()
        source = load_source(self._options, schema, schema_is_inferred=inferred)
        settings = _settings(self._options)
        settings = replace(settings, sink_has=sink_has, is_closed_by_host=start is not None)
        RecordedRows(self._store).begun(keeps=self._options.keep_file_rows)
        if rehearsal is None:
            settings = replace(
                settings,
                commits_go=self._swept,
                replaced_files_go=self._delete_written,
                check_owner=self._start.check_claim,
                parent=parent_process() if is_process_of_spark() else None,
            )
        else:
            settings = replace(settings, query_without_batches=lambda: "")
        # A callable: a restart has a state of its own, and the other one may be gone by then.
        if self._options.starting_state:
            settings = replace(settings, starting_state=self._savepoint)
        coordinator = Coordinator(source, self._store, settings, history=self._start.history)
        super().__init__(coordinator, self._store.location, query_id)

    @override
    def partitions(
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> Sequence[ReaderPartition]:
        partitions = super().partitions(start, end)
        if self._is_in_spark:
            self._has_begun_batch = True
            self._start.record(in_table=False)
        return partitions

    @override
    def latest_offset(self, start: Mapping[str, Any], unlimited: bool) -> dict[str, Any]:
        # Spark asks when its sink has the batch before.
        if self._has_begun_batch:
            self._has_begun_batch = False
            self._start.record(in_table=True)
        return super().latest_offset(start, unlimited)

    @override
    def _origin(self, start: CheckpointRef) -> str:
        if not self._options.write_to:
            return ""
        return str(self._start.origin(start))

    def _swept(self, checkpoints: Collection[CheckpointIdentity]) -> Collection[CheckpointIdentity]:
        """Files of attempts that lost go before the commits that tell them from others."""
        if self._options.keep_file_rows:
            checkpoints = RecordedRows(self._store).add(checkpoints)
        # Only here: it imports the libraries of tables.
        from ...tables.table_files import named_by_tables_of

        storage = self._options.storage_options
        in_table = named_by_tables_of(self._options.write_to, storage)
        for place in written_places(self._options):
            sweep(place, self._store, checkpoints, in_table=in_table, delete=True)
        return checkpoints

    def _delete_written(self, paths: Collection[str]) -> None:
        for path in paths:
            # With writeCopy=never, commits name files of the user's.
            if FileName.parse(path) is not None:
                storage, name = open_storage(path, self._options.storage_options)
                patiently(partial(storage.delete, name))

    def _savepoint(self) -> StartingState:
        store, ref = starting_state(self._options)
        savepoint = savepoint_at(store, ref, CheckpointHistory(store))
        # Pending splits of the savepoint may begin at points that only its own directory has.
        take_over(savepoint.store, self._store)
        return savepoint

    def report(self) -> dict[str, Any]:
        """For Spark's progress events: see `Coordinator.report`; and which source it is."""
        report = self.coordinator.report()
        # Nothing is open yet, and a path alone would look like news.
        if not report:
            return report
        return {"path": self._options.path, "state": self._store.location, **report}

    def next_offset(self, start: Mapping[str, Any]) -> dict[str, Any]:
        """The next offset for a Spark that does not say how its run is triggered.

        Raises:
            OptionError: with availableNow, a limit whose end is only known to readers.
        """
        if not self._options.available_now:
            return self.latest_offset(start, unlimited=False)
        limits = (self._options.max_rows_per_trigger, self._options.max_batch_duration)
        if limits != (None, None):
            raise OptionError(
                "availableNow: this Spark requests one batch, which has to contain everything",
                "",
                "maxRowsPerTrigger or maxBatchDuration, which readers keep",
                "a limit on files or bytes, which holds for each checkpoint in the batch",
                "Use maxBytesPerTrigger, another trigger, or Spark 4.2.",
            )
        self.coordinator.prepare_available_now()
        return self._offsets.offset(self.coordinator.latest_of_run(self._offsets.ref(start)))

    def warn_of_replay(self) -> None:
        """Log that a run of an older Spark with availableNow ends after the batch it repeats."""
        if self._options.available_now:
            log.warning(
                "%s: this run repeats the batch that the last run did not finish, and ends with it,"
                " since this Spark requests no other one. Start the query again to read the rest.",
                self._store.location,
            )

    def warn_of_unread_files(self) -> None:
        """Log that files wait for a second batch, which a run may not have.

        Called for the first batch: Spark kills this process when the run ends.
        """
        pending = self.report().get("backlogFiles", 0)
        if pending:
            log.warning(
                "%s: %d files are not in the first batch. If the query has trigger(availableNow="
                "True), set the option availableNow: this Spark requests one batch in such a run, "
                "and does not tell a source its trigger.",
                self._store.location,
                pending,
            )


def _check_places(options: SluiceOptions) -> None:
    """Raise, before the state is claimed, if two queries could both create an object there."""
    check_exclusive_creates(state_root(options), options.storage_options, "the state")
    if archive := archive_of(options):
        check_exclusive_creates(archive, options.storage_options, "the archive")


def _background_interval(options: SluiceOptions) -> float:
    # Each round asks the state for newer coordinators on its own store; listings may be cheaper.
    chosen = "discovery_interval" in options.model_fields_set
    return max(options.discovery_interval / 1000, 0.1 if chosen else 1.0)


def _settings(options: SluiceOptions) -> CoordinatorSettings:
    longest = options.max_batch_duration
    limits = BatchLimits(
        options.max_files_per_trigger,
        options.max_bytes_per_trigger,
        options.max_rows_per_trigger,
        None if longest is None else longest / 1000,
    )
    return CoordinatorSettings(
        limits=limits,
        parallelism=options.parallelism,
        # The executors' cores are not known here; in local mode they are the driver's.
        at_least_readers=driver_cores(),
        max_split_attempts=options.max_split_attempts,
        # A file that freshShare wants first must not wait behind batches that are planned already.
        checkpoints_ahead=min(options.checkpoints_ahead, 1 if options.fresh_share else 8),
        retained_seconds=options.retain_checkpoints_for / 1000,
        query_without_batches=partial(query_without_batches, options),
        batches_may_be_unread=options.allow_unread_batches,
        clean_after=options.clean_source_retention / 1000,
        clean_while_retained=options.clean_source_while_retained,
        discovery_timeout=options.discovery_timeout / 1000,
        idle_patience=_IDLE_SECONDS,
        background_interval=_background_interval(options),
    )


def configure_logging(level: str) -> None:
    """Write lines of `level` and above to stderr, unless handlers are configured.

    Spark's Python processes have no configuration of logging. A level that the user has set stays
    as well.
    """
    log = logging.getLogger("pyspark_sluice")
    if log.level == logging.NOTSET:
        log.setLevel(level.upper())
    # Without a handler Python's last resort would drop what is below a warning.
    if not log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(_LAYOUT))
        log.addHandler(handler)
