"""Answers to a LIST that are no listing: never taken for the end of one."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from pyspark_sluice.checkpoint_meta.storage import bucket_storage, storage_errors
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.discovery import make_listing
from pyspark_sluice.errors import SourceUnavailable
from pyspark_sluice.tests.checkpoint_meta.storage.lake import Lake
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json, kind_of
from pyspark_sluice.tests.enumerator.files.discovery.finding import lister_of
from pyspark_sluice.tests.thorough import sampled

pytestmark = pytest.mark.slow

NAMES = [f"{number:02}.json" for number in range(40)]

BODIES = {
    "an error": b'<?xml version="1.0"?>\n<Error><Code>InternalError</Code></Error>',
    "a page of a proxy": b"<html><body>Please sign in.</body></html>",
    "XML that ends early": b'<?xml version="1.0"?><ListBucketResult><Name>lake</Name><Conte',
    "nothing": b"",
}


class Answered:
    """The requests to list at some positions are answered with 200 and a body."""

    def __init__(self, body, positions, status="200 OK"):
        self._body, self._positions, self._status = body, positions, status
        self.count = 0
        self._lock = threading.Lock()

    def __call__(self, environ, respond):
        if kind_of(environ) != "LIST":
            return None
        with self._lock:
            self.count += 1
            if self.count - 1 not in self._positions:
                return None
        length = str(len(self._body))
        respond(self._status, [("Content-Type", "application/xml"), ("Content-Length", length)])
        return [self._body]


@pytest.fixture
def lake(server, bucket):
    """Forty objects, ten on a page."""
    for name in NAMES:
        server.client().put_object(Bucket=bucket, Key=f"in/{name}", Body=b"abc")
    server.most_keys = 10
    yield bucket
    server.most_keys, server.fault = 0, None


def _listed(server, bucket, client="obstore", **options):
    storage = {**server.options, "client": client}
    if client == "obstore":
        storage["retry_config"] = {"max_retries": 1}
    given = {"path": f"s3://{bucket}/in", "storageOptions": as_json(storage), **options}
    return [
        file.path for file in lister_of(make_listing(parse_options(given, streaming=False)))(())
    ]


@pytest.mark.parametrize(
    ("client", "body", "position"),
    sampled(
        [
            *(("obstore", body, 1) for body in BODIES),
            ("fsspec", "an error", 1),
            *(("obstore", "an error", position) for position in (0, 4)),
        ],
        lambda case: case in (("obstore", "XML that ends early", 1), ("fsspec", "an error", 1)),
        reason="a first and a last answer are read as the second is, and all bodies alike",
    ),
)
def test_a_listing_is_complete_or_an_error(server, lake, body, position, client):
    server.fault = Answered(BODIES[body], {position})
    try:
        found = _listed(server, lake, client=client)
    except SourceUnavailable:
        return
    assert sorted(found) == [f"s3://{lake}/in/{name}" for name in NAMES]


def test_a_store_that_answers_so_for_ever_is_an_error(server, lake, monkeypatch):
    at_once = partial(storage_errors.patiently, sleep=lambda _: None)
    monkeypatch.setattr(bucket_storage, "patiently", at_once)
    server.fault = Answered(BODIES["an error"], range(1000))
    with pytest.raises(SourceUnavailable):
        _listed(server, lake)


@pytest.mark.parametrize("position", [1, 4])
def test_a_bucket_that_is_missing_in_the_middle_of_a_listing_is_no_empty_path(
    server, lake, position
):
    body = b"<Error><Code>NoSuchBucket</Code></Error>"
    server.fault = Answered(body, {position}, "404 Not Found")
    with pytest.raises(SourceUnavailable, match="cannot be listed"):
        _listed(server, lake, failOnMissingPath="false")


def test_names_of_the_state_are_complete_or_an_error(server, lake):
    state = Lake(f"s3://{lake}", {**server.options, "retry_config": {"max_retries": 1}})
    server.fault = Answered(BODIES["XML that ends early"], {2})
    try:
        names = state.names("in")
    except OSError:
        return
    assert names == NAMES
