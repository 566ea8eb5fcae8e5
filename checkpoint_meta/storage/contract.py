"""The contract of storage: files or objects of one file system or bucket, and their versions.

Errors are those of the operating system and of `storage_errors`. A method is one try; callers put
`patiently` around it, which is the patience of everything that reads or writes.
"""

from __future__ import annotations

import contextlib
import errno
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import compress
from mmap import ACCESS_READ, mmap
from typing import IO, Any, ClassVar, Final, NamedTuple, TypeAlias, TypeVar

from typing_extensions import override

from .storage_errors import BeyondTheEnd, patiently

ItemT = TypeVar("ItemT")
AnswerT = TypeVar("AnswerT")

Data: TypeAlias = bytes | mmap
"""Content of a new file: in memory, or in a file of this machine."""

PART: Final = 8 * 1024 * 1024
"""Most bytes of one request for reading; what is larger takes several."""


PROBE: Final = "_sluice-probe-"
"""How the names of objects begin that are created to try what a store does, and deleted again."""


class FileStatus(NamedTuple):
    """The version of a file that is there now, or was discovered."""

    size: int
    """Bytes; -1 if the file system does not say."""

    modified: int
    """Microseconds since the epoch; -1 if the file system has no times."""

    etag: str = ""
    """The store's own version mark; empty where it has none."""


class Look(NamedTuple):
    """A file as it is now, for a later act on exactly this version."""

    status: FileStatus
    mark: str
    """Compared by `rename` and `delete`; empty where they compare nothing."""

    changed: int = -1
    """Microseconds of the last change of a local inode; -1 where versions have a mark."""


def microseconds(time: datetime) -> int:
    """Return a time of a store as `FileStatus` has it."""
    return int(time.timestamp() * 1_000_000)


class Chunk(NamedTuple):
    """Some bytes of a file, and the version of which they are."""

    data: bytes
    status: FileStatus


def difference(
    expected: FileStatus, present: FileStatus, *, is_local: bool = False
) -> tuple[str, str] | None:
    """Return what is present and what was expected, for an error; None if no difference is known.

    Version marks decide where both have one, else the times. A listing may have more of a time
    than what is asked for one file, so that only local times are compared exactly.
    """
    if expected.size != present.size and present.size >= 0:
        return f"{present.size} bytes", f"{expected.size} bytes"
    # Some clients keep the quotes of HTTP, others do not.
    etags = expected.etag.strip('"'), present.etag.strip('"')
    if all(etags) and not is_local:
        return None if etags[0] == etags[1] else (f"ETag {etags[1]}", f"ETag {etags[0]}")
    if min(expected.modified, present.modified) < 0:
        return None
    if abs(expected.modified - present.modified) < (1 if is_local else 1_000_000):
        return None
    return f"modified at {present.modified} us", f"{expected.modified} us, as discovered"


@dataclass(frozen=True, slots=True)
class Page:
    """Some files of a listing, a column each, and the directories next to them."""

    names: Sequence[str]
    sizes: Sequence[int]
    modified: Sequence[int]
    """Microseconds since the epoch; -1 where the file system has none."""

    etags: Sequence[str]
    folders: Sequence[str] = ()
    """With a slash at their ends."""

    exists: bool = True
    """False if there is nothing, not even a marker object of a directory."""

    @classmethod
    def of(
        cls, files: Mapping[str, FileStatus], folders: Sequence[str] = (), *, exists: bool = True
    ) -> Page:
        """Return a page of these files; one of unknown size counts as empty."""
        sizes, modified, etags = zip(*files.values(), strict=True) if files else ((), (), ())
        return cls([*files], [max(0, size) for size in sizes], modified, etags, folders, exists)

    def only(self, mask: Sequence[bool]) -> Page:
        """Return the page with the files for which `mask` is true."""
        columns: Any = (self.names, self.sizes, self.modified, self.etags)
        kept = [list(compress(column, mask)) for column in columns]
        return Page(kept[0], kept[1], kept[2], kept[3], self.folders, self.exists)


class Draft(ABC):
    """A file that is being written into `sink`; not visible under its name before `publish`."""

    sink: IO[bytes]

    @abstractmethod
    def publish(self) -> str:
        """Make what was written durable under its name; returns its path or URL."""

    def discard(self) -> None:
        """Delete what was not published."""
        # What a full disk did not take, it does not take now.
        with contextlib.suppress(OSError):
            self.sink.close()


class OpenFile(ABC):
    """A file that is read in several requests, in any order."""

    is_buffered: bool = False
    """True if small reads one after the other are few requests already."""

    @abstractmethod
    def read(self, position: int, length: int) -> Chunk:
        """Up to `length` bytes from `position` on, some at least; errors are retried.

        Raises:
            FileNotFoundError: there is no such file.
            AnotherVersion: the store knows that it is another version.
            BeyondTheEnd: it ends before `position`, or there.
        """

    def close(self) -> None:
        """Release the connection or the descriptor."""
        return


