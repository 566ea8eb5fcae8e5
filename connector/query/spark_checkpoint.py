"""What Spark itself keeps in a query's checkpoint: `metadata`, `offsets/<n>` and `commits/<n>`.

And what that says of a state below it: which checkpoints a restart would ask for. An offset is
nothing but the identity of a checkpoint. Spark compares offsets as JSON text, so the order of the
keys is part of the format. What an offset names is compared with what is in the state directory
before anything is done with it: Spark knows the sources of a query by their order alone, and a
directory may have been copied or restored.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from ...checkpoint_meta.checkpoint_snapshot import committed_on
from ...checkpoint_meta.documents.checkpoint_ref import (
    NO_CHECKPOINT,
    NO_IDENTITY,
    CheckpointIdentity,
    CheckpointRef,
)
from ...checkpoint_meta.documents.query_records import find_seed
from ...checkpoint_meta.documents.reader_commit import ReaderCommits
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.storage.urls import Location
from ...checkpoint_meta.stores.contract import StateStore, in_parallel
from ...checkpoint_meta.stores.open_store import open_store
from ...enumerator.settings import StartingState
from ...errors import OptionError, SluiceError, StateCorruptError, StateVersionError

OFFSET_VERSION = 1


def to_offset(identity: CheckpointIdentity) -> dict[str, int | str]:
    """The offset that names a checkpoint, keys in canonical order."""
    return {
        "checkpoint": identity.ref.checkpoint,
        "checksum": identity.checksum,
        "epoch": identity.ref.epoch,
        "lineage": identity.lineage,
        "version": OFFSET_VERSION,
    }


def from_offset(offset: Any) -> CheckpointIdentity:
    """The checkpoint that an offset of any released version names.

    Raises:
        StateVersionError: the offset was written by a newer release.
        StateCorruptError: it is no offset of this source.
    """
    fields = offset if isinstance(offset, Mapping) else {}
    # First of all: a newer release may have changed what the other keys mean.
    version = fields.get("version")
    if _is_count(version) and version > OFFSET_VERSION:
        raise StateVersionError(
            "Spark's offset log was written by a newer release of pyspark-sluice",
            "",
            f"offset version {version}",
            f"at most offset version {OFFSET_VERSION}",
            "Upgrade pyspark-sluice.",
        )
    checkpoint, epoch = fields.get("checkpoint"), fields.get("epoch")
    lineage, checksum = fields.get("lineage"), fields.get("checksum")
    if (
        version == OFFSET_VERSION
        and _is_count(checkpoint)
        and _is_count(epoch)
        and isinstance(lineage, str)
        and isinstance(checksum, str)
    ):
        identity = CheckpointIdentity(CheckpointRef(checkpoint, epoch), lineage, checksum)
        # An offset before the first batch has none of these; a published one has all of them.
        if identity == NO_IDENTITY or (checkpoint and epoch and lineage and checksum):
            return identity
    raise StateCorruptError(
        "Spark's offset log has an offset of another source",
        "",
        json.dumps(offset, default=repr)[:200],
        json.dumps(to_offset(CheckpointIdentity(CheckpointRef(1, 1), "0" * 16, "0" * 16))),
        "Use a new checkpointLocation for a query that had another source before.",
    )


def _is_count(value: Any) -> TypeGuard[int]:
    # JSON's `true` would pass as 1.
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


class Offsets:
    """The offsets of one query, checked against the checkpoints that they name."""

    def __init__(self, history: CheckpointHistory) -> None:
        """`history` keeps the newest in memory: an idle query asks many times a second."""
        self._history = history

    def ref(self, offset: Any) -> CheckpointRef:
        """The checkpoint that Spark names.

        Raises:
            StateError: it is of no version that is known, or not there, or of another query or
                copy of the state.
        """
        identity = from_offset(offset)
        # The offset before the first batch names no state, so there is nothing to compare.
        if identity != NO_IDENTITY:
            self._history.check_identity(identity, "Spark's offset log")
        return identity.ref

    def offset(self, ref: CheckpointRef) -> dict[str, Any]:
        """Return what Spark writes down for a checkpoint that is durable."""
        return to_offset(NO_IDENTITY if ref == NO_CHECKPOINT else self._history.load(ref).identity)


# The log -------------------------------------------------------------------------------------

VERSION = "v1"
"""First line of every object of both logs."""

_WITH_NAMES: Final = "v2"
"""First line of an offset log in which the name of its source, and a colon, precede each offset."""

NO_OFFSET = "-"
"""The line of a source that had nothing yet."""


@dataclass(frozen=True)
class LoggedBatch:
    """A batch as the offset log has it."""

    number: int
    header: str
    """Watermark, time and settings, as JSON."""

    offsets: Sequence[str]
    """One for each occurrence of a source in the query's plan."""


