"""Samples the content of a local file, so that readers of its parts notice if it is replaced.

Size and modification time do not tell: `cp -p`, `rsync -t` and a clock of whole seconds keep both.
Inode and change time say too much: chmod, a hard link and a file that comes back from a backup
change them, and FUSE and network mounts may number a file differently on each host. So the bytes
decide, each time the file is opened. Too few are sampled to find a change of a single record.
"""

from __future__ import annotations

import os
from typing import Final

from xxhash import xxh3_64

from ..storage.urls import is_local, local_name
from .file_split import FileVersion, SampledFile

_PIECES: Final = 8
"""So few that a disk that has to seek for each loses less time than with reading a split."""

_PIECE: Final = 4096


def sample_of(descriptor: int, size: int) -> int:
    """Return a checksum, never 0, of pieces from the first bytes of an open file to the last."""
    last, digest = max(0, size - _PIECE), xxh3_64()
    for position in sorted({last * piece // (_PIECES - 1) for piece in range(_PIECES)}):
        digest.update(os.pread(descriptor, min(size, _PIECE), position))
    # In the state it is a signed number of 64 bits.
    return (digest.intdigest() >> 1) or 1


def sampled(file: FileVersion) -> FileVersion:
    """The file with a sample, if it is local. A file with an etag has a better mark already."""
    if file.etag or not is_local(file.path):
        return file
    try:
        with open(local_name(file.path), "rb", buffering=0) as source:
            return SampledFile.of(file, sample_of(source.fileno(), file.size))
    except OSError:
        # Reading the file raises the same error, and the options say what it means.
        return file
