"""Pages of S3's ListObjectsV2, whose answers boto3 and s3fs return in the same form."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from .contract import FileStatus, Page, microseconds

INCOMPLETE: Final = "the store answered a list request with an incomplete page"


def complete(answer: Mapping[str, Any], bucket: str) -> Mapping[str, Any]:
    """Return `answer` if it is a page: S3 can report an error with status 200.

    Raises:
        OSError: it is not.
    """
    more = answer.get("IsTruncated")
    if more is None or (more and "NextContinuationToken" not in answer):
        raise OSError(errno.EIO, INCOMPLETE, f"s3://{bucket}")
    return answer


def s3_pages(
    ask: Callable[..., Mapping[str, Any]],
    prefix: str,
    *,
    after: str = "",
    until: str = "",
    folders: bool = False,
) -> Iterator[Page]:
    """`Storage.pages` by `ask`, which sends one request; names are `bucket/key`."""
    bucket, _, key = prefix.partition("/")
    request = {"Bucket": bucket, "Prefix": key}
    if after:
        request["StartAfter"] = after.partition("/")[2]
    if folders:
        request["Delimiter"] = "/"
    while True:
        answer = ask(**request)
        page = _page(bucket, answer)
        # S3 lists in the order of UTF-8, which is that of Python's texts.
        if until and page.names and page.names[-1] > until:
            yield page.only([name <= until for name in page.names])
            return
        yield page
        if not answer["IsTruncated"]:
            return
        request["ContinuationToken"] = answer["NextContinuationToken"]


def _page(bucket: str, answer: Mapping[str, Any]) -> Page:
    # A key that ends in a slash is the marker object of a directory.
    objects = [one for one in answer.get("Contents", ()) if not one["Key"].endswith("/")]
    files = {
        f"{bucket}/{one['Key']}": FileStatus(
            one["Size"], microseconds(one["LastModified"]), one.get("ETag", "").strip('"')
        )
        for one in objects
    }
    folders = [f"{bucket}/{one['Prefix']}" for one in answer.get("CommonPrefixes", ())]
    return Page.of(files, folders, exists=bool(answer.get("Contents") or folders))
