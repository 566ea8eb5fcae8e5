"""Errors of stores: which are retried, and that no error, cause or log tells a token."""

import importlib.util
import json
import logging
import traceback

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.session.processes import plain_errors
from pyspark_sluice.connector.source.discovery import make_discovery
from pyspark_sluice.enumerator.files.discovery.queue.sqs import SqsQueue
from pyspark_sluice.errors import MissingPathError, OptionError, SourceUnavailable
from pyspark_sluice.masking import masked
from pyspark_sluice.tests.checkpoint_meta.storage.lake import Lake
from pyspark_sluice.tests.connector.queries import Query
from pyspark_sluice.tests.enumerator.files.discovery.finding import Ledger

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
        ("smb://host/in", {}, "the package for smb:// is not installed"),
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
    at_once(listed, OptionError, r"pip install '\.\[s3\]'", url, {})


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
