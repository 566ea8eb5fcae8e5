"""The command that prints what a queue needs, so that it learns of new objects in a bucket.

It prints commands and changes nothing: who may create queues is seldom who writes queries. Each
action in the policy of a query is one that a test has seen a query ask for.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple

import typer

from ....errors import OptionError
from ..arguments import Json
from ..output import option_lines, print_json
from .azure_queue import azure_script, azure_setup, is_azure

_RETENTION = str(14 * 24 * 3600)
"""Seconds that a message waits for a query that is down: the most that SQS allows."""

_VISIBILITY = "120"
"""Seconds. A query asks for its own time; this one counts for other receivers."""


@dataclass(frozen=True, kw_only=True)
class NewQueue:
    """The queue that the printed commands create."""

    queue: Annotated[str, typer.Option("--queue", help="Give the new queue this name.")] = "sluice"
    region: Annotated[
        str,
        typer.Option("--region", help="Create the queue in this AWS region, that of the bucket."),
    ] = "REGION"
    account: Annotated[
        str,
        typer.Option(
            "--account", help="Use this AWS account, which owns the bucket and the queue."
        ),
    ] = "ACCOUNT"

    @property
    def names(self) -> dict[str, str]:
        """The names of the queue and of its dead-letter queue."""
        return {"queue": self.queue, "dead letters": f"{self.queue}-dead-letters"}


def queue_setup(
    new: NewQueue,
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="Announce new objects at the path that the query loads: s3://bucket/prefix or "
            "abfss://container@account.dfs.core.windows.net/prefix.",
        ),
    ],
    state: Annotated[
        str,
        typer.Option(
            "--state", help="Permit access to this checkpointLocation of the query, if it is in S3."
        ),
    ] = "",
    cleans: Annotated[
        bool,
        typer.Option(
            "--clean-source", help="Permit the query to delete or archive what it has read."
        ),
    ] = False,
    archive: Annotated[
        str, typer.Option("--archive", help="Permit the query to write to this sourceArchiveDir.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Print the commands that make a queue for a bucket.

    They create what discoveryMode=notifications needs, policies included. Nothing is changed.
    """
    # Azure has other services for all three parts: the queue, the events and the rights.
    if is_azure(path):
        found = azure_setup(path, new.queue, new.names["dead letters"])
        if as_json:
            print_json(found)
        else:
            typer.echo(azure_script(found))
        return
    data = _place_of(path, "PATH")
    at = f"{new.region}:{new.account}"
    host = f"https://sqs.{new.region}.amazonaws.com/{new.account}"
    arns = {of: f"arn:aws:sqs:{at}:{name}" for of, name in new.names.items()}
    urls = {of: f"{host}/{name}" for of, name in new.names.items()}
    found = {
        "options": {
            "discoveryMode": "notifications",
            "queueUrl": urls["queue"],
            "deadLetterQueueUrl": urls["dead letters"],
        },
        "deadLetterQueueAttributes": {"MessageRetentionPeriod": _RETENTION},
        "queueAttributes": {
            "MessageRetentionPeriod": _RETENTION,
            "VisibilityTimeout": _VISIBILITY,
            "Policy": json.dumps(_queue_policy(arns["queue"], data.bucket, new.account)),
        },
        "bucketNotifications": _notifications(arns["queue"], data.prefix),
        "queryPolicy": _query_policy(
            data,
            _place_of(state, "--state") if state else None,
            _place_of(archive, "--archive") if archive else None,
            arns,
            cleans=cleans or bool(archive),
        ),
    }
    if as_json:
        print_json(found)
    else:
        typer.echo(_script(found, new, data.bucket))


def _notifications(queue: str, prefix: str) -> dict[str, Any]:
    to_queue: dict[str, Any] = {"Id": "sluice", "QueueArn": queue, "Events": ["s3:ObjectCreated:*"]}
    if prefix:
        rules = [{"Name": "prefix", "Value": f"{prefix}/"}]
        to_queue["Filter"] = {"Key": {"FilterRules": rules}}
    return {"QueueConfigurations": [to_queue]}


