"""Deletes a file, or moves it into an archive, if it is still the version that was read."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator
from itertools import zip_longest
from typing import Literal

from ....checkpoint_meta.files.file_split import FileVersion
from ....checkpoint_meta.storage.contract import PART, Storage
from ....checkpoint_meta.storage.storage_errors import AnotherVersion, BeyondTheEnd, patiently

Outcome = Literal["files", "changed", "gone"]
"""The file was removed; it stays, because it has changed since it was read; it no longer exists."""


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


def is_last_file(storage: Storage, directory: str, marker: str) -> bool:
    """Return True if a directory has no data but its marker; directories in it do not count.

    Raises:
        OSError: that cannot be found out.
    """
    names = (name for page in storage.pages(f"{directory}/", folders=True) for name in page.names)
    leaves = (name.rpartition("/")[2] for name in names)
    return not any(leaf != marker and not leaf.startswith((".", "_")) for leaf in leaves)


def delete(storage: Storage, file: FileVersion, planned: int) -> Outcome:
    """Delete a file, if it is the version that was read; `planned` as in `_look`.

    Raises:
        OSError: it cannot be deleted.
    """
    outcome, mark = _look(storage, file, planned)
    if outcome == "files":
        try:
            patiently(lambda: storage.delete(storage.name(file.path), mark))
        except AnotherVersion:
            return "changed"
    return outcome


def archive(storage: Storage, file: FileVersion, planned: int, target: str) -> Outcome:
    """Move a file to another path or URL in the same storage, if it is the version that was read.

    At every moment it is whole in one of both places. A file at `target` is never replaced: the
    same content there is the work of an attempt that died, and is finished. If it has another
    content, the name gets digits of the version.

    Raises:
        FileExistsError: other files have both names.
        OSError: it cannot be moved.
    """
    outcome, mark = _look(storage, file, planned)
    if outcome != "files":
        return outcome
    try:
        for goal in (storage.name(target), storage.name(_of_version(target, file))):
            if (is_moved := _placed(storage, file, mark, goal)) is not None:
                # A crash before the deletion leaves both, and the next attempt finds them equal.
                return "files" if is_moved else delete(storage, file, planned)
    except AnotherVersion:
        return "changed"
    raise FileExistsError(errno.EEXIST, "the archive has other files with its names", target)


def _look(storage: Storage, file: FileVersion, planned: int) -> tuple[Outcome, str]:
    """Compare the file with the version that was read in a batch that was planned at `planned`.

    Returns what to do, "files" if it can be removed, and the mark of what was looked at.

    A local file has no mark of its version, and size and modification time can be copied. Its inode
    changes whenever it is replaced or written to, by the clock of the file system: a change after
    the batch was planned may be of a version that was not read.
    """
    try:
        present, mark, changed_at = patiently(lambda: storage.look(storage.name(file.path)))
    except FileNotFoundError:
        return "gone", ""
    # A file that was last changed when it was written has these times from one clock.
    is_touched = changed_at > planned and changed_at != present.modified
    return "changed" if is_touched or file.difference(present) else "files", mark


def _of_version(target: str, file: FileVersion) -> str:
    """Return the name that a version has in the archive, if its own is taken."""
    directory, slash, leaf = target.rpartition("/")
    stem, dot, suffix = leaf.partition(".")
    digits = hashlib.sha256(repr(tuple(file)).encode()).hexdigest()[:16]
    return f"{directory}{slash}{stem}.{digits}{dot}{suffix}"


def _placed(storage: Storage, file: FileVersion, mark: str, goal: str) -> bool | None:
    """Move or copy to `goal`: True if it was moved, False if copied, None if another is there."""
    name = storage.name(file.path)
    try:
        storage.rename(name, goal, mark)
    except FileExistsError:
        return _is_there(storage, name, goal)
    except OSError as error:
        # There is no such rename here, or the archive is on another file system.
        if error.errno != errno.EXDEV:
            raise
    else:
        return True

    def copy() -> bool | None:
        try:
            storage.copy(name, goal, file.etag)
        except FileExistsError:
            return _is_there(storage, name, goal)
        if storage.stat(goal).size != file.size:
            raise OSError(errno.EIO, "the copy in the archive is incomplete", storage.url(goal))
        return False

    return patiently(copy)


def _is_there(storage: Storage, name: str, goal: str) -> bool | None:
    """Return False if `goal` has the same content, durably; None if it has another one."""
    try:
        is_same = all(
            one == other
            for one, other in zip_longest(_blocks(storage, name), _blocks(storage, goal))
        )
    except FileNotFoundError as error:
        # A create that met another one may have failed.
        raise OSError(errno.EAGAIN, "one of both is not there", storage.url(goal)) from error
    if not is_same:
        return None
    # The attempt may have died before its copy was durable.
    storage.persist(goal)
    return False


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
