"""A state directory as it is now: its newest chain of checkpoints, and what readers say of each.

Nothing is opened, claimed or written, so a running query does not notice. That query may delete
what it need not keep any longer between two looks; `consistent` then looks again.

Not here: tables (`splits.py`, `files.py`, `protocol.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeVar

import pyarrow as pa

from ...checkpoint_meta.documents.checkpoint import Checkpoint
from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef, refs_in
from ...checkpoint_meta.documents.file_columns import RANGES, splits_in
from ...checkpoint_meta.documents.file_split import FileSplit
from ...checkpoint_meta.documents.layout import ABANDONED, CHECKPOINTS, FORMAT, READERS
from ...checkpoint_meta.documents.orders import Order, Orders
from ...checkpoint_meta.documents.reader_commit import ReaderCommit, ReaderCommits
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.stores.contract import StateStore, in_parallel
from ...errors import StateMissingError

T = TypeVar("T")

TIME: Final = pa.timestamp("us", "UTC")
"""The type of all columns of times."""

_LOOKS: Final = 5
_PAUSE: Final = 0.2


def fields(kind: pa.DataType, *names: str) -> list[pa.Field]:
    """Fields of one type, for the schema of a table."""
    return [pa.field(name, kind) for name in names]


def consistent(look: Callable[[], T]) -> T:
    """What `look` finds; again where an object has gone between two of its requests.

    Raises:
        StateMissingError: it is permanently gone: the state is damaged.
    """
    # Retention deletes while we look: what a listing or a parent has just named may be gone when it
    # is read.
    for _ in range(_LOOKS - 1):
        try:
            return look()
        except (StateMissingError, FileNotFoundError):
            # Less than a second in all, so that an object that is really missing is still reported
            # soon.
            time.sleep(_PAUSE)
    return look()


@dataclass(frozen=True)
class CheckpointView:
    """A retained checkpoint of the chain, and what its readers have written."""

    checkpoint: Checkpoint
    commits: dict[int, ReaderCommit]
    """What readers have committed themselves."""

    abandoned: frozenset[int]
    """Readers of which an attempt was closed half-way, some with a commit; and those of which the
    driver says that Spark went on without them."""

    completed: int | None
    """When the first checkpoint was cut that knows it to be complete; microseconds, None before."""

    has_finished: bool
    """True if Spark is known to have gone on after it: who has no commit now never will."""

    waived: Mapping[str, str] = field(default_factory=dict)
    """Id of a split that an order has given up -> why."""

    @property
    def ref(self) -> CheckpointRef:
        """Id and epoch of the checkpoint."""
        return self.checkpoint.ref

    def file_splits(self, *outcomes: str) -> list[FileSplit]:
        """The splits of readers with one of these outcomes, of a source of files."""
        return [
            split
            for reader, batch in self.checkpoint.assigned
            if self.outcome(reader) in outcomes
            for split in splits_in(batch)
        ]

    def outcome(self, reader: int) -> str:
        """What became of a reader's assignment: read, abandoned, or still assigned."""
        if reader in self.commits:
            return "read"
        return "abandoned" if self.has_finished else "assigned"


