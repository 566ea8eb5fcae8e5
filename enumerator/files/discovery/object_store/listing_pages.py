"""Pages of a listing: a thousand keys of a bucket, or one directory of any other file system.

A bucket takes a request a page, and its columns come as the client gives them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import pyarrow as pa
from typing_extensions import override

from .....checkpoint_meta.storage.bucket import Bucket, open_bucket
from .....checkpoint_meta.storage.client_options import by_fsspec

# fsspec's file systems have no common name for either of these.
_TIMES: Sequence[str] = ("LastModified", "last_modified", "mtime", "updated", "created")
_MARKS: Sequence[str] = ("ETag", "etag", "md5Hash", "checksum")


@dataclass(frozen=True, slots=True)
class Page:
    """Some files, a column each, and the directories next to them."""

    names: Sequence[str]
    """As the file system has them, without protocol."""

    sizes: Sequence[int]
    modified: Sequence[int]
    """Microseconds since the epoch; -1 where the file system has none."""

    etags: Sequence[str]
    folders: Sequence[str] = ()
    is_there: bool = True
    """False if there is nothing, not even a directory somebody has drawn into a bucket."""


class Pages(ABC):
    """How a file system is listed."""

    is_flat: bool
    """True if one listing gives everything below a prefix, in the order of names."""

    @abstractmethod
    def pages(
        self, prefix: str, *, after: str = "", until: str = "", folders: bool = False
    ) -> Iterator[Page]:
        """The files whose names begin with `prefix`, behind `after` and up to `until`.

        With `folders` only those without a slash behind the prefix, and the directories there.
        Where listings are not flat, `prefix` is a directory with a slash at its end, `folders` is
        always meant, and there is one page.

        Raises:
            OSError: it cannot be listed; FileNotFoundError: it is not there.
        """

    def forget(self) -> None:
        """Believe nothing that a listing before has found out."""
        return

    @abstractmethod
    def exists(self, prefix: str) -> bool:
        """True if anything has a name that begins so."""

    @abstractmethod
    def file(self, name: str) -> Page:
        """The file of exactly this name; empty if it does not exist."""


class S3Pages(Pages):
    """ListObjectsV2, a request a page, through s3fs."""

    is_flat = True

    def __init__(self, files: Any) -> None:
        self._files = files

    @override
    def pages(
        self, prefix: str, *, after: str = "", until: str = "", folders: bool = False
    ) -> Iterator[Page]:
        bucket, _, key = prefix.partition("/")
        asked = {"Bucket": bucket, "Prefix": key}
        if after:
            asked["StartAfter"] = after.partition("/")[2]
        if folders:
            asked["Delimiter"] = "/"
        while True:
            answer = self._files.call_s3("list_objects_v2", **asked)
            page = _s3_page(bucket, answer)
            # S3 lists in the order of UTF-8, which is that of Python's texts.
            if until and page.names and page.names[-1] > until:
                yield _up_to(page, until)
                return
            yield page
            if not answer.get("IsTruncated"):
                return
            asked["ContinuationToken"] = answer["NextContinuationToken"]

    @override
    def exists(self, prefix: str) -> bool:
        return self._first(prefix).is_there

    @override
    def file(self, name: str) -> Page:
        # A prefix, so the first key may be a longer one.
        page = self._first(name)
        return page if list(page.names) == [name] else _page([])

    def _first(self, prefix: str) -> Page:
        bucket, _, key = prefix.partition("/")
        asked = {"Bucket": bucket, "Prefix": key, "MaxKeys": 1}
        return _s3_page(bucket, self._files.call_s3("list_objects_v2", **asked))


class BucketPages(Pages):
    """Listings of the client, whose prefixes are whole parts of keys."""

    is_flat = True

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._skipped = len(bucket.name) + 1

    @override
    def pages(
        self, prefix: str, *, after: str = "", until: str = "", folders: bool = False
    ) -> Iterator[Page]:
        prefix, after, until = (name[self._skipped :] for name in (prefix, after, until))
        if not folders:
            yield from self._flat(prefix, after, until)
        elif after:
            yield Page([], [], [], [], self._names(self._bucket.folders(prefix, after)))
        else:
            found, inside = self._bucket.level(prefix.rstrip("/"))
            yield self._page(found, prefix, self._names([f"{folder}/" for folder in inside]))

    def _flat(self, prefix: str, after: str, until: str) -> Iterator[Page]:
        # The client lists `a/b/` for `a/b`, and starts behind `a/b` for `a/b/`: what else begins
        # so is found by its order.
        folder, _, start = prefix.rpartition("/")
        offset = max(after, before(prefix)) if start else after
        for page in self._bucket.pages(folder, offset):
            last = page.column("path")[-1].as_py() if page.num_rows else ""
            is_last = bool(until and self._is_behind(last, until))
            is_last |= bool(start and self._is_behind(last, prefix) and not last.startswith(prefix))
            is_whole = not (start or after or is_last)
            found = page if is_whole else _within(page, prefix if start else "", after, until)
            yield self._page(found, prefix)
            if is_last:
                return

    def _is_behind(self, key: str, limit: str) -> bool:
        """True if a listing comes to `key` after `limit`, in whichever order the store lists."""
        if self._bucket.lists_in_order:
            return key > limit
        # Which of the orders the account has is not known: only what is behind in all of them is.
        return all(one > other for one, other in zip(_orders(key), _orders(limit), strict=True))

    @override
    def forget(self) -> None:
        self._bucket.forget()

    @override
    def exists(self, prefix: str) -> bool:
        return any(page.is_there for page in self.pages(prefix))

    @override
    def file(self, name: str) -> Page:
        key = name[self._skipped :]
        try:
            found = self._bucket.head(key) if key else None
        except FileNotFoundError:
            found = None
        if found is None:
            return Page([], [], [], [], is_there=False)
        return Page([name], [found.size], [found.modified], [found.etag])

    def _names(self, keys: list[str]) -> list[str]:
        return [f"{self._bucket.name}/{key}" for key in keys]

    def _page(
        self, found: pa.RecordBatch | pa.Table, prefix: str, folders: Sequence[str] = ()
    ) -> Page:
        is_there = bool(found.num_rows or folders)
        keys = found.column("path").to_pylist()
        if keys and f"{keys[0]}/" == prefix:
            # A directory that somebody has drawn: its key ends in a slash.
            found, keys = found.slice(1), keys[1:]
        return Page(
            self._names(keys),
            found.column("size").to_pylist(),
            found.column("last_modified").cast("int64").to_pylist(),
            [(etag or "").strip('"') for etag in found.column("e_tag").to_pylist()],
            folders,
            is_there,
        )


class DirectoryPages(Pages):
    """One directory at a time, through fsspec."""

    is_flat = False

    def __init__(self, files: Any) -> None:
        self._files = files

    @override
    def pages(
        self, prefix: str, *, after: str = "", until: str = "", folders: bool = False
    ) -> Iterator[Page]:
        folder = prefix.rstrip("/")
        found = self._files.ls(folder or prefix, detail=True)
        # Some answer with the file itself where it is one, some with the directory.
        inside = [one for one in found if one["name"].rstrip("/") != folder]
        yield _page(inside)

    @override
    def exists(self, prefix: str) -> bool:
        return bool(self._files.exists(prefix.rstrip("/") or prefix))

    @override
    def file(self, name: str) -> Page:
        try:
            found = self._files.info(name)
        except FileNotFoundError:
            return _page([])
        return _page([{**found, "name": name}] if found["type"] == "file" else [])


def file_system(url: str, storage_options: Mapping[str, Any]) -> tuple[Any, str]:
    """The file system of a URL and the path there; no listing is ever cached."""
    opened = open_bucket(url, storage_options)
    if opened is not None:
        bucket, key = opened
        return _files_of(bucket), f"{bucket.name}/{key}"
    return by_fsspec(url, storage_options)


@lru_cache(maxsize=64)
def _files_of(bucket: Bucket) -> BucketFiles:
    # One for all paths of a bucket: that is how a file is known not to come twice.
    return BucketFiles(bucket)


def pages_of(files: Any) -> Pages:
    """How this file system is listed."""
    if isinstance(files, BucketFiles):
        return BucketPages(files.bucket)
    return S3Pages(files) if hasattr(files, "call_s3") else DirectoryPages(files)


class BucketFiles:
    """What a remote tree asks of its file system; names are `bucket/key`, as fsspec has them."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.protocol = bucket.scheme

    def unstrip_protocol(self, name: str) -> str:
        """The URL of a name."""
        return f"{self.protocol}://{name}"

    def invalidate_cache(self) -> None:
        """Nothing is ever remembered."""

    def exists(self, name: str) -> bool:
        """True if the bucket, which `name` is, is there."""
        try:
            next(self.bucket.pages(""), None)
        except FileNotFoundError:
            return False
        return name == self.bucket.name


