"""A subscription of Google's Pub/Sub, and what Cloud Storage publishes for an object.

An event is in the attributes of a message, not in its data. A body here is the JSON of both, so
that a dead letter is published as it was received.
"""

from __future__ import annotations

import base64
import errno
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from typing_extensions import override

from .....checkpoint_meta.storage.google import google_credentials
from .....checkpoint_meta.storage.providers import client_config
from .....checkpoint_meta.storage.storage_errors import RefusedRequest, error_of_status
from .....errors import is_installed, not_installed
from .api import AnnouncedObject, EventQueue, MalformedMessage, Message, announced, event_of

_AT_ONCE: Final = 500
"""Messages of one request; its acknowledgement identifiers have to fit into 512 KiB."""

_SECONDS: Final = 15.0
"""Longest time that a request takes, the wait of a poll left out."""

_EMPTY: Final = 2
"""Answers without a message after which a subscription counts as empty: one can be early."""

CREATED: Final = "OBJECT_FINALIZE"
"""The event that announces an object."""


class PubSubSubscription(EventQueue):
    """A subscription; a queue of dead letters is a topic."""

    def __init__(self, url: str, storage_options: Mapping[str, Any], visibility: int) -> None:
        super().__init__(url, visibility)
        if not is_installed("google.pubsub_v1"):
            client = "the client for Pub/Sub is not installed"
            raise not_installed(client, url, "google-cloud-pubsub", "gcs")
        self._options = storage_options
        self._clients: dict[str, Any] = {}
        parts = urlsplit(url)
        self._is_encrypted, self._host = parts.scheme == "https", parts.netloc
        self._name = parts.path.removeprefix("/v1/")

    def _client(self, kind: str) -> Any:
        """Return the client of Google's service `Subscriber` or `Publisher`."""
        if kind not in self._clients:
            from google import pubsub_v1

            service = getattr(pubsub_v1, f"{kind}Client")
            if self._is_encrypted:
                credentials = google_credentials(client_config("gs", self._options))
                endpoint = {"api_endpoint": self._host}
                client = service(credentials=credentials, client_options=endpoint)
            else:
                # An emulator, which knows nobody.
                import grpc

                channel = grpc.insecure_channel(self._host)
                client = service(transport=service.get_transport_class("grpc")(channel=channel))
            self._clients[kind] = client
        return self._clients[kind]

    @override
    def receive(self, wait: int) -> list[Message]:
        from google.api_core.exceptions import DeadlineExceeded

        end, empty = time.monotonic() + wait, 0
        while True:
            left = max(1.0, end - time.monotonic())
            with _as_os_errors(self.url):
                try:
                    # Also a request that ends without an answer may be served, and what it would
                    # have brought comes again after the subscription's own deadline.
                    request = {"subscription": self._name, "max_messages": _AT_ONCE}
                    answer = self._client("Subscriber").pull(request, timeout=left, retry=None)
                    received = list(answer.received_messages)
                except DeadlineExceeded:
                    received = []
            batch = [
                Message(one.message.message_id, one.ack_id, _body(one.message)) for one in received
            ]
            if batch:
                # Until then they are hidden for as long as the subscription says: 10 s by default.
                self.keep(batch)
                return batch
            empty += 1
            if empty >= _EMPTY and time.monotonic() >= end:
                return []

    @override
    def keep(self, messages: Sequence[Message]) -> None:
        self._hide(messages, self.visibility)

    @override
    def release(self, messages: Sequence[Message]) -> None:
        self._hide(messages, 0)

    def _hide(self, messages: Sequence[Message], seconds: int) -> None:
        self._each(messages, "modify_ack_deadline", ack_deadline_seconds=seconds)

    @override
    def delete(self, messages: Sequence[Message]) -> int:
        # The service does not say which of them were still ours.
        self._each(messages, "acknowledge")
        return len(messages)

    def _each(self, messages: Sequence[Message], call: str, **more: int) -> None:
        for start in range(0, len(messages), _AT_ONCE):
            receipts = [message.receipt for message in messages[start : start + _AT_ONCE]]
            request = {"subscription": self._name, "ack_ids": receipts, **more}
            with _as_os_errors(self.url):
                getattr(self._client("Subscriber"), call)(request, timeout=_SECONDS, retry=None)

    @override
    def send(self, body: str) -> None:
        event = json.loads(body)
        message = {"attributes": event["attributes"], "data": base64.b64decode(event["data"])}
        with _as_os_errors(self.url):
            request = {"topic": self._name, "messages": [message]}
            self._client("Publisher").publish(request, timeout=_SECONDS, retry=None)

    @staticmethod
    @override
    def _announced_by(body: str) -> Iterator[AnnouncedObject]:
        attributes = event_of(json.loads(body))["attributes"]
        if "eventType" not in attributes:
            raise MalformedMessage(f"no event of Cloud Storage: {sorted(attributes)[:5]}")
        if attributes["eventType"] == CREATED:
            # The name as it is: not escaped, as a URL would have it.
            yield announced(attributes["bucketId"], attributes["objectId"])


def _body(message: Any) -> str:
    data = base64.b64encode(message.data).decode()
    # A map has no order: equal messages have equal bodies.
    return json.dumps({"attributes": dict(sorted(message.attributes.items())), "data": data})


@contextmanager
def _as_os_errors(where: str) -> Iterator[None]:
    from google.api_core import exceptions
    from google.auth.exceptions import GoogleAuthError

    try:
        yield
    except GoogleAuthError as error:
        # Its text may have a token's request in it.
        reason = f"no token for Pub/Sub: {type(error).__name__}"
        raise PermissionError(errno.EACCES, reason, where) from None
    except exceptions.GoogleAPICallError as error:
        text = f"the service answered {type(error).__name__}"
        if isinstance(error, exceptions.InvalidArgument):
            raise RefusedRequest(errno.EINVAL, text, where) from None
        raise error_of_status(error.code, text, where) from None
