"""One bucket or container: listing in pages, reading by version, creating, deleting.

Each method is one request where the store allows it: nothing is looked up before it is read, and
nothing is looked for before it is created.
"""

from __future__ import annotations

import errno
import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import lru_cache
from mmap import mmap
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from ...errors import OptionError
from .aws import as_os_errors as as_errors_of_aws
from .aws import aws_client, shared_credentials
from .client_options import client_config, uses_fsspec
from .providers import BY_SCHEME, S3, ClientConfig
from .storage_errors import BeyondTheEnd, as_os_errors, patiently
from .urls import scheme_of, storage_url

if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import AzureStore, GCSStore, S3Store

PART: Final = 8 * 1024 * 1024
"""Most bytes of one request for reading; what is larger takes several."""

_LARGE_TIMEOUT = timedelta(minutes=5)
"""For what is written in one request, however large."""

_PAGE = 1000
"""Objects of a page of a listing: one request."""

_ENDS_REMEMBERED = 1000

_NO_PAGE: Final = "the store answered a list request with an incomplete page"


class Part(NamedTuple):
    """Some bytes of an object, and what the same answer says of the whole."""

    data: bytes
    size: int
    """Bytes of the whole object."""
    modified: int
    """Microseconds since the epoch."""
    etag: str
    """Without quotes; empty where the store has none."""


