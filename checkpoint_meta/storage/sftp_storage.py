"""Files behind SFTP, by paramiko: data that is read, cleaned up or archived. State is elsewhere.

fsspec's file system of that name leaves the host out of paths, trusts any host, and cannot connect
a second time. The protocol has no conditional create that survives a lost answer.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from typing_extensions import override

from ...errors import StateError
from .contract import PART, Chunk, Data, FileStatus, Page, ServerStorage
from .providers import check_installed, check_known
from .storage_errors import BeyondTheEnd

if TYPE_CHECKING:
    import paramiko

T = TypeVar("T")

SCHEME: Final = "sftp"
"""Also the name of the extra of this package that installs the client."""

_OPTIONS: Final = (
    "username", "password", "key_filename", "passphrase", "allow_agent", "look_for_keys",
    "known_hosts",
)  # fmt: skip

_SECONDS: Final = 15.0
"""Longest time without an answer."""

_ANSWERS: Final = (errno.ENOENT, errno.EACCES)
"""Numbers that the client has for errors of the protocol."""

_CHUNK: Final = 32 * 1024
"""Bytes of one request, of which many are under way: servers need not answer larger ones."""


class SftpStorage(ServerStorage):
    """One account of one server; a name is a path. A version is its size, and its time in seconds.

    One connection has a channel for each thread. After an error the next try makes another.
    """

    scheme = SCHEME
    requests = 8
    """OpenSSH permits ten sessions of one connection."""

    def __init__(self, authority: str, options: Mapping[str, Any]) -> None:
        """`authority` is `[user@]host[:port]`.

        Raises:
            OptionError: the client is not installed, or options that mean nothing to it.
        """
        check_installed("paramiko", SCHEME, f"{SCHEME}://{authority}")
        unknown = options.keys() - set(_OPTIONS)
        check_known(SCHEME, f"{SCHEME}://{authority}", unknown, ", ".join(_OPTIONS))
        super().__init__(authority, options)
        self._lock = threading.Lock()
        self._client: paramiko.SSHClient | None = None
        self._places = threading.BoundedSemaphore(self.requests)
        self._idle: deque[paramiko.SFTPClient] = deque()

    @override
    def stat(self, name: str) -> FileStatus:
        attributes = self._ask(name, lambda files: files.stat(name))
        if stat.S_ISDIR(attributes.st_mode or 0):
            raise FileNotFoundError(errno.ENOENT, "a directory", self.url(name))
        return _status(attributes)

    @override
    def read(self, name: str, start: int = 0, length: int = PART, etag: str = "") -> Chunk:
        def part(files: paramiko.SFTPClient) -> Chunk:
            with files.open(name, "rb") as file:
                # What is open stays the file that it was.
                status = _status(file.stat())
                end = min(start + length, status.size)
                if start >= end and length:
                    raise BeyondTheEnd(errno.EINVAL, f"it has {status.size} bytes", self.url(name))
                chunks = [(at, min(_CHUNK, end - at)) for at in range(start, end, _CHUNK)]
                return Chunk(b"".join(file.readv(chunks)), status)

        return self._ask(name, part)

    @override
    def create(self, name: str, data: Data) -> None:
        raise StateError(
            "the file system cannot create a file only if it does not exist",
            self.url(name),
            "SFTP",
            "a local path, a bucket or HDFS for state, tables and records that are written",
            "Point checkpointLocation, stateLocation, badRecordsPath and tables elsewhere.",
        )

    @override
    def rename(self, name: str, target: str, mark: str = "") -> None:
        self._make_directory(target.rpartition("/")[0])

        def rename(files: paramiko.SFTPClient) -> None:
            try:
                # By the protocol it replaces nothing; servers say why it failed in words only.
                files.rename(name, target)
            except OSError as error:
                files.stat(name)
                if _is_there(files, target):
                    raise FileExistsError(errno.EEXIST, "it exists", self.url(target)) from error
                raise

        self._ask(name, rename)

    def _make_directory(self, directory: str) -> None:
        def make(files: paramiko.SFTPClient) -> None:
            missing = []
            folder = directory
            while not _is_there(files, folder):
                missing.append(folder)
                folder = folder.rpartition("/")[0] or "/"
            for folder in reversed(missing):
                try:
                    files.mkdir(folder)
                except OSError:
                    # Another worker may have made it.
                    if not _is_there(files, folder):
                        raise

        self._ask(directory, make)

    @override
    def copy(self, name: str, target: str, etag: str = "") -> None:
        reason = "SFTP has no copy: the archive has to be in the same file system of the server"
        raise OSError(errno.ENOTSUP, reason, self.url(target))

    @override
    def delete(self, name: str, mark: str = "") -> None:
        with contextlib.suppress(FileNotFoundError):
            self._ask(name, lambda files: files.remove(name))

    @override
    def delete_tree(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            attributes = self._ask(name, lambda files: files.lstat(name))
            if not stat.S_ISDIR(attributes.st_mode or 0):
                return self.delete(name)
            for leaf in self._ask(name, lambda files: files.listdir(name)):
                self.delete_tree(f"{name}/{leaf}")
            self._ask(name, lambda files: files.rmdir(name))
        return None

    @override
    def names(self, directory: str) -> list[str]:
        names = self._ask(directory, lambda files: files.listdir(directory))
        return sorted(name for name in names if not name.startswith("."))

    @override
    def pages(
        self, prefix: str, *, after: str = "", until: str = "", folders: bool = False
    ) -> Iterator[Page]:
        directory = prefix.rstrip("/")
        listed = self._ask(
            directory, lambda files: list(files.listdir_iter(directory or "/", read_aheads=20))
        )
        files, directories = dict[str, FileStatus](), list[str]()
        for one in listed:
            name, mode = f"{directory}/{one.filename}", one.st_mode or 0
            if stat.S_ISLNK(mode):
                # A link to a directory may lead to one above.
                with contextlib.suppress(FileNotFoundError):
                    files[name] = self.stat(name)
            elif stat.S_ISDIR(mode):
                directories.append(f"{name}/")
            else:
                files[name] = _status(one)
        yield Page.of(files, directories)

    @override
    def exists(self, prefix: str) -> bool:
        return self._ask(prefix, lambda files: _is_there(files, prefix.rstrip("/") or "/"))

    def _ask(self, name: str, action: Callable[[paramiko.SFTPClient], T]) -> T:
        from paramiko import AuthenticationException, BadHostKeyException, SSHException

        where, keeps = self.url(name), True
        with self._places:
            files = None
            try:
                files = self._taken()
                return action(files)
            except (BeyondTheEnd, FileExistsError):
                raise
            except (AuthenticationException, BadHostKeyException) as error:
                raise PermissionError(errno.EACCES, str(error), where) from error
            except (SSHException, EOFError, OSError) as error:
                if "not found in known_hosts" in str(error):
                    raise PermissionError(errno.EACCES, str(error), where) from error
                number = getattr(error, "errno", None)
                # Answers of the server about a file have one of these numbers, or none at all.
                keeps = number in _ANSWERS or (type(error) is OSError and str(error) == "Failure")
                if files is not None and number in _ANSWERS:
                    raise OSError(number, os.strerror(number), where) from error
                text = f"{type(error).__name__}: {error}".rstrip(": ")
                raise OSError(errno.EIO, text, where) from error
            finally:
                if files is not None:
                    self._idle.append(files) if keeps else self._disconnect(files)

    def _taken(self) -> paramiko.SFTPClient:
        """Return a channel that no other thread uses: two of them would mix up its answers."""
        with contextlib.suppress(IndexError):
            while True:
                files = self._idle.pop()
                if not _is_lost(files):
                    return files
                self._disconnect(files)
        with self._lock:
            transport = self._client and self._client.get_transport()
            if self._client is None or transport is None or not transport.is_active():
                self._client = self._connected()
            files = self._client.open_sftp()
        channel = files.get_channel()
        assert channel is not None
        channel.settimeout(_SECONDS)
        return files

    def _connected(self) -> paramiko.SSHClient:
        import paramiko

        user, _, address = self._authority.rpartition("@")
        host, _, port = address.partition(":")
        rest = dict(self._options)
        known = rest.pop("known_hosts", None)
        client = paramiko.SSHClient()
        # The client refuses a host that is in neither.
        client.load_host_keys(known) if known else client.load_system_host_keys()
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        rest["username"] = rest.get("username") or user or None
        for kind in ("timeout", "banner_timeout", "auth_timeout"):
            rest[kind] = _SECONDS
        try:
            client.connect(host, int(port or 22), **rest)
        except BaseException:
            client.close()
            raise
        return client

    def _disconnect(self, files: paramiko.SFTPClient) -> None:
        # Other channels of the connection end by themselves if it is lost.
        with contextlib.suppress(Exception):
            files.close()


def _is_lost(files: paramiko.SFTPClient) -> bool:
    channel = files.get_channel()
    return channel is None or channel.closed or not channel.get_transport().is_active()


def _status(attributes: paramiko.SFTPAttributes) -> FileStatus:
    return FileStatus(attributes.st_size or 0, (attributes.st_mtime or 0) * 1_000_000)


def _is_there(files: paramiko.SFTPClient, name: str) -> bool:
    try:
        files.stat(name)
    except FileNotFoundError:
        return False
    return True
