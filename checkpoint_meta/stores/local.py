"""State on a local, or locally mounted, file system.

Not here: the contract (`contract.py`) and the exclusive rename (`storage/durable.py`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from pathlib import Path
from typing import Final

from typing_extensions import override

from ..storage import durable
from ..storage.durable import rename_exclusively
from .contract import StateStore

_NO_HARD_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""What link(2) says on FAT, on SMB and on most FUSE mounts."""


class LocalStateStore(StateStore):
    """Temporary file, fsync, hard link, fsync of the directory.

    A crash leaves the object whole or leaves a temporary file that nobody reads. Where there are
    no hard links the file is renamed, which must not replace; where neither is to be had the
    first publication is refused.
    """

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self.location = str(self._root)

    @override
    def publish(self, name: str, data: bytes) -> None:
        target = self._root / name
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
        # The directory comes first: a file in it is durable only if its own entry in its parent is.
        durable.make_directory(target.parent, self._root)
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            _create(temporary, target)
        finally:
            # After a rename it is gone already. A crash before leaves it, and listings skip its
            # name.
            temporary.unlink(missing_ok=True)
        # Last: without it a crash of the machine may lose the name of a file whose bytes are safe.
        durable.sync(target.parent)

    @override
    def read(self, name: str) -> bytes:
        return (self._root / name).read_bytes()

    @override
    def read_part(self, name: str, start: int, length: int) -> bytes:
        with open(self._root / name, "rb") as file:
            file.seek(start)
            return file.read(length)

    @override
    def list(self, directory: str) -> list[str]:
        try:
            names = os.listdir(self._root / directory)
        except FileNotFoundError:
            return []
        # Temporary files, of other processes as well, and what NFS keeps of files that are still
        # open.
        return sorted(name for name in names if not name.startswith("."))

    @override
    def delete(self, name: str) -> None:
        target = self._root / name
        with contextlib.suppress(FileNotFoundError):
            if target.is_dir():
                # A crash half-way leaves the directory with the rest, and the next deletion
                # finishes it.
                for child in target.iterdir():
                    child.unlink(missing_ok=True)
                target.rmdir()
            else:
                target.unlink()

    @override
    def refresh(self, directory: str) -> None:
        # A client of a network file system remembers for up to a minute that a name was not
        # there. It learns otherwise when it changes the directory itself.
        probe = self._root / directory / f".{uuid.uuid4().hex}.tmp"
        with contextlib.suppress(OSError):
            probe.touch(exist_ok=False)
            probe.unlink()


def _create(temporary: Path, target: Path) -> None:
    # A link, unlike a plain rename, fails where the target exists.
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        rename_exclusively(temporary, target)
