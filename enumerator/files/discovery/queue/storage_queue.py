"""A Storage Queue of Azure, and what Event Grid writes into it for a blob.

The service has no long poll, one message a request, and a new receipt for each time that a message
is hidden: all three are settled here.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import urlsplit

from typing_extensions import override

from .....checkpoint_meta.storage.azure import (
    QUICK,
    as_os_errors,
    azure_credential,
    error_code,
)
from .....checkpoint_meta.storage.providers import client_config
from .....errors import is_installed, not_installed
from .api import AnnouncedObject, EventQueue, MalformedMessage, Message, announced, event_of

_AT_ONCE: Final = 32
"""Messages of one request, as the service has it."""

_PAUSE: Final = 1.0
"""Seconds between two requests that wait for messages."""

_WORKERS: Final = 16
"""Requests at a time that hide or delete."""

RETENTION: Final = 14 * 24 * 3600
"""Seconds that an event waits for a query that is down, and that a dead letter stays; as in SQS."""

_NOT_OURS: Final = frozenset(("MessageNotFound", "PopReceiptMismatch"))
"""What the service answers if a message was deleted, or delivered again."""


class StorageQueue(EventQueue):
    """A Storage Queue."""

    def __init__(self, url: str, storage_options: Mapping[str, Any], visibility: int) -> None:
        super().__init__(url, visibility)
        if not is_installed("azure.storage.queue", "azure.identity"):
            packages = "azure-storage-queue or azure-identity"
            raise not_installed(
                "the client for Storage Queues is not installed", url, packages, "azure"
            )
        self._options = storage_options
        self._client: Any = None
        self._receipts: dict[str, str] = {}
        """Message -> its newest receipt, if it was hidden again; the first one is void then."""

    def _queue(self) -> Any:
        if self._client is None:
            from azure.storage.queue import QueueClient

            self._client = QueueClient.from_queue_url(
                self.url,
                credential=self._credential(),
                **QUICK,
            )
        return self._client

    def _credential(self) -> Any:
        config = client_config("abfss", self._options)
        host = urlsplit(self.url).hostname or ""
        return azure_credential(config, config.store.get("account_name") or host.partition(".")[0])

    @override
    def receive(self, wait: int) -> list[Message]:
        deadline = time.monotonic() + wait
        while True:
            with as_os_errors(self.url):
                # One page only: the iterator itself would ask until the queue is empty.
                pages = self._queue().receive_messages(
                    messages_per_page=_AT_ONCE, visibility_timeout=self.visibility
                )
                batch = [Message(m.id, m.pop_receipt, m.content) for m in next(pages.by_page(), ())]
            for message in batch:
                self._forget(message)
            left = deadline - time.monotonic()
            if batch or left <= 0:
                return batch
            time.sleep(min(_PAUSE, left))

    @override
    def keep(self, messages: Sequence[Message]) -> None:
        self._each(messages, self._hide)

    def _hide(self, message: Message) -> None:
        hidden = self._queue().update_message(
            message.identity, self._receipt(message), visibility_timeout=self.visibility
        )
        self._receipts[message.identity] = hidden.pop_receipt

    @override
    def release(self, messages: Sequence[Message]) -> None:
        self._each(messages, self._show)

    def _show(self, message: Message) -> None:
        self._queue().update_message(message.identity, self._receipt(message), visibility_timeout=0)
        self._forget(message)

    @override
    def delete(self, messages: Sequence[Message]) -> int:
        return self._each(messages, self._delete)

    def _delete(self, message: Message) -> None:
        self._queue().delete_message(message.identity, self._receipt(message))
        self._forget(message)

    def _receipt(self, message: Message) -> str:
        return self._receipts.get(message.identity, message.receipt)

    def _forget(self, message: Message) -> None:
        self._receipts.pop(message.identity, None)

    def _each(self, messages: Sequence[Message], call: Callable[[Message], None]) -> int:
        """Call it with each message; returns how many were still ours."""
        from azure.core.exceptions import HttpResponseError

        def called(message: Message) -> bool:
            with as_os_errors(self.url):
                try:
                    call(message)
                except HttpResponseError as error:
                    if error_code(error) not in _NOT_OURS:
                        raise
                    self._forget(message)
                    return False
            return True

        if not messages:
            return 0
        # Before the threads start: each of them would make a client.
        self._queue()
        with ThreadPoolExecutor(min(_WORKERS, len(messages))) as pool:
            return sum(pool.map(called, messages))

    @override
    def send(self, body: str) -> None:
        with as_os_errors(self.url):
            # By default the service deletes a message after seven days.
            self._queue().send_message(body, time_to_live=RETENTION)

    @staticmethod
    @override
    def _announced_by(body: str) -> Iterator[AnnouncedObject]:
        events = json.loads(_text(body))
        for event in events if isinstance(events, list) else [events]:
            yield from _objects(event)


def _text(body: str) -> str:
    """Event Grid encodes its events; a message that is sent by hand may be plain."""
    if body.lstrip()[:1] in ("{", "["):
        return body
    return base64.b64decode(body, validate=True).decode()


_SUBJECT: Final = re.compile(r"/blobServices/default/containers/([^/]+)/blobs/(.*)", re.DOTALL)

CREATED: Final = ("Microsoft.Storage.BlobCreated", "Microsoft.Storage.BlobRenamed")
"""Types of the events that announce a blob."""

UNFINISHED: Final = ("CreateFile", "SftpCreate")
"""Calls that make an empty blob, which others fill: another event follows (FlushWithClose)."""


def _objects(value: Any) -> Iterator[AnnouncedObject]:
    """The blob that one event announces; knows Event Grid's own schema and CloudEvents."""
    event = event_of(value)
    kind = event.get("eventType") or event.get("type")
    if not isinstance(kind, str) or not kind.startswith("Microsoft.Storage."):
        raise MalformedMessage(f"no event of Azure Storage: {sorted(map(str, event))[:5]}")
    if kind not in CREATED or event["data"].get("api") in UNFINISHED:
        return
    # Its name as it is; the URL in the data is escaped.
    subject = _SUBJECT.fullmatch(event["subject"])
    if subject is None:
        raise MalformedMessage(f"the subject names no blob: {event['subject']!r}")
    yield announced(*subject.groups())
