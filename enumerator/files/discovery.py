"""Lists a directory tree: what files are there that are not known yet.

Not here: when to list, and what becomes of the files (`enumerator.py`).
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import fsspec

from ...checkpoint_meta.splits import FileVersion
from ...checkpoint_meta.urls import local_path, storage_url
from ...errors import MissingPathError, SourceUnavailable

_HIDDEN = (".", "_")

FileLister = Callable[[Container[str]], list[FileVersion]]
"""Lists every file that is not in the container given: one discovery pass."""


def is_hidden(name: str) -> bool:
    """Names starting with `.` or `_` are not data, as for Hadoop and Flink."""
    return name.startswith(_HIDDEN)


def make_lister(
    url: str,
    storage_options: Mapping[str, Any],
    *,
    fail_on_missing_path: bool,
    name_glob: str | None = None,
) -> FileLister:
    """The lister for a path or URL; nothing is touched yet.

    Empty files are passed over without being remembered: many writers create a file before they
    fill it. `name_glob` keeps only files whose name matches (Spark's pathGlobFilter).

    The lister raises:
        MissingPathError: the path is not there and `fail_on_missing_path`.
        SourceUnavailable: it cannot be listed; the cause is attached.
    """
    path = local_path(url)
    roots = _LocalTree(path) if path is not None else _RemoteTree(storage_url(url), storage_options)

    def list_unknown(known: Container[str]) -> list[FileVersion]:
        try:
            if not roots.exists():
                if fail_on_missing_path:
                    raise _missing(url)
                return []
            files = roots.files(known)
            return [
                file
                for file in files
                if file.size > 0
                and (name_glob is None or fnmatch.fnmatchcase(_name(file.path), name_glob))
            ]
        except OSError as error:
            raise SourceUnavailable(
                "the path cannot be listed",
                str(getattr(error, "filename", None) or url),
                f"{type(error).__name__}: {error}",
                "a directory that this process may read",
                "Repair access and restart the query: it continues where it stood.",
            ) from error

    return list_unknown


def _missing(url: str) -> MissingPathError:
    return MissingPathError(
        "the path does not exist",
        url,
        "nothing",
        "a directory or a file",
        "Create it, correct the path, or set failOnMissingPath=false to wait for it.",
    )


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


class _LocalTree:
    """One scandir pass; only files that are not known cost a stat."""

    def __init__(self, root: str) -> None:
        self._root = root

    def exists(self) -> bool:
        return os.path.exists(self._root)

    def files(self, known: Container[str]) -> Iterator[FileVersion]:
        if os.path.isfile(self._root):
            if self._root not in known:
                yield _version(self._root, os.stat(self._root))
            return
        pending = [self._root]
        while pending:
            directory = pending.pop()
            try:
                entries = os.scandir(directory)
            except FileNotFoundError:
                if directory == self._root:
                    raise
                continue
            with entries:
                for entry in entries:
                    if entry.name.startswith(_HIDDEN):
                        continue
                    if entry.is_dir():
                        pending.append(entry.path)
                    elif entry.path not in known:
                        # Renamed or deleted since; if renamed, it is found again.
                        with contextlib.suppress(FileNotFoundError):
                            yield _version(entry.path, entry.stat())


def _version(path: str, status: os.stat_result) -> FileVersion:
    return FileVersion(path, status.st_size, status.st_mtime_ns // 1000)


class _RemoteTree:
    """One flat listing through fsspec: no call for each object, no cached listing."""

    def __init__(self, url: str, storage_options: Mapping[str, Any]) -> None:
        options = {"use_listings_cache": False, **storage_options}
        self._fs, self._root = fsspec.url_to_fs(url, **options)

    def exists(self) -> bool:
        self._fs.invalidate_cache()
        return bool(self._fs.exists(self._root))

    def files(self, known: Container[str]) -> Iterator[FileVersion]:
        found: Mapping[str, Mapping[str, Any]] = self._fs.find(self._root, detail=True)
        prefix = self._root.rstrip("/")
        for name in found:
            below = name[len(prefix) :].strip("/")
            if any(map(is_hidden, below.split("/"))):
                continue
            path = str(self._fs.unstrip_protocol(name))
            if path not in known:
                yield _remote_version(path, found[name])


_TIMES: Sequence[str] = ("LastModified", "last_modified", "mtime", "updated", "created")
_MARKS: Sequence[str] = ("ETag", "etag", "md5Hash", "checksum")


def _remote_version(path: str, details: Mapping[str, Any]) -> FileVersion:
    time = next((details[key] for key in _TIMES if details.get(key) is not None), None)
    mark = next((details[key] for key in _MARKS if details.get(key)), "")
    return FileVersion(path, int(details["size"]), _microseconds(time), str(mark).strip('"'))


def _microseconds(time: Any) -> int:
    if isinstance(time, str):
        time = datetime.fromisoformat(time)
    if isinstance(time, datetime):
        return int(time.timestamp() * 1_000_000)
    if isinstance(time, int | float):
        return int(time * 1_000_000)
    return -1
