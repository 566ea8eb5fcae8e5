"""A real S3 and SQS on loopback that counts requests and misbehaves on demand.

Not here: what is asked of it.
"""

from __future__ import annotations

import io
import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

_SLOW_DOWN = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code>'
    b"<Message>Please reduce your request rate.</Message></Error>"
)

Fault = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes] | None]
"""Given a request; answers it, or returns None to let the server do so."""


_ONE_WRITE = threading.Lock()
"""moto looks whether an object is there, and then writes it; S3 does both at once."""


class _Silent(WSGIRequestHandler):
    def log(self, type: str, message: str, *arguments: Any) -> None:  # noqa: A002
        return


class S3Server:
    """One server process' worth of buckets and queues; all servers of a process share them."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        """Kinds, in order: LIST, HEAD, GET, PUT, DELETE, POST; PUT If-None-Match as PUT."""
        self.names: list[str] = []
        """Kind and path with query of each, in order."""
        self.headers: list[dict[str, str]] = []
        self.fault: Fault | None = None
        self.most_keys = 0
        """Keys of a page of a listing at most; 0 for as many as S3 has."""
        self.longest_poll = 20
        """Seconds that a request waits for messages at most."""
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server: BaseWSGIServer | None = None
        self.port = 0
        self._begin()

    # What clients are given -----------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def options(self) -> dict[str, Any]:
        """storageOptions with the names that s3fs has."""
        return {
            "key": "test",
            "secret": "test",
            "client_kwargs": {"endpoint_url": self.url, "region_name": "us-east-1"},
        }

    def client(self, service: str = "s3") -> Any:
        """boto3's client: the back door of the tests, which does not use the code under test."""
        import boto3

        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    # What it counts -------------------------------------------------------------------------

    def counted(self, action: Callable[[], Any]) -> Counter[str]:
        """Requests while `action` runs."""
        before = len(self.requests)
        action()
        return Counter(self.requests[before:])

    def names_of_ours(self, start: int) -> list[str]:
        """Kind and first part of the key of each request since, but for those of the tests."""
        found = []
        for name, headers in zip(self.names[start:], self.headers[start:], strict=False):
            kind, _, rest = name.partition(" ")
            path, _, query = rest.partition("?")
            if "boto" in headers.get("HTTP_USER_AGENT", "").lower():
                continue
            prefix = [part[7:] for part in query.split("&") if part.startswith("prefix=")]
            key = prefix[0] if kind == "LIST" and prefix else path.split("/", 2)[-1]
            parts = unquote(key).split("/")
            found.append(
                f"{kind} {parts[2] if parts[0] == 'state' and len(parts) > 2 else parts[0]}"
            )
        return found

    # What goes wrong ------------------------------------------------------------------------

    def away(self) -> None:
        """Nobody listens any more: connections are refused."""
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()
        self._server = None

    def _begin(self) -> None:
        # Not a port that the system gives to connections: while away it would go to one of them.
        for port in random.sample(range(10_000, 32_000), 50):
            self.port = port
            try:
                return self.back()
            except OSError:
                continue
        raise OSError("no port is free between 10000 and 32000")

    def back(self) -> None:
        """Listen, on the same port as before."""
        # A socket of our own: where werkzeug cannot bind one it ends the thread, and tells nobody.
        with socket.create_server(("127.0.0.1", self.port)) as listening:
            self._server = make_server(
                "127.0.0.1",
                self.port,
                self._answer,
                threaded=True,
                request_handler=_Silent,
                fd=listening.fileno(),
            )
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def away_for(self, seconds: float) -> None:
        """Be away, and come back by itself."""
        self.away()
        threading.Timer(seconds, self.back).start()

    def fail_next(self, fault: Fault, times: int = 1, kind: str = "") -> None:
        """The next `times` requests (of one kind) meet `fault`."""
        left = [times]
        lock = threading.Lock()

        def limited(environ: dict[str, Any], respond: Callable[..., Any]) -> Any:
            with lock:
                if left[0] <= 0 or (kind and kind_of(environ) != kind):
                    return None
                left[0] -= 1
            return fault(environ, respond)

        self.fault = limited

    def close(self) -> None:
        if self._server is not None:
            self.away()

    def _answer(self, environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        kind = kind_of(environ)
        query = environ.get("QUERY_STRING", "")
        self.requests.append(kind)
        self.names.append(f"{kind} {environ.get('PATH_INFO', '')}" + (f"?{query}" if query else ""))
        self.headers.append({k: str(v) for k, v in environ.items() if k.startswith("HTTP_")})
        if self.most_keys and kind == "LIST":
            environ["QUERY_STRING"] = f"{query}&max-keys={self.most_keys}"
        if kind == "ReceiveMessage":
            self._shorten(environ)
        if self.fault is not None:
            answer = self.fault(environ, respond)
            if answer is not None:
                return answer
        return self._served(environ, respond)

    def _served(self, environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "PUT" or "CONTENT_LENGTH" not in environ:
            return self._app(environ, respond)
        # A client that sends slowly, or dies, does not delay others.
        _give(environ, _body(environ))
        with _ONE_WRITE:
            return self._app(environ, respond)

    def _shorten(self, environ: dict[str, Any]) -> None:
        # A client that is gone is not noticed: what its last poll finds is nobody's for a while.
        asked = json.loads(_body(environ))
        asked["WaitTimeSeconds"] = min(asked.get("WaitTimeSeconds", 0), self.longest_poll)
        _give(environ, json.dumps(asked).encode())

    # Faults ---------------------------------------------------------------------------------

    @staticmethod
    def slow_down(environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        """503, as S3 throttles."""
        _body(environ)
        respond("503 Slow Down", [("Content-Type", "application/xml")])
        return [_SLOW_DOWN]

    def lose_answer(self, environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        """The request is done, and its answer reaches nobody."""
        list(self._served(environ, lambda *_: None))
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        return []

    @staticmethod
    def hang(seconds: float) -> Fault:
        """No answer for that long, and then a dead connection."""

        def hanging(environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
            time.sleep(seconds)
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            return []

        return hanging


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


def _body(environ: dict[str, Any]) -> bytes:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    return environ["wsgi.input"].read(length) if length else b""


def _give(environ: dict[str, Any], body: bytes) -> None:
    environ["wsgi.input"], environ["CONTENT_LENGTH"] = io.BytesIO(body), str(len(body))
