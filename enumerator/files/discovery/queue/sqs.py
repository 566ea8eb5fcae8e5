"""A queue of SQS: receive, keep, delete, hand to a dead letter queue.

Not here: when (`message_receiver.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urlsplit

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
