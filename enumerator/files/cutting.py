"""Where a file may be cut, how much of it the next checkpoint takes, and which reader gets it.

Splits are spread over readers so that the largest share is near the mean. Longest processing time
first (R. L. Graham, "Bounds on multiprocessing timing anomalies", 1969): costly splits first, each
to the reader with the least so far.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...checkpoint_meta.files.file_split import FileSplit, FileVersion, sampled
from ..batch_budget import UNLIMITED, BatchBudget

_LEAST_SPLIT_BYTES = 4 * 1024 * 1024
"""Below this a split is not worth a reader of its own (Spark's openCostInBytes)."""


def wanted_split_bytes(total: int, cores: int) -> int:
    """Return how long splits of a batch of `total` bytes are meant to be.

    As in Spark, a batch that is small for the cores is cut finer, so that all of them work.
    """
    # Rounded up, or a few bytes would become a split more than there are cores.
    return max(_LEAST_SPLIT_BYTES, -(-total // cores))


class FileBlock(Protocol):
    """One indivisible block of a file."""

    @property
    def start(self) -> int:
        """Position of the first byte."""

    @property
    def end(self) -> int:
        """Position after the last byte."""


class RecordBoundaries(Protocol):
    """The boundaries of records in a file, asked of its format."""

    def may_cut_anywhere(self, file: FileVersion) -> bool:
        """True if a record belongs to the split in which it starts, independent of the cut."""

    def blocks(self, file: FileVersion) -> Sequence[FileBlock] | None:
        """The blocks of a file that may be cut between them only; None for an indivisible one.

        Reads metadata: only asked where a cut is needed.
        """


@dataclass(frozen=True, slots=True)
class Slice:
    """A piece that is taken off a pending range."""

    split: FileSplit
    remainder: FileSplit | None


class SplitCutter:
    """Cuts pending ranges of files into splits that fit the budget of a checkpoint."""

    def __init__(self, boundaries: RecordBoundaries, max_split_bytes: int) -> None:
        self._boundaries = boundaries
        self._max_split_bytes = max_split_bytes
        self._blocks: tuple[FileVersion, Sequence[FileBlock] | None] | None = None

    def next_slice(
        self, split: FileSplit, budget: BatchBudget, wanted: int, *, is_returned: bool
    ) -> Slice | None:
        """About `wanted` bytes of `split`, all of one that came back; None if it does not fit."""
        if is_returned and not fits_whole(split, budget):
            return None
        return self.cut(split, budget, max(wanted, split.length) if is_returned else wanted)

    def cut(self, pending: FileSplit, budget: BatchBudget, wanted_bytes: int) -> Slice | None:
        """The next split of `pending`, at most about `wanted_bytes` long; None if it does not fit.

        The first split of a checkpoint always comes, be it one indivisible block larger than the
        budget: else it would never be read.
        """
        left = budget.bytes_left
        target = min(self._max_split_bytes, max(1, wanted_bytes))
        if left is not None:
            target = min(target, left)
        length = pending.end - pending.start
        # Taken whole, a file needs no look at its metadata. A split that was begun is not cut.
        if length <= target:
            return Slice(pending, None)
        if pending.is_whole_file or not pending.file.sample:
            pending = pending._replace(file=sampled(pending.file))
        if not pending.skip and self._boundaries.may_cut_anywhere(pending.file):
            return _slice(pending, pending.start + min(length, target))
        blocks = None if pending.skip else self._blocks_of(pending)
        if blocks is None:
            # Alone in its checkpoint, if it is too long: its reader keeps the limit.
            fits = left is None or pending.length <= left
            return Slice(pending, None) if fits or budget.is_empty else None
        return _whole_blocks(pending, blocks, budget, target)

    def cut_all(self, files: Sequence[FileVersion], wanted_bytes: int) -> list[FileSplit]:
        """All of `files`, as one batch without limits."""
        whole = (FileSplit(file, 0, file.size) for file in files)
        return [piece for split in whole for piece in self.pieces_of(split, wanted_bytes)]

    def pieces_of(self, split: FileSplit, wanted_bytes: int) -> list[FileSplit]:
        """All of `split`, for one batch."""
        budget, pieces = BatchBudget(UNLIMITED), []
        pending: FileSplit | None = split
        while pending is not None and (taken := self.cut(pending, budget, wanted_bytes)):
            pieces.append(taken.split)
            pending = taken.remainder
        return pieces

    def _blocks_of(self, pending: FileSplit) -> Sequence[FileBlock] | None:
        # One file at a time is cut, over many calls: remembering one is enough.
        if self._blocks is None or self._blocks[0] != pending.file:
            self._blocks = (pending.file, self._boundaries.blocks(pending.file))
        return self._blocks[1]


def fits_whole(split: FileSplit, budget: BatchBudget) -> bool:
    """True if the batch takes all of `split`."""
    # It fitted an empty budget once, so it will again.
    if budget.is_empty:
        return True
    return budget.bytes_left is None or split.length <= budget.bytes_left


def _whole_blocks(
    pending: FileSplit, blocks: Sequence[FileBlock], budget: BatchBudget, target: int
) -> Slice | None:
    end = pending.start
    for block in blocks:
        if block.start < pending.start:
            continue
        if block.start >= pending.end:
            break
        if block.end - pending.start > target:
            if end > pending.start:
                break
            # An indivisible first block: alone in an empty checkpoint, or as one split.
            left = budget.bytes_left
            too_long = left is not None and block.end - pending.start > left
            if too_long and not budget.is_empty:
                return None
        end = min(block.end, pending.end)
    # No block starts in a range that holds the end of a file only, such as a footer.
    return _slice(pending, end if end > pending.start else pending.end)


def _slice(pending: FileSplit, end: int) -> Slice:
    if end >= pending.end:
        return Slice(pending, None)
    # Earlier rows go once, with the first piece.
    first = FileSplit(pending.file, pending.start, end, replaces=pending.replaces)
    return Slice(first, FileSplit(pending.file, end, pending.end))


class SplitSpreader:
    """Remembers what each reader of the checkpoint being planned has got so far."""

    def __init__(
        self, target_bytes: int, open_cost_bytes: int, cores: int, least_bytes: int = 0
    ) -> None:
        """A reader is meant to get about `target_bytes`; a file costs `open_cost_bytes` more.

        More readers than `cores` get at least `least_bytes` of files each: as many as
        are worth a file of their own where readers write files.
        """
        self._least = least_bytes
        self._target = target_bytes
        self._open_cost = open_cost_bytes
        self.cores = cores
        self._loads: dict[int, float] = {}
        self._total = self._bytes = 0
        self._splits = 0

    def start_batch(self) -> None:
        """Forget the loads: a new checkpoint begins."""
        self._loads = {}
        self._total = self._bytes = self._splits = 0

    def readers_wanted(self, splits: Sequence[FileSplit]) -> int:
        """Readers for what is assigned already and `splits`.

        By cost, but as many times the number of cores as it takes, while there are splits for them:
        of three equal shares on two cores the third would be read alone.
        """
        cost = self._total + sum(map(self._cost, splits))
        count = self._splits + len(splits)
        rounds = -(-max(cost, 1) // (self._target * self.cores))
        if self._least:
            size = self._bytes + sum(split.end - split.start for split in splits)
            rounds = max(1, min(rounds, size // (self._least * self.cores)))
        return max(min(rounds * self.cores, count), 1)

    def spread(
        self, splits: Sequence[FileSplit], readers: int, left: Mapping[int, float] | None = None
    ) -> Mapping[int, list[FileSplit]]:
        """Reader -> splits, each reader's in the order given. Only readers that got any.

        `left` is what readers leave of the batch before, which they read first.
        """
        # Of equally loaded readers the first one is next, so equal splits are spread equally.
        loads = {**(left or {}), **self._loads}
        heap = [(loads.get(reader, 0.0), reader) for reader in range(readers)]
        heapq.heapify(heap)
        costs = list(map(self._cost, splits))
        shares: dict[int, list[int]] = {}
        for index in sorted(range(len(splits)), key=costs.__getitem__, reverse=True):
            load, reader = heap[0]
            heapq.heapreplace(heap, (load + costs[index], reader))
            shares.setdefault(reader, []).append(index)
        self._loads.update({reader: load for load, reader in heap})
        self._total += sum(costs)
        self._bytes += sum(split.end - split.start for split in splits)
        self._splits += len(splits)
        # Back in the given order: the reader decodes small files that are neighbours together.
        return {r: [splits[i] for i in sorted(shares[r])] for r in sorted(shares)}

    def _cost(self, split: FileSplit) -> int:
        return split.end - split.start + self._open_cost