def last_committed(store: StateStore) -> LoggedBatch | None:
    """The newest committed batch; None before the first."""
    commits = numbers(store, "commits")
    return logged_batch(store, commits[-1]) if commits else None


def logged_batch(store: StateStore, number: int) -> LoggedBatch:
    """The batch of this number, which was begun.

    Raises:
        StateCorruptError: the log does not say what it reads.
    """
    where = f"offsets/{number}"
    try:
        data = store.read(where)
    except FileNotFoundError as error:
        raise damaged(store, where, "no such object", "what the batch has read") from error
    if problem := _damage(data, lines=2):
        raise damaged(store, where, problem, "what the batch has read")
    version, header, *offsets = data.decode().splitlines()
    if version != VERSION:
        found = f"version {version!r} of the offset log, with sources that have names"
        raise damaged(store, where, found, VERSION)
    return LoggedBatch(number, header, offsets)


def numbers(store: StateStore, directory: str, suffix: str = "") -> list[int]:
    """The numbers of the objects in a log, ascending; of those whose names end in `suffix`."""
    stems = [leaf.removesuffix(suffix) for leaf in store.list(directory) if leaf.endswith(suffix)]
    # Other names are temporary files and checksums of Hadoop.
    return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdecimal())


def damaged(store: StateStore, name: str, found: str, expected: str) -> StateCorruptError:
    """An object of a query's checkpoint is not what it should be."""
    return StateCorruptError(
        "the checkpoint of the query cannot be read",
        f"{store.location}/{name}",
        found,
        expected,
        "Check that it is the checkpointLocation of this query. If the file is damaged, as by a "
        "power loss, put it back from a copy; without one, continue in a new checkpoint after the "
        "newest whole one: `sluice fork CHECKPOINT NEW --continue-query --at ID`.",
    )


def _damage(data: bytes, lines: int) -> str:
    """Say what is wrong with an object of a log; empty if it can be one."""
    if not data:
        return "an empty file"
    try:
        text = data.decode().splitlines()
    except ValueError as error:
        return str(error)
    if len(text) < lines or not text[0].startswith("v"):
        return f"{len(data)} bytes that begin with {data[:20]!r}"
    if text[0] == _WITH_NAMES:
        text[2:] = [line.partition(":")[2] for line in text[2:]]
    # Other sources of the query have lines in any format of their own.
    ours = [text[1], *(line for line in text[2:] if line.startswith("{"))]
    return next(filter(None, map(_json_damage, ours)), "")


def _json_damage(line: str) -> str:
    try:
        json.loads(line)
    except ValueError as error:
        return str(error)
    return ""


def damaged_objects(
    place: str, store: StateStore, storage_options: Mapping[str, Any]
) -> Sequence[tuple[str, str]]:
    """The names of objects of the host's log above a state that cannot be read, and why."""
    log = _log_above(place, store, storage_options)
    if log is None:
        return ()
    names = [f"{folder}/{n}" for folder in ("offsets", "commits") for n in numbers(log, folder)]
    names.append("metadata")

    def look(name: str) -> str:
        try:
            data = log.read(name)
            return _json_damage(data.decode()) if name == "metadata" else _damage(data, lines=2)
        except FileNotFoundError:
            return ""  # A query that runs lets old batches go.

    return [(name, why) for name, why in zip(names, in_parallel(look, names), strict=True) if why]


