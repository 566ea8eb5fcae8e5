"""The command that prints what a queue needs, so that it learns of new objects in a bucket.

It prints commands and changes nothing: who may create queues is seldom who writes queries. Each
action in the policy of a query is one that a test has seen a query ask for.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple

import typer

from ....checkpoint_meta.storage.providers import AZURE, BY_SCHEME, GOOGLE, S3
from ....checkpoint_meta.storage.urls import scheme_of
from ....enumerator.files.discovery.queue.pubsub import CREATED as OBJECT_CREATED
from ....enumerator.files.discovery.queue.storage_queue import CREATED, RETENTION, UNFINISHED
from ....errors import OptionError
from ..arguments import Json
from ..output import print_json

_RETENTION = str(14 * 24 * 3600)
"""Seconds that a message waits for a query that is down: the most that SQS allows."""

_VISIBILITY = "120"
"""Seconds. A query asks for its own time; this one counts for other receivers."""


@dataclass(frozen=True, kw_only=True)
class NewQueue:
    """The queue that the printed commands create."""

    queue: Annotated[str, typer.Option(help="Give the new queue this name.")] = "sluice"
    region: Annotated[
        str, typer.Option(help="Create the queue in this AWS region, that of the bucket.")
    ] = "REGION"
    account: Annotated[
        str,
        typer.Option(help="Use this AWS account or Google project, which has bucket and queue."),
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
            help="Announce new objects at the path that the query loads: s3://bucket/prefix, "
            "gs://bucket/prefix or abfss://container@account.dfs.core.windows.net/prefix.",
        ),
    ],
    state: Annotated[
        str,
        typer.Option(help="Permit access to this checkpointLocation of the query, if it is in S3."),
    ] = "",
    cleans: Annotated[
        bool,
        typer.Option(
            "--clean-source", help="Permit the query to delete or archive what it has read."
        ),
    ] = False,
    archive: Annotated[
        str, typer.Option(help="Permit the query to write to this sourceArchiveDir.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Print the commands that make a queue for a bucket.

    They create what discoveryMode=notifications needs, policies included. Nothing is changed.
    """
    # Azure has other services for all three parts: the queue, the events and the rights.
    if BY_SCHEME.get(scheme_of(path)) is AZURE:
        setup = _azure_setup(path, new.queue, new.names["dead letters"])
        script = _azure_script(setup)
    elif BY_SCHEME.get(scheme_of(path)) is GOOGLE:
        setup = _google_setup(_place_of(path, "PATH"), new)
        script = _google_script(setup)
    else:
        data = _place_of(path, "PATH")
        setup = _aws_setup(new, data, state, archive, cleans=cleans)
        script = _aws_script(setup, new, data.bucket)
    if as_json:
        print_json(setup)
    else:
        typer.echo(script)


