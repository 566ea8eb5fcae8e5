"""The scripts that create queues, with programs in the place of those of the clouds."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from pathlib import Path

import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.tests.enumerator.files.discovery.queue.services import blob_event
from pyspark_sluice.tests.patience import PATIENCE, wait_until
from pyspark_sluice.tests.repository import ROOT

pytestmark = pytest.mark.slow

SCRIPTS = ROOT / "examples" / "queues"
POLICY = ROOT / "examples" / "permissions" / "aws-policy.json"
NAMES = {"BUCKET": "lake", "CONTAINER": "lake", "PREFIX": "in/deep", "QUEUE": "told"}
WHO = {"SUBSCRIPTION": "s", "GROUP": "g", "PRINCIPAL": "p", "PROJECT": "shop"}
AMAZON = {"STATE": "S/ck", "REGION": "us-east-1", "ACCOUNT": "123456789012"}


def calls_of(tmp_path: Path, script: str, answer="", code=0, **variables):
    """The words of each call that a script makes, and the options that it prints."""
    program = (
        f'#!/bin/sh\nprintf "%s\\0" "$@" >> {tmp_path}/calls\nprintf "\\1" >> {tmp_path}/calls\n'
    )
    for name in ("aws", "az", "gcloud"):
        (tmp_path / name).write_text(f"{program}case $2 in get-*) printf '{answer}' ;; esac\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        ["bash", str(SCRIPTS / script)],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", **NAMES, **WHO, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == code, done.stderr
    calls = [c.split("\0")[:-1] for c in (tmp_path / "calls").read_text().split("\1") if c]
    return calls, dict(line.split("=", 1) for line in done.stdout.splitlines())


def after(call, word):
    return call[call.index(word) + 1]


def test_the_commands_of_aws_make_queues_that_a_query_can_use(server, bucket, tmp_path):
    queue = f"q-{uuid.uuid4().hex[:8]}"
    given = {**AMAZON, "BUCKET": bucket, "QUEUE": queue}
    calls, options = calls_of(tmp_path, "aws.sh", **given)
    s3, sqs = server.client(), server.client("sqs")
    for call in calls:
        if call[1] == "create-queue":
            attributes = json.loads(after(call, "--attributes"))
            sqs.create_queue(QueueName=after(call, "--queue-name"), Attributes=attributes)
        elif call[1] == "put-bucket-notification-configuration":
            told = json.loads(after(call, "--notification-configuration"))
            s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=told)
    policy = json.loads(after(calls[-1], "--policy-document"))
    shipped = json.loads(POLICY.read_text(encoding="utf-8"))
    actions = [statement["Action"] for statement in policy["Statement"]]
    assert actions == [statement["Action"] for statement in shipped["Statement"]]
    assert [statement["Resource"].partition(":::")[2] for statement in policy["Statement"][:4]] == [
        *(bucket, f"{bucket}/in/deep/*", "S", "S/ck/*")
    ]
    ours = f"arn:aws:sqs:us-east-1:123456789012:{queue}"
    assert [s["Resource"] for s in policy["Statement"][4:]] == [ours, f"{ours}-dead-letters"]
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    parsed = parse_options({"path": f"s3://{bucket}/in/deep", **options}, streaming=False)
    assert parsed.queue_url.rpartition("/")[2] == url.rpartition("/")[2]
    statement = json.loads(
        sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])["Attributes"]["Policy"]
    )["Statement"][0]
    assert statement["Resource"] == ours
    # moto sends a test event and the events themselves, as S3 does.
    s3.put_object(Bucket=bucket, Key="in/deep/a.json", Body=b"{}")
    s3.put_object(Bucket=bucket, Key="in/deeper/b.json", Body=b"{}")
    bodies: list[str] = []

    def has_event():
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        bodies.extend(message["Body"] for message in answer.get("Messages", ()))
        return any("ObjectCreated" in body for body in bodies)

    wait_until(has_event, lambda: bodies)
    (created,) = [body for body in bodies if "ObjectCreated" in body]
    assert "a.json" in created


def test_a_bucket_that_sends_its_events_elsewhere_stays_as_it_is(tmp_path):
    calls, _ = calls_of(tmp_path, "aws.sh", answer="{}", code=1, **AMAZON)
    assert len(calls) == 1


def test_the_commands_of_azure_name_what_the_query_uses(tmp_path):
    calls, options = calls_of(tmp_path, "azure.sh", ACCOUNT="account")
    parsed = parse_options(
        {"path": "abfss://lake@account.dfs.core.windows.net/in/deep", **options}, streaming=False
    )
    assert parsed.queue_url == "https://account.queue.core.windows.net/told"
    assert parsed.dead_letter_queue_url == f"{parsed.queue_url}-dead-letters"
    created = [
        after(call, "--name") for call in calls if call[:3] == ["storage", "queue", "create"]
    ]
    assert created == ["told", "told-dead-letters"]
    (events,) = [call for call in calls if "event-subscription" in call]
    begins = after(events, "--subject-begins-with")
    assert blob_event("lake", "in/deep/a")["subject"].startswith(begins)
    for container, key in (("lake", "in/deeper/a"), ("other", "in/deep/a")):
        assert not blob_event(container, key)["subject"].startswith(begins)
    roles = {
        after(call, "--scope").partition("storageAccounts/account/")[2]: after(call, "--role")
        for call in calls
        if "assignment" in call
    }
    assert roles == {
        "blobServices/default/containers/lake": "Storage Blob Data Reader",
        "queueServices/default/queues/told": "Storage Queue Data Contributor",
        "queueServices/default/queues/told-dead-letters": "Storage Queue Data Message Sender",
    }


def test_the_commands_of_google_name_what_the_query_uses(tmp_path):
    calls, options = calls_of(tmp_path, "google.sh")
    parsed = parse_options({"path": "gs://lake/in/deep", **options}, streaming=False)
    project = "https://pubsub.googleapis.com/v1/projects/shop"
    assert parsed.queue_url == f"{project}/subscriptions/told"
    assert parsed.dead_letter_queue_url == f"{project}/topics/told-dead-letters"
    assert calls[0][:5] == ["pubsub", "topics", "create", "told", "told-dead-letters"]
    (events,) = [call for call in calls if "notifications" in call]
    assert {"gs://lake", "--topic=projects/shop/topics/told", "--object-prefix=in/deep/"} <= {
        *events
    }
    granted = [call[-1].partition("=")[2] for call in calls if "--member=p" in call]
    assert granted == [
        "roles/storage.objectViewer",
        "roles/pubsub.subscriber",
        "roles/pubsub.publisher",
    ]
