"""Chooses the splits of a batch from what is pending."""

from __future__ import annotations

from ...checkpoint_meta.files.file_split import FileSplit, directory_of
from ..batch_budget import BatchBudget
from .cutting import SplitCutter, fits_whole, wanted_split_bytes
from .event_time_batches import BatchOrder
from .ledger.known_contents import KnownContents
from .ledger.pending import PendingRanges
from .part_plans import PartPlans


class FreshShare:
    """Keeps a part of each batch for the other end of the order, while a backlog drains from one.

    Measures in bytes where bytes are limited, else in files.
    """

    def __init__(self, share: float) -> None:
        """`share` is between 0, which keeps nothing, and 1."""
        self._share = share
        self._bytes = 0
        self._files: set[str] = set()

    def start_batch(self) -> None:
        """Forget what was taken: a new checkpoint begins."""
        self._bytes, self._files = 0, set()

    def takes_last(self, budget: BatchBudget) -> bool:
        """True if the next range is to come from the end of the order."""
        if self._share == 0:
            return False
        if budget.limits.bytes is not None:
            # At least 1: the first range of each batch comes from this end.
            return self._bytes < self._share * max(1, budget.bytes)
        return len(self._files) < self._share * (budget.files + 1)

    def took(self, split: FileSplit) -> None:
        """This range came from the end of the order."""
        self._bytes += split.length
        self._files.add(split.file.path)


class BatchChoice:
    """Under the coordinator's lock."""

    def __init__(
        self,
        pending: PendingRanges,
        contents: KnownContents | None,
        cutter: SplitCutter,
        parts: PartPlans,
        share: FreshShare,
    ) -> None:
        """With `contents` no file is taken of which the content is known."""
        self._pending, self._contents, self._cutter = pending, contents, cutter
        self._parts, self._share = parts, share

    def take(self, budget: BatchBudget, cores: int, order: BatchOrder) -> list[FileSplit]:
        """Take from what is pending as much as budget and order have room for."""
        limits = (budget.bytes_left, budget.enough_left, self._pending.bytes)
        total = min(limit for limit in limits if limit is not None)
        wanted = wanted_split_bytes(total, cores)
        take = self._take_replacing if self._pending.replaces else self._take
        return take(budget, wanted, order)

    def _take(self, budget: BatchBudget, wanted: int, order: BatchOrder) -> list[FileSplit]:
        pending, contents, chosen = self._pending, self._contents, list[FileSplit]()
        last = continues = False
        while True:
            # A file that was begun is taken to its end first: it counts once.
            last = last if continues else self._share.takes_last(budget)
            split = pending.last() if last else pending.first()
            if split and contents and contents.set_aside(split, last=last):
                continue
            if split is None or not budget.takes_more_of(split.file.path):
                return chosen
            if not order.accepts(split, budget):
                return chosen
            is_returned = pending.is_returned(last=last)
            piece = self._cutter.next_slice(split, budget, wanted, is_returned=is_returned)
            if piece is None:
                return chosen
            pending.take(piece.remainder, last=last)
            continues = piece.remainder is not None
            budget.take(split.file.path, piece.split.length)
            self._parts.took(piece.split, budget)
            order.on_taken(piece.split)
            if contents:
                contents.took(piece.split)
            if last:
                self._share.took(piece.split)
            chosen.append(piece.split)

    def _take_replacing(
        self, budget: BatchBudget, wanted: int, order: BatchOrder
    ) -> list[FileSplit]:
        """Take files whole: the commit of the batch has exactly the rows that replace others."""
        pending, chosen = self._pending, list[FileSplit]()
        directory: str | None = None
        while (split := pending.first()) is not None:
            has_time = not split.file.is_gone
            # A directory that was begun is taken to its end, whatever the limits are.
            if directory is None or directory_of(split.file.path) != directory:
                fits = budget.takes_more_of(split.file.path) and fits_whole(split, budget)
                if not fits or (has_time and not order.accepts(split, budget)):
                    break
            if pending.whole_directories:
                directory = directory_of(split.file.path)
            pending.take(None)
            budget.take(split.file.path, split.length)
            if has_time:
                order.on_taken(split)
            chosen += self._cutter.pieces_of(split, wanted)
        return chosen
