"""Lists a bucket, or a directory of any other file system, page by page."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from typing_extensions import override

from .....checkpoint_meta.storage.bucket_storage import before
from .....checkpoint_meta.storage.contract import Page, Storage
from ..api import FoundFiles, KnownFiles, SkipCounter, Tree, joined
from ..selection.criteria import TAKEN, Scope
from ..worker_pool import More, in_pool
from .remote_files import RemoteFiles, file_page

_WORKERS = 16
"""Requests at a time."""

_PAGES_ALONE = 4
"""Pages after which what is left of a listing is shared out."""

_LEVELS_DOWN = 3
"""How far below a prefix its directories are looked for."""


class _NameRange(NamedTuple):
    """Names that begin with `prefix`, behind `after` and up to `until`; empty for no end."""

    prefix: str
    level: int
    """The names right below it, where the listing is not flat or a wildcard's."""

    after: str = ""
    until: str = ""
    is_whole: bool = True
    """False for a part of a listing that has been shared out: it is not shared out again."""


class RemoteTree(Tree):
    """Pages of a flat listing, in several threads where there are many; else directories."""

    def __init__(self, storage: Storage, root: str, scope: Scope, judge: RemoteFiles) -> None:
        """`root` is a name in `storage`."""
        self.storage, self._root = storage, root
        self.scope = scope
        self.judge = judge
        self._was_there = False
        self._judging = threading.Lock()

    @override
    def forget(self) -> None:
        self.judge.forget()
        self.storage.refresh()

    @override
    def list_files(
        self, ledger: KnownFiles, skips: SkipCounter, after: str
    ) -> Iterator[FoundFiles]:
        self.storage.refresh(self._root)
        self.judge.begin_pass()
        base = self._root.rstrip("/") + "/"
        first = self._first(base, after)
        is_there = False
        try:
            for page, level in in_pool([first], self._list, _WORKERS):
                is_there = is_there or page.exists
                yield self.judge.classify(page, level, ledger, skips)
        except (FileNotFoundError, NotADirectoryError) as error:
            # An emptied prefix is no error, a bucket that is gone is one.
            if self.storage.has_directories or not self.storage.exists(
                self._root.partition("/")[0]
            ):
                raise
            if is_there or self.storage.exists(base):
                # The answer was wrong: what is below the path has not been listed.
                raise OSError(errno.EIO, str(error), self._root) from error
        if not is_there and not after:
            yield from self._instead(ledger, skips)
        self._was_there = True

    @override
    def list_directory(self, directory: str, ledger: KnownFiles, skips: SkipCounter) -> FoundFiles:
        name = self.storage.name(directory)
        self.storage.refresh(name)
        pages = list(self.storage.pages(name + "/", folders=True))
        with self._judging:
            found = [self.judge.classify(replace(p, folders=()), -1, ledger, skips) for p in pages]
        return joined(found)

    def _first(self, base: str, after: str) -> _NameRange:
        """All that is listed: of the bounds what is a name; files are held against them later."""
        place, end = self.scope.place, ""
        if place is not None:
            start, end = place.names_below(self.storage.url(base.rstrip("/")))
            after = max(after, before(start)) if start else after
        return _NameRange(base, 0, base + after if after else "", base + end if end else "")

    # Pages ------------------------------------------------------------------------------------

    def _instead(self, ledger: KnownFiles, skips: SkipCounter) -> Iterator[FoundFiles]:
        # Nothing below it: an object itself, an empty directory, or nothing at all.
        if not self.scope.depth:
            page = file_page(self.storage, self._root.rstrip("/"))
            if page.names:
                yield self.judge.classify(page, -1, ledger, skips)
                return
        # After a restart the known files say that the path was there once.
        expected = not self.storage.has_directories and (self._was_there or len(ledger) > 0)
        if not expected and not self.storage.exists(self._root.rstrip("/") + "/"):
            raise FileNotFoundError(self._root)

    def _list(self, task: _NameRange) -> Iterator[tuple[Page, int] | More[_NameRange]]:
        if not self.storage.is_flat:
            yield from self._directory(task)
        elif task.level < self.scope.depth - 1:
            yield from self._level(task)
        else:
            yield from self._flat(task)

    def _level(self, task: _NameRange) -> Iterator[tuple[Page, int] | More[_NameRange]]:
        # A wildcard's directories are chosen before anything below them is listed.
        for page in self.storage.pages(task.prefix, folders=True):
            yield Page.of({}, page.folders, exists=page.exists), task.level
            yield from self._folders(page, task)

    def _directory(self, task: _NameRange) -> Iterator[tuple[Page, int] | More[_NameRange]]:
        try:
            for page in self.storage.pages(task.prefix, after=task.after, folders=True):
                yield page, task.level
                yield from self._folders(page, task)
        except FileNotFoundError:
            # A directory below it may be emptied between the two requests.
            if not task.level:
                raise

    def _folders(self, page: Page, task: _NameRange) -> Iterator[More[_NameRange]]:
        for folder in page.folders:
            path, name = self.storage.url(folder.rstrip("/")), folder.rstrip("/").rpartition("/")[2]
            if self.scope.enters(name, task.level, path) != TAKEN:
                continue
            if not task.after or folder > task.after or task.after.startswith(folder):
                yield More(_NameRange(folder, task.level + 1, task.after, task.until))

    def _flat(self, task: _NameRange) -> Iterator[tuple[Page, int] | More[_NameRange]]:
        prefix, after = task.prefix, task.after
        if task.level < self.scope.depth:
            prefix += self.scope.fixed_start
        # Everything that begins so is before `after`.
        if after and not (after.startswith(prefix) or prefix > after):
            return
        after = after if after.startswith(prefix) else ""
        for count, page in enumerate(
            self.storage.pages(prefix, after=after, until=task.until), start=1
        ):
            yield page, -1
            if count == _PAGES_ALONE and task.is_whole and page.names:
                yield from self._shared_out(task, prefix, str(page.names[-1]))
                return

    def _shared_out(self, task: _NameRange, prefix: str, after: str) -> Iterator[More[_NameRange]]:
        bounds = self._bounds(prefix, after)
        if task.until:
            bounds = [bound for bound in bounds if bound < task.until]
        # By number: how long a directory is shows only when it is listed.
        step = -(-len(bounds) // _WORKERS) or 1
        ends = [*bounds[::step], task.until]
        for start, end in zip([after, *bounds[::step]], ends, strict=True):
            part = _NameRange(task.prefix, task.level, start, end, is_whole=False)
            yield More(part)

    def _bounds(self, prefix: str, after: str) -> list[str]:
        """Directories behind `after`, of the highest level that has some."""
        for _ in range(_LEVELS_DOWN):
            page = next(self.storage.pages(prefix, after=after, folders=True), None)
            folders = list(page.folders) if page is not None else []
            bounds = [folder for folder in folders if folder > after]
            if len(bounds) > 1 or not folders:
                return bounds
            prefix = folders[0]
        return []
