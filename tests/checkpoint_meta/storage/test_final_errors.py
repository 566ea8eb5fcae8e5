"""Which failures of a first listing are retried: those that another try may not meet, no others."""

from __future__ import annotations

import importlib.util
import json
import logging

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.errors import MissingPathError, OptionError, SourceUnavailable
from pyspark_sluice.tests.connector.queries import Query

pytestmark = pytest.mark.slow

RETRIED = "a listing failed and will be retried"


@pytest.fixture
def listed(tmp_path, caplog, monkeypatch):
    """A first listing of a URL, and how often it was retried."""
    monkeypatch.setattr(logging.getLogger("pyspark_sluice"), "level", logging.NOTSET)
    queries = []

    def listing(url, options):
        query = Query(tmp_path, path=url, storageOptions=json.dumps(options))
        queries.append(query)
        query.coordinator.prepare_available_now()
        try:
            return query.coordinator.latest(NO_CHECKPOINT)
        finally:
            listing.retries = sum(RETRIED in line.getMessage() for line in caplog.records)

    yield listing
    for query in queries:
        query.coordinator.close()


def at_once(listed, error, match, url, options):
    with pytest.raises(error, match=match):
        listed(url, options)
    assert listed.retries == 0


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("403 Forbidden", "AccessDenied"),
        ("403 Forbidden", "InvalidAccessKeyId"),
        ("400 Bad Request", "InvalidToken"),
        ("400 Bad Request", "AuthorizationHeaderMalformed"),
        ("301 Moved Permanently", "PermanentRedirect"),
    ],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_store_that_refuses_fails_the_query_at_once(listed, server, bucket, status, code):
    server.fault = server.refuse(status, code)
    said = "region" if status.startswith("301") else code
    at_once(listed, SourceUnavailable, said, f"s3://{bucket}/in", server.options)


@pytest.mark.parametrize(
    ("status", "code"),
    [("400 Bad Request", "RequestTimeout"), ("409 Conflict", "OperationAborted")],
)
def test_an_answer_that_may_pass_is_tried_again(listed, server, bucket, status, code):
    server.put(bucket, "in/a.json", b'{"id": 1}')
    server.fail_next(server.refuse(status, code), times=2)
    before = len(server.requests)
    assert listed(f"s3://{bucket}/in", server.options) != NO_CHECKPOINT
    # Two were refused; who repeats them, the storage or the listing, is a matter of time.
    assert server.requests[before:].count("LIST") > 2


def test_a_bucket_that_does_not_exist_fails_the_query_at_once(listed, server):
    at_once(listed, MissingPathError, "does not exist", "s3://absent-bucket/in", server.options)


@pytest.mark.parametrize(
    ("url", "options", "said"),
    [
        ("foo://bucket/in", {}, "Protocol not known: foo"),
        ("sftp://host/in", {}, "the package for sftp:// is not installed"),
        ("s3://bucket/in", {"no_such_option": 1}, "no_such_option"),
        ("s3://bucket/in", {"endpoint_url": "127.0.0.1:1"}, "the endpoint is not a URL"),
        ("gs://bucket/in", {"token": {"type": "service_account"}}, "do not configure a client"),
    ],
)
def test_a_call_that_cannot_work_fails_the_query_at_once(listed, url, options, said):
    at_once(listed, OptionError, said, url, options)


def test_an_option_that_a_file_system_refuses_late_fails_the_query_at_once(listed):
    # s3fs makes its client with the first request.
    options = {"client": "fsspec", "no_such_option": 1}
    at_once(listed, SourceUnavailable, "no_such_option", "s3://bucket/in", options)


def test_an_extra_that_is_not_installed_fails_the_query_at_once(listed, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "obstore" else find(name)
    )
    url = "s3://bucket-of-the-missing-extra/in"
    at_once(listed, OptionError, r"pip install 'pyspark-sluice\[s3\]'", url, {})
