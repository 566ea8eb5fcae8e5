"""A whole pass as files one by one or as a list, for those who go without a ledger.

Not here: the passes (`tree_discovery.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence, Sized
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ....checkpoint_meta.documents.file_split import FileVersion
from .api import Discovery, KnownFiles


class KnownPaths(Container[str], Sized, Protocol):
    """The paths that are known already."""


FileLister = Callable[[KnownPaths], list[FileVersion]]
"""Lists every file that is not in the container given: one discovery pass."""


class KnownByPath(KnownFiles):
    """A container of paths, as discovery asks it."""

    def __init__(self, paths: KnownPaths) -> None:
        self._paths = paths

    @override
    def __len__(self) -> int:
        return len(self._paths)

    @override
    def are_known(self, paths: Sequence[str]) -> NDArray[np.bool_]:
        return np.fromiter((path in self._paths for path in paths), np.bool_, len(paths))


def all_files(discovery: Discovery) -> Iterator[FileVersion]:
    """A pass of `discovery` over everything, one file after the other."""
    return (file for files in discovery.listing(KnownByPath(())) for file in files.versions())


def lister_of(discovery: Discovery) -> FileLister:
    """A pass of `discovery` as a list of files."""

    def list_unknown(known: KnownPaths) -> list[FileVersion]:
        found = discovery.listing(KnownByPath(known))
        return [file for files in found for file in files.versions()]

    return list_unknown
