"""The page lists the permissions that a query asks of Google and Azure, and no others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest

from pyspark_sluice.checkpoint_meta.documents import heartbeat
from pyspark_sluice.tests.checkpoint_meta.storage.faulty_server import FaultyServer, body_of, give
from pyspark_sluice.tests.connector.stream import Stream
from pyspark_sluice.tests.patience import wait_until
from pyspark_sluice.tests.repository import ROOT

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "permissions.md"
POLICY = ROOT / "examples" / "permissions" / "aws-policy.json"

ASKS = {
    "s3a": {
        "LIST": "s3:ListBucket",
        "GET": "s3:GetObject",
        "HEAD": "s3:GetObject",
        "PUT": "s3:PutObject",
        "DELETE": "s3:DeleteObject",
    },
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
        self._server, self._bucket = server, bucket
        self.found: set[tuple[str, str]] = set()
        server.fault = self._look
        self._kind_of = server.kind_of

    def put(self, key: str, data: bytes) -> None:
        """Add an object; the request for it does not count."""
        self._server.fault = None
        self._server.put(self._bucket, key, data)
        self._server.fault = self._look

    def _look(self, environ: dict[str, Any], _: Any) -> None:
        kind = self._kind_of(environ)
        query = parse_qs(environ.get("QUERY_STRING", ""))
        if kind == "POST":
            # Deletions are a body of requests, or of keys.
            body = body_of(environ)
            give(environ, body)
            for path in re.findall(rb"^DELETE (\S+)", body, re.MULTILINE):
                self._add("DELETE", path.decode())
            for key in re.findall(rb"<Key>(.*?)</Key>", body):
                self._add("DELETE", f"/{self._bucket}/{key.decode()}")
            return
        key = f"/{self._bucket}/" + query.get("prefix", [""])[0]
        self._add(kind, key if kind == "LIST" else environ["REQUEST_URI"])
        for store in ("GOOG", "MS", "AMZ"):
            if source := environ.get(f"HTTP_X_{store}_COPY_SOURCE"):
                self._add("GET", source)

    def _add(self, kind: str, path: str) -> None:
        key = unquote(path).partition(f"{self._bucket}/")[2]
        self.found.add((PLACES[key.split("/")[0]], kind))


@pytest.mark.parametrize("any_server", ["s3", "google", "azure"], indirect=True, scope="module")
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
    asked.put("in/0.json", b'{"id": 0}\n')
    stream = Stream(tmp_path, options)

    def has_deleted() -> bool:
        stream.batch()
        return {("data", "DELETE"), ("state", "DELETE")} <= asked.found

    assert stream.until(1) == [0]
    for number in range(1, 8):
        asked.put(f"in/{number}.json", b'{"id": 1}\n')
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
    headings = {
        "s3a": "S3 and SQS",
        "gs": "Google Cloud Storage",
        "abfss": "Azure Blob Storage, Data Lake Gen2",
    }
    listed = listed_permissions(headings[any_server.scheme])
    # S3 wants it for all that may be absent, and aborts only uploads of large files that fail.
    everywhere = listed.pop("the buckets", set())
    for place in listed if everywhere else ():
        listed[place] = (listed[place] | everywhere) - {"s3:AbortMultipartUpload"}
        wanted[place] |= everywhere
    assert listed == wanted


def test_the_shipped_policy_has_what_the_page_lists_for_reading_and_for_the_state() -> None:
    statements = json.loads(POLICY.read_text(encoding="utf-8"))["Statement"]
    actions = {each["Sid"]: {*each["Action"]} for each in statements}
    listed = listed_permissions("S3 and SQS")
    assert actions.pop("DataList") == actions.pop("StateList") == listed["the buckets"]
    assert actions.pop("StateObjects") == listed["state"]
    # The page has what cleanSource needs, too.
    assert actions.pop("DataObjects") == listed["data"] - {"s3:DeleteObject"}
    (queue, dead_letters) = actions.values()
    rows = PAGE.read_text(encoding="utf-8")
    assert (
        f"| {', '.join(f'`{action}`' for action in statements[4]['Action'])} | the queue |" in rows
    )
    assert queue | dead_letters == {*statements[4]["Action"], "sqs:SendMessage"}
