"""Where the whole records of a file end that is appended to.

Not here: reading them (`lines.py`), and what a grown file means (the enumerator's ledger).
"""

from __future__ import annotations

import os

from ...checkpoint_meta.splits import FileVersion
from ...errors import FileChangedError
from .lines import separator_of
from .opening import is_local, place_of
from .options import ReaderOptions
from .versions import naming

_STEP = 64 * 1024


def end_of_records(path: str, start: int, size: int, options: ReaderOptions) -> int:
    """After the last separator in the bytes from `start` to `size`; `start` if there is none.

    A record whose end has not been written yet is left for later, so the last record of a file
    is read when it is terminated.

    Raises:
        FileChangedError: what stands before `start` is not the end of a record any more, so this
            is not the file that was read up to there; or it is not a local one.
    """
    if not is_local(path):
        raise FileChangedError(
            "a file that is not local cannot be read on",
            path,
            "onOverwrite=appendTail",
            "a path of a local or mounted file system: objects are replaced, not appended to",
            "Set onOverwrite to ignore, reprocess or fail.",
        )
    if size <= start:
        return start
    separator = separator_of(options)
    width = len(separator)
    with naming(FileVersion(path, size, -1)), open(place_of(path), "rb") as file:
        if start and os.pread(file.fileno(), width, start - width) != separator:
            raise FileChangedError(
                "a file that is only to be appended to was replaced",
                path,
                f"no end of a record before byte {start}",
                "the bytes that were read",
                "Rotate by moving the file away and creating a new name; to read this one whole, "
                "set onOverwrite=reprocess.",
            )
        end = size
        while end > start:
            begin = max(start, end - _STEP)
            data = os.pread(file.fileno(), end - begin, begin)
            found = data.rfind(separator)
            if found >= 0:
                return begin + found + width
            # A separator may lie across two pieces.
            end = begin + width - 1 if begin > start else start
    return start
