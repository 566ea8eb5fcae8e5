"""Lists a local directory tree: names first, and a stat only for what is not known yet."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import NamedTuple

from typing_extensions import override

from .....checkpoint_meta.documents.listing_record import DirectoryRow
from .....checkpoint_meta.storage.urls import local_name
from ..api import CHUNK, FoundFiles, KnownFiles, SkipCounter, Tree, joined
from ..selection.criteria import OUTSIDE, TAKEN, Scope
from ..worker_pool import More, in_pool
from .listing_cache import DirectoryCache, Trail
from .local_files import Leaves, Links, LocalFiles, Visit

_WORKERS = 8
"""Directories read at a time where each answer comes over a network."""

MOST_COMPARED = 5_000
"""Known files up to which changed ones are counted, which costs a stat of each on a local disk."""


class _Place(NamedTuple):
    path: str
    level: int
    trail: Trail
    after: str
    """In this directory and below, names up to here are not looked for; empty for none."""


class LocalTree(Tree):
    """One scandir for each directory that may have changed."""

    def __init__(self, scope: Scope, links: Links, files: LocalFiles, *, caches: bool) -> None:
        """`caches=False` reads every directory at each pass: files change under their names."""
        self._scope = scope
        self._links = links
        self._files = files
        self._caches = caches
        self._cache = DirectoryCache()
        self._judging = threading.Lock()

    @override
    def forget(self) -> None:
        self._cache.forget()
        self._files.forget()

    @override
    def remembered(self) -> tuple[Sequence[DirectoryRow], int]:
        return self._cache.rows(), self._cache.names_read

    @override
    def recall(self, rows: Sequence[DirectoryRow]) -> None:
        self._cache.load(rows)

    @override
    def list_files(
        self, ledger: KnownFiles, skips: SkipCounter, after: str
    ) -> Iterator[FoundFiles]:
        base = self._scope.base
        status = os.stat(base)
        if not os.path.isdir(base):
            # The path is one file: a name in a directory of which nothing else is looked at.
            directory, name = os.path.split(base)
            visit = Visit(directory, status, 0, is_base=True)
            yield self._files.classify([Leaves(visit, [name], is_last=False)], ledger, skips)
            return
        workers = 1 if self._cache.is_local(status) else _WORKERS
        pieces: list[Leaves] = []
        held = 0
        for piece in in_pool([_Place(base, 0, (), after)], self._scan, workers):
            pieces.append(piece)
            held += len(piece.names)
            if held >= CHUNK:
                yield self._judged(pieces, ledger, skips)
                pieces, held = [], 0
        yield self._judged(pieces, ledger, skips)

    @override
    def list_directory(self, directory: str, ledger: KnownFiles, skips: SkipCounter) -> FoundFiles:
        path = local_name(directory)
        names = PurePath(path).relative_to(self._scope.base).parts
        if any(self._scope.enters(name, level) for level, name in enumerate(names)):
            return joined([])
        visit = Visit(path, os.stat(path), len(names))
        scanned = self._read(_Place(path, visit.level, (), ""), visit)
        leaves = [found for found in scanned if isinstance(found, Leaves)]
        with self._judging:
            return self._files.classify(leaves, ledger, skips)

    def _judged(self, pieces: list[Leaves], ledger: KnownFiles, skips: SkipCounter) -> FoundFiles:
        few = len(ledger) <= MOST_COMPARED and all(
            self._cache.is_local(piece.visit.status) for piece in pieces
        )
        listing = self._files.classify(pieces, ledger, skips, counts_changed=few)
        for piece in pieces:
            visit = piece.visit
            if visit.record_before is not None:
                skips.repeat(visit.record_before.counts, visit.record_before.names)
            elif piece.is_last and self._caches and visit.is_stable:
                self._cache.store(
                    visit.path, visit.record(), visit.status, visit.read_at, visit.files
                )
        return listing

    def _scan(self, place: _Place) -> Iterator[Leaves | More[_Place]]:
        # In a thread of its own: what is shared is only read.
        try:
            status = os.stat(place.path)
            record = self._cache.record_of(place.path, status)
            if record is not None:
                if record.again or record.counts:
                    visit = Visit(place.path, status, place.level, record_before=record)
                    # Nothing came or went here, but these may have changed in place, or aged.
                    yield Leaves(visit, list(record.again), is_last=False)
                for path, trail in record.folders:
                    yield More(_Place(path, place.level + 1, trail, ""))
                return
            yield from self._read(place, Visit(place.path, status, place.level))
        except (FileNotFoundError, NotADirectoryError):
            # Any other directory was deleted or replaced after its parent had been read.
            if place.path == self._scope.base:
                raise

    def _read(self, place: _Place, visit: Visit) -> Iterator[Leaves | More[_Place]]:
        # Also a record of a pass that starts in the middle would hide what it did not look at.
        visit.is_stable = not place.after
        visit.read_at = time.time_ns()
        names: list[str] = []
        refused: list[tuple[str, str]] = []
        with os.scandir(place.path) as entries:
            for entry in entries:
                name = entry.name
                if entry.is_dir():
                    if place.after and not _reaches_behind(name, place.after):
                        continue
                    reason = self._scope.enters(name, place.level, entry.path)
                    if reason == TAKEN:
                        yield from self._entered(entry, place, visit)
                    elif reason != OUTSIDE:
                        refused.append((name + "/", reason))
                elif not place.after or name > place.after:
                    names.append(name)
                    if len(names) >= CHUNK:
                        yield Leaves(visit, names, is_last=False)
                        names = []
        yield Leaves(visit, names, is_last=True, refused=refused)

    def _entered(
        self, entry: os.DirEntry[str], place: _Place, visit: Visit
    ) -> Iterator[More[_Place]]:
        trail: Trail | None = place.trail
        if entry.is_symlink():
            # What it leads to may change without a trace here.
            visit.is_stable = False
            trail = self._links.trail_into(entry.path, place.path, self._scope.base, place.trail)
        if trail is not None:
            visit.folders.append((entry.path, trail))
            first, _, rest = place.after.partition("/")
            yield More(
                _Place(entry.path, place.level + 1, trail, rest if entry.name == first else "")
            )


def _reaches_behind(folder: str, after: str) -> bool:
    # A directory whose own name is not behind `after` may hold names that are.
    return folder + "/" > after or after.startswith(folder + "/")