def _script(found: dict[str, Any], new: NewQueue, bucket: str) -> str:
    queue, dead_letters, place = (shlex.quote(text) for text in (*new.names.values(), bucket))
    at = f"--region {shlex.quote(new.region)}"
    return f"""\
# 1. The queue for messages that are not S3 events, and the queue for events.
aws sqs create-queue {at} --queue-name {dead_letters} \\
  --attributes {_quoted(found["deadLetterQueueAttributes"])}
aws sqs create-queue {at} --queue-name {queue} \\
  --attributes {_quoted(found["queueAttributes"])}

# 2. The bucket's events. This REPLACES what the bucket has: if the first command prints anything,
#    merge it into the second one.
aws s3api get-bucket-notification-configuration {at} --bucket {place}
aws s3api put-bucket-notification-configuration {at} --bucket {place} \\
  --notification-configuration {_quoted(found["bucketNotifications"])}

# 3. The policy of the role of the query's driver and executors.
aws iam create-policy --policy-name {queue}-query \\
  --policy-document {_quoted(found["queryPolicy"])}

# 4. The options of the query.
{option_lines(found["options"])}"""


def _quoted(document: dict[str, Any]) -> str:
    return shlex.quote(json.dumps(document, indent=2))


_VERSION: Final = "2012-10-17"
"""The version of the policy language that AWS expects in each policy."""


class BucketPrefix(NamedTuple):
    """A prefix of a bucket; without slashes at either end."""

    bucket: str
    prefix: str

    @property
    def objects(self) -> str:
        """The ARN of everything below it."""
        return f"arn:aws:s3:::{self.bucket}/" + (f"{self.prefix}/*" if self.prefix else "*")


def _place_of(url: str, option: str) -> BucketPrefix:
    """The bucket and prefix of a URL."""
    scheme, _, rest = url.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme not in ("s3", "s3a", "s3n") or not bucket or any(sign in rest for sign in "*?[{"):
        raise OptionError(
            "the path is not an S3 bucket with a prefix",
            option,
            url,
            "s3://bucket/prefix without wildcards, or abfss://... for a container of Azure",
            "Name the directory that the query loads, up to the first wildcard.",
        )
    return BucketPrefix(bucket, key.strip("/"))


def _query_policy(
    data: BucketPrefix,
    state: BucketPrefix | None,
    archive: BucketPrefix | None,
    arns: dict[str, str],
    *,
    cleans: bool,
) -> dict[str, Any]:
    """The policy for the role of the driver and the executors of one query."""
    deletes = ["s3:DeleteObject"] if cleans else []
    statements = _bucket("Data", data, ["s3:GetObject", *deletes])
    if archive is not None:
        statements += _bucket("Archive", archive, ["s3:GetObject", "s3:PutObject"])
    if state is not None:
        actions = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
        statements += _bucket("State", state, actions)
    actions = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"]
    statements.append(_allow("QueueReceive", actions, arns["queue"]))
    statements.append(_allow("DeadLettersSend", ["sqs:SendMessage"], arns["dead letters"]))
    return {"Version": _VERSION, "Statement": statements}


def _queue_policy(queue: str, bucket: str, account: str) -> dict[str, Any]:
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
    return {"Version": _VERSION, "Statement": [statement]}


def _bucket(name: str, place: BucketPrefix, actions: Sequence[str]) -> list[dict[str, Any]]:
    # Without s3:ListBucket S3 answers 403 for an object that is not there, not 404. A condition on
    # s3:prefix does not hold for such a request, so the whole bucket may be listed.
    bucket = f"arn:aws:s3:::{place.bucket}"
    return [
        _allow(f"{name}List", ["s3:ListBucket"], bucket),
        _allow(f"{name}Objects", actions, place.objects),
    ]


def _allow(name: str, actions: Sequence[str], resource: str) -> dict[str, Any]:
    return {"Sid": name, "Effect": "Allow", "Action": list(actions), "Resource": resource}