class Bucket:
    """Made by `open_bucket`; safe to use from many threads."""

    def __init__(self, scheme: str, name: str, config: ClientConfig) -> None:
        self.name = name
        provider = BY_SCHEME[scheme]
        self.scheme: str = provider.path_scheme
        """As written in URLs."""
        self.lists_in_order = provider.lists_in_order
        """True if keys come in the order of their bytes."""
        self._lists_with_boto = provider.lists_with_boto
        self._config = config
        self._store = _client(scheme, name, config)
        self._s3: Any = None
        """boto3's client, made when it is first needed."""
        self.part_bytes, self.part_seconds = PART, 0.0
        """Bytes of one request of a reader, and the seconds that it may take; 0 is any time."""
        self._ends: dict[str, str] = {}
        """Prefix -> its last key, behind which nothing was when it was looked."""
        slow = {**config.connections, "timeout": _LARGE_TIMEOUT}
        # Timeouts belong to a client of obstore, not to a request.
        self._slow_store = _client(
            scheme, name, ClientConfig(**{**vars(config), "connections": slow})
        )

    def url(self, key: str) -> str:
        """The URL of an object, as fsspec writes it too."""
        return f"{self.scheme}://{self.name}/{key}"

    def pages(self, prefix: str, after: str = "") -> Iterator[pa.RecordBatch]:
        """All objects below a prefix, in the order that the store has, from behind `after` on.

        Columns: path (the key), last_modified, size, e_tag, version. A prefix ends where a part of
        the key ends: `a/b` lists `a/b/c` and not `a/bc`.

        The client takes any XML with the status 200 for the last page, which S3 also answers where
        it fails. So S3 is asked once what is behind the last key, unless that is where the listing
        ended before.

        Raises:
            FileNotFoundError: there is no such bucket.
            OSError: it cannot be listed to its end.
        """
        while True:
            last = after
            for page in self._pages(prefix, after):
                yield page
                last = page.column("path")[-1].as_py() if page.num_rows else last
            if self._ends.get(prefix) == last or self._is_end(prefix, last):
                return
            if last == after:
                raise OSError(errno.EIO, _NO_PAGE, self.url(prefix))
            after = last

    def _pages(self, prefix: str, after: str = "") -> Iterator[pa.RecordBatch]:
        """As far as the client comes."""
        import obstore

        with as_os_errors(self.url(prefix)):
            found = obstore.list(
                self._store,
                prefix or None,
                offset=after or None,
                chunk_size=_PAGE,
                return_arrow=True,
            )
            for page in map(pa.record_batch, found):
                # Azure does not start where it is asked to, see `providers.py`.
                yield page if self.lists_in_order or not after else _behind(page, after)

    def _is_end(self, prefix: str, last: str) -> bool:
        if not self._lists_with_boto:
            return True
        # Two, since the first one may be the mark of a directory.
        answer = self._s3_page(prefix, StartAfter=last, MaxKeys=2)
        # The client names a directory that somebody has drawn without the slash at its end.
        drawn = (f"{last}/", f"{prefix}/")
        if any(found["Key"] not in drawn for found in answer.get("Contents", ())):
            return False
        # Forgetting costs one request a prefix, and keeps the memory of a long run bounded.
        if len(self._ends) >= _ENDS_REMEMBERED:
            self._ends.clear()
        self._ends[prefix] = last
        return True

    def forget(self) -> None:
        """Believe no end of a listing that was seen before."""
        self._ends.clear()

    def _s3_page(self, prefix: str, **asked: Any) -> Mapping[str, Any]:
        """One page of S3 through boto3, which recognizes an error with any status."""

        def ask() -> Mapping[str, Any]:
            # Two threads may both make a client here: one is dropped, and nothing else happens.
            if self._s3 is None:
                self._s3 = aws_client("s3", self._config)
            # boto3 takes a prefix as text, so without the slash `a/b` would list `a/bc` as well.
            below = f"{prefix.rstrip('/')}/" if prefix else ""
            with as_errors_of_aws(self.url(prefix)):
                answer: Mapping[str, Any] = self._s3.list_objects_v2(
                    Bucket=self.name, Prefix=below, **asked
                )
            more = answer.get("IsTruncated")
            if more is None or (more and "NextContinuationToken" not in answer):
                raise OSError(errno.EIO, _NO_PAGE, self.url(prefix))
            return answer

        return patiently(ask, attempts=4)

    def is_directory_mark(self, key: str) -> bool:
        """True if there is an object `key/`, which listings show as `key` and nobody can read.

        Raises:
            OSError: it cannot be listed.
        """
        page = next(self.pages(key), None)
        return page is not None and page.num_rows > 0 and page.column("path")[0].as_py() == key

    def names(self, prefix: str) -> list[str]:
        """The last parts of what lies directly below a prefix: objects and prefixes; sorted."""
        found, folders = self.level(prefix)
        keys = [*folders, *found.column("path").to_pylist()]
        return sorted(key.rsplit("/", 1)[-1] for key in keys if key != prefix)

    def level(self, prefix: str) -> tuple[pa.Table, list[str]]:
        """What lies directly below a prefix: the objects, as of `pages`, and the prefixes."""
        if self._lists_with_boto:
            return self._s3_level(prefix)
        import obstore

        with as_os_errors(self.url(prefix)):
            found = obstore.list_with_delimiter(self._store, prefix or None, return_arrow=True)
        folders = [folder.rstrip("/") for folder in found["common_prefixes"]]
        return pa.table(found["objects"]), sorted(folders)

    def _s3_level(self, prefix: str) -> tuple[pa.Table, list[str]]:
        found: list[Mapping[str, Any]] = []
        folders: list[str] = []
        asked = {"Delimiter": "/"}
        while True:
            answer = self._s3_page(prefix, **asked)
            found += answer.get("Contents", ())
            folders += [each["Prefix"].rstrip("/") for each in answer.get("CommonPrefixes", ())]
            if not answer["IsTruncated"]:
                break
            asked["ContinuationToken"] = answer["NextContinuationToken"]
        columns = {
            # Without a slash at the end, as the other client names the mark of a directory.
            "path": pa.array([each["Key"].removesuffix("/") for each in found], pa.string()),
            "size": pa.array([each["Size"] for each in found], pa.int64()),
            "last_modified": pa.array(
                [each["LastModified"] for each in found], pa.timestamp("us", "UTC")
            ),
            "e_tag": pa.array([each.get("ETag") for each in found], pa.string()),
        }
        return pa.table(columns), sorted(folders)

    def folders(self, prefix: str, after: str) -> list[str]:
        """Some prefixes below `prefix` behind a key, in order; none where the store tells none.

        One request at most, however much is there: they only share out a long listing.
        """
        if not self._lists_with_boto:
            return []
        answer = self._s3_page(prefix, StartAfter=after, Delimiter="/")
        return [found["Prefix"] for found in answer.get("CommonPrefixes", ())]

    def head(self, key: str) -> Part:
        """What is known of an object, without its bytes.

        Raises:
            FileNotFoundError: there is no such object.
        """
        import obstore

        with as_os_errors(self.url(key)):
            meta = obstore.head(self._store, key)
        return _part(b"", meta)

    def part(self, key: str, start: int = 0, length: int = PART, etag: str = "") -> Part:
        """Up to `length` bytes from `start` on, of the version `etag` where one is named.

        Raises:
            FileNotFoundError: there is no such object.
            AnotherVersion: it is there in another version.
            BeyondTheEnd: it ends before `start`, or there.
        """
        import obstore

        wanted: GetOptions = {"range": (start, start + length)}
        if etag:
            # Condition and read are one request: no version can come between them.
            wanted["if_match"] = f'"{etag}"'
        with as_os_errors(self.url(key)):
            found = obstore.get(self._store, key, options=wanted)
            return _part(found.bytes().to_bytes(), found.meta)

    def whole(self, key: str) -> bytes:
        """All bytes of an object, of one version: one request up to `PART`.

        Raises:
            FileNotFoundError: there is no such object.
        """
        try:
            first = self.part(key)
        except BeyondTheEnd:
            return b""
        starts = range(len(first.data), first.size, PART)
        # The etag keeps the parts of one version, and fails where the object was replaced
        # meanwhile.
        rest = [self.part(key, start, PART, first.etag).data for start in starts]
        return b"".join([first.data, *rest])

    def create(self, key: str, data: bytes | mmap) -> None:
        """Write an object unless it is there; whole or not at all. No copy is made of the data.

        Raises:
            FileExistsError: it is there; after a lost answer it may be what was written now.
        """
        import obstore

        store = self._store if len(data) <= PART else self._slow_store
        with as_os_errors(self.url(key)):
            # Only a single PUT carries the condition that nothing is there.
            obstore.put(store, key, data, mode="create", use_multipart=False)

    def delete_one(self, key: str) -> None:
        """Remove the object of exactly this key; nothing happens if it is gone."""
        import obstore

        # S3 says nothing of one that is gone, Google and Azure do.
        with suppress(FileNotFoundError), as_os_errors(self.url(key)):
            obstore.delete(self._store, [key])

    def copy(self, key: str, target: str) -> None:
        """Have the store copy an object within the bucket, over what is at `target`.

        Raises:
            FileNotFoundError: there is no such object.
        """
        import obstore

        with as_os_errors(self.url(key)):
            # The store answers when it has copied everything, however large.
            obstore.copy(self._slow_store, key, target)

    def delete(self, key: str) -> None:
        """Remove an object and all that lies below it; nothing happens if it is gone."""
        import obstore

        try:
            # The key itself is last: it may be a directory that has to be empty.
            with as_os_errors(self.url(key)):
                obstore.delete(self._store, [*self._below(key), key])
        except FileNotFoundError:
            # Google and Azure tell of one that is gone, and may have left what comes behind it.
            for left in self._below(key):
                self.delete_one(left)

    def _below(self, key: str) -> list[str]:
        # What is left of an incomplete listing is below a name that is still there.
        return [path for page in self._pages(key) for path in page.column("path").to_pylist()]


