"""Buckets through the client: what one request is enough for, and what goes wrong."""

from __future__ import annotations

import pytest
from botocore.config import Config
from botocore.session import Session

from pyspark_sluice.checkpoint_meta.storage.client_options import client_config
from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.checkpoint_meta.storage.storage_errors import delays
from pyspark_sluice.errors import OptionError
from pyspark_sluice.tests.checkpoint_meta.storage.lake import Lake

pytestmark = pytest.mark.slow


@pytest.fixture
def lake(server, bucket):
    lake = Lake(f"s3a://{bucket}/in/", server.options)
    assert lake.key == "in"
    return lake


def test_a_name_that_the_client_cannot_spell_is_refused_and_not_passed_over(server, bucket, lake):
    server.put(bucket, "in/a//b", b"x")
    with pytest.raises(OSError, match=r'in/a//b.*"client": "fsspec"'):
        lake.listed()


def test_each_operation_is_one_request(server, bucket, lake):
    assert server.counted(lambda: lake.create("in/a", b"0123456789")) == {"PUT": 1}
    assert server.counted(lambda: lake.whole("in/a")) == {"GET": 1}
    assert server.counted(lambda: lake.read("in/a", 2, 3)) == {"GET": 1}
    assert server.counted(lambda: lake.stat("in/a")) == {"HEAD": 1}
    assert server.counted(lake.listed) == {"LIST": 2}
    assert server.counted(lake.listed) == {"LIST": 1}
    assert server.counted(lambda: lake.names("in")) == {"LIST": 1}
    assert server.counted(lambda: lake.delete_tree("in/a")) == {"LIST": 1, "POST": 1}


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
        lake.delete("in/a")
    assert type(caught.value) is error


def test_the_delays_grow_to_a_limit_and_no_two_clients_share_them():
    rows = [[next(row) for _ in range(7)] for row in (delays(), delays())]
    assert rows[0] != rows[1]
    for row in rows:
        for delay, most in zip(row, (0.1, 0.3, 0.9, 2.7, 8, 8, 8), strict=True):
            assert most / 2 <= delay <= most


def test_a_bucket_with_the_same_options_is_one_client(server, bucket):
    first, _ = open_storage(f"s3://{bucket}/x", server.options)
    assert open_storage(f"s3a://{bucket}/y", server.options)[0] is first
    assert open_storage(f"s3://{bucket}/y", {**server.options, "anon": True})[0] is not first


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


@pytest.mark.parametrize(
    "retries",
    [
        {"max_attempts": 2, "mode": "legacy"},
        {"max_attempts": 2, "mode": "standard"},
        {"total_max_attempts": 1, "max_attempts": 5, "mode": "standard"},
    ],
)
def test_retries_are_as_many_as_botocore_makes_of_the_same_options(retries):
    config = Config(retries=dict(retries))
    client = Session().create_client("s3", region_name="us-east-1", config=config)
    attempts = client.meta.config.retries["total_max_attempts"]
    made = client_config("s3", {"config_kwargs": {"retries": retries}})
    assert made.retries["max_retries"] == attempts - 1


def test_what_the_client_does_not_know_is_refused_by_name():
    given = {"key": "a", "sekret": "hunter2", "client_kwargs": {"config": 1}, "version_aware": True}
    with pytest.raises(OptionError) as caught:
        open_storage("s3://b/x", given)
    told = str(caught.value)
    assert all(name in told for name in ("client_kwargs", "sekret", "version_aware", "fsspec"))
    assert "hunter2" not in told
    with pytest.raises(OptionError, match="obstore or fsspec"):
        open_storage("s3://b/x", {"client": "boto"})


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
    storage, name = open_storage(url, options)
    assert (name.partition("/")[2], storage.url(name)) == (key, written)
