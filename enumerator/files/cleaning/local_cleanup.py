"""Cleans up on local and mounted file systems.

Not here: the contract (`cleanup_api.py`).
"""

from __future__ import annotations

import contextlib
import errno
import filecmp
import os
import shutil
import uuid
from pathlib import Path

from typing_extensions import override

from ....checkpoint_meta.documents.file_split import FileVersion
from ....checkpoint_meta.storage.durable import make_directory, sync
from ....checkpoint_meta.storage.exclusive_rename import rename_exclusively
from ....checkpoint_meta.storage.urls import local_path
from ....errors import StateError
from .cleanup_api import Place


class LocalPlace(Place):
    """One rename where both places are on one file system; else copy, link, delete.

    What is in the archive survives a crash of the machine before the source is deleted.
    """

    def __init__(self, archive: str = "") -> None:
        """`archive` is the directory that all targets of `move` are below."""
        self._archive = _path(archive)

    @override
    def present(self, file: FileVersion) -> FileVersion | None:
        try:
            found = os.stat(_path(file.path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return FileVersion(file.path, found.st_size, found.st_mtime_ns // 1000)

    @override
    def delete(self, file: FileVersion) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_path(file.path))

    @override
    def move(self, file: FileVersion, target: str) -> None:
        source, goal = _path(file.path), _path(target)
        # A rename would move the link, and leave the data where they are.
        if source.is_symlink():
            raise OSError(errno.ELOOP, "a symbolic link is not moved", str(source))
        make_directory(goal.parent, self._archive)
        # An attempt that died between its two steps has left the file in both places.
        if goal.exists():
            _finish(source, goal)
            return
        try:
            self._rename(source, goal)
        except OSError as error:
            # EXDEV: the archive is on another file system.
            if error.errno != errno.EXDEV:
                raise
            self._copy(source, goal)
            self.delete(file)

    def _rename(self, source: Path, goal: Path) -> None:
        try:
            rename_exclusively(source, goal)
        except StateError:
            # A file system without: two steps, the first of which replaces nothing.
            os.link(source, goal)
            sync(goal.parent)
            os.unlink(source)
        else:
            sync(goal.parent)

    def _copy(self, source: Path, goal: Path) -> None:
        temporary = goal.with_name(f".{goal.name}.{uuid.uuid4().hex}.tmp")
        try:
            shutil.copy2(source, temporary)
            sync(temporary)
            self._rename(temporary, goal)
        finally:
            temporary.unlink(missing_ok=True)


def _path(written: str) -> Path:
    return Path(written if written.startswith("/") else local_path(written) or written)


def _finish(source: Path, goal: Path) -> None:
    if not filecmp.cmp(source, goal, shallow=False):
        raise FileExistsError(
            errno.EEXIST, "the archive has another file with that name", str(goal)
        )
    # That attempt may have died before its copy was durable.
    sync(goal)
    sync(goal.parent)
    os.unlink(source)
