"""`sluice queue-setup`, which prints what a query on AWS or Azure asks for, and nothing else."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from pyspark_sluice.checkpoint_meta.documents import heartbeat
from pyspark_sluice.checkpoint_meta.storage.contract import PART
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.enumerator.files.discovery.queue.sqs import SqsQueue
from pyspark_sluice.tests.checkpoint_meta.storage.faulty_server import body_of, give
from pyspark_sluice.tests.connector.stream import Stream
from pyspark_sluice.tests.enumerator.files.discovery.queue.services import blob_event, event, record
from pyspark_sluice.tests.patience import PATIENCE, wait_until
from pyspark_sluice.tests.repository import ROOT

pytestmark = pytest.mark.slow

AZURE = "abfss://lake@account.dfs.core.windows.net/in/deep"
POLICY = ROOT / "examples" / "permissions" / "aws-policy.json"
SHIPPED = ("s3://DATA-BUCKET/events", "--state", "s3://STATE-BUCKET/checkpoints/events")
CLEANING = (*SHIPPED, "--clean-source", "--archive", "s3://DATA-BUCKET/archive")
IAM = {
    "LIST": "s3:ListBucket",
    "GET": "s3:GetObject",
    "HEAD": "s3:GetObject",
    "PUT": "s3:PutObject",
    "POST": "s3:PutObject",
    "DELETE": "s3:DeleteObject",
    "ReceiveMessage": "sqs:ReceiveMessage",
    "DeleteMessageBatch": "sqs:DeleteMessage",
    "ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
    "SendMessage": "sqs:SendMessage",
}


def printed(capsys: Any, *arguments: str) -> Any:
    assert main(["queue-setup", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def actions_of(policy: dict[str, Any]) -> dict[str, set[str]]:
    """Name of the place -> actions."""
    found: dict[str, set[str]] = {}
    for statement in policy["Statement"]:
        place = re.match("[A-Z][a-z]+", statement["Sid"]).group()
        found.setdefault(place, set()).update(statement["Action"])
    return found


def places_of(requests: list[str]) -> dict[str, set[str]]:
    """Name of the place -> what requests ask of IAM there."""
    places = {"in": "Data", "state": "State", "archive": "Archive"}
    found: dict[str, set[str]] = {}
    written: set[str] = set()
    for name in requests:
        kind, _, rest = name.partition(" ")
        path, _, query = rest.partition("?")
        if IAM[kind].startswith("sqs:"):
            place = "Dead" if kind == "SendMessage" else "Queue"
        else:
            listed = re.search("prefix=([^&]*)", query)
            key = listed.group(1) if kind == "LIST" else path.split("/", 2)[2]
            place = places[re.split("/|%2F", key)[0]]
            if kind == "PUT":
                written.add(path)
            elif kind in ("GET", "HEAD") and place != "Data" and path not in written:
                # Of an object that is not there S3 says so only to those who may list.
                found.setdefault(place, set()).add("s3:ListBucket")
        is_aborted = kind == "DELETE" and "uploadId" in query
        found.setdefault(place, set()).add("s3:AbortMultipartUpload" if is_aborted else IAM[kind])
    return found


@pytest.fixture
def run(server: Any, bucket: str, tmp_path: Path, monkeypatch: Any) -> Any:
    """What a query asks for in a few batches with events, a dead letter and an archive."""
    s3, sqs = (marked(server.make_client(service)) for service in ("s3", "sqs"))
    name = uuid.uuid4().hex[:8]
    urls = [sqs.create_queue(QueueName=of + name)["QueueUrl"] for of in ("events-", "dead-")]
    opened = SqsQueue.__init__

    def short(self: SqsQueue, url: str, options: Any, _: int) -> None:
        opened(self, url, options, 3)

    monkeypatch.setattr(SqsQueue, "__init__", short)
    monkeypatch.setattr(server, "longest_poll", 1)
    # The heartbeat before is deleted.
    monkeypatch.setattr(heartbeat, "HEARTBEAT_SECONDS", 1.0)
    began = len(server.names)
    options = {
        "path": f"s3://{bucket}/in",
        "stateLocation": f"s3://{bucket}/state",
        "storageOptions": json.dumps(server.options),
        "discoveryMode": "notifications",
        "queueUrl": urls[0],
        "deadLetterQueueUrl": urls[1],
        "cleanSource": "archive",
        "cleanSourceRetention": "0s",
        "cleanSourceWhileRetained": "true",
        "sourceArchiveDir": f"s3://{bucket}/archive",
    }

    deleted, refused = watched(server)

    def asked() -> list[str]:
        sent = zip(server.names[began:], server.headers[began:], strict=False)
        own = [name for name, header in sent if "HTTP_X_TEST" not in header]
        for name in refused:
            own.remove(name)
        one_by_one = [name for name in own if not name.endswith("?delete")]
        return one_by_one + [f"DELETE /{bucket}/{key}" for key in deleted]

    def has(kind: str, of: str = "") -> bool:
        return any(name.startswith(kind) and of in name for name in asked())

    def until(*seen: str) -> None:
        wait_until(lambda: has(*seen) or (stream.batch() and False), lambda: asked()[-30:])

    # Too large for one PUT to the archive.
    s3.put_object(Bucket=bucket, Key="in/first.json", Body=b'{"id": 0' + b" " * PART + b"}\n")
    stream = Stream(tmp_path, options)
    assert stream.until(1) == [0]
    for number in range(1, 8):
        key = f"in/{number}.json"
        s3.put_object(Bucket=bucket, Key=key, Body=b'{"id": 1}\n')
        sqs.send_message(QueueUrl=urls[0], MessageBody=event(record(bucket, key)))
        if number == 1:
            # Its message is held as long as no batch has its file.
            wait_until(lambda: has("ChangeMessageVisibilityBatch"), lambda: asked()[-30:])
        assert stream.until(1) == [1]
    sqs.send_message(QueueUrl=urls[0], MessageBody="no event")
    until("SendMessage")
    until("DeleteMessageBatch")
    until("DELETE", "/in/")
    until("DELETE", "/state/")
    stream.reader.stop()
    assert refused
    return places_of(asked())


def watched(server: Any) -> tuple[list[str], list[str]]:
    """Keys that are deleted from now on, and the one request that was answered with 409."""
    deleted: list[str] = []
    refused: list[str] = []

    def look(environ: dict[str, Any], respond: Any) -> Any:
        path = environ["PATH_INFO"]
        if environ["REQUEST_METHOD"] == "PUT" and "/archive/" in path and not refused:
            # S3's answer to a create that met another one: it may have stored nothing.
            refused.append(f"PUT {path}")
            return server.refuse("409 Conflict", "ConditionalRequestConflict")(environ, respond)
        # Which objects are deleted at once is in the body.
        if environ["REQUEST_METHOD"] == "POST" and environ.get("QUERY_STRING", "") == "delete":
            body = body_of(environ)
            give(environ, body)
            deleted.extend(re.findall("<Key>(.*?)</Key>", body.decode()))
        return None

    server.fault = look
    return deleted, refused


def marked(client: Any) -> Any:
    """A client whose requests are known for those of the test."""
    client.meta.events.register(
        "before-send.*", lambda request, **_: request.headers.__setitem__("X-Test", "1")
    )
    return client


@pytest.mark.thorough("records every request of a query; the page's list is test_permissions.py")
def test_the_policy_has_every_action_that_a_query_asks_for_and_no_other(run, capsys):
    assert actions_of(printed(capsys, *CLEANING)["queryPolicy"]) == run


def test_the_shipped_policy_is_what_the_command_prints(capsys):
    assert (
        json.loads(POLICY.read_text(encoding="utf-8")) == printed(capsys, *SHIPPED)["queryPolicy"]
    )


def test_without_an_archive_and_with_another_state_the_data_is_only_read(capsys):
    policy = printed(capsys, "s3://lake/in/")["queryPolicy"]
    found = actions_of(policy)
    assert found["Data"] == {"s3:ListBucket", "s3:GetObject"}
    assert set(found) == {"Data", "Queue", "Dead"}
    assert policy["Statement"][1]["Resource"] == "arn:aws:s3:::lake/in/*"


def test_the_commands_make_queues_that_a_query_can_use(server, bucket, capsys):
    queue = f"q-{uuid.uuid4().hex[:8]}"
    where = ("--region", "us-east-1", "--account", "123456789012", "--queue", queue)
    assert main(["queue-setup", f"s3://{bucket}/in", *where]) == 0
    script = capsys.readouterr().out
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    commands = shlex.split(script.replace("\\\n", " "), comments=True)
    s3, sqs = server.client(), server.client("sqs")
    for at in [i for i, word in enumerate(commands) if word == "create-queue"]:
        named = dict(zip(commands[at + 1 : at + 7 : 2], commands[at + 2 : at + 8 : 2], strict=True))
        attributes = json.loads(named["--attributes"])
        sqs.create_queue(QueueName=named["--queue-name"], Attributes=attributes)
    configuration = json.loads(commands[commands.index("--notification-configuration") + 1])
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=configuration)
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    # moto sends a test event and the events themselves, as S3 does.
    s3.put_object(Bucket=bucket, Key="in/a.json", Body=b"{}")
    s3.put_object(Bucket=bucket, Key="elsewhere/b.json", Body=b"{}")
    bodies: list[str] = []
    deadline = time.monotonic() + PATIENCE
    while not any("ObjectCreated" in body for body in bodies) and time.monotonic() < deadline:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        bodies += [message["Body"] for message in answer.get("Messages", ())]
    created = [body for body in bodies if "ObjectCreated" in body]
    assert len(created) == 1
    assert "in/a.json" in created[0] or "in%2Fa.json" in created[0]


def az_calls(capsys, *arguments):
    """The words of each call of az, as a shell hands them over."""
    assert main(["queue-setup", AZURE, *arguments]) == 0
    script = "az() { printf '%s\\0' \"$@\"; printf '\\1'; }\n" + capsys.readouterr().out
    done = subprocess.run(
        ["bash", "-eu"], input=script, text=True, capture_output=True, check=True, timeout=PATIENCE
    )
    return [call.split("\0") for call in done.stdout.split("\1") if call]


def test_the_options_that_it_prints_for_azure_are_those_of_a_query(capsys):
    given = {"path": AZURE, **printed(capsys, AZURE)["options"]}
    parsed = parse_options(given, streaming=False)
    assert parsed.queue_url == "https://account.queue.core.windows.net/sluice"
    assert parsed.dead_letter_queue_url == f"{parsed.queue_url}-dead-letters"


def test_events_of_azure_of_the_path_pass_the_filter_and_no_others(capsys):
    (call,) = [call for call in az_calls(capsys) if "event-subscription" in call]
    begins = call[call.index("--subject-begins-with") + 1]
    assert blob_event("lake", "in/deep/a")["subject"].startswith(begins)
    for container, key in (("lake", "in/deeper/a"), ("other", "in/deep/a")):
        assert not blob_event(container, key)["subject"].startswith(begins)


def test_each_role_of_azure_is_on_what_the_query_uses_it_for(capsys):
    calls = [call for call in az_calls(capsys, "--queue", "told") if "assignment" in call]
    roles = {call[call.index("--scope") + 1]: call[call.index("--role") + 1] for call in calls}
    ends = {scope.partition("storageAccounts/account/")[2]: roles[scope] for scope in roles}
    assert ends == {
        "blobServices/default/containers/lake": "Storage Blob Data Reader",
        "queueServices/default/queues/told": "Storage Queue Data Contributor",
        "queueServices/default/queues/told-dead-letters": "Storage Queue Data Message Sender",
    }


def test_the_commands_for_google_name_what_the_query_uses(capsys):
    where = ("gs://lake/in/deep", "--account", "shop", "--queue", "told")
    setup = printed(capsys, *where)
    options = {"path": "gs://lake/in/deep", **setup["options"]}
    parsed = parse_options(options, streaming=False)
    assert parsed.queue_url == "https://pubsub.googleapis.com/v1/projects/shop/subscriptions/told"
    assert main(["queue-setup", *where]) == 0
    script = "gcloud() { printf '%s\\0' \"$@\"; printf '\\1'; }\n" + capsys.readouterr().out
    done = subprocess.run(
        ["bash", "-eu"], input=script, text=True, capture_output=True, check=True, timeout=PATIENCE
    )
    calls = [call.split("\0") for call in done.stdout.split("\1") if call]
    assert calls[0][:5] == ["pubsub", "topics", "create", "told", "told-dead-letters"]
    (notification,) = [call for call in calls if "notifications" in call]
    assert {"gs://lake", "--topic=projects/shop/topics/told", "--object-prefix=in/deep/"} <= {
        *notification
    }
    granted = {call[-2] if call[-1] == "" else call[-1] for call in calls if "--member=" in call}
    assert granted == {f"--role={role}" for role in setup["roles"].values()}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["/data/in"], "s3://bucket/prefix"),
        (["gs://bucket/*.json"], "gs://bucket/prefix"),
        (["s3://bucket/*.json"], "s3://bucket/prefix"),
        (["s3://"], "s3://bucket/prefix"),
        (["abfss://lake/in"], "account.dfs.core.windows.net"),
        (["abfss://lake@a.dfs.core.windows.net/*.json"], "without wildcards"),
        ([AZURE, "--queue", "Told"], "lower-case"),
        ([AZURE, "--queue", "a--b"], "lower-case"),
        ([AZURE, "--queue", "x" * 60], "lower-case"),
    ],
)
def test_a_place_and_a_queue_that_a_service_does_not_know_are_refused(arguments, told, capsys):
    assert main(["queue-setup", *arguments]) == 2
    assert told in capsys.readouterr().err
