"""Judges a page of a remote listing: known, left out or taken. Nothing is asked for a file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .....checkpoint_meta.storage.contract import Page, Storage
from ..api import FoundFiles, KnownFiles, SkipCounter
from ..selection.criteria import (
    CHANGED,
    FROM_FUTURE,
    OUTSIDE,
    REASONS,
    SETTLING,
    TAKEN,
    UNMARKED,
    FileRules,
)

_FOLDERS_REMEMBERED = 100_000

_CLOCKS_DIFFER = 60_000_000
"""Microseconds by which a store's clock may be ahead of this machine's."""


def file_page(storage: Storage, name: str) -> Page:
    """Return a page with the file of exactly this name; an empty one if it does not exist."""
    try:
        return Page.of({name: storage.stat(name)})
    except FileNotFoundError:
        return Page.of({}, exists=False)


class RemoteFiles:
    """The judge of one loaded path."""

    def __init__(self, storage: Storage, rules: FileRules) -> None:
        self._storage = storage
        self._rules, self._scope, self._marker = rules, rules.scope, rules.marker
        # Thousands of keys share a directory, and keys come in order.
        self._folder = lru_cache(_FOLDERS_REMEMBERED)(self._refusal_and_level)
        self._ready: set[str] = set()
        """Markers of directories that have been seen."""
        self._absent: set[str] = set()
        """Those that this pass has asked for and not found."""

    def begin_pass(self) -> None:
        """Ask again for markers that were not there."""
        self._absent.clear()

    def forget(self) -> None:
        """Look at everything again."""
        self._ready.clear()
        self._folder.cache_clear()

    def classify(
        self,
        page: Page,
        level: int,
        ledger: KnownFiles,
        skips: SkipCounter,
        *,
        counts_changed: bool = True,
    ) -> FoundFiles:
        """The files of the page that are taken; the others are reported to the counter.

        `level` is the page's directory's, or -1 where the names tell.
        """
        paths = self._paths(page.names)
        for folder in page.folders:
            self._count_skipped_folder(folder, level, skips)
        if self._rules.wants_versions or not counts_changed:
            mask = ledger.are_known(paths)
        else:
            mask = self._count_changed(page, paths, ledger, skips)
        wanted = range(len(paths)) if self._rules.wants_versions else np.flatnonzero(~mask).tolist()
        at = np.fromiter(
            (one for one in wanted if self._is_wanted(page.names[one], paths[one], skips)), np.int64
        )
        sizes = np.array(page.sizes, np.int64)[at]
        modified = np.array(page.modified, np.int64)[at]
        asked = [paths[one] for one in at.tolist()]
        now = time.time_ns() // 1000
        codes = self._rules.criteria.classify(asked, sizes, modified, now)
        # What is known is not judged again, but a version that is still being written has to wait.
        codes[mask[at] & (codes != SETTLING)] = 0
        self._judge_markers(page, at, mask[at], codes)
        for one, code in zip(at[codes > 0].tolist(), codes[codes > 0].tolist(), strict=True):
            is_ahead = code == SETTLING and page.modified[one] > now + _CLOCKS_DIFFER
            skips.add(paths[one], FROM_FUTURE if is_ahead else REASONS[code])
            if code in (SETTLING, UNMARKED):
                skips.waits(paths[one])
        taken = at[codes == 0].tolist()
        etags = [page.etags[one] for one in taken]
        names = [paths[one] for one in taken]
        skips.saw(paths, mask, names)
        kept = codes == 0
        return FoundFiles(names, sizes[kept], modified[kept], etags if any(etags) else None)

    def _count_changed(
        self, page: Page, paths: Sequence[str], ledger: KnownFiles, skips: SkipCounter
    ) -> NDArray[np.bool_]:
        """Count the known files that are there in another version; returns which are known."""
        sizes, modified = np.array(page.sizes, np.int64), np.array(page.modified, np.int64)
        mask, changed = ledger.compare(FoundFiles(paths, sizes, modified, page.etags))
        for one in np.flatnonzero(changed).tolist():
            if self._refusal(page.names[one]) == TAKEN:
                skips.add(paths[one], CHANGED)
        return mask

    def _paths(self, names: Sequence[str]) -> list[str]:
        # A call for each of ten million names would take longer than to list them.
        if not names:
            return []
        first = self._storage.url(names[0])
        if first.endswith(names[0]):
            protocol = first.removesuffix(names[0])
            return [protocol + name for name in names]
        return [self._storage.url(name) for name in names]

    def _count_skipped_folder(self, folder: str, level: int, skips: SkipCounter) -> None:
        name = folder.rstrip("/")
        path = self._paths([name])[0]
        reason = self._scope.enters(name.rpartition("/")[2], level, path)
        if reason not in (TAKEN, OUTSIDE):
            skips.add(self._storage.url(folder), reason)

    def _is_wanted(self, name: str, path: str, skips: SkipCounter) -> bool:
        reason = self._refusal(name)
        if reason == TAKEN and self._rules.is_of_another(name):
            reason = OUTSIDE
        if reason not in (TAKEN, OUTSIDE):
            skips.add(path, reason)
        return reason == TAKEN

    def _refusal(self, name: str) -> str:
        folder, _, leaf = name.rpartition("/")
        if name == self._scope.base.rstrip("/"):
            return self._rules.refusal(leaf, 0, is_base=True)
        refusal, level = self._folder(folder)
        return refusal or self._rules.refusal(leaf, level, is_base=False)

    def _refusal_and_level(self, folder: str) -> tuple[str, int]:
        below = folder[len(self._scope.base.rstrip("/")) :].strip("/")
        parts = below.split("/") if below else []
        refusals = (self._scope.enters(part, level) for level, part in enumerate(parts))
        return next(filter(None, refusals), TAKEN), len(parts)

    def _judge_markers(
        self, page: Page, at: NDArray[np.int64], mask: NDArray[np.bool_], codes: NDArray[np.uint8]
    ) -> None:
        if self._marker is None:
            return
        names = frozenset(page.names)
        # Only for files that would be taken, because a marker may cost a request.
        for index in np.flatnonzero((codes == 0) & ~mask).tolist():
            if not self._is_ready(page.names[int(at[index])], names, page):
                codes[index] = UNMARKED

    def _is_ready(self, name: str, names: frozenset[str], page: Page) -> bool:
        assert self._marker is not None
        folder, _, leaf = name.rpartition("/")
        marker = f"{folder}/{self._marker.of(leaf)}"
        if marker in names or marker in self._ready:
            return True
        if not self._storage.is_flat or name < marker < page.names[-1] or marker in self._absent:
            # It would be on this page, or has been asked for.
            return False
        is_there = file_page(self._storage, marker).exists
        if not self._marker.is_per_file:
            (self._ready if is_there else self._absent).add(marker)
        return is_there