def _page(found: Sequence[Mapping[str, Any]]) -> Page:
    files = [one for one in found if one["type"] != "directory"]
    return Page(
        [str(one["name"]) for one in files],
        # A server of HTTP may not say a size; such a file counts as empty.
        [int(one.get("size") or 0) for one in files],
        [_microseconds(_first(one, _TIMES)) for one in files],
        [str(_first(one, _MARKS) or "").strip('"') for one in files],
        [str(one["name"]).rstrip("/") + "/" for one in found if one["type"] == "directory"],
        bool(found),
    )


def _s3_page(bucket: str, answer: Mapping[str, Any]) -> Page:
    # A key that ends in a slash is a directory somebody has drawn.
    found = [one for one in answer.get("Contents", ()) if not one["Key"].endswith("/")]
    return Page(
        [f"{bucket}/{one['Key']}" for one in found],
        [one["Size"] for one in found],
        [int(one["LastModified"].timestamp() * 1_000_000) for one in found],
        [one.get("ETag", "").strip('"') for one in found],
        [f"{bucket}/{one['Prefix']}" for one in answer.get("CommonPrefixes", ())],
        bool(answer.get("Contents") or answer.get("CommonPrefixes")),
    )


def _up_to(page: Page, until: str) -> Page:
    count = sum(name <= until for name in page.names)
    columns = (page.names, page.sizes, page.modified, page.etags)
    return Page(*(column[:count] for column in columns))  # type: ignore[arg-type]


