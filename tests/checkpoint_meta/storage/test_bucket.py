"""Buckets through the client: versions, pages, requests and faults of each object store."""

import pytest
from botocore.config import Config
from botocore.session import Session

from pyspark_sluice.checkpoint_meta.storage.contract import PART
from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.checkpoint_meta.storage.providers import client_config
from pyspark_sluice.checkpoint_meta.storage.storage_errors import AnotherVersion, delays, patiently
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


def test_a_version_is_copied_and_deleted_only_if_it_is_the_one_that_was_looked_at(lake):
    lake.create("in/a", b"old")
    etag = lake.stat("in/a").etag
    lake.delete("in/a")
    lake.create("in/a", b"new")
    with pytest.raises(AnotherVersion):
        lake.storage.copy(lake.name_of("in/a"), lake.name_of("old/a"), etag)
    with pytest.raises(AnotherVersion):
        lake.delete("in/a", etag)
    assert lake.whole("in/a") == b"new"
    lake.delete("in/a", lake.stat("in/a").etag)
    lake.delete("in/a", etag)
    assert lake.listed("") == []


@pytest.mark.parametrize("honors_conditions", [True, False])
def test_a_large_copy_replaces_nothing(server, bucket, honors_conditions):
    """Some servers know the condition of a PUT, and not the one that ends a multipart upload."""

    def ignore(environ, respond):
        if not honors_conditions and environ["REQUEST_METHOD"] == "POST":
            environ.pop("HTTP_IF_NONE_MATCH", None)

    server.fault = ignore
    # Whether the server honors them is tried once for each client.
    options = {**server.options, "timeout": "60s" if honors_conditions else "61s"}
    lake = Lake(f"s3a://{bucket}/in/", options)
    large = b"x" * (PART + 1)
    before = len(server.names)
    lake.create("in/large", large)
    lake.create("in/other", large)
    lake.copy("in/large", "old/large")
    lake.create("old/taken", b"of others")
    for target in ("old/large", "old/taken"):
        if honors_conditions or target == "old/taken":
            with pytest.raises(FileExistsError):
                lake.copy("in/large", target)
    assert lake.whole("old/large") == large
    assert lake.whole("old/taken") == b"of others"
    assert lake.whole("old/_sluice-probe-copy") == b"probe"
    assert [name for name in lake.listed("") if "probe" not in name] == [
        "in/large", "in/other", "old/large", "old/taken"
    ]  # fmt: skip
    # Nothing is deleted, which an archive need not permit.
    deleted = [name for name in server.names[before:] if name.startswith("DELETE")]
    assert all("uploadId=" in name for name in deleted)
    assert "Uploads" not in server.client().list_multipart_uploads(Bucket=bucket)
    if honors_conditions:
        # The copy itself has the condition that the source is what was looked at.
        wanted = [headers.get("HTTP_X_AMZ_COPY_SOURCE_IF_MATCH") for headers in server.headers]
        assert f'"{lake.stat("in/large").etag}"' in wanted


@pytest.mark.parametrize("answer", ["409 Conflict", "412 Precondition Failed", "200 OK"])
def test_a_create_that_is_answered_and_not_done_is_done_again(server, lake, bucket, answer):
    """Also if a directory's name is that of an object: versitygw answers 409 to each create."""
    draft = lake.begin("in/a")
    draft.sink.write(b"rows")
    refusal = server.refuse(answer, "ConditionalRequestConflict")
    server.fail_next(server.confirm_only if answer == "200 OK" else refusal, kind="PUT")
    draft.publish()
    assert server.get(bucket, "in/a") == b"rows"
    other = lake.begin("in/a")
    other.sink.write(b"ROWS")
    with pytest.raises(FileExistsError):
        other.publish()
    other.discard()
    assert server.get(bucket, "in/a") == b"rows"


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


