"""`sluice fork`: the state of a new query that begins after a checkpoint of another one.

The checkpoint is chosen by id, by time, or as the newest. The other directory is only read, whether
or not its query runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....checkpoint_meta.checkpoint_snapshot import CheckpointSnapshot, forked_from, newest_written
from ....checkpoint_meta.documents import layout
from ....checkpoint_meta.documents.attachments import Attachments
from ....checkpoint_meta.documents.batch_mark import Forked
from ....checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ....checkpoint_meta.documents.query_records import find_seed, record_ends, recorded_ends
from ....checkpoint_meta.documents.reader_assignment import readers_of
from ....checkpoint_meta.files.file_columns import numbers_in
from ....checkpoint_meta.stores.contract import StateStore
from ....enumerator.files.ledger_source import OfflineEnumerator, OfflineFileSource
from ....enumerator.offline.offline_state import OfflineState, state_after
from ....enumerator.settings import StartingState
from ....errors import OptionError
from ....reader.files.io.cut_places import take_over
from ...query.spark_checkpoint import savepoint_at
from ...source.state_location import check_not_cleaned
from ...views.files_as_of import FilesAsOf
from ...views.state_view import StateView, matching_pattern
from ..arguments import check_is_of_files, checkpoint_as_of, checkpoint_named, no_checkpoint
from ..offline_edit import Plan
from .new_state import Target, in_use

_SHOWN = 10
_ORIGIN = ("state", "checkpoint", "epoch", "known_to_be_complete")


@dataclass(frozen=True)
class Fork:
    """A checkpoint to be forked, and the files that are chosen."""

    view: StateView
    savepoint: StartingState
    snapshot: CheckpointSnapshot
    """What is known of the checkpoint."""

    matching: str
    rewrites: Sequence[tuple[str, str]] = ()
    """Beginnings of paths, and what they are now."""

    keeps_table: bool = False
    """True if the new query writes into the table that has the rows of the old one."""

    def plan(self, target: Target) -> Plan:
        """Plan the state of a new query at `target`."""
        report = self._report()
        origin = {key: report[key] for key in _ORIGIN} | {"matching": self.matching}
        if forked := self._forked():
            origin["forked"] = asdict(forked)

        def make(attachments: Attachments) -> OfflineState[Any, Any]:
            state = self._state(attachments)
            self._copy_what_readers_need(target.store)
            self._bind(target.store)
            return state

        is_open = self.snapshot.is_read and not self.snapshot.is_complete
        note = "the readers have finished; whether the sink has the batch is not known"
        return target.plan("fork", report, origin, make, [note] if is_open else ())

    def _forked(self) -> Forked | None:
        """The query of the newest batch; None if its table is not known."""
        store, history, ref = self.view.store, self.view.history, self.savepoint.ref
        newest = newest_written(history, self.view.commits, ref)
        if not newest.checkpoint and find_seed(store) is not None:
            return forked_from(store)
        table = recorded_ends(store).table
        lineage = history.header(ref).lineage
        place = store.location, ref.checkpoint, ref.epoch
        return Forked(lineage, str(newest), table, *place) if table else None

    def _report(self) -> dict[str, Any]:
        state = self._state(None)
        enumerator = _files(state)
        pending = enumerator.ledger.pending
        ref = self.savepoint.ref
        # What the pattern leaves out is known only by comparison with a fork that has none.
        everything = _files(self._after(None, None)) if self.matching else enumerator
        sample = [
            {"path": split.file.path, "start": split.start, "end": split.end}
            for split, _ in zip(pending, range(_SHOWN), strict=False)
        ]
        return {
            "state": self.view.store.location,
            "checkpoint": ref.checkpoint,
            "epoch": ref.epoch,
            "known_to_be_complete": self.snapshot.is_complete,
            "readers_have_finished": self.snapshot.is_read,
            "rewrite": [list(pair) for pair in self.rewrites],
            "counts": {
                "files_seen": len(enumerator.ledger.seen),
                "pending_splits": len(pending),
                "pending_bytes": pending.bytes,
                "assigned_and_pending_again": len(enumerator.returned),
                "left_out_splits": len(everything.ledger.pending) - len(pending),
                "left_out_files": len(enumerator.ledger.seen) - len(everything.ledger.seen),
                "quarantined_splits": state.returned_splits.quarantined_total,
                "abandoned_splits": state.counter.abandoned_splits,
            },
            "pending": sample,
        }

    def _state(self, attachments: Attachments | None) -> OfflineState[Any, Any]:
        if self.rewrites:
            state = self._after(None, None)
            now = int(time.time() * 1_000_000)
            seen = FilesAsOf(self.view.store, self.savepoint.ref, details=True).seen()
            _files(state).rename(self._renamed, map(_newest, seen), now)
            return state
        if not self.matching:
            return self._after(attachments, None)
        expression = matching_pattern(self.matching)

        def wanted(paths: pa.Array) -> pa.Array:
            return pc.match_substring_regex(paths, expression)

        state = self._after(attachments, wanted)
        self._leave_out(_files(state), wanted)
        return state

    def _renamed(self, path: str) -> str:
        for old, new in self.rewrites:
            if f"{path}/".startswith(f"{old}/"):
                return new + path.removeprefix(old)
        return path

    def _bind(self, store: StateStore) -> None:
        """Record the ends of the query that goes on: the input as it is named now."""
        ends = recorded_ends(self.view.store)
        update: dict[str, Any] = {"input": list(map(self._renamed, ends.input))}
        if self.rewrites:
            # The keys of files in the table are those of their old paths.
            update["file_column"] = ""
        elif not self.keeps_table:
            # A fork may have a table of its own: the first start says which it is.
            update["table"] = ""
        record_ends(store, ends.model_copy(update=update))

    def _after(
        self, attachments: Attachments | None, wanted: Callable[[pa.Array], pa.Array] | None
    ) -> OfflineState[Any, Any]:
        return state_after(self.savepoint, OfflineFileSource(wanted), attachments)

    def _leave_out(
        self, enumerator: OfflineEnumerator, wanted: Callable[[pa.Array], pa.Array]
    ) -> None:
        """Count as seen what the other state found later and is not wanted."""
        now = int(time.time() * 1_000_000)
        for rows in FilesAsOf(self.view.store, self.view.head, details=True).seen():
            chosen = rows.filter(pc.invert(wanted(rows.column("path"))))
            # A run may hold several versions of a file, the newest last.
            enumerator.count_as_seen(*_newest(chosen), now)

    def _copy_what_readers_need(self, store: StateStore) -> None:
        old = self.view.store
        # An inferred schema is part of the state: without it the new query might infer another one.
        for leaf in old.list(layout.SCHEMAS):
            _copy(old, store, f"{layout.SCHEMAS}/{leaf}")
        # Also of files that are not pending: what is in quarantine may be ordered later.
        take_over(old, store)


def _copy(old: StateStore, new: StateStore, name: str) -> None:
    data = old.read(name)
    try:
        new.publish(name, data)
    except FileExistsError:
        if new.read(name) == data:
            return  # Of a fork that was killed half-way.
        found = "an object that differs from the source state's"
        raise in_use(f"{new.location}/{name}", found) from None


def _files(state: OfflineState[Any, Any]) -> OfflineEnumerator:
    assert isinstance(state.enumerator, OfflineEnumerator)
    return state.enumerator


def _newest(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, Any]:
    paths = rows.column("path").to_pylist()
    last = {path: at for at, path in enumerate(paths)}
    chosen = rows.take(pa.array(np.fromiter(sorted(last.values()), np.int64, len(last))))
    return chosen, numbers_in(chosen, "end")


def chosen_fork(
    store: StateStore,
    at: str,
    at_time: str,
    matching: str,
    rewrites: Sequence[tuple[str, str]] = (),
    *,
    is_in_table: bool = False,
    keeps_table: bool = False,
) -> Fork:
    """The fork after the checkpoint that the options name; the newest complete one if none.

    `is_in_table`: see `savepoint_at`; `keeps_table`: see `Fork`.
    """
    view = StateView(store)
    chain = view.chain()
    ref = _chosen(view, chain, at, at_time)
    start = f"startingState={store.location}@{ref.checkpoint}"
    check_is_of_files(view, "forked", f"A query of that source can start with {start}.")
    check_not_cleaned(
        store,
        view.history.load(ref).header,
        "Fork at a later checkpoint; or put the files back and start with "
        "startingState and ignoreMissingFiles=true, which reads the files that exist.",
    )
    savepoint = savepoint_at(store, ref, view.history, is_in_table=is_in_table)
    return Fork(view, savepoint, view.snapshot(ref), matching, rewrites, keeps_table)


def _chosen(
    view: StateView, chain: Sequence[CheckpointSnapshot], at: str, at_time: str
) -> CheckpointRef:
    if at and at_time:
        raise OptionError("--at and --at-time", "", "both", "at most one of them")
    expected = "one of the retained checkpoints"
    if at:
        ref = checkpoint_named(view, at)
        if ref in view.refs:
            return ref
        raise no_checkpoint(view, f"of {ref} only a base", expected)
    if at_time:
        return checkpoint_as_of(view, "--at-time", at_time)
    newest, is_settled = None, True
    for link in reversed(chain):
        # Nothing of a checkpoint without readers goes to the sink.
        is_settled = link.is_complete or (is_settled and not readers_of(link.checkpoint))
        newest = link.ref if is_settled else newest
    if newest is None:
        raise no_checkpoint(view, "no complete checkpoint", "a checkpoint that the sink has")
    return newest
