"""Lists a prefix of an object store, or a directory of any other file system, through fsspec.

Not here: local directories (`local_tree.py`), and which names are data (`names.py`).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import fsspec

from ....checkpoint_meta.splits import FileVersion
from .names import NameRule

_WITHOUT_DIRECTORIES = frozenset(
    ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "obs", "cos", "oci", "r2")
)
"""Stores in which a prefix is there only as long as an object is: emptied, it is still the path."""


class RemoteTree:
    """One flat listing through fsspec: no call for each object, no cached listing."""

    def __init__(self, url: str, storage_options: Mapping[str, Any], names: NameRule) -> None:
        options = {"use_listings_cache": False, **storage_options}
        self._fs, self._root = fsspec.url_to_fs(url, **options)
        self._names = names
        protocol = self._fs.protocol
        protocols = {protocol} if isinstance(protocol, str) else set(protocol)
        self.may_vanish = bool(protocols & _WITHOUT_DIRECTORIES)
        """True if a path that has been emptied does not exist; a bucket shows when it is listed."""

    def exists(self) -> bool:
        """True if there is anything to list."""
        self._fs.invalidate_cache()
        return bool(self._fs.exists(self._root))

    def files(self, known: Container[str]) -> Iterator[FileVersion]:
        """The files that are not known, in no order.

        Raises:
            OSError: it cannot be listed.
        """
        self._fs.invalidate_cache()
        found: Mapping[str, Mapping[str, Any]] = self._fs.find(self._root, detail=True)
        prefix = self._root.rstrip("/")
        for name in found:
            *folders, leaf = name[len(prefix) :].strip("/").split("/")
            # The path itself, where it is one object, may be hidden.
            fits = self._names.reads(leaf) if leaf else self._names.matches(name.split("/")[-1])
            if not fits or not all(map(self._names.enters, folders)):
                continue
            path = str(self._fs.unstrip_protocol(name))
            if path not in known:
                yield _version(path, found[name])


_TIMES: Sequence[str] = ("LastModified", "last_modified", "mtime", "updated", "created")
_MARKS: Sequence[str] = ("ETag", "etag", "md5Hash", "checksum")


def _version(path: str, details: Mapping[str, Any]) -> FileVersion:
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
