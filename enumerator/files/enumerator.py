"""The file source's enumerator: lists, remembers, cuts and spreads.

A file is one of: unknown, pending (a range of it is), or all assigned. It is discovered once, by
path. Oldest first: files are taken in the order of modification time, then path.

Not here: listing (`discovery`), cutting (`slicing.py`), spreading (`spreading.py`), holding
back what is assigned too early (the coordinator's gateways).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from ...checkpoint_meta.splits import FileSplit
from ...errors import MissingPathError, SourceUnavailable
from ..api import SplitEnumerator, SplitEnumeratorContext
from ..room import BatchRoom
from .discovery.lister import FileLister
from .slicing import SplitCutter, wanted_split_bytes
from .spreading import SplitSpreader
from .state import FileState

_BACK_OFF_LIMIT = 30.0
"""Longest delay between two tries of a failing listing, in seconds."""

_REST = 4.0
"""After a pass of t seconds discovery rests at least this many times t."""


def _order(split: FileSplit) -> tuple[int, str, int]:
    return split.file.modified, split.file.path, split.start


def _fits_whole(split: FileSplit, room: BatchRoom) -> bool:
    # It fitted an empty room once, so it will again.
    if room.is_empty:
        return True
    return room.rows_left is None and (room.bytes_left is None or split.length <= room.bytes_left)


@dataclass(frozen=True)
class DiscoveryPolicy:
    """When to list."""

    interval: float
    """Seconds between two passes."""

    attempts: int = 5
    """Failures in a row, with back-off between them, that fail the query."""


class FileSplitEnumerator(SplitEnumerator[FileSplit, FileState]):
    """Discovers files of a directory tree and assigns ranges of them."""

    def __init__(
        self,
        context: SplitEnumeratorContext[FileSplit],
        lister: FileLister,
        cutter: SplitCutter,
        spreader: SplitSpreader,
        policy: DiscoveryPolicy,
        cores: int,
        state: FileState | None,
    ) -> None:
        self._context = context
        self._lister = lister
        self._cutter = cutter
        self._spreader = spreader
        self._policy = policy
        self._cores = cores
        self._seen = {split.file.path for split in state or ()}
        self._pending: deque[FileSplit] = deque()
        self._pending_bytes = 0
        self._fresh: dict[FileSplit, None] = {}
        """Ranges that became pending since the last cut, in order."""
        self._returned: set[FileSplit] = set()
        """Pending for another attempt: not cut anew, since attempts are counted by split id."""
        self._failures = 0
        self._settled = False
        self._figures = dict.fromkeys(("rows", "bytes", "droppedRecords", "skippedFiles"), 0)
        known = sorted((s for s in state or () if s.start < s.end), key=_order)
        self._add(known, fresh=False)

    # Discovery ------------------------------------------------------------------------------

    @override
    def start(self) -> None:
        self._schedule(0.0)

    def _schedule(self, delay: float) -> None:
        self._context.call_async(self._discover, self._discovered, delay)

    def _discover(self) -> tuple[list[FileSplit], float]:
        # On a worker thread. `_seen` only ever grows, and under the lock, so asking it here can
        # at worst list a file twice, which `_discovered` filters.
        began = time.monotonic()
        splits = [FileSplit(file, 0, file.size) for file in self._lister(self._seen)]
        splits.sort(key=_order)
        return splits, time.monotonic() - began

    def _discovered(
        self, result: tuple[list[FileSplit], float] | None, error: BaseException | None
    ) -> None:
        if result is None:
            self._retry_or_raise(error)
            return
        splits, seconds = result
        self._failures = 0
        self._settled = True
        unknown = [split for split in splits if split.file.path not in self._seen]
        self._seen.update(split.file.path for split in unknown)
        self._add(unknown)
        if unknown:
            self._context.request_planning()
        if not self._context.bounded:
            self._schedule(max(self._policy.interval, _REST * seconds))

    def _retry_or_raise(self, error: BaseException | None) -> None:
        self._failures += 1
        final = isinstance(error, MissingPathError) and not self._settled
        if error is not None and (final or self._failures >= self._policy.attempts):
            if isinstance(error, SourceUnavailable):
                raise error
            raise SourceUnavailable(
                f"discovery failed {self._failures} times in a row",
                "",
                f"{type(error).__name__}: {error}",
                "a listing of the path",
                "Repair the cause and restart the query: it continues where it stood.",
            ) from error
        back_off = min(_BACK_OFF_LIMIT, 0.2 * 3**self._failures)
        self._schedule(back_off)

    @property
    @override
    def is_settled(self) -> bool:
        return self._settled

    def _add(self, in_order: Sequence[FileSplit], *, fresh: bool = True) -> None:
        if not in_order:
            return
        self._pending_bytes += sum(split.end - split.start for split in in_order)
        if fresh:
            self._fresh.update(dict.fromkeys(in_order))
        late = self._pending and _order(in_order[0]) < _order(self._pending[-1])
        self._pending.extend(in_order)
        if late:
            self._pending = deque(sorted(self._pending, key=_order))

    # Assignment -----------------------------------------------------------------------------

    @override
    def plan_batch(self, room: BatchRoom) -> None:
        chosen: list[FileSplit] = []
        wanted = self._wanted_bytes(room)
        while self._pending and room.takes_more_of(self._pending[0].file.path):
            pending = self._pending[0]
            came_back = bool(self._returned) and pending in self._returned
            if came_back and not _fits_whole(pending, room):
                break
            least = pending.length if came_back else 0
            taken = self._cutter.cut(pending, room, max(wanted, least))
            if taken is None:
                break
            self._pending.popleft()
            self._returned.discard(pending)
            self._take(pending, taken.split, taken.remainder)
            room.take(pending.file.path, taken.split.length, taken.rows)
            chosen.append(taken.split)
        if chosen:
            readers = self._context.request_parallelism(self._spreader.readers_wanted(chosen))
            self._context.assign_splits(self._spreader.spread(chosen, readers))

    def _wanted_bytes(self, room: BatchRoom) -> int:
        left = room.bytes_left
        total = self._pending_bytes if left is None else min(left, self._pending_bytes)
        return wanted_split_bytes(total, self._cores)

    def _take(self, pending: FileSplit, split: FileSplit, remainder: FileSplit | None) -> None:
        was_fresh = pending in self._fresh
        self._fresh.pop(pending, None)
        if remainder is not None:
            self._pending.appendleft(remainder)
            if was_fresh:
                self._fresh[remainder] = None
        self._pending_bytes -= split.length

    @override
    def is_decided(self, room: BatchRoom) -> bool:
        """Full, or the next file in order does not fit, or nothing more comes in this run."""
        nothing_comes = self._context.bounded and self._settled
        return room.is_full or bool(self._pending) or nothing_comes

    @override
    def add_splits_back(self, splits: Sequence[FileSplit], reader: int) -> None:
        self._returned.update(splits)
        self._add(sorted(splits, key=_order))

    # Checkpoints ----------------------------------------------------------------------------

    @override
    def snapshot_state(self, checkpoint_id: int) -> FileState:
        """The ranges that became pending since the snapshot before and still are."""
        self._spreader.start_batch()
        fresh, self._fresh = self._fresh, {}
        return list(fresh)

    @override
    def handle_reader_event(self, reader: int, event_type: str, value: Any) -> None:
        for name in self._figures:
            self._figures[name] += int(value.get(name, 0))

    @override
    def backlog(self) -> Mapping[str, Any]:
        return {
            "splitsOutstanding": len(self._pending),
            "bytesOutstanding": self._pending_bytes,
            "filesSeen": len(self._seen),
            "read": dict(self._figures),
        }
