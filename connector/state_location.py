"""Where the state of a query is, and whether that is where Spark keeps its own.

Not here: what is in the state (`checkpoint_meta`).
"""

from __future__ import annotations

import json
import os

from ..checkpoint_meta.buckets.bucket import open_bucket
from ..checkpoint_meta.buckets.config import by_fsspec
from ..checkpoint_meta.reader_commit import ReaderCommits
from ..checkpoint_meta.reference import CheckpointRef
from ..checkpoint_meta.store import StateStore, open_store
from ..checkpoint_meta.urls import absolute, hadoop_path, join, local_path, storage_url
from ..enumerator.settings import StartingState
from ..errors import OptionError
from .cleaning import check_not_cleaned
from .options import SluiceOptions


def state_url(options: SluiceOptions) -> str:
    """The state directory, absolute: stateLocation, or a place below checkpointLocation.

    Called on the driver, whose working directory is the one that Spark resolves relative paths
    against; executors are told the outcome.
    """
    if options.state_location:
        root = absolute(options.state_location)
    else:
        root = join(hadoop_path(options.checkpoint_location or ""), "sluice")
    return join(root, options.source_name)


def open_state(options: SluiceOptions) -> StateStore:
    """The store of the state directory."""
    return open_store(state_url(options), options.storage_options)


def starting_state(options: SluiceOptions) -> StartingState:
    """The savepoint that `startingState` names: the newest of that id in that directory.

    Raises:
        OptionError: no such checkpoint is retained.
    """
    url, _, identifier = (options.starting_state or "").rpartition("@")
    from ..checkpoint_meta.history import CheckpointHistory

    store = open_store(url, options.storage_options)
    known = CheckpointHistory(store).checkpoints()
    named = [ref for ref in known if ref.checkpoint == int(identifier)]
    if not named:
        retained = f"{known[0].checkpoint} to {known[-1].checkpoint}" if known else "none"
        raise OptionError(
            "startingState: there is no such checkpoint",
            url,
            f"id {identifier}",
            f"one of the checkpoints retained there: {retained}",
        )
    check_not_cleaned(store, named[-1], options)
    return StartingState(store, named[-1])


def check_spark_checkpoint(options: SluiceOptions, store: StateStore, done: CheckpointRef) -> None:
    """Check, once a batch is through, that Spark's own checkpoint is at checkpointLocation.

    If it is elsewhere the two can be lost or copied apart from each other, and a restart of the
    query would read everything again, or nothing.

    Raises:
        OptionError: no offset log there, or that of another query; both places are named.
    """
    if options.checkpoint_location is None:
        return
    root = hadoop_path(options.checkpoint_location)
    if not _exists(join(root, "offsets"), options):
        raise OptionError(
            "checkpointLocation: Spark's checkpoint is not there",
            f"the option given to readStream is {root}, the state is at {store.location}",
            f"no offset log at {join(root, 'offsets')} after {done} is through",
            "the path given to writeStream as checkpointLocation",
            "Give the same path to both, then start again with an empty one.",
        )
    query = next((c.query_id for c in ReaderCommits(store).of(done) if c.query_id), "")
    owner = _query_id(join(root, "metadata"), options)
    if query and owner and query != owner:
        raise OptionError(
            "checkpointLocation: it belongs to another query",
            f"the option given to readStream is {root}, the state is at {store.location}",
            f"query id {owner} in {join(root, 'metadata')}",
            f"query id {query}, which is this query's",
            "Give the path of writeStream's checkpointLocation to readStream, then start again "
            "with an empty one.",
        )


def _exists(url: str, options: SluiceOptions) -> bool:
    path = local_path(url)
    if path is not None:
        return os.path.exists(path)
    bucket = open_bucket(url, options.storage_options)
    if bucket is not None:
        return bool(bucket[0].names(bucket[1]))
    files, root = by_fsspec(storage_url(url), options.storage_options)
    return bool(files.exists(root))


def _query_id(url: str, options: SluiceOptions) -> str:
    try:
        text = _read(url, options)
    except FileNotFoundError:
        return ""
    return str(json.loads(text).get("id", ""))


def _read(url: str, options: SluiceOptions) -> bytes:
    path = local_path(url)
    if path is not None:
        with open(path, "rb") as file:
            return file.read()
    bucket = open_bucket(url, options.storage_options)
    if bucket is not None:
        return bucket[0].whole(bucket[1])
    files, root = by_fsspec(storage_url(url), options.storage_options)
    return bytes(files.cat_file(root))
