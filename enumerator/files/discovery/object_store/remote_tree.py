"""Lists a bucket, or a directory of any other file system, page by page.

A bucket takes a request a page, and its columns come as the client gives them. Not here: pages of
fsspec's file systems (`listing_pages.py`), judging what pages bring (`remote_files.py`).
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
from typing_extensions import override

from .....checkpoint_meta.storage.bucket import Bucket, open_bucket
from .....checkpoint_meta.storage.client_options import by_fsspec
from .....checkpoint_meta.storage.providers import BY_SCHEME
from ..api import FoundFiles, KnownFiles
from ..selection.scope import TAKEN, Scope
from ..selection.skip_counter import SkipCounter
from ..tree import Tree
from ..worker_pool import More, in_pool
from .listing_pages import DirectoryPages, Page, Pages, S3Pages
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
    def list_files(self, known: KnownFiles, skips: SkipCounter, after: str) -> Iterator[FoundFiles]:
        # storageOptions may have turned fsspec's cache of listings on.
        self._files.invalidate_cache()
        self._judge.begin_pass()
        base = self._root.rstrip("/") + "/"
        first = self._first(base, after)
        is_there = False
        try:
            for page, level in in_pool([first], self._list, _WORKERS):
                is_there = is_there or page.is_there
                yield self._judge.judged(page, level, known, skips)
        except (FileNotFoundError, NotADirectoryError) as error:
            if not (self.may_vanish and self._files.exists(self._root.partition("/")[0])):
                raise
            if is_there or self._pages.exists(base):
                # The answer was wrong: what is below the path has not been listed.
                raise OSError(errno.EIO, str(error), self._root) from error
        if not is_there and not after:
            yield from self._instead(known, skips)
        self._was_there = True

    def _first(self, base: str, after: str) -> _NameRange:
        """All that is listed: of the bounds what is a name; files are held against them later."""
        place, end = self._scope.place, ""
        if place is not None:
            start, end = place.names_below(self.path_of(base.rstrip("/")))
            after = max(after, before(start)) if start else after
        return _NameRange(base, 0, base + after if after else "", base + end if end else "")

    # For single files that somebody told of --------------------------------------------------

    def covers(self, name: str) -> bool:
        """True if a pass would come to this name and, by the name alone, take it."""
        return self._scope.covers(name, file=True)

    def path_of(self, name: str) -> str:
        """A name of the file system as the path that it is known by."""
        return str(self._files.unstrip_protocol(name))

    def page_of(self, name: str) -> Page:
        """The file of this name as it is now; empty if it does not exist."""
        return self._pages.file(name)

    def begin_pass(self) -> None:
        """Ask again for markers that were not there."""
        self._judge.begin_pass()

    def judged(self, page: Page, known: KnownFiles, skips: SkipCounter) -> FoundFiles:
        """What of a page of one file is taken; the rest is reported to the counter."""
        return self._judge.judged(page, -1, known, skips)

    # Pages ------------------------------------------------------------------------------------

    def _instead(self, known: KnownFiles, skips: SkipCounter) -> Iterator[FoundFiles]:
        # Nothing below it: an object itself, an empty directory, or nothing at all.
        if not self._scope.depth:
            page = self._pages.file(self._root.rstrip("/"))
            if page.names:
                yield self._judge.judged(page, -1, known, skips)
                return
        # After a restart the known files say that the path was there once.
        expected = self.may_vanish and (self._was_there or len(known) > 0)
        if not expected and not self._pages.exists(self._root.rstrip("/") + "/"):
            raise FileNotFoundError(self._root)

    def _list(self, task: _NameRange) -> Iterator[tuple[Page, int] | More[_NameRange]]:
        if not self._pages.is_flat:
            yield from self._directory(task)
        elif task.level < self._scope.depth - 1:
            yield from self._level(task)
        else:
            yield from self._flat(task)

    def _level(self, task: _NameRange) -> Iterator[tuple[Page, int] | More[_NameRange]]:
        # A wildcard's directories are chosen before anything below them is listed.
        for page in self._pages.pages(task.prefix, folders=True):
            yield Page([], [], [], [], page.folders, page.is_there), task.level
            yield from self._folders(page, task)

    def _directory(self, task: _NameRange) -> Iterator[tuple[Page, int] | More[_NameRange]]:
        try:
            for page in self._pages.pages(task.prefix, after=task.after, folders=True):
                yield page, task.level
                yield from self._folders(page, task)
        except FileNotFoundError:
            # A directory below it may be emptied between the two requests.
            if not task.level:
                raise

    def _folders(self, page: Page, task: _NameRange) -> Iterator[More[_NameRange]]:
        for folder in page.folders:
            path, name = self.path_of(folder.rstrip("/")), folder.rstrip("/").rpartition("/")[2]
            if self._scope.enters(name, task.level, path) != TAKEN:
                continue
            if not task.after or folder > task.after or task.after.startswith(folder):
                yield More(_NameRange(folder, task.level + 1, task.after, task.until))

    def _flat(self, task: _NameRange) -> Iterator[tuple[Page, int] | More[_NameRange]]:
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

    def _shared_out(self, task: _NameRange, prefix: str, after: str) -> Iterator[More[_NameRange]]:
        bounds = self._bounds(prefix, after)
        if task.until:
            bounds = [bound for bound in bounds if bound < task.until]
        step = -(-len(bounds) // _WORKERS) or 1
        ends = [*bounds[::step], task.until]
        for start, end in zip([after, *bounds[::step]], ends, strict=True):
            part = _NameRange(task.prefix, task.level, start, end, is_whole=False)
            yield More(part)

    def _bounds(self, prefix: str, after: str) -> list[str]:
        """Directories behind `after`, of the highest level that has some."""
        for _ in range(_LEVELS_DOWN):
            page = next(self._pages.pages(prefix, after=after, folders=True), None)
            folders = list(page.folders) if page is not None else []
            bounds = [folder for folder in folders if folder > after]
            if len(bounds) > 1 or not folders:
                return bounds
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


class BucketFiles:
    """What a remote tree asks of its file system; names are `bucket/key`, as fsspec has them."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.protocol = bucket.scheme

    def unstrip_protocol(self, name: str) -> str:
        """The URL of a name."""
        return f"{self.protocol}://{name}"

    def invalidate_cache(self) -> None:
        """Nothing is ever remembered."""

    def exists(self, name: str) -> bool:
        """True if the bucket, which `name` is, is there."""
        try:
            next(self.bucket.pages(""), None)
        except FileNotFoundError:
            return False
        return name == self.bucket.name


