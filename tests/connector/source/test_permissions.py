"""The page lists the permissions that a query asks of Google and Azure, and no others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest

from pyspark_sluice.checkpoint_meta.documents import heartbeat
from pyspark_sluice.tests.checkpoint_meta.storage.faulty_server import (
    FaultyServer,
    body_of,
    give,
)
from pyspark_sluice.tests.connector.stream import Stream
from pyspark_sluice.tests.patience import wait_until
from pyspark_sluice.tests.repository import ROOT

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "permissions.md"

ASKS = {
    "gs": {
        "LIST": "storage.objects.list",
        "GET": "storage.objects.get",
        "HEAD": "storage.objects.get",
        "PUT": "storage.objects.create",
        "DELETE": "storage.objects.delete",
    },
    "abfss": {
        "LIST": "blobs/read",
        "GET": "blobs/read",
        "HEAD": "blobs/read",
        "PUT": "blobs/write",
        "DELETE": "blobs/delete",
    },
}
"""Kind of a request -> the permission that the store wants for it."""

PLACES = {"in": "data", "state": "state", "archive": "archive"}


def listed_permissions(heading: str) -> dict[str, set[str]]:
    """Place -> permissions, from the table below a heading of the page."""
    part = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    found: dict[str, set[str]] = {}
    for permissions, places in re.findall(r"^\| (`[^|]*) \| ([^|]*) \|", part, re.MULTILINE):
        # A queue's are asked for by notifications only, which this query does without.
        for place in (place for place in places.split(", ") if not place.startswith("the queue")):
            found.setdefault(place, set()).update(re.findall("`([^`]+)`", permissions))
    return found


class Asked:
    """What a server is asked, as place and kind."""

    def __init__(self, server: FaultyServer, bucket: str) -> None:
        self._bucket = bucket
        self.found: set[tuple[str, str]] = set()
        server.fault = self._look
        self._kind_of = server.kind_of

    def _look(self, environ: dict[str, Any], _: Any) -> None:
        kind = self._kind_of(environ)
        query = parse_qs(environ.get("QUERY_STRING", ""))
        if kind == "POST":
            # Azure's deletions are a body of requests.
            body = body_of(environ)
            give(environ, body)
            for path in re.findall(rb"^DELETE (\S+)", body, re.MULTILINE):
                self._add("DELETE", path.decode())
            return
        key = f"/{self._bucket}/" + query.get("prefix", [""])[0]
        self._add(kind, key if kind == "LIST" else environ["REQUEST_URI"])
        source = environ.get("HTTP_X_GOOG_COPY_SOURCE") or environ.get("HTTP_X_MS_COPY_SOURCE")
        if source:
            self._add("GET", source)

    def _add(self, kind: str, path: str) -> None:
        key = unquote(path).partition(f"{self._bucket}/")[2]
        self.found.add((PLACES[key.split("/")[0]], kind))


# The policy for S3 has a test of its own, with the queue's requests.
@pytest.mark.parametrize("any_server", ["google", "azure"], indirect=True, scope="module")
def test_the_page_lists_every_permission_that_a_query_asks_for_and_no_other(
    any_server: FaultyServer, any_bucket: str, tmp_path: Path, monkeypatch: Any
) -> None:
    # The heartbeat before is deleted.
    monkeypatch.setattr(heartbeat, "HEARTBEAT_SECONDS", 1.0)
    asked = Asked(any_server, any_bucket)
    url = f"{any_server.scheme}://{any_bucket}"
    options = {
        "path": f"{url}/in",
        "stateLocation": f"{url}/state",
        "storageOptions": json.dumps(any_server.options),
        "cleanSource": "archive",
        "cleanSourceRetention": "0s",
        "cleanSourceWhileRetained": "true",
        "sourceArchiveDir": f"{url}/archive",
    }
    any_server.put(any_bucket, "in/0.json", b'{"id": 0}\n')
    stream = Stream(tmp_path, options)

    def has_deleted() -> bool:
        stream.batch()
        return {("data", "DELETE"), ("state", "DELETE")} <= asked.found

    assert stream.until(1) == [0]
    for number in range(1, 8):
        any_server.put(any_bucket, f"in/{number}.json", b'{"id": 1}\n')
        assert stream.until(1) == [1]
    wait_until(has_deleted, lambda: asked.found)
    stream.reader.stop()
    any_server.fault = None
    archived = any_server.keys(any_bucket, "archive/")
    assert archived
    assert any_server.get(any_bucket, archived[0]).startswith(b'{"id": ')

    wanted: dict[str, set[str]] = {}
    for place, kind in asked.found:
        wanted.setdefault(place, set()).add(ASKS[any_server.scheme][kind])
    headings = {"gs": "Google Cloud Storage", "abfss": "Azure Blob Storage, Data Lake Gen2"}
    assert listed_permissions(headings[any_server.scheme]) == wanted
