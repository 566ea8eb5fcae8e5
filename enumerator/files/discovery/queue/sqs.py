"""A queue of SQS: receive, keep, delete, hand to a dead letter queue; and what S3 writes into it.

Messages name objects that were created, in any of the forms S3 has.

Not here: when (`message_receiver.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote_plus, urlsplit

from .....checkpoint_meta.storage.aws import as_os_errors, aws_client
from .....checkpoint_meta.storage.client_options import client_config

LONG_POLL = 20
"""Seconds that one request waits for messages, at most."""

_AT_ONCE = 10
"""Messages of one request, as SQS has it."""

_REGION = re.compile(r"(?:^|\.)sqs\.([a-z0-9-]+)\.|^([a-z0-9-]+)\.queue\.")


class Message(NamedTuple):
    """One delivery of a message; another one has another receipt."""

    identity: str
    receipt: str
    body: str


class Queue:
    """Safe to use from several threads. Errors are OSErrors that name the queue."""

    def __init__(self, url: str, storage_options: Mapping[str, Any], visibility: int) -> None:
        """Nothing is asked yet. `visibility` is how long, in seconds, a message is ours."""
        config = client_config("s3", storage_options)
        # The queue's own address says where it is, not the bucket's.
        parts = urlsplit(url)
        config.store["endpoint"] = f"{parts.scheme}://{parts.netloc}"
        region = _REGION.search(parts.hostname or "")
        if region is not None:
            config.store["region"] = region.group(1) or region.group(2)
        config.store.setdefault("region", "us-east-1")
        self.url = url
        self.visibility = visibility
        self._config = config
        self._client: Any = None

    def _sqs(self) -> Any:
        if self._client is None:
            self._client = aws_client("sqs", self._config, LONG_POLL)
        return self._client

    def receive(self, wait: int) -> list[Message]:
        """Some messages; none if none has come for `wait` seconds."""
        with as_os_errors(self.url):
            answer = self._sqs().receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=_AT_ONCE,
                WaitTimeSeconds=wait,
                VisibilityTimeout=self.visibility,
            )
        return [
            Message(found["MessageId"], found["ReceiptHandle"], found["Body"])
            for found in answer.get("Messages", ())
        ]

    def keep(self, messages: Sequence[Message]) -> None:
        """Ours for another `visibility` seconds; one that no longer is comes to somebody again."""
        self._change(messages, self.visibility)

    def release(self, messages: Sequence[Message]) -> None:
        """Anybody's, from now on."""
        self._change(messages, 0)

    def _change(self, messages: Sequence[Message], seconds: int) -> None:
        for part in _parts(messages):
            entries = [
                {"Id": str(i), "ReceiptHandle": m.receipt, "VisibilityTimeout": seconds}
                for i, m in enumerate(part)
            ]
            with as_os_errors(self.url):
                self._sqs().change_message_visibility_batch(QueueUrl=self.url, Entries=entries)

    def delete(self, messages: Sequence[Message]) -> int:
        """Done with these for ever; the number of those that were still ours to delete."""
        deleted = 0
        for part in _parts(messages):
            entries = [{"Id": str(i), "ReceiptHandle": m.receipt} for i, m in enumerate(part)]
            with as_os_errors(self.url):
                answer = self._sqs().delete_message_batch(QueueUrl=self.url, Entries=entries)
            deleted += len(answer.get("Successful", ()))
        return deleted

    def send(self, body: str) -> None:
        """Put a message into this queue."""
        with as_os_errors(self.url):
            self._sqs().send_message(QueueUrl=self.url, MessageBody=body)


def _parts(messages: Sequence[Message]) -> Iterator[list[Message]]:
    rest = iter(messages)
    while part := list(islice(rest, _AT_ONCE)):
        yield part


_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class AnnouncedObject(NamedTuple):
    """An object that a message tells of."""

    bucket: str
    key: str


class MalformedMessage(ValueError):
    """A message that is not an event of S3, or names what cannot be read; says what is wrong."""


def objects_of(body: str) -> list[AnnouncedObject]:
    """The objects that a message tells to be there; none for a test event or a deletion.

    Whether they still are, and as what, only the store knows: events come late, twice, in any
    order.

    Raises:
        MalformedMessage: it is not an event of S3 nor an envelope around one, or a key is one that
            the client cannot ask for.
    """
    try:
        return list(_objects(json.loads(body)))
    except MalformedMessage:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MalformedMessage(f"{type(error).__name__}: {error}") from error


def _objects(event: Any) -> Iterator[AnnouncedObject]:
    if not isinstance(event, Mapping):
        raise MalformedMessage(f"JSON of type {type(event).__name__}, not an object")
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
    elif event.get("Event") != "s3:TestEvent":
        raise MalformedMessage(f"no Records, detail or Message, but {sorted(map(str, event))[:5]}")


def _record(record: Mapping[str, Any]) -> Iterator[AnnouncedObject]:
    name = str(record["eventName"]).removeprefix("s3:")
    if name.startswith("ObjectCreated:"):
        entity = record["s3"]
        yield _announced(entity, unquote_plus(entity["object"]["key"], errors="strict"))


def _announced(entity: Mapping[str, Any], key: str) -> AnnouncedObject:
    announced = AnnouncedObject(entity["bucket"]["name"], key)
    for text in announced:
        # What the ledger and the client take: text that UTF-8 has, in whole parts.
        text.encode()
    if any(part in ("", ".", "..") for part in key.removesuffix("/").split("/")) or _CONTROL.search(
        key
    ):
        raise MalformedMessage(f"the client cannot request the key {key!r}")
    return announced