def _first(details: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((details[key] for key in keys if details.get(key) is not None), None)


def _microseconds(time: Any) -> int:
    if isinstance(time, str):
        time = datetime.fromisoformat(time)
    if isinstance(time, datetime):
        return int(time.timestamp() * 1_000_000)
    if isinstance(time, int | float):
        return int(time * 1_000_000)
    return -1


def before(prefix: str) -> str:
    """A name that comes before all that begin with `prefix`, and close to them."""
    last = chr(ord(prefix[-1]) - 1)
    # The tilde sorts after all other characters of names.
    return prefix[:-1] + (f"{last}~" if last.isalnum() or last in "-_.,=" else "")


def _orders(key: str) -> Iterator[bytes]:
    # Azure orders by UTF-16; its hierarchical namespaces list what is in a directory before the
    # directory's siblings, as if a slash came before all other characters.
    for text in (key, key.replace("/", "\0")):
        yield from (text.encode(), text.encode("utf-16-be"))


def _within(found: pa.RecordBatch, prefix: str, after: str, until: str) -> pa.RecordBatch:
    keys = found.column("path").to_pylist()
    mask = [
        key.startswith(prefix) and (not after or key > after) and (not until or key <= until)
        for key in keys
    ]
    return found.filter(pa.array(mask, pa.bool_()))
