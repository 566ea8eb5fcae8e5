"""Tokens that stores repeat in their answers reach no error, no cause of one and no log."""

from __future__ import annotations

import logging
import traceback

import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.session.processes import plain_errors
from pyspark_sluice.enumerator.files.discovery.queue.sqs import SqsQueue
from pyspark_sluice.errors import SourceUnavailable
from pyspark_sluice.masking import masked
from pyspark_sluice.tests.checkpoint_meta.storage.lake import Lake

pytestmark = pytest.mark.slow

TOKEN = "FwoGZXIvYXdzEXAMPLE/token+of=a&session"
SECRET = "wJalrXUtnFEMI/SECRETKEYOFTHEENVIRONMENT"


def _repeating(status, kind):
    """Answers as S3 does to a token that has expired: with all that it was sent."""

    def fault(environ, respond):
        token = environ.get("HTTP_X_AMZ_SECURITY_TOKEN", "")
        respond(status, [("Content-Type", f"application/{kind}")])
        if kind == "json":
            return [f'{{"__type": "ExpiredToken", "token": "{token}"}}'.encode()]
        return [
            f"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message>"
            f"<Token-0>{token}</Token-0><CanonicalRequest>GET\n/\nx-amz-security-token:{token}"
            f"</CanonicalRequest></Error>".encode()
        ]

    return fault


def _everything(error):
    """Everything of an error that could be printed."""
    told, seen = [], set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        told += [str(error), repr(error), repr(error.args), repr(vars(error))]
        told += traceback.format_exception(error)
        told += [str(getattr(error, name, "")) for name in ("response", "strerror", "filename")]
        error = error.__cause__ or error.__context__
    return "\n".join(told)


@pytest.fixture
def opened(server, bucket, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOFTHEENVIRONMENT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    options = {
        "client_kwargs": {"endpoint_url": server.url, "region_name": "us-east-1"},
        "retry_config": {"max_retries": 1},
        "timeout": 5 + len(bucket) / 1000,
    }
    return Lake(f"s3://{bucket}/in", options), SqsQueue(f"{server.url}/1/q", options, 30)


# Others are retried, which takes seconds.
@pytest.mark.parametrize(
    ("status", "kind", "known"), [("403 Forbidden", "json", True), ("404 Not Found", "xml", False)]
)
def test_no_error_of_a_request_tells_a_token(server, opened, monkeypatch, status, kind, known):
    lake, queue = opened
    if not known:
        # As with keys that come from elsewhere: nothing says what is to be masked.
        lake.names("in")
        monkeypatch.delenv("AWS_SESSION_TOKEN")
        monkeypatch.setenv("AWS_SESSION_TOKEN", "")
    actions = {
        "LIST": lake.listed,
        "names": lambda: lake.names("in"),
        "HEAD": lambda: lake.stat("in/a"),
        "GET": lambda: lake.whole("in/a"),
        "PUT": lambda: lake.create("in/a", b"x"),
        "queue": lambda: queue.receive(0),
    }
    server.fault = _repeating(status, kind)
    for name, action in actions.items():
        with pytest.raises(OSError, match=r"answered|denied|found|Errno") as caught:
            action()
        assert TOKEN not in _everything(caught.value), name
        assert SECRET not in _everything(caught.value), name


def test_what_a_user_sees_of_it_has_the_code_and_no_token(server, bucket, opened, caplog):
    from pyspark_sluice.connector.source.discovery import make_discovery
    from pyspark_sluice.tests.enumerator.files.discovery.finding import Ledger

    caplog.set_level(logging.DEBUG, "pyspark_sluice")
    storage = f'{{"client_kwargs": {{"endpoint_url": "{server.url}"}}, "region": "us-east-1"}}'
    given = {"path": f"s3://{bucket}/in", "storageOptions": storage}
    server.fault = _repeating("400 Bad Request", "xml")

    @plain_errors()
    def listed():
        list(make_discovery(parse_options(given, streaming=False)).listing(Ledger()))

    with pytest.raises(SourceUnavailable, match="ExpiredToken: The provided token") as caught:
        listed()
    assert TOKEN not in _everything(caught.value) + caplog.text


def test_credentials_of_the_environment_are_masked_and_its_other_variables_are_not(monkeypatch):
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    monkeypatch.setenv("AZURE_STORAGE_SAS_KEY", "sv=2024&sig=abcdefgh")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/var/run/token")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert masked(f"{TOKEN} sv=2024&sig=abcdefgh") == "*** ***"
    assert masked("/var/run/token in eu-central-1") == "/var/run/token in eu-central-1"
