"""Discovery of a directory tree or bucket: passes over what the options point at.

Not here: when to list, and what becomes of the files (`enumerator.py`); how a tree is walked
(`local_tree.py`, `remote_tree.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ....checkpoint_meta.splits import FileVersion
from ....checkpoint_meta.urls import local_path, storage_url
from ....errors import MissingPathError, SourceUnavailable
from .api import CHUNK, Discovery, FoundFiles, KnownFiles, Skipped, SkippedFile
from .local_tree import LocalTree
from .names import NameRule
from .remote_tree import RemoteTree


class TreeDiscovery(Discovery):
    """Lists one path or URL; nothing is touched before the first pass.

    Empty files are passed over without being remembered: many writers create a file before they
    fill it.
    """

    def __init__(
        self,
        url: str,
        storage_options: Mapping[str, Any],
        *,
        fail_on_missing_path: bool,
        names: NameRule | None = None,
    ) -> None:
        """`names` says which files are data, by default all that are not hidden."""
        path, rule = local_path(url), names or NameRule()
        self._tree = (
            LocalTree(path, rule)
            if path is not None
            else RemoteTree(storage_url(url), storage_options, rule)
        )
        self._url = url
        self._fail_on_missing_path = fail_on_missing_path
        self._was_there = False
        self._skipped = Skipped()

    @property
    @override
    def skipped(self) -> Skipped:
        return self._skipped

    @override
    def listing(self, known: KnownFiles) -> Iterator[FoundFiles]:
        empty: list[SkippedFile] = []
        for files in _chunks(self._found(known)):
            empty += [SkippedFile(file.path, "empty") for file in files if file.size == 0]
            full = [file for file in files if file.size > 0]
            if full:
                yield _columns(full)
        self._skipped = Skipped({"empty": len(empty)} if empty else {}, empty[:CHUNK])

    @override
    def left_out(self) -> Iterator[SkippedFile]:
        for file in self._found(NothingKnown()):
            if file.size == 0:
                yield SkippedFile(file.path, "empty")

    def _found(self, known: KnownFiles) -> Iterator[FileVersion]:
        try:
            expected = self._tree.may_vanish and (self._was_there or len(known) > 0)
            if not expected and not self._tree.exists():
                raise FileNotFoundError(self._url)
            yield from self._tree.files(_OneByOne(known))
        except FileNotFoundError as error:
            if self._fail_on_missing_path:
                raise _missing(self._url) from error
            return
        except OSError as error:
            raise SourceUnavailable(
                "the path cannot be listed",
                str(getattr(error, "filename", None) or self._url),
                f"{type(error).__name__}: {error}",
                "a directory that this process may read",
                "Repair access and restart the query: it continues where it stood.",
            ) from error
        self._was_there = True


class NothingKnown(KnownFiles):
    """For a pass that is to find everything."""

    @override
    def __len__(self) -> int:
        return 0

    @override
    def are_known(self, paths: Sequence[str]) -> NDArray[np.bool_]:
        return np.zeros(len(paths), np.bool_)


class _OneByOne:
    def __init__(self, known: KnownFiles) -> None:
        self._known = known

    def __contains__(self, path: object) -> bool:
        return bool(self._known.are_known([str(path)])[0])


def _chunks(files: Iterable[FileVersion]) -> Iterator[list[FileVersion]]:
    rest = iter(files)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk


def _columns(files: Sequence[FileVersion]) -> FoundFiles:
    return FoundFiles(
        [file.path for file in files],
        np.array([file.size for file in files], np.int64),
        np.array([file.modified for file in files], np.int64),
        [file.etag for file in files] if any(file.etag for file in files) else None,
    )


def _missing(url: str) -> MissingPathError:
    return MissingPathError(
        "the path does not exist",
        url,
        "nothing",
        "a directory or a file",
        "Create it, correct the path, or set failOnMissingPath=false to wait for it.",
    )
