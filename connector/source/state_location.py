"""Where the state of a query is, and whose Spark's own checkpoint next to it is."""

from __future__ import annotations

from collections.abc import Sequence

from ...checkpoint_meta.documents.checkpoint import CheckpointHeader
from ...checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ...checkpoint_meta.documents.cleanup_marks import CleanupMarks
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.storage.urls import Location, hadoop_path, join
from ...checkpoint_meta.stores.open_store import StateStore, open_store
from ...enumerator.coordinator.start_position import taken_up
from ...errors import OptionError, StateError
from ...reader.files.options.values import MissingFiles
from ...tables import query_id
from ..options.model import SluiceOptions


def state_root(options: SluiceOptions) -> str:
    """Return what the state directories of all sources of the query are in, absolute.

    Called on the driver, whose working directory is the one that Spark resolves relative paths
    against; executors receive the outcome.
    """
    if options.state_location:
        return Location.of(options.state_location).url
    # Spark resolves this option itself, so it has to be read the way Hadoop reads it.
    return join(hadoop_path(options.checkpoint_location or ""), "sluice")


def open_state(options: SluiceOptions) -> StateStore:
    """The store of the state directory: stateLocation, or a place below checkpointLocation."""
    return open_store(join(state_root(options), options.source_name), options.storage_options)


def starting_state(options: SluiceOptions) -> tuple[StateStore, CheckpointRef]:
    """The checkpoint that `startingState` names: the one of that id that Spark has taken up.

    Raises:
        OptionError: no such checkpoint is retained, or cleanSource has passed it.
    """
    url, _, identifier = (options.starting_state or "").rpartition("@")
    store = open_store(url, options.storage_options)
    ref = taken_up(store, int(identifier))
    if ref is None:
        refs = CheckpointHistory(store).checkpoints()
        retained = f"{refs[0].checkpoint} to {refs[-1].checkpoint}" if refs else "none"
        raise OptionError(
            "startingState: the checkpoint does not exist",
            url,
            f"id {identifier}",
            f"one of the checkpoints retained there: {retained}",
        )
    if options.ignore_missing_files is not MissingFiles.SKIP:
        check_not_cleaned(
            store,
            CheckpointHistory(store).header(ref),
            "Name a later checkpoint; or put the files back and start again with "
            "ignoreMissingFiles=true, which reads the files that exist.",
            "startingState: ",
        )
    return store, ref


def check_not_cleaned(
    store: StateStore, start: CheckpointHeader, remedy: str, option: str = ""
) -> None:
    """Check that the files which a query that starts from `start` would read are still there.

    Raises:
        OptionError: checkpoints after it have been cleaned up.
    """
    newest = CleanupMarks(store, 0).newest(start.lineage)
    if start.checkpoint < newest:
        raise OptionError(
            f"{option}files that this checkpoint had not assigned have been cleaned up",
            store.location,
            f"checkpoint {start.checkpoint}",
            f"checkpoint {newest} or a later one, up to which cleanSource has deleted or moved "
            "what was read",
            remedy,
        )


def spark_query_id(options: SluiceOptions) -> str:
    """The id of the query whose checkpoint is at checkpointLocation; empty without that option.

    Spark writes `metadata` before it asks a source for anything. So if Spark's checkpoint is
    elsewhere, that is known before any row is read. The two must not be lost or copied apart from
    each other: a restart of the query would read everything again, or nothing.

    Raises:
        OptionError: there is no checkpoint of Spark; both places are named.
    """
    if options.checkpoint_location is None:
        return ""
    where = join(hadoop_path(options.checkpoint_location), "metadata")
    try:
        return query_id(options.checkpoint_location, storage_options=options.storage_options)
    except FileNotFoundError:
        raise OptionError(
            "checkpointLocation: Spark's checkpoint is missing",
            f"the option given to readStream is {options.checkpoint_location}",
            f"no {where}; Spark writes it to the checkpointLocation of writeStream",
            "the path given to writeStream as checkpointLocation",
            "Pass the same path to readStream as to writeStream, and start again: no row was read.",
        ) from None


def query_without_batches(options: SluiceOptions) -> str:
    """Return the id of the query if Spark's log has no batch of it, otherwise an empty string."""
    batches = _logged(options, "offsets", "commits")
    return "" if batches or batches is None else spark_query_id(options)


def logged_offsets(options: SluiceOptions) -> Sequence[str]:
    """The batches that the log of the host has begun; none where it cannot be read from here."""
    return _logged(options, "offsets") or []


def _logged(options: SluiceOptions, *logs: str) -> Sequence[str] | None:
    if options.checkpoint_location is None:
        return None
    try:
        spark = open_store(hadoop_path(options.checkpoint_location), options.storage_options)
    except StateError:
        # Spark writes to more stores than a state may be in.
        return None
    return [leaf for log in logs for leaf in spark.list(log) if leaf.isdecimal()]


def check_query_id(query: str, owner: str, where: str) -> None:
    """Check, in a task and before its first row, that it runs for the query of checkpointLocation.

    Args:
        query: of the task.
        owner: what `spark_query_id` has found.
        where: the state directory.

    Raises:
        OptionError: both are known, and they differ.
    """
    # `owner` is unknown with stateLocation alone, `query` outside of Spark's tasks.
    if query and owner and query != owner:
        raise OptionError(
            "checkpointLocation: it belongs to another query",
            f"the state is at {where}",
            f"query id {owner} in the checkpoint at the option given to readStream",
            f"query id {query}, which is this query's",
            "Pass the same path to readStream as to writeStream. No row of this batch was "
            "read. If it is the first batch of the query, delete the checkpoint of "
            "writeStream and start again.",
        )
