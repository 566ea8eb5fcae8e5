"""A directory or prefix for data files, in a storage that has no partly written files.

A file is visible under its name when it is complete and durable, never before. Names have a token
of their attempt, so a file that is there already was written by the same attempt, whose answer was
lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...checkpoint_meta.storage.contract import Draft
from ...checkpoint_meta.storage.hdfs_storage import SCHEME
from ...checkpoint_meta.storage.open_storage import open_storage, supports_drafts
from ...checkpoint_meta.storage.providers import BY_SCHEME
from ...checkpoint_meta.storage.storage_errors import patiently
from ...checkpoint_meta.storage.urls import Location
from ...errors import OptionError


class Place:
    """A directory or prefix of data files; touches nothing before the first call."""

    def __init__(
        self, url: str, storage_options: Mapping[str, Any], option: str = "writeTo"
    ) -> None:
        """`option` is the one that names `url`, for the error.

        Raises:
            OptionError: a file system on which no file can be created whole or not at all.
        """
        place = Location.of(url)
        # Before it is opened: a file system that cannot be written to may not be installed either.
        if not supports_drafts(place, storage_options):
            raise OptionError(
                f"{option}: data files cannot be written there",
                place.url,
                "a file system that can leave partly written files",
                "a local path, or one of "
                + ", ".join(f"{name}://" for name in (*BY_SCHEME, SCHEME)),
            )
        self._storage, self._root = open_storage(place, storage_options)

    def begin(self, name: str) -> Draft:
        """Begin the file `name`, relative to the place."""
        return self._storage.begin(f"{self._root.rstrip('/')}/{name}")

    def delete(self, path: str) -> None:
        """Delete a file by the path that `publish` or `files` gave; nothing happens if gone."""
        patiently(lambda: self._storage.delete(self._storage.name(path)))

    def files(self, below: str = "") -> Iterator[str]:
        """The paths of all files, those that were never published included.

        Of a directory, if `below` is the beginning of paths that `publish` gave, up to a slash.
        """
        directory = self._storage.name(below).rstrip("/") if below else self._root
        return map(self._storage.url, self._storage.files(directory))