ODD_NAMES = [
    "a b", "a%20b", "100%", "a#b", "a?b=c&d", "a*b", "a+b", "ä ö", "day=2026-01-01/x", "~x",
    "{x}", "[x]", "a|b^c", "it's", '"q"', "/".join("abcdefghij"), "x" * 200,
]  # fmt: skip


def opened(server, bucket, **options):
    return Lake(f"{server.scheme}://{bucket}/in", {**server.options, **options})


@pytest.fixture
def any_lake(any_server, any_bucket):
    return opened(any_server, any_bucket)


@pytest.fixture
def put(any_server, any_bucket):
    return lambda key, data=b"x": any_server.put(any_bucket, key, data)


def test_odd_and_deep_names_are_listed_and_read_as_they_are(any_server, any_bucket, put, any_lake):
    names = ODD_NAMES + ["a\\b"] * (any_server.scheme == "s3")
    for name in names:
        put(f"in/{name}", name.encode())
    keys = any_lake.listed()
    assert sorted(keys) == sorted(f"in/{name}" for name in names)
    assert [any_lake.whole(key).decode() for key in keys] == [key[3:] for key in keys]
    for name in names:
        any_lake.create(f"out/{name}", name.encode())
    assert any_server.keys(any_bucket, "out/") == sorted(f"out/{name}" for name in names)


def test_a_large_object_is_written_in_one_request_and_read_in_parts_of_one_version(
    any_server, put, any_lake
):
    data = bytes(range(256)) * (PART // 256) + b"and more"
    assert any_server.counted(lambda: any_lake.create("in/large", data)) == {"PUT": 1}
    assert any_server.counted(lambda: any_lake.whole("in/large")) == {"GET": 2}
    assert any_lake.whole("in/large") == data
    parts = any_lake.parts("in/large")
    next(parts)
    put("in/large", data[::-1])
    with pytest.raises(AnotherVersion):
        next(parts)


def test_throttling_is_waited_out(any_server, put, any_lake):
    put("in/a")
    any_lake.listed()
    for kind, action in {
        "GET": lambda: any_lake.whole("in/a"),
        "LIST": any_lake.listed,
        "HEAD": lambda: any_lake.stat("in/a"),
        "PUT": lambda: any_lake.create("in/b", b"x"),
    }.items():
        any_server.fail_next(any_server.slow_down, times=2, kind=kind)
        assert any_server.counted(action)[kind] == 3, kind
    any_server.fail_next(any_server.slow_down)
    any_lake.delete_tree("in/a")
    assert any_lake.listed() == ["in/b"]


def test_a_store_that_throttles_for_ever_is_named_in_the_end_in_one_line(any_server, any_bucket):
    lake = opened(any_server, any_bucket, retry_config={"max_retries": 2})
    any_server.fail_next(any_server.slow_down, times=99)
    status, code = any_server.throttling
    with pytest.raises(OSError, match=f"answered {status[:3]}.*{code}.*2 retries") as caught:
        lake.whole("in/a")
    assert "\n" not in str(caught.value)
    assert caught.value.filename == f"{any_server.path_scheme}://{any_bucket}/in/a"


def test_a_missing_bucket_is_no_empty_one(any_server, any_bucket):
    lake = opened(any_server, f"{any_bucket}-of-nobody")
    for action in (lake.listed, lambda: lake.names("in"), lambda: lake.create("in/a", b"x")):
        with pytest.raises(FileNotFoundError):
            action()


def test_a_deletion_whose_answer_was_lost_is_no_error(any_server, any_bucket, put, any_lake):
    for key in ("in/d/1", "in/d/2", "in/e"):
        put(key)
    lost = {"times": 1, "kind": "DELETE" if any_server.scheme == "gs" else "POST"}
    any_server.fail_next(any_server.lose_answer, **lost)
    patiently(lambda: any_lake.delete_tree("in/d"))
    any_server.fail_next(any_server.lose_answer, **lost)
    patiently(lambda: any_lake.delete("in/e"))
    assert any_server.keys(any_bucket) == []