class StateView:
    """One look at one state directory."""

    def __init__(self, store: StateStore) -> None:
        """Look at `store`.

        Raises:
            StateMissingError: there is no state directory; names the place.
        """
        self.store = store
        self.history = CheckpointHistory(store)
        self.commits = ReaderCommits(store)
        try:
            store.read(FORMAT)
        except FileNotFoundError as error:
            # A lost FORMAT is restored by the next query, so without it this is a state as well.
            if not store.list(CHECKPOINTS):
                raise StateMissingError(
                    "no state of a sluice source found",
                    store.location,
                    "no such directory, or one without FORMAT",
                    "the state of a query that has been started",
                    "Pass the checkpointLocation (or stateLocation) and the sourceName of the "
                    "query.",
                ) from error

    @cached_property
    def refs(self) -> Sequence[CheckpointRef]:
        """Checkpoints that are retained, orphans included, oldest first."""
        return self.history.checkpoints()

    @cached_property
    def head(self) -> CheckpointRef:
        """The newest checkpoint of the newest incarnation that has published any, with its parent.

        Spark may not have taken it up yet, or never: then no reader has read of it either. Writes
        of several may overlap, so one without its parent is an orphan, unless it is the oldest.
        """
        known = {NO_CHECKPOINT, *self.refs}
        # By epoch first: a dead incarnation may have left an orphan with a greater id.
        for ref in sorted(self.refs, key=lambda ref: (ref.epoch, ref.checkpoint), reverse=True):
            is_alone = not any(other.checkpoint < ref.checkpoint for other in self.refs)
            if is_alone or self.history.load(ref).header.parent in known:
                return ref
        return NO_CHECKPOINT

    @property
    def source(self) -> str:
        """The name of the source whose state this is; empty before the first checkpoint."""
        return "" if self.head == NO_CHECKPOINT else self.history.load(self.head).header.enumerator

    @property
    def orders_done(self) -> int:
        """Up to which number the newest checkpoint contains orders."""
        return 0 if self.head == NO_CHECKPOINT else self.history.load(self.head).header.orders

    @cached_property
    def _waived(self) -> Mapping[CheckpointRef, Mapping[str, str]]:
        found: dict[CheckpointRef, dict[str, str]] = {}
        for order in Orders(self.store).after(0):
            if order.action == "waive" and order.enumerator == "files":
                of = found.setdefault(CheckpointRef(order.to_checkpoint, order.to_epoch), {})
                why = f"given up by order {order.number}"
                why += f": {order.reason}" if order.reason else ""
                of |= {split.split_id: why for split in splits_of_order(order)}
        return found

    def chain(self, most: int | None = None) -> Sequence[CheckpointView]:
        """The checkpoints that are retained on the chain of `head`, the newest first.

        Raises:
            StateError: one of them is damaged, or newer than this release.
        """
        retained, ref = set(self.refs), self.head
        links: list[Checkpoint] = []
        while ref in retained and (most is None or len(links) < most):
            links.append(self.history.load(ref))
            ref = links[-1].header.parent
        read = set(refs_in(self.store.list(READERS)))
        left = set(refs_in(self.store.list(ABANDONED)))
        described = in_parallel(lambda link: self._described(link, read, left), links)
        views: list[CheckpointView] = []
        through = False
        for at, (link, (published, closed)) in enumerate(zip(links, described, strict=True)):
            completed = _completed(link.ref, links[:at])
            commits = {c.reader: c for c in published if not c.abandoned}
            gave_up = {c.reader for c in published if c.abandoned}
            abandoned = closed | gave_up
            # What the driver says in the place of a reader, it says when Spark has finished.
            through = through or completed is not None or bool(gave_up)
            waived = self._waived.get(link.ref, {})
            views.append(CheckpointView(link, commits, abandoned, completed, through, waived))
            # Spark runs a batch only when the one before has finished.
            through = through or bool(commits or abandoned)
        return views

    def _described(
        self, link: Checkpoint, read: set[CheckpointRef], left: set[CheckpointRef]
    ) -> tuple[Sequence[ReaderCommit], frozenset[int]]:
        ref, commits = link.ref, self.commits.of_lineage(link.header.lineage)
        # Most checkpoints have no record of an abandoned reader, and on a bucket each listing is a
        # request.
        closed = commits.abandoned(ref) if ref in left else ()
        return commits.of(ref) if ref in read else (), frozenset(closed)


def _completed(ref: CheckpointRef, newer: Sequence[Checkpoint]) -> int | None:
    # One that is cut while `ref` runs says which of its commits it counts.
    known = (link.header for link in reversed(newer) if ref.name not in link.header.counted)
    return next((header.created for header in known), None)


def splits_of_order(order: Order) -> list[FileSplit]:
    """The splits of an order about files."""
    columns = [pa.array(order.splits.get(field.name, ()), field.type) for field in RANGES]
    return splits_in(pa.record_batch(columns, schema=RANGES))
