"""A queue of SQS: receive, keep, delete, hand to a dead letter queue; and what S3 writes into it.

Messages name objects that were created, in any of the forms S3 has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from typing_extensions import override

from .....checkpoint_meta.storage.aws import as_os_errors, aws_client
from .....checkpoint_meta.storage.providers import client_config
from .api import (
    LONG_POLL,
    AnnouncedObject,
    EventQueue,
    MalformedMessage,
    Message,
    announced,
    event_of,
)

_AT_ONCE = 10
"""Messages of one request, as SQS has it."""

_REGION = re.compile(r"(?:^|\.)sqs\.([a-z0-9-]+)\.|^([a-z0-9-]+)\.queue\.")


class SqsQueue(EventQueue):
    """A queue of SQS."""

    def __init__(self, url: str, storage_options: Mapping[str, Any], visibility: int) -> None:
        super().__init__(url, visibility)
        config = client_config("s3", storage_options)
        # The queue's own address says where it is, not the bucket's.
        parts = urlsplit(url)
        config.store["endpoint"] = f"{parts.scheme}://{parts.netloc}"
        region = _REGION.search(parts.hostname or "")
        if region is not None:
            config.store["region"] = region.group(1) or region.group(2)
        # boto3 makes no client without a region, although a server of another kind has none.
        config.store.setdefault("region", "us-east-1")
        self._config = config
        self._client: Any = None

    def _sqs(self) -> Any:
        if self._client is None:
            self._client = aws_client("sqs", self._config, LONG_POLL)
        return self._client

    @override
    def receive(self, wait: int) -> list[Message]:
        with as_os_errors(self.url):
            answer = self._sqs().receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=_AT_ONCE,
                WaitTimeSeconds=wait,
                VisibilityTimeout=self.visibility,
            )
        return [
            Message(message["MessageId"], message["ReceiptHandle"], message["Body"])
            for message in answer.get("Messages", ())
        ]

    @override
    def keep(self, messages: Sequence[Message]) -> None:
        self._each(messages, "change_message_visibility_batch", VisibilityTimeout=self.visibility)

    @override
    def release(self, messages: Sequence[Message]) -> None:
        self._each(messages, "change_message_visibility_batch", VisibilityTimeout=0)

    @override
    def delete(self, messages: Sequence[Message]) -> int:
        return self._each(messages, "delete_message_batch")

    def _each(self, messages: Sequence[Message], call: str, **more: int) -> int:
        """Call it with all messages; returns how many were still ours."""
        done = 0
        for at in range(0, len(messages), _AT_ONCE):
            part = enumerate(messages[at : at + _AT_ONCE])
            entries = [{"Id": str(i), "ReceiptHandle": m.receipt, **more} for i, m in part]
            with as_os_errors(self.url):
                # What fails for single messages is in the answer: another receiver has them by now.
                answer = getattr(self._sqs(), call)(QueueUrl=self.url, Entries=entries)
            done += len(answer.get("Successful", ()))
        return done

    @override
    def send(self, body: str) -> None:
        with as_os_errors(self.url):
            self._sqs().send_message(QueueUrl=self.url, MessageBody=body)

    @staticmethod
    @override
    def _announced_by(body: str) -> Iterator[AnnouncedObject]:
        return _objects(json.loads(body))


def _objects(value: Any) -> Iterator[AnnouncedObject]:
    event = event_of(value)
    if event.get("Type") == "Notification" and "Message" in event:
        # SNS, without raw message delivery.
        yield from _objects(json.loads(event["Message"]))
    elif "Records" in event:
        for record in event["Records"]:
            yield from _record(record)
    elif event.get("source") == "aws.s3" and "detail" in event:
        # EventBridge writes the key as it is.
        if str(event["detail-type"]).startswith("Object Created"):
            yield _announced(event["detail"], event["detail"]["object"]["key"])
    # S3 sends that one when its notifications are set up.
    elif event.get("Event") != "s3:TestEvent":
        raise MalformedMessage(f"no Records, detail or Message, but {sorted(map(str, event))[:5]}")


def _record(record: Mapping[str, Any]) -> Iterator[AnnouncedObject]:
    name = str(record["eventName"]).removeprefix("s3:")
    if name.startswith("ObjectCreated:"):
        entity = record["s3"]
        # In its own events S3 writes keys like values of a form: a space is a plus.
        yield _announced(entity, unquote_plus(entity["object"]["key"], errors="strict"))


def _announced(entity: Mapping[str, Any], key: str) -> AnnouncedObject:
    return announced(entity["bucket"]["name"], key)
