"""Pages of a listing: a thousand keys of a bucket, or one directory of any other file system.

Not here: which of them are taken (`remote_tree.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from typing_extensions import override

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
            if until and page.names and page.names[-1] > until:
                yield _up_to(page, until)
                return
            yield page
            if not answer.get("IsTruncated"):
                return
            asked["ContinuationToken"] = answer["NextContinuationToken"]

    @override
    def exists(self, prefix: str) -> bool:
        bucket, _, key = prefix.partition("/")
        return bool(
            self._files.call_s3("list_objects_v2", Bucket=bucket, Prefix=key, MaxKeys=1)["KeyCount"]
        )

    @override
    def file(self, name: str) -> Page:
        bucket, _, key = name.partition("/")
        answer = self._files.call_s3("list_objects_v2", Bucket=bucket, Prefix=key, MaxKeys=1)
        page = _s3_page(bucket, answer)
        return page if list(page.names) == [name] else _page([])


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


def _page(found: Sequence[Mapping[str, Any]]) -> Page:
    files = [one for one in found if one["type"] != "directory"]
    return Page(
        [str(one["name"]) for one in files],
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