def offsets_referred(
    place: str,
    store: StateStore,
    storage_options: Mapping[str, Any],
    history: CheckpointHistory | None = None,
) -> list[CheckpointRef]:
    """Checkpoints of the newest two offsets, oldest first; none where Spark's log is not found.

    Of a query with several sluice sources those whose lineage is that of the state; where no
    checkpoint is left that says a lineage, it is unknown which those are.
    """
    log = _log_above(place, store, storage_options)
    if log is None:
        return []
    # A batch that was not committed is run again from the offset before it, so a restart asks for
    # both.
    batches = numbers(log, "offsets")[-2:]
    named = [list(_offsets(log.read(f"offsets/{batch}"))) for batch in batches]
    lineage = _lineage(history or CheckpointHistory(store))
    if lineage is None and any(len(offsets) != 1 for offsets in named):
        return []
    return [
        each.ref
        for offsets in named
        for each in offsets
        if each != NO_IDENTITY and lineage in (None, each.lineage)
    ]


def lacks_metadata(place: str, store: StateStore, storage_options: Mapping[str, Any]) -> bool:
    """True if Spark's log is found, and the `metadata` without which Spark refuses to go on is not.

    Spark 4.0 and 4.1 make a new one instead, with another id for the query.
    """
    log = _log_above(place, store, storage_options)
    return log is not None and bool(numbers(log, "offsets")) and "metadata" not in log.list("")


def _log_above(
    place: str, store: StateStore, storage_options: Mapping[str, Any]
) -> StateStore | None:
    root = Location.of(place).url.rstrip("/")
    # With stateLocation the state is elsewhere, and nothing leads from it to Spark's checkpoint.
    if not store.location.startswith(root) or store.location.rstrip("/") == root:
        return None
    return open_store(root, storage_options)


def checkpoint_above(store: StateStore) -> str:
    """The query's checkpoint above a state, as `source/state_location.py` places it; else empty."""
    return store.location.rpartition("/sluice/")[0]


def _lineage(history: CheckpointHistory) -> str | None:
    for ref in reversed(history.checkpoints()):
        # Of a damaged state any checkpoint that can be read will do: all on a chain have one
        # lineage.
        with contextlib.suppress(SluiceError, FileNotFoundError):
            return history.load(ref).header.lineage
    return None


def newest_in_spark(
    store: StateStore,
    storage_options: Mapping[str, Any],
    history: CheckpointHistory | None = None,
) -> CheckpointRef | None:
    """The checkpoint that Spark resumes from; None where its log is not above the state.

    What was cut after it, ahead of Spark, is on no chain to come. `history` is that of the state.
    """
    root = checkpoint_above(store)
    referred = offsets_referred(root, store, storage_options, history) if root else []
    return referred[-1] if referred else None


def under_way_in_spark(
    store: StateStore, storage_options: Mapping[str, Any]
) -> CheckpointRef | None:
    """The checkpoint of the batch that Spark has begun and not ended.

    None where there is no such batch, or Spark's log is not above the state.
    """
    batch = newest_batch(store, storage_options)
    return None if batch is None or batch.is_finished else newest_in_spark(store, storage_options)


@dataclass(frozen=True)
class NewestBatch:
    """The newest batch in the log of either host."""

    number: int
    is_finished: bool
    """True if the sink has it."""


def newest_batch(store: StateStore, storage_options: Mapping[str, Any]) -> NewestBatch | None:
    """The newest batch that a host has begun; None if its log is not above the state, or empty.

    Raises:
        StateCorruptError: its offsets cannot be read.
    """
    root = checkpoint_above(store)
    if not root:
        return None
    log = open_store(root, storage_options)
    # A host writes the offsets of a batch before it runs, and the commit after it.
    begun = numbers(log, "offsets")
    if not begun:
        return None
    where = f"offsets/{begun[-1]}"
    if problem := _damage(log.read(where), lines=2):
        raise damaged(log, where, problem, "what the batch has read")
    return NewestBatch(begun[-1], numbers(log, "commits")[-1:] == begun[-1:])


