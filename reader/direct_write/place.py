"""Where data files go: a local directory, or a prefix of a bucket.

A file is visible under its name when it is complete and durable, never before. Names have a token
of their attempt, so a file that is there already was written by the same attempt, whose answer was
lost.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Any, Final

from typing_extensions import override

from ...checkpoint_meta.storage.bucket import Bucket, open_bucket
from ...checkpoint_meta.storage.durable import make_directory, sync
from ...checkpoint_meta.storage.providers import PROVIDERS
from ...checkpoint_meta.storage.storage_errors import patiently
from ...checkpoint_meta.storage.urls import local_path
from ...errors import OptionError

PARTIAL: Final = ".partial"


class Draft(ABC):
    """A file that is being written into `sink`; not visible under its name before `publish`."""

    sink: IO[bytes]

    @abstractmethod
    def publish(self) -> str:
        """Make what was written durable under its name; returns its absolute path or URL."""

    def discard(self) -> None:
        """Nothing is left of what was not published."""
        # What a full disk did not take, it does not take now.
        with contextlib.suppress(OSError):
            self.sink.close()


class Place(ABC):
    """A directory or prefix of data files."""

    @abstractmethod
    def begin(self, name: str) -> Draft:
        """Begin the file `name`, relative to the place."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file by the path that `publish` or `files` gave; nothing happens if gone."""

    @abstractmethod
    def files(self, below: str = "") -> Iterator[str]:
        """The paths of all files, those that were never published included.

        Of a directory, if `below` is the beginning of paths that `publish` gave, up to a slash.
        """


def place_of(url: str, storage_options: Mapping[str, Any], option: str = "writeTo") -> Place:
    """The place that `writeTo`, or another option, names; touches nothing.

    Raises:
        OptionError: a file system on which no file can be created whole or not at all.
    """
    path = local_path(url)
    if path is not None:
        return LocalPlace(Path(path))
    opened = open_bucket(url, storage_options)
    if opened is None:
        known = ", ".join(f"{scheme}://" for provider in PROVIDERS for scheme in provider.schemes)
        raise OptionError(
            f"{option}: data files cannot be written there",
            url,
            "a file system that can leave partly written files",
            f"a local path, or one of {known}",
        )
    return BucketPlace(*opened)


class LocalPlace(Place):
    """A local directory: written next to its name, fsynced, renamed."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @override
    def begin(self, name: str) -> Draft:
        target = self._root / name
        make_directory(target.parent, self._root)
        return LocalDraft(target)

    @override
    def delete(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)

    @override
    def files(self, below: str = "") -> Iterator[str]:
        for folder, _, names in os.walk(below or self._root):
            yield from (os.path.join(folder, name) for name in names)


class LocalDraft(Draft):
    """Next to its name, under one that starts with a dot."""

    def __init__(self, target: Path) -> None:
        self._target = target
        # Spark's listings leave out names that begin with a dot, and a rename within one directory
        # is atomic.
        self._path = target.with_name(f".{target.name}{PARTIAL}")
        self.sink = self._path.open("wb")

    @override
    def publish(self) -> str:
        self.sink.flush()
        os.fsync(self.sink.fileno())
        self.sink.close()
        # Only what is durable gets the name. The name itself is part of the directory.
        self._path.rename(self._target)
        sync(self._target.parent)
        return str(self._target)

    @override
    def discard(self) -> None:
        super().discard()
        self._path.unlink(missing_ok=True)


class BucketPlace(Place):
    """A prefix of a bucket: one request for each file, so no upload is ever half done."""

    def __init__(self, bucket: Bucket, prefix: str) -> None:
        self._bucket = bucket
        self._prefix = prefix

    @override
    def begin(self, name: str) -> Draft:
        # A place that is a whole bucket has no prefix.
        key = f"{self._prefix}/{name}" if self._prefix else name
        return _BucketDraft(self._bucket, key)

    @override
    def delete(self, path: str) -> None:
        patiently(lambda: self._bucket.delete_one(path.removeprefix(self._bucket.url(""))))

    @override
    def files(self, below: str = "") -> Iterator[str]:
        prefix = below.removeprefix(self._bucket.url("")).rstrip("/") or self._prefix
        for page in self._bucket.pages(prefix):
            yield from (self._bucket.url(key) for key in page.column("path").to_pylist())


class _BucketDraft(Draft):
    """In a temporary file without a name, of which nothing is left after any end of the process."""

    def __init__(self, bucket: Bucket, key: str) -> None:
        self._bucket, self._key = bucket, key
        self.sink = tempfile.TemporaryFile(prefix="sluice-write-")  # noqa: SIM115 - closed by both ends

    @override
    def publish(self) -> str:
        self.sink.flush()
        # The client sends the pages of the file itself, which the system can take back at any time.
        data = mmap(self.sink.fileno(), 0, access=ACCESS_READ)

        def create() -> None:
            # An earlier try of this very call, whose answer was lost.
            with contextlib.suppress(FileExistsError):
                self._bucket.create(self._key, data)

        patiently(create)
        self.sink.close()
        return self._bucket.url(self._key)