class Storage(ABC):
    """One file system or bucket; safe to use from many threads.

    A name is a path as the file system has it, without protocol; `open_storage` and `name` make
    it from a path or URL, `url` is the way back.
    """

    is_flat: bool = False
    """True if one listing gives everything below a prefix, in the order of names."""

    has_directories: bool = True
    """False if an emptied directory no longer exists."""

    requests: int = 16
    """Requests that are worth having under way at once."""

    @abstractmethod
    def name(self, url: str) -> str:
        """The name of a path or URL in this storage."""

    @abstractmethod
    def url(self, name: str) -> str:
        """The path or URL by which state and messages know a file."""

    @abstractmethod
    def stat(self, name: str) -> FileStatus:
        """The version of a file that is there now.

        Raises:
            FileNotFoundError: there is no such file.
        """

    @abstractmethod
    def read(self, name: str, start: int = 0, length: int = PART, etag: str = "") -> Chunk:
        """Up to `length` bytes from `start` on, of the version `etag` if the store compares it.

        Raises:
            FileNotFoundError: there is no such file.
            AnotherVersion: it is there in another version.
            BeyondTheEnd: it ends before `start`, or there.
        """

    def parts(self, name: str, etag: str = "") -> Iterator[bytes]:
        """All bytes of a file, of one version, in order; `etag` as in `read`.

        Raises:
            FileNotFoundError: there is no such file.
        """
        start, end = 0, -1
        with contextlib.suppress(BeyondTheEnd):
            # The etag keeps the parts of one version, and fails if the file was replaced meanwhile.
            while start != end:
                data, (end, _, etag) = self.read(name, start, PART, etag)
                start += len(data)
                yield data

    def whole(self, name: str) -> bytes:
        """All bytes of a file, of one version; raises like `parts`."""
        return b"".join(self.parts(name))

    def open(self, name: str, etag: str = "") -> OpenFile:
        """Open a file that is read in several requests; `etag` as in `read`.

        Raises:
            FileNotFoundError: there is no such file; or `OpenFile.read` says so.
            IsADirectoryError: it is a directory.
        """
        return _ByRequests(self, name, etag)

    def is_directory_mark(self, name: str) -> bool:  # noqa: ARG002 - most have directories
        """Return True if a listing shows `name` only for an object `name/`.

        Raises:
            OSError: it cannot be listed.
        """
        return False

    @abstractmethod
    def create(self, name: str, data: Data) -> None:
        """Create a file with `data`, whole or not at all; durable when this returns.

        Raises:
            FileExistsError: it is there already. A store that repeats requests by itself may
                raise it for what it has just created: the caller compares the content.
        """

    def begin(self, name: str) -> Draft:
        """Begin a large file. Its name must be unique: what is there is an earlier try of this."""
        raise OSError(errno.ENOTSUP, "this file system can leave partly written files", name)

    def look(self, name: str) -> Look:
        """Return the file that is there now; raises like `stat`."""
        return Look(self.stat(name), "")

    def rename(self, name: str, target: str, mark: str = "") -> None:  # noqa: ARG002 - object stores cannot
        """Rename a file atomically and durably, if there is no `target`; `mark` as in `delete`.

        Raises:
            FileExistsError: `target` is there.
            AnotherVersion: the file is there in another version.
            OSError: EXDEV where this cannot be done, so that the caller copies and deletes.
        """
        raise OSError(errno.EXDEV, "no exclusive rename", target)

    @abstractmethod
    def copy(self, name: str, target: str, etag: str = "") -> None:
        """Copy a file, of the version `etag` if the store compares it; it appears whole, durably.

        Raises:
            FileExistsError: `target` is there. It may be the work of this very call whose answer
                was lost: the caller compares the content.
            AnotherVersion: the file is there in another version.
        """

    def persist(self, name: str) -> None:  # noqa: ARG002 - what a store has accepted is durable
        """Make an existing file durable, also one that another process wrote."""
        return

    @abstractmethod
    def delete(self, name: str, mark: str = "") -> None:
        """Delete exactly this file, of the version that `look` gave `mark` if one is given.

        Nothing happens if it is gone.

        Raises:
            AnotherVersion: it is there in another version.
        """

    @abstractmethod
    def delete_tree(self, name: str) -> None:
        """Delete a file, or a directory and what is in it; nothing happens if it is gone."""

    @abstractmethod
    def names(self, directory: str) -> list[str]:
        """The last parts of the names directly in a directory, sorted, never from a cache.

        Raises:
            FileNotFoundError: there is no such directory; some storages return an empty list.
        """

    def files(self, directory: str) -> Iterator[str]:
        """The names of all files at any depth, drafts of crashed writers included."""
        try:
            for page in self.pages(directory.rstrip("/") + "/"):
                yield from page.names
                for folder in page.folders:
                    yield from self.files(folder)
        except FileNotFoundError:
            # A bucket that is gone is no empty one.
            if not self.has_directories:
                raise

    @abstractmethod
    def pages(
        self, prefix: str, *, after: str = "", until: str = "", folders: bool = False
    ) -> Iterator[Page]:
        """The files whose names begin with `prefix`, behind `after` and up to `until`.

        With `folders` only those without a slash behind the prefix, and the directories there.
        Where listings are not flat, `prefix` is a directory with a slash at its end, `folders` is
        always meant, and there is one page.

        Raises:
            OSError: it cannot be listed; FileNotFoundError: it is not there.
        """

    @abstractmethod
    def exists(self, prefix: str) -> bool:
        """Return True if any file has a name that begins so, or it is a directory or bucket."""

    def refresh(self, directory: str = "") -> None:  # noqa: ARG002 - most remember nothing
        """Forget what this machine remembers of a directory: the next look is a real one."""
        return


