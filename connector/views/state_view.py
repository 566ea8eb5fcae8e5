"""A state directory as it is now: its newest chain of checkpoints, and what readers say of each.

Nothing is opened, claimed or written, so a running query does not notice. That query may delete
what it need not keep any longer between two looks; `consistent` then looks again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fnmatch import translate
from functools import cached_property
from typing import Any, Final, TypeVar, overload

import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from ...checkpoint_meta.checkpoint_snapshot import (
    CheckpointSnapshot,
    committed_on,
    snapshot_of,
    snapshots,
)
from ...checkpoint_meta.documents.checkpoint import Checkpoint
from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from ...checkpoint_meta.documents.layout import CHECKPOINTS, FORMAT
from ...checkpoint_meta.documents.reader_commit import ReaderCommits
from ...checkpoint_meta.files.file_columns import splits_in
from ...checkpoint_meta.files.file_split import FileSplit
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.stores.contract import StateStore
from ...errors import StateMissingError
from ..query.spark_checkpoint import committed_in_log

T = TypeVar("T")

TIME: Final = pa.timestamp("us", "UTC")
"""The type of all columns of times."""

_LOOKS: Final = 5
_PAUSE: Final = 0.2


def fields(kind: pa.DataType, *names: str) -> list[pa.Field]:
    """Fields of one type, for the schema of a table."""
    return [pa.field(name, kind) for name in names]


def consistent(look: Callable[[], T]) -> T:
    """Return what `look` finds; look again if an object has gone between two of its requests.

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


def with_view(store: StateStore, read: Callable[[StateView], T]) -> T:
    """Return what `read` makes of one look at a state, as `consistent` does."""
    return consistent(lambda: read(StateView(store)))


def file_splits(link: CheckpointSnapshot, *outcomes: str) -> list[FileSplit]:
    """The splits of readers with one of these outcomes, of a source of files."""
    return [
        split
        for reader, batch in link.checkpoint.assigned
        if link.outcome(reader) in outcomes
        for split in splits_in(batch)
    ]


class _RowsOnDemand(Sequence[T]):
    """Rows of a checkpoint, read each time that they are asked for."""

    def __init__(self, read: Callable[[], Sequence[T]]) -> None:
        self._read = read

    def __len__(self) -> int:
        return len(self._read())

    @override
    def __iter__(self) -> Iterator[T]:
        return iter(self._read())

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...
    @override
    def __getitem__(self, at: Any) -> Any:
        return self._read()[at]


class HeaderHistory(CheckpointHistory):
    """Checkpoints that hold only their header: the rows of a whole chain may be millions."""

    def __init__(self, store: StateStore) -> None:
        super().__init__(store)
        # Who goes along a chain asks for the rows of one checkpoint several times.
        self._cached = 1
        self._headers: dict[CheckpointRef, Checkpoint] = {}

    @override
    def load(self, ref: CheckpointRef) -> Checkpoint:
        if ref not in self._headers:
            load = super().load
            header = self._headers[ref] = replace(
                load(ref),
                assigned=_RowsOnDemand(lambda: load(ref).assigned),
                state=_RowsOnDemand(lambda: load(ref).state),
            )
            # It keeps them, while its rows are dropped with the next one.
            _ = header.owners
        return self._headers[ref]


class StateView:
    """One look at one state directory."""

    def __init__(self, store: StateStore) -> None:
        """Look at `store`.

        Raises:
            StateMissingError: there is no state directory; names the place.
        """
        self.store = store
        self.history = HeaderHistory(store)
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
        refs = {NO_CHECKPOINT, *self.refs}
        # By epoch first: a dead incarnation may have left an orphan with a greater id.
        for ref in sorted(self.refs, key=lambda ref: (ref.epoch, ref.checkpoint), reverse=True):
            is_alone = not any(other.checkpoint < ref.checkpoint for other in self.refs)
            if is_alone or self.history.load(ref).header.parent in refs:
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

    def chain(self, most: int | None = None) -> Sequence[CheckpointSnapshot]:
        """The checkpoints that are retained on the chain of `head`, the newest first.

        Raises:
            StateError: one of them is damaged, or newer than this release.
        """
        retained, ref = set(self.refs), self.head
        chain: list[CheckpointRef] = []
        while ref in retained and (most is None or len(chain) < most):
            chain.append(ref)
            ref = self.history.load(ref).header.parent
        return snapshots(self.history, self.commits, chain, committed=self._committed(chain))

    def snapshot(self, ref: CheckpointRef) -> CheckpointSnapshot:
        """The snapshot of a retained checkpoint, on whichever chain it is."""
        return snapshot_of(self.history, self.commits, ref, self._committed([ref]))

    def _committed(self, chain: Sequence[CheckpointRef]) -> int | None:
        if not chain:
            return None
        # After the chain was listed, so the log is at least as new.
        lineage = self.history.load(chain[0]).header.lineage
        newest = committed_in_log(self.store, lineage)
        return committed_on(lambda ref: self.history.load(ref).header.parent, chain, newest)


RowsT = TypeVar("RowsT", pa.Table, pa.RecordBatch)


def path_filter(pattern: str) -> Callable[[str], bool]:
    """Return whether a path matches; any path for an empty pattern."""
    if not pattern:
        return lambda _: True
    compiled = re.compile(translate(pattern))
    return lambda path: compiled.match(path) is not None


def matching(rows: RowsT, pattern: str) -> RowsT:
    """Return the rows whose column `path` matches, in Arrow: a state may have millions of them."""
    if not pattern:
        return rows
    return rows.filter(pc.match_substring_regex(rows.column("path"), matching_pattern(pattern)))


def matching_pattern(pattern: str) -> str:
    """Return a shell pattern as a regular expression of Arrow; * takes slashes, too."""
    # Python's translation, whose end and atomic groups RE2 does not know.
    text = translate(pattern).replace("(?>", "(?:")
    # Python 3.14 writes `\z` where earlier ones write `\Z`.
    return "^" + text.removesuffix(r"\Z").removesuffix(r"\z") + r"$"
