"""What AWS has to permit: the policy of a query's role, and of the queue that a bucket writes to.

Each action in the policy of a query is one that a test has seen a query ask for. Not here: the
commands that put the policies in place (`commands/queue_setup.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ...errors import OptionError

VERSION: Final = "2012-10-17"
"""Of the language of policies."""


class Place(NamedTuple):
    """A prefix of a bucket; without slashes at either end."""

    bucket: str
    prefix: str

    @property
    def objects(self) -> str:
        """The ARN of everything below it."""
        return f"arn:aws:s3:::{self.bucket}/" + (f"{self.prefix}/*" if self.prefix else "*")


def place_of(url: str, option: str) -> Place:
    """The bucket and prefix of a URL.

    Raises:
        OptionError: it is not in S3, or has wildcards; `option` says which one it is.
    """
    scheme, _, rest = url.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme not in ("s3", "s3a", "s3n") or not bucket or any(sign in rest for sign in "*?[{"):
        raise OptionError(
            "the place is not a bucket of S3 with a prefix",
            option,
            url,
            "s3://bucket/prefix without wildcards",
            "Name the directory that the query loads, up to the first wildcard.",
        )
    return Place(bucket, key.strip("/"))


def query_policy(
    data: Place,
    state: Place | None,
    *,
    queue: str = "",
    dead_letters: str = "",
    cleans: bool = False,
    archive: Place | None = None,
) -> dict[str, Any]:
    """For the role of the driver and the executors of one query.

    Args:
        data: what the query loads.
        state: where its checkpoint is; None if it is not in S3.
        queue: ARN of the queue with events.
        dead_letters: ARN of the queue for messages that are no events.
        cleans: the query deletes or archives what it has read (`cleanSource`).
        archive: where `sourceArchiveDir` is.
    """
    statements = [
        *_bucket("Data", data, ["s3:GetObject", *(["s3:DeleteObject"] if cleans else [])]),
    ]
    if archive is not None:
        statements += _bucket("Archive", archive, ["s3:GetObject", "s3:PutObject"])
    if state is not None:
        actions = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
        statements += _bucket("State", state, actions)
    if queue:
        actions = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"]
        statements.append(_allow("QueueReceive", actions, queue))
    if dead_letters:
        statements.append(_allow("DeadLettersSend", ["sqs:SendMessage"], dead_letters))
    return {"Version": VERSION, "Statement": statements}


def queue_policy(queue: str, bucket: str, account: str) -> dict[str, Any]:
    """Lets the bucket, and nobody else, put events into the queue."""
    statement = {
        "Sid": "BucketEvents",
        "Effect": "Allow",
        "Principal": {"Service": "s3.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": queue,
        "Condition": {
            "ArnEquals": {"aws:SourceArn": f"arn:aws:s3:::{bucket}"},
            "StringEquals": {"aws:SourceAccount": account},
        },
    }
    return {"Version": VERSION, "Statement": [statement]}


def _bucket(name: str, place: Place, actions: Sequence[str]) -> list[dict[str, Any]]:
    # Without s3:ListBucket S3 answers 403 for an object that is not there, not 404. A condition on
    # s3:prefix does not hold for such a request, so the whole bucket may be listed.
    bucket = f"arn:aws:s3:::{place.bucket}"
    return [
        _allow(f"{name}List", ["s3:ListBucket"], bucket),
        _allow(f"{name}Objects", actions, place.objects),
    ]


def _allow(name: str, actions: Sequence[str], resource: str) -> dict[str, Any]:
    return {"Sid": name, "Effect": "Allow", "Action": list(actions), "Resource": resource}
