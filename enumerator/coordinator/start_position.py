"""A query that begins where Spark has no offset: after what, or why it must not."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Final

from ...checkpoint_meta.checkpoint_snapshot import snapshot_of
from ...checkpoint_meta.documents.checkpoint_ref import (
    NO_CHECKPOINT,
    CheckpointRef,
    identities_in,
)
from ...checkpoint_meta.documents.epochs import newest_epoch, purpose_of
from ...checkpoint_meta.documents.layout import READERS, SEED
from ...checkpoint_meta.documents.query_records import find_seed
from ...checkpoint_meta.documents.reader_commit import ReaderCommits
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.stores.contract import StateStore
from ...errors import StateError, StateMissingError
from ..settings import CoordinatorSettings, StartingState

COMPACTION: Final = "compact"
TAKE_OVER: Final = "take-over"
"""The purposes of claims that prepare nothing: everything else a tool claims a new directory for
is a seed."""


@dataclass(frozen=True)
class StartPosition:
    """The checkpoint that a query goes on after."""

    newest: CheckpointRef
    """The newest one here; `NO_CHECKPOINT` without state, or after a savepoint."""

    savepoint: StartingState | None = None
    is_seed: bool = False
    """True where `newest` was prepared by a tool, and Spark does not know of it."""

    def described(self, deltas: int) -> str:
        """For the log; `deltas` were folded in addition to a base."""
        if self.savepoint is not None:
            return f"a new query from {self.savepoint.ref} of {self.savepoint.store.location}"
        if self.newest == NO_CHECKPOINT:
            return "a new query"
        if self.is_seed:
            return f"a new query after {self.newest}, which was prepared for it"
        return f"restored {self.newest} from {deltas} checkpoints on top of a base"


def start_position(
    store: StateStore, spark: CheckpointRef, settings: CoordinatorSettings, epoch: int = 0
) -> StartPosition:
    """Return what a query goes on after whose newest checkpoint in Spark's log is `spark`.

    Where Spark is at its beginning, a seed counts until a reader has acknowledged anything here:
    tasks run only after Spark has written down what they read. A query that dies before that begins
    after the seed again.

    Asked again after the claim, with its `epoch`: a tool may have begun to prepare the directory in
    between. Then either it sees this claim, or this query sees the tool's.

    Raises:
        StateError: the state has been read from; or a seed was begun and not finished; or there is
            a seed, and a savepoint was named as well.
    """
    if spark != NO_CHECKPOINT:
        return StartPosition(spark)
    find = settings.starting_state
    savepoint = find() if find is not None else None
    store.refresh(READERS)
    newest = newest_acknowledged(store)
    if newest is not None:
        # What was read here ends the time of a seed, and the savepoint is the only beginning left.
        if savepoint is not None:
            return StartPosition(NO_CHECKPOINT, savepoint)
        _check_fresh_start(store, newest, settings.query_without_batches())
    seed = find_seed(store)
    if seed is None:
        if savepoint is None:
            _check_no_half_seed(store, epoch)
        return StartPosition(NO_CHECKPOINT, savepoint)
    if savepoint is not None:
        raise StateError(
            "this query could start from two states",
            store.location,
            f"startingState, and the state that `sluice {seed.purpose}` prepared here",
            "one of the two",
            "Leave startingState out, or give the query another checkpointLocation.",
        )
    # A copy of the directory may have another checkpoint of that name.
    CheckpointHistory(store).check_identity(seed.identity, SEED)
    return StartPosition(seed.ref, is_seed=True)


def _check_no_half_seed(store: StateStore, epoch: int) -> None:
    # A query that begins here all the same would read what it was to leave out.
    purpose = purpose_of(store, newest_epoch(store, epoch))
    if purpose and purpose not in (COMPACTION, TAKE_OVER):
        raise StateError(
            "the preparation of this state for the query was not completed",
            store.location,
            f"a claim by `sluice {purpose}`, and no seed.json",
            "a completely prepared state, or an empty directory",
            f"Run `sluice {purpose}` again; to ingest everything, delete the directory.",
        )


def newest_acknowledged(store: StateStore) -> CheckpointRef | None:
    """The newest checkpoint that any reader has acknowledged, of the chain that was begun last.

    Commits without their checkpoint do not count: it was deleted before them, or they are of an
    executor whose query was deleted with its directory.
    """
    history = CheckpointHistory(store)
    read = {folder.name: folder.ref for folder in identities_in(store.list(READERS))}
    for name, ref in sorted(read.items(), key=lambda each: each[1].by_epoch, reverse=True):
        with contextlib.suppress(StateMissingError):
            identity = history.header(ref).identity
            if identity.name == name and ReaderCommits(store).readers(identity):
                return ref
    return None


def taken_up(store: StateStore, number: int) -> CheckpointRef | None:
    """The retained checkpoint with that id; None if none is retained.

    One id may be there for several epochs: orphans of coordinators that died, and the one that
    Spark took up, which is the one that read checkpoints descend from.
    """
    history = CheckpointHistory(store)
    named = [r for r in history.checkpoints() if r.checkpoint == number]
    ref = newest_acknowledged(store) if len(named) > 1 else None
    with contextlib.suppress(StateMissingError):
        while ref is not None and ref.checkpoint > number:
            ref = history.header(ref).parent
    return ref if ref in named else named[-1] if named else None


def _check_fresh_start(store: StateStore, newest: CheckpointRef, query: str) -> None:
    """Raise unless the query that is to begin is the one whose readers acknowledged `newest`.

    Tasks run only after Spark has written down what they read. So where there is a reader commit,
    Spark knew of its checkpoint, and a query that begins from nothing has lost that knowledge or
    never had it. Checkpoints without any are harmless: a driver that died before its first batch
    ran.

    Raises:
        StateError: names the newest checkpoint that was read, and the ways to go on.
    """
    commits = ReaderCommits(store).of(CheckpointHistory(store).header(newest).identity)
    if query and all(commit.query_id == query for commit in commits):
        # Asynchronous progress tracking: Spark runs a batch before it has written it down. The
        # query was killed in its first ones, and begins again with them.
        return
    where, complete = store.location, _newest_complete(store, newest)
    unknown = (
        f"Readers have finished {newest}; whether the sink has it is not known, so look there first"
    )
    if complete is None:
        remedy = (
            f"{unknown}. If it has these rows, set startingState to this directory and @"
            f"{newest.checkpoint}"
        )
    else:
        remedy = (
            "If Spark's checkpoint was lost, resume after the newest checkpoint that the sink is "
            f"known to have with startingState={where}@{complete.checkpoint}"
        )
        if complete != newest:
            remedy += f". {unknown}: later rows are delivered again"
    raise StateError(
        "Spark's checkpoint is new, but this state has been read from: everything would be "
        "ingested again",
        where,
        f"rows read up to {newest}, and no offset in Spark's checkpoint",
        "the checkpoint of Spark that belongs to this state, or an empty state directory",
        f"{remedy}; to read everything again, run `sluice requeue {where} --matching '*' --yes` "
        "before that, or delete the state directory.",
    )


def _newest_complete(store: StateStore, ref: CheckpointRef) -> CheckpointRef | None:
    """The newest checkpoint up to `ref` that the sink is known to have, without the host's log."""
    history = CheckpointHistory(store)
    commits = ReaderCommits(store)
    with contextlib.suppress(StateMissingError):
        while ref != NO_CHECKPOINT:
            if snapshot_of(history, commits, ref).is_complete:
                return ref
            ref = history.header(ref).parent
    return None
