"""A real S3 and SQS on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from typing import Any

from typing_extensions import override

from .faulty_server import FaultyServer, body_of, give

_ONE_WRITE = threading.Lock()
"""moto looks whether an object is there, and then writes it; S3 does both at once."""


class S3Server(FaultyServer):
    """One server process' worth of buckets and queues; all servers of a process share them."""

    scheme = "s3a"
    path_scheme = "s3"
    throttling = ("503 Slow Down", "SlowDown")

    def __init__(self) -> None:
        # Only who starts a server waits for this import.
        from moto.server import DomainDispatcherApplication, create_backend_app

        self.longest_poll = 20
        """Seconds that a request waits for messages at most."""
        self._app = DomainDispatcherApplication(create_backend_app)
        self._clients: dict[str, Any] = {}
        super().__init__()

    @property
    @override
    def options(self) -> dict[str, Any]:
        return {
            "key": "test",
            "secret": "test",
            "client_kwargs": {"endpoint_url": self.url, "region_name": "us-east-1"},
        }

    def client(self, service: str = "s3") -> Any:
        """boto3's client: the back door of the tests, which does not use the code under test."""
        if service not in self._clients:
            self._clients[service] = self.make_client(service)
        return self._clients[service]

    def make_client(self, service: str) -> Any:
        """A client of its own, which takes a tenth of a second or more."""
        import boto3

        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    @override
    def make_bucket(self, bucket: str) -> None:
        self.client().create_bucket(Bucket=bucket)

    @override
    def put(self, bucket: str, key: str, data: bytes) -> None:
        self.client().put_object(Bucket=bucket, Key=key, Body=data)

    @override
    def get(self, bucket: str, key: str) -> bytes:
        data: bytes = self.client().get_object(Bucket=bucket, Key=key)["Body"].read()
        return data

    @override
    def remove(self, bucket: str, key: str) -> None:
        self.client().delete_object(Bucket=bucket, Key=key)

    @override
    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        pages = self.client().get_paginator("list_objects_v2")
        found = pages.paginate(Bucket=bucket, Prefix=prefix)
        return [one["Key"] for page in found for one in page.get("Contents", ())]

    def own_names(self, start: int) -> list[str]:
        """Kind and first part of the key of each request since, but for those of the tests."""
        found = []
        for name, headers in zip(self.names[start:], self.headers[start:], strict=False):
            kind, _, path = name.partition("?")[0].partition(" ")
            if "boto" not in headers.get("HTTP_USER_AGENT", "").lower():
                key = path.split("/", 2)[-1]
                found.append(f"{kind} {key.partition('/')[0]}")
        return found

    @staticmethod
    @override
    def kind_of(environ: dict[str, Any]) -> str:
        return kind_of(environ)

    @override
    def _prepare(self, kind: str, environ: dict[str, Any]) -> None:
        if self.most_keys and kind == "LIST":
            environ["QUERY_STRING"] += f"&max-keys={self.most_keys}"
        if kind == "ReceiveMessage":
            # A client that is gone is not noticed: what its last poll finds is nobody's for a
            # while.
            asked = json.loads(body_of(environ))
            asked["WaitTimeSeconds"] = min(asked.get("WaitTimeSeconds", 0), self.longest_poll)
            give(environ, json.dumps(asked).encode())

    @override
    def _served(self, environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "PUT" or "CONTENT_LENGTH" not in environ:
            return self._app(environ, respond)
        # A client that sends slowly, or dies, does not delay others.
        give(environ, body_of(environ))
        with _ONE_WRITE:
            return self._write(environ, respond)

    def _write(self, environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        """One PUT, while there is no other."""
        return self._app(environ, respond)


def kind_of(environ: dict[str, Any]) -> str:
    """LIST is a GET with list-type; the queue's requests go by their action."""
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if target:
        return str(target.rsplit(".", 1)[-1])
    query = environ.get("QUERY_STRING", "")
    listing = environ["REQUEST_METHOD"] == "GET" and ("list-type" in query or "prefix=" in query)
    return "LIST" if listing else str(environ["REQUEST_METHOD"])


def as_json(options: dict[str, Any]) -> str:
    """As the storageOptions option has it."""
    return json.dumps(options)
