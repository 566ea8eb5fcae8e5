"""The calls of Pub/Sub that a subscription needs, on loopback, with faults on demand.

Google's own server for tests, pstest, is a library in Go: tests/stores runs against it.
"""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf.empty_pb2 import Empty
from google.pubsub_v1 import types

_CODES = {"403": grpc.StatusCode.PERMISSION_DENIED, "500": grpc.StatusCode.INTERNAL}


class _Subscription:
    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        self.messages: dict[str, Any] = {}
        """Of those that are not acknowledged: identifier -> message."""
        self.hidden: dict[str, float] = {}
        """Until when."""
        self.receipts: dict[str, str] = {}
        """The newest acknowledgement identifier -> message; an earlier one means nothing."""


class PubSubServer:
    """Topics and subscriptions in memory; a subscription has the name of its topic."""

    def __init__(self) -> None:
        self.fault: Any = None
        self._subscriptions: dict[str, _Subscription] = {}
        self._changed = threading.Condition()
        self._numbers = itertools.count(1)
        calls = {
            "Subscriber": {
                "Pull": (self._pull, types.PullRequest, types.PullResponse),
                "Acknowledge": (self._acknowledge, types.AcknowledgeRequest, None),
                "ModifyAckDeadline": (self._modify, types.ModifyAckDeadlineRequest, None),
            },
            "Publisher": {"Publish": (self._publish, types.PublishRequest, types.PublishResponse)},
        }
        self._server = grpc.server(ThreadPoolExecutor(16, "pubsub"))
        for service, handlers in calls.items():
            self._server.add_generic_rpc_handlers(
                (
                    grpc.method_handlers_generic_handler(
                        f"google.pubsub.v1.{service}",
                        {name: self._handler(name, *parts) for name, parts in handlers.items()},
                    ),
                )
            )
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._server.stop(None)

    @staticmethod
    def kind_of(environ: dict[str, Any]) -> str:
        return str(environ["CALL"])

    # The back door of the tests -----------------------------------------------------------------

    def create(self, name: str, seconds: int) -> None:
        self._subscriptions[name] = _Subscription(seconds)

    def remove(self, name: str) -> None:
        del self._subscriptions[name]

    def publish(self, name: str, message: Any) -> str:
        with self._changed:
            identity = str(next(self._numbers))
            self._subscriptions[name].messages[identity] = message
            self._changed.notify_all()
            return identity

    def left(self, name: str) -> tuple[int, int]:
        """How many messages anybody may receive, and how many are hidden."""
        subscription, now = self._subscriptions[name], time.monotonic()
        hidden = sum(subscription.hidden.get(each, 0) > now for each in subscription.messages)
        return len(subscription.messages) - hidden, hidden

    def messages(self, name: str) -> list[Any]:
        return list(self._subscriptions[name].messages.values())

    # The calls ----------------------------------------------------------------------------------

    def _handler(self, name: str, call: Any, request: Any, response: Any) -> Any:
        def answer(asked: Any, context: Any) -> Any:
            if self.fault is not None:
                said: list[str] = []
                met = self.fault({"CALL": name}, lambda status, _: said.append(status[:3]))
                if met is not None:
                    context.abort(_CODES[said[0]], "as the test wants it")
            path = asked.topic if name == "Publish" else asked.subscription
            subscription = self._subscriptions.get(path.rpartition("/")[2])
            if subscription is None:
                context.abort(grpc.StatusCode.NOT_FOUND, path)
            return call(subscription, asked, context)

        return grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=request.deserialize,
            response_serializer=response.serialize if response else Empty.SerializeToString,
        )

    def _pull(self, subscription: _Subscription, asked: Any, context: Any) -> Any:
        with self._changed:
            while context.is_active():
                now = time.monotonic()
                shown = [
                    each
                    for each in subscription.messages
                    if subscription.hidden.get(each, 0) <= now
                ]
                if shown:
                    received = [
                        self._delivered(subscription, each) for each in shown[: asked.max_messages]
                    ]
                    return types.PullResponse(received_messages=received)
                self._changed.wait(0.05)
        return types.PullResponse()

    def _delivered(self, subscription: _Subscription, identity: str) -> Any:
        subscription.hidden[identity] = time.monotonic() + subscription.seconds
        receipt = f"{identity}-{next(self._numbers)}"
        for old in [old for old, of in subscription.receipts.items() if of == identity]:
            del subscription.receipts[old]
        subscription.receipts[receipt] = identity
        message = types.PubsubMessage(subscription.messages[identity], message_id=identity)
        return types.ReceivedMessage(ack_id=receipt, message=message)

    def _acknowledge(self, subscription: _Subscription, asked: Any, _: Any) -> Any:
        with self._changed:
            for receipt in asked.ack_ids:
                subscription.messages.pop(subscription.receipts.get(receipt, ""), None)
        return Empty()

    def _modify(self, subscription: _Subscription, asked: Any, _: Any) -> Any:
        with self._changed:
            for receipt in asked.ack_ids:
                if receipt in subscription.receipts:
                    until = time.monotonic() + asked.ack_deadline_seconds
                    subscription.hidden[subscription.receipts[receipt]] = until
            self._changed.notify_all()
        return Empty()

    def _publish(self, _: _Subscription, asked: Any, __: Any) -> Any:
        name = asked.topic.rpartition("/")[2]
        return types.PublishResponse(
            message_ids=[self.publish(name, message) for message in asked.messages]
        )
