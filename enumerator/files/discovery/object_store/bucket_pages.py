"""Pages of a bucket: a request a page, columns as the client gives them.

Not here: file systems of fsspec (`listing_pages.py`), requests (`checkpoint_meta/storage`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from typing_extensions import override

from .....checkpoint_meta.storage.bucket import Bucket
from .listing_pages import Page, Pages


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
            is_last = bool(until and last > until)
            is_last = is_last or bool(start and last > prefix and not last.startswith(prefix))
            is_whole = not (start or after or is_last)
            found = page if is_whole else _within(page, prefix if start else "", after, until)
            yield self._page(found, prefix)
            if is_last:
                return

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


def before(prefix: str) -> str:
    """A name that comes before all that begin with `prefix`, and close to them."""
    last = chr(ord(prefix[-1]) - 1)
    # The tilde comes after whatever else names are made of.
    return prefix[:-1] + (f"{last}~" if last.isalnum() or last in "-_.,=" else "")


def _within(found: pa.RecordBatch, prefix: str, after: str, until: str) -> pa.RecordBatch:
    keys = found.column("path").to_pylist()
    mask = [
        key.startswith(prefix) and (not after or key > after) and (not until or key <= until)
        for key in keys
    ]
    return found.filter(pa.array(mask, pa.bool_()))
