"""Lists a local directory tree in one pass, each file under one name however many links there are.

Not here: other file systems (`remote_tree.py`), and which names are data (`names.py`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container, Iterator

from ....checkpoint_meta.splits import FileVersion
from ....checkpoint_meta.urls import written_path
from ....errors import SourceUnavailable
from .names import NameRule

_Trail = tuple[str, ...]
"""Where the links led that were followed on the way to a directory."""


class LocalTree:
    """One scandir pass; only files that are not known cost a stat."""

    may_vanish = False
    """A directory that is emptied is still there."""

    def __init__(self, root: str, names: NameRule) -> None:
        self._root = root
        self._names = names

    def exists(self) -> bool:
        """True if there is anything to list."""
        return os.path.exists(self._root)

    def files(self, known: Container[str]) -> Iterator[FileVersion]:
        """The files that are not known, in no order.

        Raises:
            OSError: a directory cannot be read.
            SourceUnavailable: symbolic links lead in a circle.
        """
        if os.path.isfile(self._root):
            path = written_path(self._root)
            if self._names.matches(os.path.basename(path)) and path not in known:
                yield _version(path, os.stat(self._root))
            return
        pending: list[tuple[str, _Trail]] = [(self._root, ())]
        while pending:
            directory, trail = pending.pop()
            try:
                entries = os.scandir(directory)
            except FileNotFoundError:
                if directory == self._root:
                    raise
                continue
            with entries:
                for entry in entries:
                    if entry.is_dir():
                        if self._names.enters(entry.name):
                            pending.extend(self._entered(entry, directory, trail))
                    else:
                        yield from self._file(entry, known)

    def _file(self, entry: os.DirEntry[str], known: Container[str]) -> Iterator[FileVersion]:
        path = written_path(entry.path)
        if path in known or not self._names.reads(entry.name):
            return
        if entry.is_symlink() and self._is_found_by_itself(os.path.realpath(entry.path), file=True):
            return
        # Renamed or deleted since; if renamed, it is found again.
        with contextlib.suppress(FileNotFoundError):
            yield _version(path, entry.stat())

    def _entered(
        self, entry: os.DirEntry[str], directory: str, trail: _Trail
    ) -> Iterator[tuple[str, _Trail]]:
        if not entry.is_symlink():
            yield entry.path, trail
            return
        target = os.path.realpath(entry.path)
        above = (os.path.realpath(self._root), os.path.realpath(directory), *trail)
        if any(_is_within(place, target) for place in above):
            raise SourceUnavailable(
                "a symbolic link leads in a circle",
                entry.path,
                f"a link to {target}, which it lies in",
                "links that lead out of the directories they are in",
                "Remove the link, or give it a hidden name, such as one that begins with a dot.",
            )
        if not self._is_found_by_itself(target, file=False):
            yield entry.path, (*trail, target)

    def _is_found_by_itself(self, target: str, *, file: bool) -> bool:
        """True if what a link leads to is in the tree anyway, under its own name."""
        root = os.path.realpath(self._root)
        if not _is_within(target, root):
            return False
        *folders, name = os.path.relpath(target, root).split(os.sep)
        fits = self._names.reads if file else self._names.enters
        return all(map(self._names.enters, folders)) and fits(name)


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


def _version(path: str, status: os.stat_result) -> FileVersion:
    return FileVersion(path, status.st_size, status.st_mtime_ns // 1000)
