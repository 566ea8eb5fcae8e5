"""Listings of a bucket that are broken, or in another order: never taken for the end of one."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.storage import bucket_storage, storage_errors
from pyspark_sluice.checkpoint_meta.storage.bucket_storage import BucketStorage, before
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.discovery import make_listing
from pyspark_sluice.errors import SourceUnavailable
from pyspark_sluice.tests.checkpoint_meta.storage.lake import Lake
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json, kind_of
from pyspark_sluice.tests.enumerator.files.discovery.finding import lister_of
from pyspark_sluice.tests.thorough import sampled

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


class Ordered(BucketStorage):
    """A bucket that lists some keys in one of the orders that stores have."""

    _begin = "lake/"

    def __init__(self, keys, order=None, page=1):
        self._lists_in_order = order is None
        self._keys = sorted(keys, key=order)
        self._length = page

    def _objects(self, prefix, after=""):
        # Where keys come in another order, the client cannot begin behind one of them.
        keys = [
            key
            for key in self._keys
            if key.startswith(f"{prefix}/" if prefix else "")
            and (key > after or not self._lists_in_order)
        ]
        for start in range(0, len(keys), self._length):
            part = keys[start : start + self._length]
            columns = {"path": part, "size": [1] * len(part), "e_tag": ["1"] * len(part)}
            columns["last_modified"] = pa.array([0] * len(part), pa.timestamp("us", "UTC"))
            yield pa.record_batch(columns)


def _names(bucket: Any, prefix, **limits):
    pages = bucket.pages(f"lake/{prefix}", **limits)
    return [name.removeprefix("lake/") for page in pages for name in page.names]


@pytest.mark.parametrize("prefix", ["a-", "a0", "a/b c", "x", "z!", "日"])
def test_the_name_before_a_prefix_is_before_it_and_after_nothing_that_begins_so(prefix):
    assert before(prefix) < prefix
    assert not before(prefix).startswith(prefix)


@pytest.mark.parametrize("order", [lambda key: key.split("/"), lambda key: key.encode("utf-16-be")])
@pytest.mark.parametrize("start", ["in/a-x", "in/a-", "in/a", "in/a.b/c", "in/\uff41"])
def test_a_listing_in_azure_s_orders_is_not_ended_too_early(start, order):
    keys = ["in/a/z", "in/a-x/1", "in/a-x/2", "in/a.b/c1", "in/a.b/d", "in/b/1", "in/Z"]
    keys += ["in/\uff41/1", "in/\U0001f600/1"]
    found = _names(Ordered(keys, order), start)
    assert sorted(found) == sorted(key for key in keys if key.startswith(start))
