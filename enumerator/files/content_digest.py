"""Reads the content of files on the driver, for `identity=content`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import blake2b
from typing import Any

from ...checkpoint_meta.files.file_split import FileVersion
from ...checkpoint_meta.storage.contract import Storage
from ...checkpoint_meta.storage.open_storage import open_storage
from ...checkpoint_meta.storage.storage_errors import patiently


def digests(storage_options: Mapping[str, Any], files: Sequence[FileVersion]) -> list[str]:
    """The content of each file as it is now, as a `Digest`.

    Raises:
        OSError: one cannot be read.
    """
    with ThreadPoolExecutor(min(Storage.requests, len(files) or 1)) as pool:
        try:
            return list(pool.map(partial(_digest, storage_options), files))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _digest(storage_options: Mapping[str, Any], file: FileVersion) -> str:
    try:
        return patiently(partial(_read, *open_storage(file.path, storage_options)))
    except FileNotFoundError:
        # The options of reading say what that means.
        return ""


def _read(storage: Storage, name: str) -> str:
    # Nobody can make another file with the same digest, which would keep this one out of the table.
    digest = blake2b(digest_size=16)
    for part in storage.parts(name):
        digest.update(part)
    return digest.hexdigest()
