"""Opens the storage of a path or URL: local files, buckets by obstore, HDFS, SFTP, or fsspec."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from ...errors import OptionError
from .bucket_storage import BucketStorage
from .contract import ServerStorage, Storage
from .fsspec_storage import FsspecStorage
from .hdfs_storage import HdfsStorage
from .local_storage import LocalStorage
from .providers import BY_SCHEME, by_fsspec, check_installed, client_config, uses_fsspec
from .sftp_storage import SftpStorage
from .urls import Location


def supports_drafts(place: Location, storage_options: Mapping[str, Any]) -> bool:
    """Return True where `Storage.begin` works: on no file system of fsspec, nor by SFTP."""
    if place.scheme in BY_SCHEME:
        return not uses_fsspec(storage_options)
    return place.scheme in ("", HdfsStorage.scheme)


def open_storage(
    place: str | Location, storage_options: Mapping[str, Any], *, root: str = ""
) -> tuple[Storage, str]:
    """The storage of a path or URL, and its name there; touches nothing.

    Paths in one bucket or file system have the same object. `root` is the directory of local files
    below which new directories are made durable; by default the place itself.

    Raises:
        OptionError: storage options that the client does not know, or it is not installed.
    """
    place = Location.of(place)
    scheme, url = place
    if place.is_local:
        return LocalStorage(root or url), url
    bucket, key = place.parts
    options = dict(storage_options)
    # Clients have threads, which a forked process does not inherit.
    process = os.getpid()
    if scheme in _SERVERS:
        server = _of_server(scheme, bucket, json.dumps(options, sort_keys=True), process)
        return server, server.name(url)
    if scheme not in BY_SCHEME or uses_fsspec(options):
        files, name = by_fsspec(url, options)
        return _of_fsspec(files, process), name
    if "@" in bucket:
        # abfs://container@account.dfs.core.windows.net/
        bucket, _, host = bucket.partition("@")
        options.setdefault("account_name", host.partition(".")[0])
    storage = _of_bucket(scheme, bucket, json.dumps(options, sort_keys=True), process)
    return storage, f"{bucket}/{key.strip('/')}"


@lru_cache(maxsize=64)
def _of_fsspec(files: Any, _process: int) -> FsspecStorage:
    return FsspecStorage(files)


_SERVERS: Final[Mapping[str, type[ServerStorage]]] = {
    kind.scheme: kind for kind in (HdfsStorage, SftpStorage)
}


@lru_cache(maxsize=64)
def _of_server(scheme: str, authority: str, options: str, _process: int) -> ServerStorage:
    return _SERVERS[scheme](authority, json.loads(options))


@lru_cache(maxsize=64)
def _of_bucket(scheme: str, bucket: str, options: str, _process: int) -> BucketStorage:
    check_installed("obstore", BY_SCHEME[scheme].extra, f"{scheme}://{bucket}")
    from obstore.exceptions import BaseError

    try:
        return BucketStorage(scheme, bucket, client_config(scheme, json.loads(options)))
    except (BaseError, ValueError, TypeError) as error:
        raise OptionError(
            f"storageOptions: they do not configure a client for {scheme}://",
            f"{scheme}://{bucket}",
            " ".join(str(error).partition("\n\nDebug source")[0].split()),
            "keys, key files and endpoints in the form that the client reads",
        ) from error
