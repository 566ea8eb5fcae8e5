"""Spreads splits over readers so that the largest share is near the mean.

Longest processing time first (R. L. Graham, "Bounds on multiprocessing timing anomalies", 1969):
costly splits first, each to the reader with the least so far.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from ...checkpoint_meta.files.file_split import FileSplit


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
