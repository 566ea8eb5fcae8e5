"""Buckets through the client: what one request is enough for, and what goes wrong."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.config import Config
from botocore.session import Session

from pyspark_sluice.checkpoint_meta.storage.bucket import PART, open_bucket
from pyspark_sluice.checkpoint_meta.storage.client_options import client_config
from pyspark_sluice.checkpoint_meta.storage.storage_errors import (
    AnotherVersion,
    BeyondTheEnd,
    delays,
    patiently,
)
from pyspark_sluice.errors import OptionError

pytestmark = pytest.mark.slow


def _open(url, options):
    opened = open_bucket(url, options)
    assert opened is not None
    return opened


ODD_NAMES = [
    "a b",
    "a%20b",
    "100%",
    "a#b",
    "a?b=c&d",
    "a*b",
    "a+b",
    "ä ö",
    "day=2026-01-01/x",
    "~x",
    "{x}",
    "[x]",
    "a|b^c",
    "a\\b",
    "it's",
    '"q"',
]


@pytest.fixture
def lake(server, bucket):
    opened, key = _open(f"s3a://{bucket}/in/", server.options)
    assert key == "in"
    return opened


def _put(server, bucket, **objects):
    for key, data in objects.items():
        server.client().put_object(Bucket=bucket, Key=key, Body=data)


def test_odd_names_are_listed_and_read_as_they_are(server, bucket, lake):
    client = server.client()
    for name in ODD_NAMES:
        client.put_object(Bucket=bucket, Key=f"in/{name}", Body=name.encode())
    (page,) = lake.pages("in")
    listed = page.column("path").to_pylist()
    assert sorted(listed) == sorted(f"in/{name}" for name in ODD_NAMES)
    assert [lake.whole(key).decode() for key in listed] == [key[3:] for key in listed]


def test_a_name_that_the_client_cannot_spell_is_refused_and_not_passed_over(server, bucket, lake):
    server.client().put_object(Bucket=bucket, Key="in/a//b", Body=b"x")
    with pytest.raises(OSError, match=r'in/a//b.*"client": "fsspec"'):
        list(lake.pages("in"))


def test_a_listing_starts_after_a_name_and_ends_with_its_prefix(server, bucket, lake):
    _put(server, bucket, **{f"in/{n}": b"x" for n in "abcd"}, **{"inner/e": b"x", "in2": b"x"})

    def listed(after=""):
        return [key for page in lake.pages("in", after) for key in page.column("path").to_pylist()]

    assert listed() == ["in/a", "in/b", "in/c", "in/d"]
    assert listed("in/b") == ["in/c", "in/d"]
    assert "start-after=in%2Fb" in server.names[-1]
    assert lake.names("in") == ["a", "b", "c", "d"]
    assert lake.names("") == ["in", "in2", "inner"]


def test_each_operation_is_one_request(server, bucket, lake):
    assert server.counted(lambda: lake.create("in/a", b"0123456789")) == {"PUT": 1}
    assert server.counted(lambda: lake.whole("in/a")) == {"GET": 1}
    assert server.counted(lambda: lake.part("in/a", 2, 3)) == {"GET": 1}
    assert server.counted(lambda: lake.head("in/a")) == {"HEAD": 1}
    assert server.counted(lambda: list(lake.pages("in"))) == {"LIST": 2}
    assert server.counted(lambda: list(lake.pages("in"))) == {"LIST": 1}
    assert server.counted(lambda: lake.names("in")) == {"LIST": 1}
    assert server.counted(lambda: lake.delete("in/a")) == {"LIST": 1, "POST": 1}


def test_bytes_are_those_of_the_version_that_was_asked_for(server, bucket, lake):
    lake.create("in/a", b"first")
    part = lake.part("in/a", 1, 100)
    assert (part.data, part.size) == (b"irst", 5)
    assert part.etag == lake.head("in/a").etag
    assert abs(part.modified / 1e6 - time.time()) < 60
    _put(server, bucket, **{"in/a": b"other"})
    with pytest.raises(AnotherVersion):
        lake.part("in/a", 1, 100, part.etag)
    with pytest.raises(BeyondTheEnd):
        lake.part("in/a", 5)
    with pytest.raises(FileNotFoundError):
        lake.part("in/b")
    with pytest.raises(FileExistsError):
        lake.create("in/a", b"third")


def test_a_large_object_is_read_in_parts_and_written_in_one(server, bucket, lake):
    data = bytes(range(256)) * (PART // 256) + b"and more"
    assert server.counted(lambda: lake.create("in/large", data)) == {"PUT": 1}
    assert server.counted(lambda: lake.whole("in/large")) == {"GET": 2}
    assert lake.whole("in/large") == data
    lake.create("in/empty", b"")
    assert lake.whole("in/empty") == b""


def test_throttling_is_waited_out(server, bucket, lake):
    lake.create("in/a", b"x")
    list(lake.pages("in"))
    for kind, action in {
        "GET": lambda: lake.whole("in/a"),
        "LIST": lambda: list(lake.pages("in")),
        "HEAD": lambda: lake.head("in/a"),
        "PUT": lambda: lake.create("in/b", b"x"),
    }.items():
        server.fail_next(server.slow_down, times=3, kind=kind)
        assert server.counted(action)[kind] == 4, kind


def test_a_store_that_throttles_for_ever_is_named_in_the_end(server, bucket):
    options = {**server.options, "retry_config": {"max_retries": 2}}
    lake, _ = _open(f"s3://{bucket}/in", options)
    server.fail_next(server.slow_down, times=99)
    with pytest.raises(OSError, match=r"503 Service Unavailable \(SlowDown: .*2 retries") as caught:
        lake.whole("in/a")
    assert caught.value.filename == f"s3://{bucket}/in/a"


def test_a_store_that_is_away_for_seconds_is_waited_for(server, bucket, lake):
    lake.create("in/a", b"x")
    # Many clients: delays are drawn, and the most unlucky has to wait long enough as well.
    lakes = [_open(f"s3://{bucket}/in", server.options)[0] for _ in range(40)]
    server.away_for(2.0)
    with ThreadPoolExecutor(len(lakes)) as readers:
        assert set(readers.map(lambda each: each.whole("in/a"), lakes)) == {b"x"}
    server.away_for(1.0)
    # What must not be done twice the client does not repeat by itself.
    patiently(lambda: lake.create("in/b", b"y"))
    server.away_for(1.0)
    assert sum(page.num_rows for page in lake.pages("in")) == 2


def test_a_request_that_hangs_is_given_up_and_repeated(server, bucket):
    lake, _ = _open(f"s3://{bucket}/in", {**server.options, "timeout": 0.5})
    lake.create("in/a", b"x")
    server.fail_next(server.hang(2), times=2)
    assert lake.whole("in/a") == b"x"


def test_missing_permission_is_reported_at_once(server, bucket, lake):
    def forbidden(environ, respond):
        respond("403 Forbidden", [("Content-Type", "application/xml")])
        return [b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"]

    server.fail_next(forbidden, times=99)
    with pytest.raises(PermissionError, match="403 Forbidden"):
        patiently(lambda: lake.part("in/a"))


@pytest.mark.parametrize(
    ("code", "error"), [("AccessDenied", PermissionError), ("OperationAborted", OSError)]
)
def test_a_deletion_that_is_refused_within_an_answer_is_an_error(server, bucket, lake, code, error):
    def refused(environ, respond):
        respond("200 OK", [("Content-Type", "application/xml")])
        told = f"<Key>in/a</Key><Code>{code}</Code><Message>said</Message>"
        return [f"<DeleteResult><Error>{told}</Error></DeleteResult>".encode()]

    lake.create("in/a", b"x")
    server.fail_next(refused, times=99, kind="POST")
    with pytest.raises(OSError, match=rf"said.*{code}") as caught:
        lake.delete_one("in/a")
    assert type(caught.value) is error


def test_a_missing_bucket_is_no_empty_one(server, bucket):
    lake, _ = _open("s3://nowhere/in", server.options)
    with pytest.raises(FileNotFoundError, match="NoSuchBucket"):
        list(lake.pages("in"))


def test_the_delays_grow_to_a_limit_and_no_two_clients_share_them():
    rows = [[next(row) for _ in range(7)] for row in (delays(), delays())]
    assert rows[0] != rows[1]
    for row in rows:
        for delay, most in zip(row, (0.1, 0.3, 0.9, 2.7, 8, 8, 8), strict=True):
            assert most / 2 <= delay <= most


def test_a_bucket_with_the_same_options_is_one_client(server, bucket):
    first, _ = _open(f"s3://{bucket}/x", server.options)
    assert _open(f"s3a://{bucket}/y", server.options)[0] is first
    assert _open(f"s3://{bucket}/y", {**server.options, "anon": True})[0] is not first


@pytest.mark.parametrize(
    ("scheme", "given", "store"),
    [
        ("s3", {"key": "a", "secret": "b"}, {"access_key_id": "a", "secret_access_key": "b"}),
        ("s3", {"anon": True, "requester_pays": False}, {"skip_signature": True}),
        (
            "s3a",
            {"client_kwargs": {"endpoint_url": "http://h:1", "region_name": "r"}},
            {"endpoint": "http://h:1", "region": "r"},
        ),
        (
            "s3",
            {"s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "k"}},
            {"server_side_encryption": "aws:kms", "sse_kms_key_id": "k"},
        ),
        ("gs", {"token": {"a": "b"}, "project": "p"}, {"service_account_key": '{"a": "b"}'}),
        ("gcs", {"token": "anon"}, {"skip_signature": True}),
        ("gs", {"token": "/key.json"}, {"application_credentials": "/key.json"}),
        (
            "abfs",
            {"connection_string": "AccountName=a;AccountKey=b==;EndpointSuffix=core"},
            {"account_name": "a", "account_key": "b=="},
        ),
        ("az", {"account_name": "a", "sas_token": "s"}, {"account_name": "a", "sas_key": "s"}),
    ],
)
def test_the_names_of_fsspec_are_understood(scheme, given, store):
    scheme = scheme.replace("s3a", "s3")
    assert client_config(scheme, given).store == store


def test_options_of_connections_are_understood():
    made = client_config(
        "s3",
        {
            "endpoint_url": "http://h:1",
            "default_block_size": 1,
            "config_kwargs": {
                "connect_timeout": 2,
                "read_timeout": 3,
                "retries": {"max_attempts": 4},
                "s3": {"addressing_style": "path"},
            },
            "client_kwargs": {"verify": False},
        },
    )
    assert made.connections["connect_timeout"].total_seconds() == 2
    assert made.connections["timeout"].total_seconds() == 3
    assert made.connections["allow_http"] is True
    assert made.connections["allow_invalid_certificates"] is True
    assert made.retries["max_retries"] == 4


@pytest.mark.parametrize("mode", ["legacy", "standard", "adaptive"])
@pytest.mark.parametrize(
    "given", [{"max_attempts": 0}, {"max_attempts": 2}, {"total_max_attempts": 2},
              {"total_max_attempts": 1, "max_attempts": 5}],
)  # fmt: skip
def test_retries_are_as_many_as_botocore_makes_of_the_same_options(given, mode):
    retries = {**given, "mode": mode}
    client = Session().create_client(
        "s3",
        region_name="us-east-1",
        config=Config(retries=dict(retries)),
    )
    attempts = client.meta.config.retries["total_max_attempts"]
    made = client_config("s3", {"config_kwargs": {"retries": retries}})
    assert made.retries["max_retries"] == attempts - 1


def test_what_the_client_does_not_know_is_refused_by_name():
    given = {"key": "a", "sekret": "hunter2", "client_kwargs": {"config": 1}, "version_aware": True}
    with pytest.raises(OptionError) as caught:
        open_bucket("s3://b/x", given)
    told = str(caught.value)
    assert all(name in told for name in ("client_kwargs", "sekret", "version_aware", "fsspec"))
    assert "hunter2" not in told
    assert open_bucket("s3://b/x", {**given, "client": "fsspec"}) is None
    assert open_bucket("hdfs://b/x", given) is None
    with pytest.raises(OptionError, match="obstore or fsspec"):
        open_bucket("s3://b/x", {"client": "boto"})


@pytest.mark.parametrize(
    ("url", "written", "key"),
    [
        ("s3a://b/k/l/", "s3://b/k/l", "k/l"),
        ("gcs://b/k", "gs://b/k", "k"),
        ("az://c/k", "abfs://c/k", "k"),
        ("abfss://c@account.dfs.core.windows.net/k", "abfs://c/k", "k"),
        ("s3://b", "s3://b/", ""),
    ],
)
def test_paths_are_written_as_fsspec_writes_them(url, written, key):
    options = {"account_name": "a"} if "//c/" in url else {"skip_signature": True}
    opened, found = _open(url, options)
    assert (found, opened.url(found)) == (key, written)