def _aws_setup(
    new: NewQueue, data: BucketPrefix, state: str, archive: str, *, cleans: bool
) -> dict[str, Any]:
    """The options of the query, and the attributes and policies of its queues and bucket."""
    at = f"{new.region}:{new.account}"
    host = f"https://sqs.{new.region}.amazonaws.com/{new.account}"
    arns = {queue: f"arn:aws:sqs:{at}:{name}" for queue, name in new.names.items()}
    urls = {queue: f"{host}/{name}" for queue, name in new.names.items()}
    return {
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


def _notifications(queue: str, prefix: str) -> dict[str, Any]:
    to_queue: dict[str, Any] = {"Id": "sluice", "QueueArn": queue, "Events": ["s3:ObjectCreated:*"]}
    if prefix:
        rules = [{"Name": "prefix", "Value": f"{prefix}/"}]
        to_queue["Filter"] = {"Key": {"FilterRules": rules}}
    return {"QueueConfigurations": [to_queue]}


def _aws_script(setup: dict[str, Any], new: NewQueue, bucket: str) -> str:
    queue, dead_letters, place = (shlex.quote(text) for text in (*new.names.values(), bucket))
    at = f"--region {shlex.quote(new.region)}"
    return f"""\
# 1. The queue for messages that are not S3 events, and the queue for events.
aws sqs create-queue {at} --queue-name {dead_letters} \\
  --attributes {_quoted(setup["deadLetterQueueAttributes"])}
aws sqs create-queue {at} --queue-name {queue} \\
  --attributes {_quoted(setup["queueAttributes"])}

# 2. The bucket's events. This REPLACES what the bucket has: if the first command prints anything,
#    merge it into the second one.
aws s3api get-bucket-notification-configuration {at} --bucket {place}
aws s3api put-bucket-notification-configuration {at} --bucket {place} \\
  --notification-configuration {_quoted(setup["bucketNotifications"])}

# 3. The policy of the role of the query's driver and executors.
aws iam create-policy --policy-name {queue}-query \\
  --policy-document {_quoted(setup["queryPolicy"])}

# 4. The options of the query.
{_option_lines(setup["options"])}"""


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
    is_bucket = BY_SCHEME.get(scheme) in (S3, GOOGLE)
    if not is_bucket or not bucket or any(sign in rest for sign in "*?[{"):
        raise OptionError(
            "the path is not a bucket with a prefix",
            option,
            url,
            "s3://bucket/prefix or gs://bucket/prefix without wildcards, or abfss://... for a "
            "container of Azure",
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
        # A copy of a large object that fails is aborted, and its parts are deleted.
        actions = ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"]
        statements += _bucket("Archive", archive, actions)
    if state is not None:
        actions = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
        statements += _bucket("State", state, actions)
    actions = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"]
    statements.append(_allow("QueueReceive", actions, arns["queue"]))
    statements.append(_allow("DeadLettersSend", ["sqs:SendMessage"], arns["dead letters"]))
    return {"Version": _VERSION, "Statement": statements}


def _queue_policy(queue: str, bucket: str, account: str) -> dict[str, Any]:
    """Lets the bucket, and no one else, put events into the queue."""
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


_AZURE_NAME: Final = re.compile(r"[a-z0-9](-?[a-z0-9]){2,62}")

_AZURE_PLACE: Final = re.compile(
    r"[a-z]+://(?P<container>[^/@]+)@(?P<account>[a-z0-9]+)\.(?:dfs|blob)\."
    r"(?P<suffix>[^/]+)(?:/(?P<prefix>[^*?\[{]*))?"
)


def _azure_setup(path: str, queue: str, dead_letters: str) -> dict[str, Any]:
    """The options of the query, what the subscription lets through, and the roles."""
    place = _AZURE_PLACE.fullmatch(path)
    if place is None:
        raise OptionError(
            "the place is not a container of Azure with its account",
            "PATH",
            path,
            "abfss://container@account.dfs.core.windows.net/prefix without wildcards",
            "Name the directory that the query loads, up to the first wildcard.",
        )
    for name in (queue, dead_letters):
        if not _AZURE_NAME.fullmatch(name) or len(name) > 63:
            raise OptionError(
                "Azure permits no queue of this name",
                "--queue",
                name,
                "3 to 63 lower-case letters, digits and single hyphens",
            )
    host = f"https://{place['account']}.queue.{place['suffix']}"
    prefix = (place["prefix"] or "").strip("/")
    return {
        "account": place["account"],
        "container": place["container"],
        "queues": {"events": queue, "deadLetters": dead_letters},
        "options": {
            "discoveryMode": "notifications",
            "queueUrl": f"{host}/{queue}",
            "deadLetterQueueUrl": f"{host}/{dead_letters}",
        },
        "subjectBeginsWith": (
            f"/blobServices/default/containers/{place['container']}/blobs/"
            + (f"{prefix}/" if prefix else "")
        ),
        "roles": {
            "container": "Storage Blob Data Reader",
            # To hide a message for longer is a write, which Message Processor may not.
            "events": "Storage Queue Data Contributor",
            "deadLetters": "Storage Queue Data Message Sender",
        },
    }


def _azure_script(setup: dict[str, Any]) -> str:
    """The same as commands of `az`; three variables at their head are the user's to set."""
    account, subject = shlex.quote(setup["account"]), shlex.quote(setup["subjectBeginsWith"])
    events, dead_letters = (shlex.quote(setup["queues"][key]) for key in ("events", "deadLetters"))
    roles = "\n".join(
        f'az role assignment create --assignee "$PRINCIPAL" --role {shlex.quote(role)} \\\n'
        f'  --scope "$STORAGE"{_azure_scope(setup, place)}'
        for place, role in setup["roles"].items()
    )
    return f"""\
# 1. Your subscription, the resource group of the account, and the identity of the query's driver.
SUBSCRIPTION=; GROUP=; PRINCIPAL=
STORAGE="/subscriptions/$SUBSCRIPTION/resourceGroups/$GROUP/providers\
/Microsoft.Storage/storageAccounts/"{account}

# 2. The queue for events, and the queue for messages that are not such events.
az storage queue create --account-name {account} --auth-mode login --name {events}
az storage queue create --account-name {account} --auth-mode login --name {dead_letters}

# 3. The container's events.
az eventgrid event-subscription create --name {events} --source-resource-id "$STORAGE" \\
  --endpoint-type storagequeue \\
  --endpoint "$STORAGE"/queueServices/default/queues/{events} \\
  --storage-queue-msg-ttl {RETENTION} \\
  --included-event-types {" ".join(CREATED)} \\
  --subject-begins-with {subject} \\
  --advanced-filter data.api StringNotIn {" ".join(UNFINISHED)}

# 4. The roles of the query's driver; executors need only that of the container.
{roles}

# 5. The options of the query.
{_option_lines(setup["options"])}"""


def _azure_scope(setup: dict[str, Any], place: str) -> str:
    if place == "container":
        return f"/blobServices/default/containers/{shlex.quote(setup['container'])}"
    return f"/queueServices/default/queues/{shlex.quote(setup['queues'][place])}"


def _google_setup(data: BucketPrefix, new: NewQueue) -> dict[str, Any]:
    """The options of the query, what the bucket publishes, and the roles."""
    dead_letters = new.names["dead letters"]
    project = f"https://pubsub.googleapis.com/v1/projects/{new.account}"
    return {
        "project": new.account,
        "bucket": data.bucket,
        "topics": {"events": new.queue, "deadLetters": dead_letters},
        "options": {
            "discoveryMode": "notifications",
            "queueUrl": f"{project}/subscriptions/{new.queue}",
            "deadLetterQueueUrl": f"{project}/topics/{dead_letters}",
        },
        "objectPrefix": f"{data.prefix}/" if data.prefix else "",
        "roles": {
            "bucket": "roles/storage.objectViewer",
            "events": "roles/pubsub.subscriber",
            "deadLetters": "roles/pubsub.publisher",
        },
    }


def _google_script(setup: dict[str, Any]) -> str:
    """The same as commands of `gcloud`."""
    events, dead_letters = (shlex.quote(setup["topics"][key]) for key in ("events", "deadLetters"))
    bucket = shlex.quote(f"gs://{setup['bucket']}")
    roles = setup["roles"]
    prefix = setup["objectPrefix"]
    only = f" \\\n  --object-prefix={shlex.quote(prefix)}" if prefix else ""
    return f"""\
# 1. The identity of the query's driver: serviceAccount:name@project.iam.gserviceaccount.com.
PRINCIPAL=; PROJECT={shlex.quote(setup["project"])}

# 2. The topics for events and for dead letters, each with a subscription that keeps them.
gcloud pubsub topics create {events} {dead_letters} --project="$PROJECT"
gcloud pubsub subscriptions create {events} --topic={events} --project="$PROJECT" \
  --ack-deadline={_VISIBILITY} --message-retention-duration=14d --expiration-period=never
gcloud pubsub subscriptions create {dead_letters} --topic={dead_letters} --project="$PROJECT" \
  --message-retention-duration=14d --expiration-period=never

# 3. The bucket's events.
gcloud storage buckets notifications create {bucket} --topic="projects/$PROJECT/topics/"{events} \
  --event-types={OBJECT_CREATED}{only}

# 4. The roles of the query's driver; executors need only that of the bucket.
gcloud storage buckets add-iam-policy-binding {bucket} \
  --member="$PRINCIPAL" --role={roles["bucket"]}
gcloud pubsub subscriptions add-iam-policy-binding {events} --project="$PROJECT" \
  --member="$PRINCIPAL" --role={roles["events"]}
gcloud pubsub topics add-iam-policy-binding {dead_letters} --project="$PROJECT" \
  --member="$PRINCIPAL" --role={roles["deadLetters"]}

# 5. The options of the query.
{_option_lines(setup["options"])}"""


def _option_lines(options: Mapping[str, str]) -> str:
    """Options of a query as they are written in its code, as comments of a shell script."""
    return "\n".join(f"#   .option({name!r}, {value!r})" for name, value in options.items())
