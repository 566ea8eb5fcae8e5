"""Lists a bucket, or a directory of any other file system, page by page.

Not here: the requests (`bucket_pages.py`, `listing_pages.py`), judging what they bring
(`remote_files.py`).
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from typing_extensions import override

from .....checkpoint_meta.storage.bucket import Bucket, open_bucket
from .....checkpoint_meta.storage.client_options import by_fsspec
from .....checkpoint_meta.storage.providers import BY_SCHEME
from ..api import FoundFiles, KnownFiles
from ..selection.scope import TAKEN, Scope
from ..selection.skip_counter import Tally
from ..tree import Tree
from ..worker_pool import More, in_lanes
from .bucket_pages import BucketFiles, BucketPages
from .listing_pages import DirectoryPages, Page, Pages, S3Pages
from .remote_files import RemoteFiles

_WITHOUT_DIRECTORIES = frozenset({*BY_SCHEME, "adl", "oss", "obs", "cos", "oci", "r2"})
"""Stores in which a prefix is there only as long as an object is: emptied, it is still the path."""

_LANES = 16
"""Requests at a time."""

_PAGES_ALONE = 4
"""Pages after which what is left of a listing is shared out."""

_LEVELS_DOWN = 3
"""How far below a prefix its directories are looked for."""


class _Stretch(NamedTuple):
    """Names that begin with `prefix`, behind `after` and up to `until`; empty for no end."""

    prefix: str
    level: int
    """Of the names right below it, where the listing is not flat or a wildcard's."""

    after: str = ""
    until: str = ""
    is_whole: bool = True
    """False for a part of a listing that has been shared out: it is not shared out again."""


