"""HDFS, by a client in Rust that needs neither Java nor an installation of Hadoop."""

from __future__ import annotations

import atexit
import contextlib
import errno
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from typing_extensions import override

from ...errors import OptionError
from .contract import (
    PART,
    Chunk,
    Data,
    Draft,
    FileStatus,
    Page,
    ServerStorage,
    SpooledDraft,
    copy_by_draft,
)
from .providers import check_installed, check_known
from .storage_errors import AnotherVersion, BeyondTheEnd, RefusedRequest

if TYPE_CHECKING:
    import hdfs_native

T = TypeVar("T")

SCHEME: Final = "hdfs"
"""Also the name of the extra of this package that installs the client."""

_PORT: Final = 8020
"""Hadoop's, where neither the URL nor a configuration says one."""

_SECONDS: Final = 15.0
"""Seconds of one request at most, a part of a file included: the client itself waits for ever."""

_PATIENCE: Final = {
    # Of one DataNode; there are others.
    "dfs.client.socket-timeout": "5000",
    # Over all NameNodes of a name service. `patiently` has the patience.
    "dfs.client.failover.max.attempts": "4",
    "dfs.client.failover.sleep.base.millis": "100",
}
"""The client's own tries, which take minutes by default."""

_PAGE: Final = 10_000
"""Files of one page of a listing."""

_LEFT_OVER: Final = 86_400_000_000
"""Microseconds; a temporary file that is older is of a writer that has crashed."""

_KERBEROS: Final = ("kerberos_principal", "kerberos_keytab", "kerberos_cache")
_HADOOP: Final = ("dfs.", "fs.", "hadoop.")

_JAVA: Final = re.compile(r'^(\w*)\(?(?:"([\w.$]+)", )?"?(.*)', re.DOTALL)
"""The text of an error of the client itself: kind, Java's class, text."""

_KINDS: Final[Mapping[str, tuple[type[OSError], int]]] = {
    "AccessControlException": (PermissionError, errno.EACCES),
    "SASLError": (PermissionError, errno.EACCES),
    "GSSAPIError": (PermissionError, errno.EACCES),
    "NoSASLMechanism": (PermissionError, errno.EACCES),
    "InvalidPathException": (RefusedRequest, errno.EINVAL),
    "PathComponentTooLongException": (RefusedRequest, errno.ENAMETOOLONG),
    "ParentNotDirectoryException": (RefusedRequest, errno.ENOTDIR),
}
"""Errors that no other try changes. Safe mode and a quota may pass, as a full disk may."""


_under_way: Final = set[Future[Any]]()
_ending: Final = threading.Event()


