"""Moves files into an archive, and looks up which version of a file is there."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from itertools import zip_longest

from ....checkpoint_meta.documents.file_split import FileVersion
from ....checkpoint_meta.storage.contract import PART, Storage
from ....checkpoint_meta.storage.storage_errors import BeyondTheEnd, patiently


def present_version(storage: Storage, file: FileVersion) -> FileVersion | None:
    """The version of the file that is there now; None if it is gone.

    Raises:
        OSError: that cannot be found out.
    """
    try:
        status = patiently(lambda: storage.stat(storage.name(file.path)))
    except FileNotFoundError:
        return None
    return FileVersion(file.path, *status)


def move(storage: Storage, file: FileVersion, target: str) -> None:
    """Move a file, which is there, to another path or URL in the same storage.

    At every moment it is whole in one of both places. What is at `target` is never replaced; the
    same content there is the work of an attempt that died, and is finished.

    Raises:
        FileExistsError: another file is at `target`.
        OSError: it cannot be moved.
    """
    name, goal = storage.name(file.path), storage.name(target)
    try:
        storage.rename(name, goal)
    except FileExistsError:
        is_there = True
    except OSError as error:
        # There is no such rename here, or the archive is on another file system.
        if error.errno != errno.EXDEV:
            raise
        is_there = present_version(storage, FileVersion(target, 0, -1)) is not None
    else:
        return
    if is_there:
        _check_same(storage, name, goal)
        # That attempt may have died before its copy was durable.
        storage.persist(goal)
    else:
        # A crash before the deletion leaves both, and the next attempt finds them equal.
        patiently(lambda: storage.copy(name, goal))
        if patiently(lambda: storage.stat(goal)).size != file.size:
            raise OSError(errno.EIO, "the copy in the archive is incomplete", target)
    patiently(lambda: storage.delete(name))


def _check_same(storage: Storage, name: str, goal: str) -> None:
    pairs = zip_longest(_blocks(storage, name), _blocks(storage, goal))
    if any(one != other for one, other in pairs):
        raise FileExistsError(
            errno.EEXIST, "the archive has another file with that name", storage.url(goal)
        )


def _blocks(storage: Storage, name: str) -> Iterator[bytes]:
    opened, position = storage.open(name), 0
    try:
        while data := opened.read(position, PART).data:
            yield data
            position += len(data)
    except BeyondTheEnd:
        return
    finally:
        opened.close()