class ServerStorage(Storage):
    """The files of one server; a name is a path."""

    scheme: ClassVar[str]

    def __init__(self, authority: str, options: Mapping[str, Any]) -> None:
        """`authority` is what a URL has between the scheme and the path."""
        self._authority, self._options = authority, options
        self._root = f"{self.scheme}://{authority}"

    @override
    def name(self, url: str) -> str:
        return "/" + url.removeprefix(self._root).strip("/")

    @override
    def url(self, name: str) -> str:
        return f"{self._root}{name}"


class _ByRequests(OpenFile):
    def __init__(self, storage: Storage, name: str, etag: str) -> None:
        self._storage, self._name, self._etag = storage, name, etag

    @override
    def read(self, position: int, length: int) -> Chunk:
        return patiently(lambda: self._storage.read(self._name, position, length, self._etag))


def create_and_confirm(storage: Storage, name: str, data: Data) -> None:
    """Create a file, and make sure that it is there with this content: one try.

    Stores answer 409 to a create that met another request, and may have stored nothing; a repeated
    request meets its own object. So what counts is what can be read back, not the answer.

    Raises:
        FileExistsError: it is there with other content.
        OSError: EAGAIN if the answer says that it is there, and it is not.
    """
    try:
        storage.create(name, data)
    except FileExistsError as error:
        if not _confirmed(storage, name, data, error, compares=True):
            raise
    else:
        _confirmed(storage, name, data, None, compares=False)


def _confirmed(
    storage: Storage, name: str, data: Data, error: Exception | None, *, compares: bool
) -> bool:
    try:
        size = storage.stat(name).size
        is_same = size in (-1, len(data)) and (not compares or _has_content(storage, name, data))
    except FileNotFoundError as missing:
        storage.refresh(name.rpartition("/")[0])
        answer = "it was created" if error is None else f"it exists ({error})"
        reason = f"the store answered that {answer}, and does not return it"
        raise OSError(errno.EAGAIN, reason, storage.url(name)) from (error or missing)
    if not is_same and not compares:
        raise OSError(errno.EIO, f"it has {size} bytes, not {len(data)}", storage.url(name))
    return is_same


def _has_content(storage: Storage, name: str, data: Data) -> bool:
    start = 0
    for part in storage.parts(name):
        if part != data[start : start + len(part)]:
            return False
        start += len(part)
    return start == len(data)


class SpooledDraft(Draft):
    """In a temporary file without a name, of which nothing is left after any end of the process."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage, self._name = storage, name
        self.sink = tempfile.TemporaryFile(prefix="sluice-write-")  # noqa: SIM115 - closed by both ends

    @override
    def publish(self) -> str:
        self.sink.flush()
        # The client sends the pages of the file itself, which the system can take back at any time.
        data = mmap(self.sink.fileno(), 0, access=ACCESS_READ)
        patiently(lambda: create_and_confirm(self._storage, self._name, data))
        self.sink.close()
        return self._storage.url(self._name)


def copy_by_draft(storage: Storage, name: str, target: str, etag: str) -> None:
    """`Storage.copy` by a temporary file on this machine, for stores without such a copy."""
    draft = storage.begin(target)
    try:
        draft.sink.writelines(storage.parts(name, etag))
        draft.publish()
    finally:
        draft.discard()


def at_once(ask: Callable[[ItemT], AnswerT], items: Sequence[ItemT]) -> list[AnswerT]:
    """`ask` of each item, in their order; as many requests as are worth having under way at once.

    The first error is raised; what was not begun by then is not asked.
    """
    with ThreadPoolExecutor(min(Storage.requests, len(items) or 1)) as pool:
        try:
            return list(pool.map(ask, items))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