class HdfsStorage(ServerStorage):
    """Temporary file, hsync, rename that replaces nothing: the NameNode makes that atomic.

    A crash leaves a file whole, or leaves a temporary file that listings of names skip. Names are
    paths. The version of a file is its modification time in milliseconds, which is its mark, and
    its length.
    """

    scheme = SCHEME

    def __init__(self, authority: str, options: Mapping[str, Any]) -> None:
        """`authority` is a NameNode, a name service of the configuration, or empty for its default.

        Raises:
            OptionError: no such name service, or options that mean nothing to the client.
        """
        super().__init__(authority, options)
        self._client = _client(authority, options)
        self._cleaned: set[str] = set()

    @override
    def stat(self, name: str) -> FileStatus:
        status = self._ask(name, lambda: self._client.get_file_info(name))
        if status.isdir:
            raise FileNotFoundError(errno.ENOENT, "a directory", self.url(name))
        return _status(status)

    @override
    def read(self, name: str, start: int = 0, length: int = PART, etag: str = "") -> Chunk:
        def part() -> Chunk:
            # What is open stays the version that it was, and what is there afterwards names it.
            # Opened each time: after a DataNode is lost its blocks are elsewhere.
            file = self._client.read(name)
            status = _status(self._client.get_file_info(name))
            if etag and etag != status.etag:
                raise AnotherVersion(errno.ESTALE, f"version {status.etag}", self.url(name))
            end = min(start + length, len(file), status.size)
            if start >= end and length:
                raise BeyondTheEnd(errno.EINVAL, f"it has {status.size} bytes", self.url(name))
            return Chunk(file.read_range(start, end - start), status)

        return self._ask(name, part)

    @override
    def create(self, name: str, data: Data) -> None:
        directory, _, leaf = name.rpartition("/")
        temporary = f"{directory}/.{leaf}.{uuid.uuid4().hex}.tmp"
        try:
            self._write(temporary, data)
            self._ask(name, lambda: self._client.rename(temporary, name))
        except OSError as error:
            if isinstance(error, FileNotFoundError) and self.exists(name):
                # The client has repeated a request whose answer was lost.
                raise FileExistsError(errno.EEXIST, str(error), self.url(name)) from error
            # Without an answer another request would wait as long; a later creation deletes it.
            if not isinstance(error.__cause__, TimeoutError):
                with contextlib.suppress(OSError):
                    self.delete(temporary)
            raise
        if directory not in self._cleaned:
            with contextlib.suppress(OSError):
                self._delete_left_over(directory, self.stat(name).modified)
            self._cleaned.add(directory)

    def _write(self, name: str, data: Data) -> None:
        from hdfs_native import WriteOptions

        def write() -> None:
            # A directory that the NameNode made by itself would have its parent's permissions.
            writer = self._client.create(name, WriteOptions(create_parent=False))
            for start in range(0, len(data), PART):
                writer.write(data[start : start + PART])
            # Files that are coded for erasures have none; there closing is all that can be had.
            with contextlib.suppress(NotImplementedError):
                if data:
                    writer.hsync()
            writer.close()

        # At a mebibyte a second, if not faster.
        seconds = len(data) / 2**20
        try:
            self._ask(name, write, seconds)
        except FileNotFoundError:
            self._make_directory(name.rpartition("/")[0])
            self._ask(name, write, seconds)

    def _make_directory(self, directory: str) -> None:
        self._ask(directory, lambda: self._client.mkdirs(directory, create_parent=True))

    @override
    def begin(self, name: str) -> Draft:
        return SpooledDraft(self, name)

    @override
    def rename(self, name: str, target: str, mark: str = "") -> None:
        self._make_directory(target.rpartition("/")[0])
        self._ask(target, lambda: self._client.rename(name, target))

    @override
    def copy(self, name: str, target: str, etag: str = "") -> None:
        copy_by_draft(self, name, target, etag)

    @override
    def delete(self, name: str, mark: str = "") -> None:
        self._ask(name, lambda: self._client.delete(name))

    @override
    def delete_tree(self, name: str) -> None:
        self._ask(name, lambda: self._client.delete(name, recursive=True))

    @override
    def names(self, directory: str) -> list[str]:
        listed = chain.from_iterable(self._listed(directory))
        names = (status.path.rpartition("/")[2] for status in listed)
        return sorted(name for name in names if not name.startswith("."))

    @override
    def pages(
        self, prefix: str, *, after: str = "", until: str = "", folders: bool = False
    ) -> Iterator[Page]:
        for listed in self._listed(prefix.rstrip("/") or "/"):
            files = {status.path: _status(status) for status in listed if not status.isdir}
            directories = [f"{status.path}/" for status in listed if status.isdir]
            yield Page.of(files, directories, exists=bool(listed))

    @override
    def exists(self, prefix: str) -> bool:
        try:
            self._ask(prefix, lambda: self._client.get_file_info(prefix.rstrip("/") or "/"))
        except FileNotFoundError:
            return False
        return True

    def _listed(self, directory: str) -> Iterator[list[hdfs_native.FileStatus]]:
        """Yield what is in a directory, in pages of bounded size; at least one."""
        statuses = self._client.list_status(directory)

        def page() -> list[hdfs_native.FileStatus]:
            return list(islice(statuses, _PAGE))

        listed = self._ask(directory, page)
        # A file is listed as itself.
        yield [status for status in listed if status.path != directory]
        while len(listed) == _PAGE:
            listed = self._ask(directory, page)
            yield listed

    def _delete_left_over(self, directory: str, now: int) -> None:
        for status in chain.from_iterable(self._listed(directory)):
            leaf = status.path.rpartition("/")[2]
            is_old = _status(status).modified < now - _LEFT_OVER
            if is_old and leaf.startswith(".") and leaf.endswith(".tmp"):
                self.delete(status.path)

    def _ask(self, name: str, action: Callable[[], T], more: float = 0.0) -> T:
        """One request, which ends in bounded time: `more` seconds later than most."""
        answer = Future[T]()

        def ask() -> None:
            try:
                answer.set_result(action())
            except BaseException as error:  # noqa: BLE001 - it is raised where the answer is awaited
                answer.set_exception(error)

        _under_way.add(answer)
        answer.add_done_callback(_under_way.discard)
        if _ending.is_set() and threading.current_thread() is not threading.main_thread():
            # This thread has no owner any more.
            answer.set_exception(SystemExit())
            threading.Event().wait()
        threading.Thread(target=ask, daemon=True).start()
        with _as_os_errors(self.url(name)):
            return answer.result(_SECONDS + more)


