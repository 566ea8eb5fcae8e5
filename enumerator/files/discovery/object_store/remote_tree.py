"""Lists a bucket, or a directory of any other file system, page by page."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any, NamedTuple

from typing_extensions import override

from .....checkpoint_meta.storage.providers import BY_SCHEME
from ..api import FoundFiles, KnownFiles, SkipCounter, Tree
from ..selection.criteria import TAKEN, Scope
from ..worker_pool import More, in_pool
from .listing_pages import Page, before, pages_of
from .remote_files import RemoteFiles

_WITHOUT_DIRECTORIES = frozenset({*BY_SCHEME, "adl", "oss", "obs", "cos", "oci", "r2"})
"""Stores in which a prefix is there only as long as an object is: emptied, it is still the path."""

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

    def __init__(self, files: Any, root: str, scope: Scope, judge: RemoteFiles) -> None:
        """`root` is a path in the file system `files`."""
        self._files, self._root = files, root
        self.pages = pages_of(files)
        self.scope = scope
        self.judge = judge
        protocol = self._files.protocol
        protocols = {protocol} if isinstance(protocol, str) else set(protocol)
        self._may_vanish = bool(protocols & _WITHOUT_DIRECTORIES)
        """True if a path that has been emptied does not exist."""
        self._was_there = False

    @override
    def forget(self) -> None:
        self.judge.forget()
        self.pages.forget()

    @override
    def list_files(self, known: KnownFiles, skips: SkipCounter, after: str) -> Iterator[FoundFiles]:
        # storageOptions may have turned fsspec's cache of listings on.
        self._files.invalidate_cache()
        self.judge.begin_pass()
        base = self._root.rstrip("/") + "/"
        first = self._first(base, after)
        is_there = False
        try:
            for page, level in in_pool([first], self._list, _WORKERS):
                is_there = is_there or page.is_there
                yield self.judge.judged(page, level, known, skips)
        except (FileNotFoundError, NotADirectoryError) as error:
            # An emptied prefix is no error, a bucket that is gone is one.
            if not (self._may_vanish and self._files.exists(self._root.partition("/")[0])):
                raise
            if is_there or self.pages.exists(base):
                # The answer was wrong: what is below the path has not been listed.
                raise OSError(errno.EIO, str(error), self._root) from error
        if not is_there and not after:
            yield from self._instead(known, skips)
        self._was_there = True

    def _first(self, base: str, after: str) -> _NameRange:
        """All that is listed: of the bounds what is a name; files are held against them later."""
        place, end = self.scope.place, ""
        if place is not None:
            start, end = place.names_below(self.path_of(base.rstrip("/")))
            after = max(after, before(start)) if start else after
        return _NameRange(base, 0, base + after if after else "", base + end if end else "")

    def path_of(self, name: str) -> str:
        """A name of the file system as the path that it is known by."""
        return str(self._files.unstrip_protocol(name))

    # Pages ------------------------------------------------------------------------------------

    def _instead(self, known: KnownFiles, skips: SkipCounter) -> Iterator[FoundFiles]:
        # Nothing below it: an object itself, an empty directory, or nothing at all.
        if not self.scope.depth:
            page = self.pages.file(self._root.rstrip("/"))
            if page.names:
                yield self.judge.judged(page, -1, known, skips)
                return
        # After a restart the known files say that the path was there once.
        expected = self._may_vanish and (self._was_there or len(known) > 0)
        if not expected and not self.pages.exists(self._root.rstrip("/") + "/"):
            raise FileNotFoundError(self._root)

    def _list(self, task: _NameRange) -> Iterator[tuple[Page, int] | More[_NameRange]]:
        if not self.pages.is_flat:
            yield from self._directory(task)
        elif task.level < self.scope.depth - 1:
            yield from self._level(task)
        else:
            yield from self._flat(task)

    def _level(self, task: _NameRange) -> Iterator[tuple[Page, int] | More[_NameRange]]:
        # A wildcard's directories are chosen before anything below them is listed.
        for page in self.pages.pages(task.prefix, folders=True):
            yield Page([], [], [], [], page.folders, page.is_there), task.level
            yield from self._folders(page, task)

    def _directory(self, task: _NameRange) -> Iterator[tuple[Page, int] | More[_NameRange]]:
        try:
            for page in self.pages.pages(task.prefix, after=task.after, folders=True):
                yield page, task.level
                yield from self._folders(page, task)
        except FileNotFoundError:
            # A directory below it may be emptied between the two requests.
            if not task.level:
                raise

    def _folders(self, page: Page, task: _NameRange) -> Iterator[More[_NameRange]]:
        for folder in page.folders:
            path, name = self.path_of(folder.rstrip("/")), folder.rstrip("/").rpartition("/")[2]
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
            self.pages.pages(prefix, after=after, until=task.until), start=1
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
            page = next(self.pages.pages(prefix, after=after, folders=True), None)
            folders = list(page.folders) if page is not None else []
            bounds = [folder for folder in folders if folder > after]
            if len(bounds) > 1 or not folders:
                return bounds
            prefix = folders[0]
        return []
