"""Versions, pages and faults of each object store: S3, Google Cloud and Azure."""

from __future__ import annotations

import pytest

from pyspark_sluice.checkpoint_meta.storage.contract import PART
from pyspark_sluice.checkpoint_meta.storage.storage_errors import AnotherVersion, patiently
from pyspark_sluice.tests.checkpoint_meta.storage.lake import Lake

pytestmark = pytest.mark.slow

ODD_NAMES = [
    "a b", "a%20b", "100%", "a#b", "a?b=c&d", "a*b", "a+b", "ä ö", "day=2026-01-01/x", "~x",
    "{x}", "[x]", "a|b^c", "it's", '"q"', "/".join("abcdefghij"), "x" * 200,
]  # fmt: skip


def opened(server, bucket, prefix="in", **options):
    return Lake(f"{server.scheme}://{bucket}/{prefix}", {**server.options, **options})


@pytest.fixture
def lake(any_server, any_bucket):
    return opened(any_server, any_bucket)


@pytest.fixture
def put(any_server, any_bucket):
    return lambda key, data=b"x": any_server.put(any_bucket, key, data)


def test_odd_and_deep_names_are_listed_and_read_as_they_are(any_server, any_bucket, put, lake):
    names = ODD_NAMES + ["a\\b"] * (any_server.scheme == "s3")
    for name in names:
        put(f"in/{name}", name.encode())
    keys = lake.listed()
    assert sorted(keys) == sorted(f"in/{name}" for name in names)
    assert [lake.whole(key).decode() for key in keys] == [key[3:] for key in keys]
    for name in names:
        lake.create(f"out/{name}", name.encode())
    assert any_server.keys(any_bucket, "out/") == sorted(f"out/{name}" for name in names)


def test_a_large_object_is_written_in_one_request_and_read_in_parts_of_one_version(
    any_server, put, lake
):
    data = bytes(range(256)) * (PART // 256) + b"and more"
    assert any_server.counted(lambda: lake.create("in/large", data)) == {"PUT": 1}
    assert any_server.counted(lambda: lake.whole("in/large")) == {"GET": 2}
    assert lake.whole("in/large") == data
    parts = lake.parts("in/large")
    next(parts)
    put("in/large", data[::-1])
    with pytest.raises(AnotherVersion):
        next(parts)


def test_throttling_is_waited_out(any_server, put, lake):
    put("in/a")
    lake.listed()
    for kind, action in {
        "GET": lambda: lake.whole("in/a"),
        "LIST": lake.listed,
        "HEAD": lambda: lake.stat("in/a"),
        "PUT": lambda: lake.create("in/b", b"x"),
    }.items():
        any_server.fail_next(any_server.slow_down, times=2, kind=kind)
        assert any_server.counted(action)[kind] == 3, kind
    any_server.fail_next(any_server.slow_down)
    lake.delete_tree("in/a")
    assert lake.listed() == ["in/b"]


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


def test_a_deletion_whose_answer_was_lost_is_no_error(any_server, any_bucket, put, lake):
    for key in ("in/d/1", "in/d/2", "in/e"):
        put(key)
    lost = {"times": 1, "kind": "DELETE" if any_server.scheme == "gs" else "POST"}
    any_server.fail_next(any_server.lose_answer, **lost)
    patiently(lambda: lake.delete_tree("in/d"))
    any_server.fail_next(any_server.lose_answer, **lost)
    patiently(lambda: lake.delete("in/e"))
    assert any_server.keys(any_bucket) == []
