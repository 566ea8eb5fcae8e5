"""Amazon's services through boto3: queues, a look ahead, keys in `~/.aws`, and pages of listings.

boto3 is imported only where one of these is needed, since its import takes longer than a small
listing. Pages of ListObjectsV2 come from boto3 and s3fs in the same form.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from .contract import FileStatus, Page, Storage, microseconds
from .providers import ClientConfig
from .storage_errors import PASSING, MissingBucket, RefusedRequest, error_of_status, message_in

_NAMES: Final = {
    "access_key_id": "aws_access_key_id",
    "secret_access_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
    "region": "region_name",
    "endpoint": "endpoint_url",
}


def aws_client(service: str, config: ClientConfig, longest_wait: float = 0.0) -> Any:
    """A client of a service with the region, endpoint and keys of a store; safe in many threads.

    `longest_wait` is how many seconds a request may wait for something to happen.
    """
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config

    given = {name: config.store[own] for own, name in _NAMES.items() if own in config.store}
    seconds = {
        f"{kind}_timeout": config.connections[name].total_seconds()
        for kind, name in (("connect", "connect_timeout"), ("read", "timeout"))
        # A text such as `30s` is in the other client's format; boto3 then keeps its default.
        if hasattr(config.connections.get(name), "total_seconds")
    }
    if "read_timeout" in seconds:
        # A long poll is no stalled request.
        seconds["read_timeout"] += longest_wait
    settings = Config(
        signature_version=UNSIGNED if config.store.get("skip_signature") else None,
        # The caller retries for longer, and counts.
        retries={"mode": "standard", "total_max_attempts": 2},
        max_pool_connections=Storage.requests,
        **seconds,
    )
    if config.connections.get("allow_invalid_certificates"):
        given["verify"] = False
    session = boto3.Session(profile_name=config.profile or None)
    return session.client(service, config=settings, **given)


def _may_pass(status: int, code: str) -> bool:
    words = ("Throttl", "Timeout", "SlowDown", "OverLimit", "TooManyRequests")
    return str(status) in PASSING or any(word in code for word in words)


@contextmanager
def as_os_errors(where: str) -> Iterator[None]:
    """Raise what boto3 raises as errors of the operating system; `where` is what they name.

    Raises:
        PermissionError: the credentials are missing or do not permit it.
        FileNotFoundError: there is no such bucket or queue.
        AnotherVersion: the object is not the version that was asked for.
        OSError: anything else, after boto3's own retries.
    """
    from botocore import exceptions

    try:
        yield
    except exceptions.ClientError as error:
        detail = error.response.get("Error", {})
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        code = str(detail.get("Code", ""))
        # What boto3 cannot read it takes for the message as a whole: see `storage_errors.py`.
        message = str(detail.get("Message", ""))
        reason = message_in(message) if "<" in message else f"{code}: {message}"
        text = f"the service answered {status} ({reason})"
        # The cause is printed too, and an answer may repeat tokens that no mask here knows.
        error.args, error.response = (text,), {}
        # SQS answers 400 where there is no such queue.
        if status == 404 or "NonExistentQueue" in code or "QueueDoesNotExist" in code:
            kind = MissingBucket if code == "NoSuchBucket" else FileNotFoundError
            raise kind(errno.ENOENT, text, where) from error
        # Keys that have expired, among others, are answered with 400, as is a client that is slow.
        is_refused = status in range(400, 500) and not _may_pass(status, code)
        if status == 501 or (is_refused and status not in (401, 403, 412)):
            raise RefusedRequest(errno.EINVAL, text, where) from error
        raise error_of_status(status, text, where) from error
    except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError) as error:
        raise PermissionError(errno.EACCES, str(error), where) from error
    except exceptions.BotoCoreError as error:
        raise OSError(errno.EIO, str(error), where) from error


def shared_credentials(config: ClientConfig) -> Callable[[], Any] | None:
    """Keys from `~/.aws`, which boto3 reads; None where the store's client finds its own.

    Its own come from the options, the environment, a web identity, the container or the machine.
    """
    named = config.profile or os.environ.get("AWS_PROFILE")
    files = ("~/.aws/config", "~/.aws/credentials")
    there = any(os.path.exists(os.path.expanduser(path)) for path in files)
    # The other client never reads `~/.aws`. What it finds by itself needs no import of boto3.
    has_keys = "access_key_id" in config.store or config.store.get("skip_signature")
    if has_keys or "AWS_ACCESS_KEY_ID" in os.environ or not (named or there):
        return None
    import boto3
    from obstore.auth.boto3 import Boto3CredentialProvider

    session = boto3.Session(profile_name=config.profile or None)
    # Without keys in the files, the client still has those of the machine to try.
    return Boto3CredentialProvider(session) if session.get_credentials() else None


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
