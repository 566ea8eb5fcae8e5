"""Buckets and containers by obstore: names are `bucket/key`."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from typing_extensions import override

from . import azure, google
from .aws import INCOMPLETE, aws_client, complete, s3_pages, shared_credentials
from .aws import as_os_errors as as_errors_of_aws
from .contract import (
    PART,
    PROBE,
    Chunk,
    Data,
    Draft,
    FileStatus,
    Look,
    Page,
    SpooledDraft,
    Storage,
    copy_by_draft,
    microseconds,
)
from .providers import BY_SCHEME, GOOGLE, S3, ClientConfig
from .storage_errors import AnotherVersion, RefusedRequest, as_os_errors, patiently

if TYPE_CHECKING:
    from obstore import GetOptions

_LARGE_TIMEOUT: Final = timedelta(minutes=5)
"""For what is written in one request, however large."""

_PAGE = 1000
"""Objects of a page of a listing: one request."""

_ENDS_REMEMBERED: Final = 1000

_COPIED: Final = 64 * 1024 * 1024
"""Bytes of a request within S3: more take longer than a request may."""

_MOST_PARTS: Final = 10_000
"""S3's limit."""


class BucketStorage(Storage):
    """Made by `open_storage`; each operation is one request where the store allows it.

    Nothing is looked up before it is read, or looked for before it is created.
    """

    is_flat = True
    has_directories = False

    def __init__(self, scheme: str, bucket: str, config: ClientConfig) -> None:
        provider = BY_SCHEME[scheme]
        self._scheme = provider.path_scheme
        self._begin = f"{bucket}/"
        self._config = config
        self._is_s3 = provider is S3
        self._is_google = provider is GOOGLE
        self._lists_in_order = provider.lists_in_order
        self._store = _client(scheme, bucket, config)
        # Timeouts belong to a client of obstore, not to a request.
        slow = replace(config, connections={**config.connections, "timeout": _LARGE_TIMEOUT})
        self._slow_store = _client(scheme, bucket, slow)
        self._s3: Any = None
        """boto3's client, made when it is first needed."""
        self._copies_exclusively: bool | None = None
        """See `_try_to_copy`; None before the first large copy."""
        self._ends: dict[str, str] = {}
        """Prefix -> last key of its last complete listing."""

    def _key(self, name: str) -> str:
        return name[len(self._begin) :]

    @override
    def name(self, url: str) -> str:
        # Any of the schemes that mean this store.
        return url.partition("://")[2]

    @override
    def url(self, name: str) -> str:
        return f"{self._scheme}://{name}"

    def _errors(self, key: str = "") -> contextlib.AbstractContextManager[None]:
        return as_os_errors(self.url(self._begin + key))

    @override
    def stat(self, name: str) -> FileStatus:
        import obstore

        key = self._key(name)
        if not key:
            raise FileNotFoundError(name)
        with self._errors(key):
            return _status(obstore.head(self._store, key))

    @override
    def read(self, name: str, start: int = 0, length: int = PART, etag: str = "") -> Chunk:
        import obstore

        options: GetOptions = {"range": (start, start + length)}
        if etag:
            # Condition and read are one request: no version can come between them.
            options["if_match"] = f'"{etag}"'
        key = self._key(name)
        with self._errors(key):
            answer = obstore.get(self._store, key, options=options)
            return Chunk(answer.bytes().to_bytes(), _status(answer.meta))

    @override
    def is_directory_mark(self, name: str) -> bool:
        key = self._key(name)
        page = next(self._objects(key), None)
        return page is not None and page.num_rows > 0 and page.column("path")[0].as_py() == key

    @override
    def create(self, name: str, data: Data) -> None:
        import obstore

        store, key = self._store if len(data) <= PART else self._slow_store, self._key(name)
        with self._errors(key):
            # Only a single PUT carries the condition that nothing is there.
            obstore.put(store, key, data, mode="create", use_multipart=False)

    @override
    def begin(self, name: str) -> Draft:
        return SpooledDraft(self, name)

    @override
    def copy(self, name: str, target: str, etag: str = "") -> None:
        import obstore

        if self._is_s3:
            part = self.read(name, 0, PART, etag)
            if len(part.data) == part.status.size:
                # Both requests have their condition, and every store that keeps state has these.
                return self.create(target, part.data)
            if self._copies_exclusively is None:
                self._copies_exclusively = self._try_to_copy(target)
            if self._copies_exclusively:
                return self._copy_in_parts(name, target, part.status)
            return copy_by_draft(self, name, target, etag)
        # The store makes the copy appear whole, and answers when it has copied everything.
        with self._errors(self._key(target)):
            obstore.copy(self._slow_store, self._key(name), self._key(target), overwrite=False)
        return None

    def _try_to_copy(self, target: str) -> bool:
        """Return whether this S3 refuses to copy onto an existing object; tried next to `target`.

        Some servers know the condition of a PUT, and not that of a multipart upload. The object
        that is copied onto itself stays, since an archive needs no permission to delete.
        """
        probe = f"{target.rpartition('/')[0]}/{PROBE}copy"
        with contextlib.suppress(FileExistsError):
            self.create(probe, b"probe")
        try:
            self._copy_in_parts(probe, probe, self.stat(probe))
        except FileExistsError:
            return True
        except (RefusedRequest, PermissionError):
            # The server does not know such a copy, or this account may not make one.
            return False
        return False

    def _copy_in_parts(self, name: str, target: str, version: FileStatus) -> None:
        """Copy a version within S3, if there is no `target`: no other copy has both conditions."""
        target_object = {"Bucket": self._begin[:-1], "Key": self._key(target)}
        source = {"Bucket": self._begin[:-1], "Key": self._key(name)}
        store, s3 = self._config.store, self._by_boto3
        # obstore adds them by itself.
        encryption = {
            aws: store[own] for aws, own in S3.renamed.items() if aws[0].isupper() and own in store
        }
        length = max(_COPIED, -(-version.size // _MOST_PARTS))
        with as_errors_of_aws(self.url(target)):
            upload = s3.create_multipart_upload(**target_object, **encryption)["UploadId"]
            try:
                parts: list[dict[str, Any]] = []
                for start in range(0, version.size, length):
                    answer = s3.upload_part_copy(
                        **target_object,
                        UploadId=upload,
                        PartNumber=len(parts) + 1,
                        CopySource=source,
                        CopySourceIfMatch=f'"{version.etag}"',
                        CopySourceRange=f"bytes={start}-{min(start + length, version.size) - 1}",
                    )
                    etag = answer["CopyPartResult"]["ETag"]
                    parts.append({"ETag": etag, "PartNumber": len(parts) + 1})
                try:
                    with as_errors_of_aws(self.url(target)):
                        s3.complete_multipart_upload(
                            **target_object,
                            UploadId=upload,
                            MultipartUpload={"Parts": parts},
                            IfNoneMatch="*",
                        )
                except AnotherVersion as error:
                    raise FileExistsError(errno.EEXIST, error.strerror, self.url(target)) from error
            except BaseException:
                # Parts that nobody completes cost money; a bucket's rules can delete them, too.
                with contextlib.suppress(Exception):
                    s3.abort_multipart_upload(**target_object, UploadId=upload)
                raise

    @override
    def look(self, name: str) -> Look:
        import obstore

        key = self._key(name)
        with self._errors(key):
            meta = obstore.head(self._store, key)
        status = _status(meta)
        return Look(status, str(meta["version"]) if self._is_google else status.etag)

    @override
    def delete(self, name: str, mark: str = "") -> None:
        import obstore

        key = self._key(name)
        if mark:
            # obstore has no conditions for this.
            with contextlib.suppress(FileNotFoundError):
                self._delete_version(key, mark)
            return
        # S3 says nothing of one that is gone, Google and Azure do.
        with contextlib.suppress(FileNotFoundError), self._errors(key):
            obstore.delete(self._store, [key])

    @cached_property
    def _delete_version(self) -> Callable[[str, str], None]:
        bucket = self._begin[:-1]
        if self._is_google:
            return google.version_deleter(bucket, self._config)
        if not self._is_s3:
            return azure.version_deleter(bucket, self._config)

        def delete(key: str, etag: str) -> None:
            with as_errors_of_aws(self.url(self._begin + key)):
                self._by_boto3.delete_object(Bucket=bucket, Key=key, IfMatch=f'"{etag}"')

        return delete

    @override
    def delete_tree(self, name: str) -> None:
        import obstore

        key = self._key(name)
        with contextlib.suppress(FileNotFoundError):
            try:
                # The key itself is last: it may be a directory that has to be empty.
                with self._errors(key):
                    obstore.delete(self._store, [*self._below(key), key])
            except FileNotFoundError:
                # Google and Azure report one that is gone, and may have left what follows it.
                for left in self._below(key):
                    self.delete(self._begin + left)

    def _below(self, key: str) -> list[str]:
        # What an incomplete listing leaves out is below a name that is still there.
        return [path for page in self._listed(key) for path in page.column("path").to_pylist()]

    @override
    def names(self, directory: str) -> list[str]:
        prefix = directory.rstrip("/") + "/"
        # One try, as callers of `names` retry all of it.
        pages = s3_pages(self._ask, prefix, folders=True) if self._is_s3 else [self._level(prefix)]
        names = [name.rstrip("/") for page in pages for name in (*page.names, *page.folders)]
        return sorted(name.rpartition("/")[2] for name in names)

    @override
    def pages(
        self, prefix: str, *, after: str = "", until: str = "", folders: bool = False
    ) -> Iterator[Page]:
        if not folders:
            yield from self._flat(*map(self._key, (prefix, after, until)))
        elif self._is_s3:
            yield from s3_pages(self._ask_patiently, prefix, after=after, folders=True)
        elif not after:
            yield self._level(prefix)

    def _level(self, prefix: str) -> Page:
        import obstore

        key = self._key(prefix)
        with self._errors(key):
            level = obstore.list_with_delimiter(
                self._store, key.rstrip("/") or None, return_arrow=True
            )
        folders = sorted(
            f"{self._begin}{folder.rstrip('/')}/" for folder in level["common_prefixes"]
        )
        return self._page(pa.table(level["objects"]), key, folders)

    def _flat(self, prefix: str, after: str, until: str) -> Iterator[Page]:
        # The client lists `a/b/` for `a/b`, and starts behind `a/b` for `a/b/`: what else begins
        # so is found by its order.
        folder, _, start = prefix.rpartition("/")
        offset = max(after, before(prefix)) if start else after
        for objects in self._objects(folder, offset):
            last = objects.column("path")[-1].as_py() if objects.num_rows else ""
            is_last = bool(until and self._is_behind(last, until))
            is_last |= bool(start and self._is_behind(last, prefix) and not last.startswith(prefix))
            page = self._page(objects, prefix)
            if start or after or is_last:
                begin, first, end = (self._begin + text for text in (prefix, after, until))
                page = page.only(
                    [
                        name.startswith(begin) and name > first and (not until or name <= end)
                        for name in page.names
                    ]
                )
            yield page
            if is_last:
                return

    def _is_behind(self, key: str, limit: str) -> bool:
        """Return True if a listing comes to `key` after `limit`, in any order of the store."""
        if self._lists_in_order:
            return key > limit
        # Which of the orders the account has is not known: only what is behind in all of them is.
        return all(one > other for one, other in zip(_orders(key), _orders(limit), strict=True))

    def _objects(self, prefix: str, after: str = "") -> Iterator[pa.RecordBatch]:
        """All objects below a prefix that ends where a part of the key ends, behind `after`.

        obstore takes any XML with status 200 for the last page, but S3 can report an error with
        status 200. So one more request asks for keys after the last one, unless the previous
        listing ended at the same key.

        Raises:
            FileNotFoundError: there is no such bucket.
            OSError: it cannot be listed to its end.
        """
        while True:
            last = after
            for page in self._listed(prefix, after):
                yield page
                last = page.column("path")[-1].as_py() if page.num_rows else last
            if not self._is_s3 or self._ends.get(prefix) == last or self._is_end(prefix, last):
                return
            if last == after:
                raise OSError(errno.EIO, INCOMPLETE, self.url(self._begin + prefix))
            after = last

    def _listed(self, prefix: str, after: str = "") -> Iterator[pa.RecordBatch]:
        """Yield what obstore lists: path (the key), last_modified, size, e_tag, version."""
        import obstore
        import pyarrow.compute as pc

        with self._errors(prefix):
            pages = obstore.list(
                self._store,
                prefix or None,
                offset=after or None,
                chunk_size=_PAGE,
                return_arrow=True,
            )
            for page in map(pa.record_batch, pages):
                # Azure does not start where it is asked to, see `providers.py`.
                whole = self._lists_in_order or not after
                yield page if whole else page.filter(pc.greater(page.column("path"), after))

    def _is_end(self, prefix: str, last: str) -> bool:
        below = f"{prefix.rstrip('/')}/" if prefix else ""
        # Two, since the first one may be the marker of a directory.
        answer = self._ask_patiently(
            Bucket=self._begin[:-1], Prefix=below, StartAfter=last, MaxKeys=2
        )
        # obstore returns a directory marker without its trailing slash.
        markers = (f"{last}/", f"{prefix}/")
        if any(one["Key"] not in markers for one in answer.get("Contents", ())):
            return False
        # Forgetting costs one request a prefix, and keeps the memory of a long run bounded.
        if len(self._ends) >= _ENDS_REMEMBERED:
            self._ends.clear()
        self._ends[prefix] = last
        return True

    def _ask(self, **request: Any) -> Mapping[str, Any]:
        with as_errors_of_aws(self.url(self._begin + request["Prefix"])):
            answer: Mapping[str, Any] = self._by_boto3.list_objects_v2(**request)
        return complete(answer, self._begin[:-1])

    @property
    def _by_boto3(self) -> Any:
        # Two threads may both make a client here: one is dropped, and nothing else happens.
        if self._s3 is None:
            self._s3 = aws_client("s3", self._config)
        return self._s3

    def _ask_patiently(self, **request: Any) -> Mapping[str, Any]:
        return patiently(lambda: self._ask(**request))

    @override
    def exists(self, prefix: str) -> bool:
        if "/" in prefix:
            return any(page.exists for page in self.pages(prefix))
        try:
            next(self._objects(""), None)
        except FileNotFoundError:
            return False
        return True

    @override
    def refresh(self, directory: str = "") -> None:
        if not directory:
            self._ends.clear()

    def _page(
        self, objects: pa.RecordBatch | pa.Table, prefix: str, folders: list[str] | None = None
    ) -> Page:
        is_there = bool(objects.num_rows or folders)
        keys = objects.column("path").to_pylist()
        if keys and f"{keys[0]}/" == prefix:
            # The marker object of a directory: its key ends in a slash.
            objects, keys = objects.slice(1), keys[1:]
        return Page(
            [self._begin + key for key in keys],
            objects.column("size").to_pylist(),
            objects.column("last_modified").cast("int64").to_pylist(),
            [(etag or "").strip('"') for etag in objects.column("e_tag").to_pylist()],
            folders or (),
            is_there,
        )


def before(prefix: str) -> str:
    """Return a name that comes before all that begin with `prefix`, and close to them."""
    last = chr(ord(prefix[-1]) - 1)
    # The tilde sorts after all other characters of names.
    return prefix[:-1] + (f"{last}~" if last.isalnum() or last in "-_.,=" else "")


def _orders(key: str) -> Iterator[bytes]:
    # Azure orders by UTF-16; its hierarchical namespaces list what is in a directory before the
    # directory's siblings, as if a slash came before all other characters.
    for text in (key, key.replace("/", "\0")):
        yield from (text.encode(), text.encode("utf-16-be"))


def _client(scheme: str, bucket: str, config: ClientConfig) -> Any:
    from obstore import store

    provider = BY_SCHEME[scheme]
    arguments: dict[str, Any] = {
        "config": config.store,
        "client_options": config.connections,
        "retry_config": config.retries,
    }
    if provider is S3:
        arguments["credential_provider"] = shared_credentials(config)
    return getattr(store, provider.client)(bucket, **arguments)


def _status(meta: Any) -> FileStatus:
    modified = microseconds(meta["last_modified"])
    return FileStatus(meta["size"], modified, (meta["e_tag"] or "").strip('"'))