@atexit.register
def _end() -> None:
    # A thread that comes back from the client while the interpreter goes down aborts the process.
    _ending.set()
    wait(tuple(_under_way), _SECONDS)


def _client(authority: str, options: Mapping[str, Any]) -> hdfs_native.Client:
    check_installed("hdfs_native", SCHEME, f"{SCHEME}://{authority}")
    from hdfs_native import Client

    kerberos = {key: str(value) for key, value in options.items() if key in _KERBEROS}
    config = {key: str(value) for key, value in options.items() if key.startswith(_HADOOP)}
    known = ", ".join(_KERBEROS) + ", and Hadoop's own that begin " + ", ".join(_HADOOP)
    unknown = options.keys() - kerberos.keys() - config.keys()
    check_known(SCHEME, f"{SCHEME}://{authority}", unknown, known)
    for place in (authority, authority and f"{authority}:{_PORT}"):
        try:
            return Client(f"{SCHEME}://{place}/", {**_PATIENCE, **config}, **kerberos)
        except (RuntimeError, OSError, ValueError) as error:
            reason = error
    raise OptionError(
        "the configuration of HDFS does not name this place",
        f"{SCHEME}://{authority}",
        _parsed(reason)[1],
        "host and port of a NameNode, or a name of core-site.xml and hdfs-site.xml in "
        "HADOOP_CONF_DIR",
    ) from reason


def _status(status: hdfs_native.FileStatus) -> FileStatus:
    modified = status.modification_time
    return FileStatus(status.length, modified * 1000, str(modified))


@contextlib.contextmanager
def _as_os_errors(where: str) -> Iterator[None]:
    """The client's errors as those of the operating system; Java's traces are left out."""
    try:
        yield
    except TimeoutError as error:
        text = f"HDFS did not answer within {_SECONDS:g} seconds"
        raise OSError(errno.ETIMEDOUT, text, where) from error
    except (AnotherVersion, BeyondTheEnd):
        raise
    except (FileNotFoundError, FileExistsError) as error:
        number = errno.ENOENT if isinstance(error, FileNotFoundError) else errno.EEXIST
        raise type(error)(number, _first_line(str(error)), where) from error
    except OSError as error:
        raise OSError(errno.EIO, _first_line(str(error)), where) from error
    except RuntimeError as error:
        name, text = _parsed(error)
        error_type, number = _KINDS.get(name, (OSError, errno.EIO))
        raise error_type(number, f"{name}: {text}", where) from error


def _parsed(error: Exception) -> tuple[str, str]:
    kind, java, text = cast("re.Match[str]", _JAVA.match(str(error))).groups()
    return re.split(r"[.$]", java or kind)[-1], _first_line(text)


def _first_line(text: str) -> str:
    # The client writes line breaks of Java's texts as Rust does.
    return re.split(r"\\n|\n", text)[0].removesuffix('")').strip()[:400]