def open_bucket(url: str, storage_options: Mapping[str, Any]) -> tuple[Bucket, str] | None:
    """The bucket that `url` lies in, and the key or prefix in it; None if that is fsspec's.

    Touches nothing. The same bucket with the same options is one client.

    Raises:
        OptionError: options that the client does not know, or it is not installed.
    """
    url = storage_url(url)
    scheme = scheme_of(url)
    if scheme not in BY_SCHEME or uses_fsspec(storage_options):
        return None
    name, _, key = url.partition("://")[2].partition("/")
    options = dict(storage_options)
    if "@" in name:
        # abfs://container@account.dfs.core.windows.net/
        name, _, host = name.partition("@")
        options.setdefault("account_name", host.partition(".")[0])
    # Clients have threads, which a forked process does not inherit.
    made = _opened(scheme, name, json.dumps(options, sort_keys=True), os.getpid())
    return made, key.strip("/")


@lru_cache(maxsize=64)
def _opened(scheme: str, name: str, options: str, _process: int) -> Bucket:
    if importlib.util.find_spec("obstore") is None:
        extra = BY_SCHEME[scheme].extra
        raise OptionError(
            "the client for object stores is not installed",
            f"{scheme}://{name}",
            "no package obstore",
            f"pip install 'pyspark-sluice[{extra}]' on the driver and the executors",
        )
    from obstore.exceptions import BaseError

    try:
        return Bucket(scheme, name, client_config(scheme, json.loads(options)))
    except (BaseError, ValueError, TypeError) as error:
        raise OptionError(
            f"storageOptions: they do not configure a client for {scheme}://",
            f"{scheme}://{name}",
            " ".join(str(error).partition("\n\nDebug source")[0].split()),
            "keys, key files and endpoints in the form that the client reads",
        ) from error


def _client(scheme: str, name: str, config: ClientConfig) -> S3Store | GCSStore | AzureStore:
    from obstore import store

    given: dict[str, Any] = {
        "config": config.store,
        "client_options": config.connections,
        "retry_config": config.retries,
    }
    provider = BY_SCHEME[scheme]
    if provider is S3:
        given["credential_provider"] = shared_credentials(config)
    made: S3Store | GCSStore | AzureStore = getattr(store, provider.client)(name, **given)
    return made


def _behind(page: pa.RecordBatch, after: str) -> pa.RecordBatch:
    import pyarrow.compute as pc

    return page.filter(pc.greater(page.column("path"), after))


def _part(data: bytes, meta: Any) -> Part:
    modified = int(meta["last_modified"].timestamp() * 1_000_000)
    return Part(data, meta["size"], modified, (meta["e_tag"] or "").strip('"'))