def splits_of_batch(log: StateStore, store: StateStore, number: int) -> int:
    """The number of splits that a batch of a query with one source reads."""
    history = CheckpointHistory(store)
    ends = [
        each.ref
        for batch in (number - 1, number)
        if batch >= 0
        for each in _offsets(log.read(f"offsets/{batch}"))
    ]
    seed, splits = find_seed(store), 0
    start = ends[0] if len(ends) > 1 else seed.ref if seed else NO_CHECKPOINT
    ref = ends[-1]
    while ref.checkpoint > start.checkpoint:
        header = history.header(ref)
        splits, ref = splits + header.assigned_splits, header.parent
    return splits


def batch_under_way(
    store: StateStore, history: CheckpointHistory, storage_options: Mapping[str, Any]
) -> Sequence[CheckpointRef]:
    """The checkpoints of the batch that Spark has begun and not ended; none as above."""
    newest = under_way_in_spark(store, storage_options)
    if newest is None:
        return ()
    root = checkpoint_above(store)
    before = [ref for ref in offsets_referred(root, store, storage_options) if ref != newest]
    links = history.between(before[-1] if before else NO_CHECKPOINT, newest)
    return [link.ref for link in links]


def committed_in_log(store: StateStore, lineage: str) -> CheckpointRef | None:
    """The checkpoint of this lineage that the log above a state has committed last.

    `NO_CHECKPOINT` if it was begun, and not committed yet; None if no log is above the state, or
    the log is of another query.
    """
    root = checkpoint_above(store)
    log = store.neighbour(root) if root else None
    if log is None:
        return None
    begun, committed = numbers(log, "offsets"), numbers(log, "commits")
    # The log is cut off somewhere if more than one batch was begun and none is committed.
    if not begun or (not committed and len(begun) > 1):
        return None
    ended = [batch for batch in begun if committed and batch <= committed[-1]]
    for batches, default in ((ended[-1:], None), (begun[len(ended) :], NO_CHECKPOINT)):
        for batch in batches:
            for offset in _offsets(log.read(f"offsets/{batch}")):
                if offset.lineage == lineage:
                    return offset.ref if default is None else default
    return None


def _offsets(data: bytes) -> Iterator[CheckpointIdentity]:
    lines = data.decode(errors="replace").splitlines()
    has_names = lines[:1] == [_WITH_NAMES]
    # Other sources of the query have lines in any format of their own.
    for line in lines[2:]:
        with contextlib.suppress(ValueError):
            document = json.loads(line.partition(":")[2] if has_names else line)
            if isinstance(document, dict) and document.get("version") == OFFSET_VERSION:
                with contextlib.suppress(SluiceError):
                    yield from_offset(document)


def savepoint_at(
    store: StateStore, ref: CheckpointRef, history: CheckpointHistory, *, is_in_table: bool = False
) -> StartingState:
    """The savepoint at a retained checkpoint, with what the host's log says of it.

    `is_in_table`: the table has its batch, which the log may not say after a kill.

    Raises:
        OptionError: readers have committed rows that the sink does not have, so a new query that
            starts there would leave them out.
    """
    if is_in_table:
        return StartingState(store, ref, ref.checkpoint)
    lineage = history.header(ref).lineage
    committed = committed_on(
        lambda each: history.header(each).parent, [ref], committed_in_log(store, lineage)
    )
    commits, link = ReaderCommits(store), ref
    while committed is not None and link.checkpoint > committed:
        header = history.header(link)
        if commits.readers(header.identity):
            raise _not_in_sink(store, link, committed)
        link = header.parent
    return StartingState(store, ref, committed)


def _not_in_sink(store: StateStore, ref: CheckpointRef, committed: int) -> OptionError:
    finish = "start the old query again until it has ended its batch"
    return OptionError(
        "a new query would leave out rows that the sink does not have",
        store.location,
        f"rows that readers have committed for {ref}, whose batch is not in commits/",
        f"checkpoint {committed} or an earlier one" if committed else "a batch in commits/",
        f"Name checkpoint {committed}, or {finish}." if committed else f"{finish.capitalize()}.",
    )
