"""Every file system that fsspec knows, by its own names for sizes, times and version marks."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from typing_extensions import override

from ...errors import StateError
from .aws import complete, s3_pages
from .contract import PART, Chunk, Data, FileStatus, OpenFile, Page, Storage, microseconds
from .providers import BY_SCHEME
from .storage_errors import BeyondTheEnd, patiently

# fsspec's file systems have no common name for either of these.
_TIMES: Final = ("LastModified", "last_modified", "mtime", "updated", "created")
_MARKS: Final = ("ETag", "etag", "md5Hash", "checksum")

_WITHOUT_DIRECTORIES: Final = frozenset({*BY_SCHEME, "adl", "oss", "obs", "cos", "oci", "r2"})
"""Stores in which a prefix is there only as long as an object is."""

_PRECONDITION_FAILED: Final = 412

_MOST_IN_MEMORY: Final = 8 * PART


class FsspecStorage(Storage):
    """A file system of fsspec; S3 is listed flat, all others a directory at a time."""

    def __init__(self, files: Any) -> None:
        self._files = files
        protocol = files.protocol
        protocols = {protocol} if isinstance(protocol, str) else set(protocol)
        self.has_directories = not protocols & _WITHOUT_DIRECTORIES
        self.is_flat = hasattr(files, "call_s3")

    @override
    def name(self, url: str) -> str:
        return str(self._files._strip_protocol(url))  # noqa: SLF001 - fsspec has no public name for it

    @override
    def url(self, name: str) -> str:
        return str(self._files.unstrip_protocol(name))

    @override
    def stat(self, name: str) -> FileStatus:
        self.refresh()
        with _as_os_errors():
            info = self._files.info(name)
        if info["type"] == "directory":
            raise FileNotFoundError(errno.ENOENT, "a directory", name)
        return _status(info)

    @override
    def read(self, name: str, start: int = 0, length: int = PART, etag: str = "") -> Chunk:
        try:
            with _as_os_errors():
                data: bytes = self._files.cat_file(name, start=start, end=start + length)
        except FileNotFoundError:
            raise
        except OSError:
            # To some stores a range beyond the end is an error.
            if self._files.info(name)["size"] > start:
                raise
            data = b""
        if not data and length:
            raise BeyondTheEnd(errno.EINVAL, f"no bytes from {start} on", name)
        return Chunk(data, FileStatus(-1, -1))

    @override
    def whole(self, name: str) -> bytes:
        with _as_os_errors():
            data: bytes = self._files.cat_file(name)
        return data

    @override
    def open(self, name: str, etag: str = "") -> OpenFile:
        return patiently(lambda: _FsspecFile(self._files, name))

    @override
    def create(self, name: str, data: Data) -> None:
        try:
            with _as_os_errors():
                self._files.pipe_file(name, data, mode="create")
        except (TypeError, NotImplementedError) as error:
            raise StateError(
                "the file system cannot create an object only if it does not exist",
                self.url(name),
                f"{type(self._files).__name__}: {error}",
                "support for pipe_file(path, data, mode='create')",
                "Upgrade the package of the file system, or point stateLocation elsewhere.",
            ) from error

    @override
    def copy(self, name: str, target: str, etag: str = "") -> None:
        # The interface of fsspec has a create with a condition, which takes the whole content, and
        # no such copy.
        if not self.has_directories and self.stat(name).size <= _MOST_IN_MEMORY:
            return self.create(target, self.whole(name))
        if self.exists(target):
            raise FileExistsError(errno.EEXIST, "it exists", target)
        # Hadoop's name for an incomplete copy, which is never read. After a crash it is written
        # again.
        temporary = f"{target}._COPYING_"
        with _as_os_errors():
            self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._files.cp_file(name, temporary)
            self._files.mv(temporary, target)
        return None

    @override
    def delete(self, name: str, mark: str = "") -> None:
        with contextlib.suppress(FileNotFoundError), _as_os_errors():
            self._files.rm_file(name)

    @override
    def delete_tree(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError), _as_os_errors():
            self._files.rm(name, recursive=True)

    @override
    def names(self, directory: str) -> list[str]:
        return sorted(info["name"].rstrip("/").rpartition("/")[2] for info in self._ls(directory))

    def _ls(self, directory: str) -> list[dict[str, Any]]:
        # A listing from before a commit would hide it.
        self.refresh()
        with _as_os_errors():
            listing = self._files.ls(directory, detail=True)
        # Some answer with the file itself where it is one, some with the directory.
        return [info for info in listing if info["name"].rstrip("/") != directory]

    @override
    def pages(
        self, prefix: str, *, after: str = "", until: str = "", folders: bool = False
    ) -> Iterator[Page]:
        if self.is_flat:
            yield from s3_pages(self._ask_s3, prefix, after=after, until=until, folders=folders)
        else:
            yield _page(self._ls(prefix.rstrip("/") or prefix))

    def _ask_s3(self, **request: Any) -> Mapping[str, Any]:
        def ask() -> Mapping[str, Any]:
            with _as_os_errors():
                answer = self._files.call_s3("list_objects_v2", **request)
            return complete(answer, request["Bucket"])

        return patiently(ask)

    @override
    def exists(self, prefix: str) -> bool:
        if self.is_flat and "/" in prefix:
            return any(page.exists for page in self.pages(prefix))
        return bool(self._files.exists(prefix.rstrip("/") or prefix))

    @override
    def refresh(self, directory: str = "") -> None:
        # storageOptions may have turned fsspec's cache of listings on.
        self._files.invalidate_cache()


class _FsspecFile(OpenFile):
    """An open file of fsspec: only that knows how to read servers without ranges."""

    is_buffered = True

    def __init__(self, files: Any, name: str) -> None:
        with _as_os_errors():
            info = files.info(name)
            if info.get("type") == "directory":
                raise IsADirectoryError(errno.EISDIR, "a directory", name)
            self._status = _status(info)
            # Splits are read in order, so a request fetches what the next reads need as well.
            self._handle = files.open(name, "rb", cache_type="readahead", block_size=PART)

    @override
    def read(self, position: int, length: int) -> Chunk:
        def once() -> bytes:
            try:
                self._handle.seek(position)
                return bytes(self._handle.read(length))
            except Exception:
                with _as_os_errors():
                    raise

        data = patiently(once)
        if not data:
            raise BeyondTheEnd(errno.EINVAL, f"an end after {position} bytes")
        return Chunk(data, self._status)

    @override
    def close(self) -> None:
        self._handle.close()


@contextlib.contextmanager
def _as_os_errors() -> Iterator[None]:
    """Clients of object stores have errors of their own for what may pass or has a meaning."""
    try:
        yield
    except OSError as error:
        if not isinstance(error, FileExistsError) and _http_status(error) == _PRECONDITION_FAILED:
            raise FileExistsError(*error.args) from error
        raise
    # The file system has no conditional create: `create` says so.
    except (TypeError, NotImplementedError, ImportError):
        raise
    except Exception as error:
        raise OSError(errno.EIO, f"{type(error).__name__}: {error}") from error


def _http_status(error: BaseException) -> int | None:
    # s3fs knows a failed precondition by a field that only Amazon's own answer has.
    response = getattr(error.__cause__, "response", None)
    if not isinstance(response, dict):
        return None
    status: int | None = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status


def _status(info: Mapping[str, Any]) -> FileStatus:
    size, mark = info.get("size"), _first(info, _MARKS)
    # A server of HTTP may not say a size.
    return FileStatus(
        -1 if size is None else int(size),
        _microseconds(_first(info, _TIMES)),
        str(mark or "").strip('"'),
    )


def _page(listing: Sequence[Mapping[str, Any]]) -> Page:
    files = {str(i["name"]): _status(i) for i in listing if i["type"] != "directory"}
    folders = [str(i["name"]).rstrip("/") + "/" for i in listing if i["type"] == "directory"]
    return Page.of(files, folders, exists=bool(listing))


def _first(details: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((details[key] for key in keys if details.get(key) is not None), None)


def _microseconds(time: Any) -> int:
    if isinstance(time, str):
        time = datetime.fromisoformat(time)
    if isinstance(time, datetime):
        return microseconds(time)
    if isinstance(time, int | float):
        return int(time * 1_000_000)
    return -1