class RemoteTree(Tree):
    """Pages of a flat listing, in several lanes where there are many; else directories."""

    def __init__(self, files: Any, root: str, scope: Scope, judge: RemoteFiles) -> None:
        """`root` is a path in the file system `files`."""
        self._files, self._root = files, root
        self._pages = pages_of(files)
        self._scope = scope
        self._judge = judge
        protocol = self._files.protocol
        protocols = {protocol} if isinstance(protocol, str) else set(protocol)
        self.may_vanish = bool(protocols & _WITHOUT_DIRECTORIES)
        self._was_there = False

    @override
    def forget(self) -> None:
        self._judge.forget()
        self._pages.forget()

    @override
    def stretches(self, known: KnownFiles, tally: Tally, after: str) -> Iterator[FoundFiles]:
        self._files.invalidate_cache()
        self._judge.begin_pass()
        base = self._root.rstrip("/") + "/"
        first = _Stretch(base, 0, base + after if after else "")
        is_there = False
        try:
            for page, level in in_lanes([first], self._list, _LANES):
                is_there = is_there or page.is_there
                yield self._judge.judged(page, level, known, tally)
        except (FileNotFoundError, NotADirectoryError) as error:
            if not (self.may_vanish and self._files.exists(self._root.partition("/")[0])):
                raise
            if is_there or self._pages.exists(base):
                # The answer was wrong: what is below the path has not been listed.
                raise OSError(errno.EIO, str(error), self._root) from error
        if not is_there and not after:
            yield from self._instead(known, tally)
        self._was_there = True

    # For single files that somebody told of --------------------------------------------------

    def covers(self, name: str) -> bool:
        """True if a pass would come to this name and, by the name alone, take it."""
        return self._scope.covers(name, file=True)

    def path_of(self, name: str) -> str:
        """A name of the file system as the path that it is known by."""
        return str(self._files.unstrip_protocol(name))

    def page_of(self, name: str) -> Page:
        """The file of this name as it is now; empty if there is none."""
        return self._pages.file(name)

    def begin_pass(self) -> None:
        """Ask again for markers that were not there."""
        self._judge.begin_pass()

    def judged(self, page: Page, known: KnownFiles, tally: Tally) -> FoundFiles:
        """What of a page of one file is taken; of the rest the tally is told."""
        return self._judge.judged(page, -1, known, tally)

    # Pages ------------------------------------------------------------------------------------

    def _instead(self, known: KnownFiles, tally: Tally) -> Iterator[FoundFiles]:
        # Nothing below it: an object itself, an empty directory, or nothing at all.
        if not self._scope.depth:
            page = self._pages.file(self._root.rstrip("/"))
            if page.names:
                yield self._judge.judged(page, -1, known, tally)
                return
        expected = self.may_vanish and (self._was_there or len(known) > 0)
        if not expected and not self._pages.exists(self._root.rstrip("/") + "/"):
            raise FileNotFoundError(self._root)

    def _list(self, task: _Stretch) -> Iterator[tuple[Page, int] | More[_Stretch]]:
        if not self._pages.is_flat:
            yield from self._directory(task)
        elif task.level < self._scope.depth - 1:
            yield from self._level(task)
        else:
            yield from self._flat(task)

    def _level(self, task: _Stretch) -> Iterator[tuple[Page, int] | More[_Stretch]]:
        # A wildcard's directories are chosen before anything below them is listed.
        for page in self._pages.pages(task.prefix, folders=True):
            yield Page([], [], [], [], page.folders, page.is_there), task.level
            yield from self._folders(page, task)

    def _directory(self, task: _Stretch) -> Iterator[tuple[Page, int] | More[_Stretch]]:
        try:
            for page in self._pages.pages(task.prefix, after=task.after, folders=True):
                yield page, task.level
                yield from self._folders(page, task)
        except FileNotFoundError:
            if not task.level:
                raise

    def _folders(self, page: Page, task: _Stretch) -> Iterator[More[_Stretch]]:
        for folder in page.folders:
            name = folder.rstrip("/").rpartition("/")[2]
            if self._scope.enters(name, task.level) != TAKEN:
                continue
            if not task.after or folder > task.after or task.after.startswith(folder):
                yield More(_Stretch(folder, task.level + 1, task.after))

    def _flat(self, task: _Stretch) -> Iterator[tuple[Page, int] | More[_Stretch]]:
        prefix, after = task.prefix, task.after
        if task.level < self._scope.depth:
            prefix += self._scope.fixed_start
        if after and not (after.startswith(prefix) or prefix > after):
            return
        after = after if after.startswith(prefix) else ""
        for count, page in enumerate(
            self._pages.pages(prefix, after=after, until=task.until), start=1
        ):
            yield page, -1
            if count == _PAGES_ALONE and task.is_whole and page.names:
                yield from self._shared_out(task, prefix, str(page.names[-1]))
                return

    def _shared_out(self, task: _Stretch, prefix: str, after: str) -> Iterator[More[_Stretch]]:
        borders = self._borders(prefix, after)
        step = -(-len(borders) // _LANES) or 1
        ends = [*borders[::step], task.until]
        for start, end in zip([after, *borders[::step]], ends, strict=True):
            part = _Stretch(task.prefix, task.level, start, end, is_whole=False)
            yield More(part)

    def _borders(self, prefix: str, after: str) -> list[str]:
        """Directories behind `after`, of the highest level that has some."""
        for _ in range(_LEVELS_DOWN):
            page = next(self._pages.pages(prefix, after=after, folders=True), None)
            folders = list(page.folders) if page is not None else []
            borders = [folder for folder in folders if folder > after]
            if len(borders) > 1 or not folders:
                return borders
            prefix = folders[0]
        return []


def file_system(url: str, storage_options: Mapping[str, Any]) -> tuple[Any, str]:
    """The file system of a URL and the path there; no listing is ever cached."""
    opened = open_bucket(url, storage_options)
    if opened is not None:
        bucket, key = opened
        return _files_of(bucket), f"{bucket.name}/{key}"
    return by_fsspec(url, storage_options)


@lru_cache(maxsize=64)
def _files_of(bucket: Bucket) -> BucketFiles:
    # One for all paths of a bucket: that is how a file is known not to come twice.
    return BucketFiles(bucket)


def pages_of(files: Any) -> Pages:
    """How this file system is listed."""
    if isinstance(files, BucketFiles):
        return BucketPages(files.bucket)
    return S3Pages(files) if hasattr(files, "call_s3") else DirectoryPages(files)
