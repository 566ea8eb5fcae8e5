"""A server of an object store on loopback that counts requests and misbehaves on demand."""

from __future__ import annotations

import io
import random
import socket
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

Fault = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes] | None]
"""Given a request; answers it, or returns None to let the server do so."""

Answer = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
"""A fault that always answers."""


class _Silent(WSGIRequestHandler):
    def log(self, type: str, message: str, *arguments: Any) -> None:  # noqa: A002
        return


class FaultyServer(ABC):
    """What the servers of all stores have in common; buckets are containers on Azure."""

    scheme: ClassVar[str]
    """Of the URLs that a query is given."""

    path_scheme: ClassVar[str]
    """Of the paths by which files are known."""

    throttling: ClassVar[tuple[str, str]]
    """The status with which the store throttles, and its code in XML."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        """Kinds, in order: LIST, HEAD, GET, PUT, DELETE, POST."""
        self.names: list[str] = []
        """Kind and path with query of each, in order."""
        self.headers: list[dict[str, str]] = []
        self.fault: Fault | None = None
        self.most_keys = 0
        """Keys of a page of a listing at most; 0 for as many as the store has."""
        self._server: BaseWSGIServer | None = None
        self.port = 0
        self._begin()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # What clients are given, and the back door of the tests, which clients do not see ----------

    @property
    @abstractmethod
    def options(self) -> dict[str, Any]:
        """storageOptions with the names that fsspec's file systems have."""

    @abstractmethod
    def make_bucket(self, bucket: str) -> None:
        """A new, empty one."""

    @abstractmethod
    def put(self, bucket: str, key: str, data: bytes) -> None:
        """Write an object, over what is there."""

    @abstractmethod
    def get(self, bucket: str, key: str) -> bytes:
        """All bytes of an object."""

    @abstractmethod
    def remove(self, bucket: str, key: str) -> None:
        """Delete an object that is there."""

    @abstractmethod
    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """Of the objects whose keys begin so, in order."""

    # What it counts -------------------------------------------------------------------------

    def counted(self, action: Callable[[], Any]) -> Counter[str]:
        """Requests while `action` runs."""
        before = len(self.requests)
        action()
        return Counter(self.requests[before:])

    @staticmethod
    @abstractmethod
    def kind_of(environ: dict[str, Any]) -> str:
        """What a request is, in the words of `requests`."""

    # What goes wrong ------------------------------------------------------------------------

    def away(self) -> None:
        """Nobody listens any more: connections are refused."""
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()
        self._server = None

    def _begin(self) -> None:
        # Not a port that the system gives to connections: while away it would go to one of them.
        for port in random.SystemRandom().sample(range(10_000, 32_000), 50):
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

    def fail_next(self, fault: Fault, times: int = 1, kind: str = "") -> None:
        """The next `times` requests (of one kind) meet `fault`."""
        left = [times]
        lock = threading.Lock()

        def limited(environ: dict[str, Any], respond: Callable[..., Any]) -> Any:
            with lock:
                if left[0] <= 0 or (kind and self.kind_of(environ) != kind):
                    return None
                left[0] -= 1
            return fault(environ, respond)

        self.fault = limited

    def close(self) -> None:
        if self._server is not None:
            self.away()

    def _answer(self, environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        kind = self.kind_of(environ)
        query = environ.get("QUERY_STRING", "")
        self.requests.append(kind)
        self.names.append(f"{kind} {environ.get('PATH_INFO', '')}" + (f"?{query}" if query else ""))
        self.headers.append({k: str(v) for k, v in environ.items() if k.startswith("HTTP_")})
        self._prepare(kind, environ)
        if self.fault is not None:
            answer = self.fault(environ, respond)
            if answer is not None:
                return answer
        return self._served(environ, respond)

    @abstractmethod
    def _prepare(self, kind: str, environ: dict[str, Any]) -> None:
        """Change a request before anything answers it, as `most_keys` asks."""

    @abstractmethod
    def _served(self, environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        """The store's own answer."""

    # Faults ---------------------------------------------------------------------------------

    @classmethod
    def slow_down(cls, environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        """As the store throttles."""
        status, code = cls.throttling
        return cls.refuse(status, code)(environ, respond)

    @staticmethod
    def refuse(status: str, code: str) -> Answer:
        """An answer with this status and this code."""
        body = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code>'
        body += "<Message>Please reduce your request rate.</Message></Error>"

        def refusing(environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
            body_of(environ)
            respond(status, [("Content-Type", "application/xml")])
            return [body.encode()]

        return refusing

    @staticmethod
    def confirm_only(environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        """The request is confirmed, and not done."""
        body_of(environ)
        respond("200 OK", [("ETag", '"1"')])
        return []

    def lose_answer(self, environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        """The request is done, and its answer reaches nobody."""
        list(self._served(environ, lambda *_: None))
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        return []


def body_of(environ: dict[str, Any]) -> bytes:
    """What came with a request."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    return environ["wsgi.input"].read(length) if length else b""


def give(environ: dict[str, Any], body: bytes) -> None:
    """Let the request have come with this."""
    environ["wsgi.input"], environ["CONTENT_LENGTH"] = io.BytesIO(body), str(len(body))
