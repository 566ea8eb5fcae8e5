"""Azurite, Microsoft's emulator of Azure Storage, behind a server that misbehaves on demand."""

from __future__ import annotations

import http.client
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from typing_extensions import override

from pyspark_sluice.tests.patience import answers
from pyspark_sluice.tests.repository import ROOT

from .faulty_server import FaultyServer, body_of

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Of the one account that every Azurite has; they are in its documentation."""

START_SECONDS = 60.0


class Azurite:
    """The emulator, in a process of its own, with everything in its memory."""

    def __init__(self, command: list[str], home: Path, service: str = "blob") -> None:
        for port in random.SystemRandom().sample(range(10_000, 32_000), 5):
            self.port = port
            # Another server that has the port would answer for it.
            if answers(self.port):
                continue
            self._process = subprocess.Popen(
                [
                    *command, "--inMemoryPersistence", "--skipApiVersionCheck", "--silent",
                    "--disableTelemetry", f"--{service}Host", "127.0.0.1",
                    f"--{service}Port", str(port),
                ],
                cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            if self._listens():
                return
            self.close()
        raise OSError(f"Azurite does not start: {command}")

    def _listens(self) -> bool:
        deadline = time.monotonic() + START_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            if answers(self.port):
                return True
            time.sleep(0.05)
        return False

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def azurite_command(service: str = "blob") -> list[str]:
    """How Azurite is started.

    Raises:
        LookupError: why it is not here.
    """
    asked = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "azurite.py"), service],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    if asked.returncode:
        raise LookupError(asked.stderr.strip().splitlines()[-1])
    command: list[str] = json.loads(asked.stdout)
    return command


class AzureServer(FaultyServer):
    """One account of Azurite."""

    scheme = "abfss"
    path_scheme = "abfs"
    throttling = ("503 Server Busy", "ServerBusy")

    def __init__(self, azurite: Azurite) -> None:
        self._azurite = azurite
        super().__init__()

    @property
    @override
    def options(self) -> dict[str, Any]:
        host = f"{self.url}/{ACCOUNT}"
        return {"account_name": ACCOUNT, "account_host": host, "account_key": KEY}

    @cached_property
    def _service(self) -> Any:
        """Microsoft's client: it does not use the code under test, and is not counted."""
        from azure.storage.blob import BlobServiceClient

        return BlobServiceClient(f"http://127.0.0.1:{self._azurite.port}/{ACCOUNT}", KEY)

    @override
    def close(self) -> None:
        self._service.close()
        super().close()

    @override
    def make_bucket(self, bucket: str) -> None:
        self._service.create_container(bucket)

    @override
    def put(self, bucket: str, key: str, data: bytes) -> None:
        self._service.get_blob_client(bucket, key).upload_blob(data, overwrite=True)

    @override
    def get(self, bucket: str, key: str) -> bytes:
        data: bytes = self._service.get_blob_client(bucket, key).download_blob().readall()
        return data

    @override
    def remove(self, bucket: str, key: str) -> None:
        self._service.get_blob_client(bucket, key).delete_blob()

    @override
    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        container = self._service.get_container_client(bucket)
        return list(container.list_blob_names(name_starts_with=prefix))

    @staticmethod
    @override
    def kind_of(environ: dict[str, Any]) -> str:
        listing = "comp=list" in environ.get("QUERY_STRING", "")
        return "LIST" if listing else str(environ["REQUEST_METHOD"])

    @override
    def _prepare(self, kind: str, environ: dict[str, Any]) -> None:
        assert not self.most_keys, "a key signs the parameter that would ask for fewer"

    @override
    def _served(self, environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        names = {name: name[5:] for name in environ if name.startswith("HTTP_")}
        names |= {name: name for name in ("CONTENT_TYPE", "CONTENT_LENGTH") if name in environ}
        sent = {shown.replace("_", "-"): str(environ[name]) for name, shown in names.items()}
        sent["CONNECTION"] = "close"
        body = body_of(environ)
        connection = http.client.HTTPConnection("127.0.0.1", self._azurite.port)
        try:
            connection.request(environ["REQUEST_METHOD"], environ["REQUEST_URI"], body, sent)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        own = ("connection", "keep-alive", "transfer-encoding", "date", "server")
        headers = [(k, v) for k, v in answer.getheaders() if k.lower() not in own]
        if environ["REQUEST_METHOD"] != "HEAD":
            headers = [(k, v) for k, v in headers if k.lower() != "content-length"]
            headers.append(("Content-Length", str(len(data))))
        respond(f"{answer.status} {answer.reason}", headers)
        return [data]


class AzureQueueServer(AzureServer):
    """The Storage Queues of the same account; it has no blobs."""

    @staticmethod
    @override
    def kind_of(environ: dict[str, Any]) -> str:
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        if "/messages" not in path:
            return str(method)
        verb = {"GET": "Receive", "POST": "Send", "PUT": "Update", "DELETE": "Delete"}[method]
        return f"{verb}Message"

    def client(self, queue: str) -> Any:
        """Microsoft's client of a queue, which is not counted."""
        from azure.storage.queue import QueueClient

        at = f"http://127.0.0.1:{self._azurite.port}/{ACCOUNT}/{queue}"
        return QueueClient.from_queue_url(at, {"account_name": ACCOUNT, "account_key": KEY})