class BucketPages(Pages):
    """Listings of the client, whose prefixes are whole parts of keys."""

    is_flat = True

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._skipped = len(bucket.name) + 1

    @override
    def pages(
        self, prefix: str, *, after: str = "", until: str = "", folders: bool = False
    ) -> Iterator[Page]:
        prefix, after, until = (name[self._skipped :] for name in (prefix, after, until))
        if not folders:
            yield from self._flat(prefix, after, until)
        elif after:
            yield Page([], [], [], [], self._names(self._bucket.folders(prefix, after)))
        else:
            found, inside = self._bucket.level(prefix.rstrip("/"))
            yield self._page(found, prefix, self._names([f"{folder}/" for folder in inside]))

    def _flat(self, prefix: str, after: str, until: str) -> Iterator[Page]:
        # The client lists `a/b/` for `a/b`, and starts behind `a/b` for `a/b/`: what else begins
        # so is found by its order.
        folder, _, start = prefix.rpartition("/")
        offset = max(after, before(prefix)) if start else after
        for page in self._bucket.pages(folder, offset):
            last = page.column("path")[-1].as_py() if page.num_rows else ""
            is_last = bool(until and self._is_behind(last, until))
            is_last |= bool(start and self._is_behind(last, prefix) and not last.startswith(prefix))
            is_whole = not (start or after or is_last)
            found = page if is_whole else _within(page, prefix if start else "", after, until)
            yield self._page(found, prefix)
            if is_last:
                return

    def _is_behind(self, key: str, limit: str) -> bool:
        """True if a listing comes to `key` after `limit`, in whichever order the store lists."""
        if self._bucket.lists_in_order:
            return key > limit
        # Which of the orders the account has is not known: only what is behind in all of them is.
        return all(one > other for one, other in zip(_orders(key), _orders(limit), strict=True))

    @override
    def forget(self) -> None:
        self._bucket.forget()

    @override
    def exists(self, prefix: str) -> bool:
        return any(page.is_there for page in self.pages(prefix))

    @override
    def file(self, name: str) -> Page:
        key = name[self._skipped :]
        try:
            found = self._bucket.head(key) if key else None
        except FileNotFoundError:
            found = None
        if found is None:
            return Page([], [], [], [], is_there=False)
        return Page([name], [found.size], [found.modified], [found.etag])

    def _names(self, keys: list[str]) -> list[str]:
        return [f"{self._bucket.name}/{key}" for key in keys]

    def _page(
        self, found: pa.RecordBatch | pa.Table, prefix: str, folders: Sequence[str] = ()
    ) -> Page:
        is_there = bool(found.num_rows or folders)
        keys = found.column("path").to_pylist()
        if keys and f"{keys[0]}/" == prefix:
            # A directory that somebody has drawn: its key ends in a slash.
            found, keys = found.slice(1), keys[1:]
        return Page(
            self._names(keys),
            found.column("size").to_pylist(),
            found.column("last_modified").cast("int64").to_pylist(),
            [(etag or "").strip('"') for etag in found.column("e_tag").to_pylist()],
            folders,
            is_there,
        )


def before(prefix: str) -> str:
    """A name that comes before all that begin with `prefix`, and close to them."""
    last = chr(ord(prefix[-1]) - 1)
    # The tilde sorts after all other characters of names.
    return prefix[:-1] + (f"{last}~" if last.isalnum() or last in "-_.,=" else "")


def _orders(key: str) -> Iterator[bytes]:
    # Azure orders by UTF-16; its hierarchical namespaces list what is in a directory before the
    # directory's siblings, as if a slash came before all other characters.
    for text in (key, key.replace("/", "\0")):
        yield from (text.encode(), text.encode("utf-16-be"))


def _within(found: pa.RecordBatch, prefix: str, after: str, until: str) -> pa.RecordBatch:
    keys = found.column("path").to_pylist()
    mask = [
        key.startswith(prefix) and (not after or key > after) and (not until or key <= until)
        for key in keys
    ]
    return found.filter(pa.array(mask, pa.bool_()))
