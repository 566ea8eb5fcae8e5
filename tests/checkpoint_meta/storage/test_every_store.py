"""Versions, pages and faults of each object store: S3, Google Cloud and Azure."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyspark_sluice.checkpoint_meta.storage.contract import PART
from pyspark_sluice.checkpoint_meta.storage.storage_errors import AnotherVersion, patiently
from pyspark_sluice.tests.checkpoint_meta.storage.lake import Lake

pytestmark = pytest.mark.slow

ODD_NAMES = [
    "a b", "a%20b", "100%", "a#b", "a?b=c&d", "a*b", "a+b", "ä ö", "day=2026-01-01/x", "~x",
    "{x}", "[x]", "a|b^c", "it's", '"q"', "/".join("abcdefghij" * 6), "x" * 200,
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


def test_bytes_are_those_of_the_version_that_was_asked_for(put, lake):
    lake.create("in/a", b"first")
    part = lake.read("in/a", 1, 100)
    assert (part.data, part.status.size) == (b"irst", 5)
    assert part.status.etag == lake.stat("in/a").etag
    assert abs(part.status.modified / 1e6 - time.time()) < 60
    (page,) = lake.pages("in/")
    assert page.etags == [part.status.etag]
    put("in/a", b"other")
    with pytest.raises(AnotherVersion):
        lake.read("in/a", 1, 100, part.status.etag)


def test_an_object_that_is_replaced_between_its_parts_is_never_mixed(put, lake, monkeypatch):
    put("in/large", b"a" * (PART + 10))
    read = lake.storage.read

    def replaced(name, start=0, *rest):
        if start:
            put("in/large", b"b" * (PART + 10))
        return read(name, start, *rest)

    monkeypatch.setattr(lake.storage, "read", replaced)
    with pytest.raises(AnotherVersion):
        lake.whole("in/large")


def test_a_large_object_is_read_in_parts_and_written_in_one(any_server, lake):
    data = bytes(range(256)) * (PART // 256) + b"and more"
    assert any_server.counted(lambda: lake.create("in/large", data)) == {"PUT": 1}
    assert any_server.counted(lambda: lake.whole("in/large")) == {"GET": 2}
    assert lake.whole("in/large") == data


def test_a_listing_of_several_pages_is_complete_in_order_and_starts_after_a_name(
    any_server, any_bucket, put
):
    names = [f"in/{n:02}" for n in range(23)]
    for name in [*names, "in2", "inner/x", "a"]:
        put(name)
    any_server.most_keys = 5
    lake = opened(any_server, any_bucket)
    pages = any_server.counted(lake.listed)["LIST"]
    assert pages >= 5
    assert lake.listed() == names
    # The client's parameter is of a later version of Azure's service.
    again = pages if any_server.scheme == "abfss" else 1
    assert any_server.counted(lambda: lake.listed(after=names[-1])) == {"LIST": again}
    assert lake.listed(after="in/07") == names[8:]
    assert lake.listed(after="in/07x") == names[8:]
    assert lake.listed(after="in/99") == []
    assert lake.names("in") == [name[3:] for name in names]
    assert lake.names("") == ["a", "in", "in2", "inner"]
    assert lake.listed("nowhere/") == []


def test_what_is_deleted_is_gone_with_all_below_it_and_twice_is_no_error(
    any_server, any_bucket, put, lake
):
    # More than Azure deletes at once, and a neighbour whose name begins so.
    below = [f"in/d/{n:04}" for n in range(300 if any_server.scheme == "abfss" else 20)]
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(put, [*below, "in/e", "in/dx"]))
    for _ in range(2):
        lake.delete_tree("in/d")
        assert any_server.keys(any_bucket) == ["in/dx", "in/e"]
    for _ in range(2):
        lake.delete_tree("in/e")
        assert any_server.keys(any_bucket) == ["in/dx"]
    for _ in range(2):
        lake.delete("in/dx")
    assert any_server.keys(any_bucket) == []


@pytest.mark.parametrize(
    "status",
    [
        "503 Service Unavailable",
        pytest.param("429 Too Many Requests", marks=pytest.mark.thorough("waited out as 503 is")),
    ],
)
def test_throttling_is_waited_out(any_server, put, lake, status):
    put("in/a")
    lake.listed()
    throttled = any_server.refuse(status, any_server.throttling[1])
    for kind, action in {
        "GET": lambda: lake.whole("in/a"),
        "LIST": lake.listed,
        "HEAD": lambda: lake.stat("in/a"),
        "PUT": lambda: lake.create("in/b", b"x"),
    }.items():
        any_server.fail_next(throttled, times=3, kind=kind)
        assert any_server.counted(action)[kind] == 4, kind
    any_server.fail_next(throttled)
    lake.delete_tree("in/a")
    assert lake.listed() == ["in/b"]


def test_a_store_that_throttles_for_ever_is_named_in_the_end_in_one_line(any_server, any_bucket):
    lake = opened(any_server, any_bucket, retry_config={"max_retries": 2})
    any_server.fail_next(any_server.slow_down, times=99)
    status, code = any_server.throttling
    with pytest.raises(OSError, match=f"answered {status[:3]}.*{code}.*2 retries") as caught:
        lake.whole("in/a")
    assert caught.value.filename == f"{any_server.path_scheme}://{any_bucket}/in/a"


def test_what_the_store_says_of_an_error_is_reported_in_one_line(any_bucket, put, lake):
    put("in/a")
    part = lake.read("in/a")
    put("in/a", b"other")
    for action in (
        lambda: lake.create("in/a", b""),
        lambda: lake.read("in/a", 0, 1, part.status.etag),
    ):
        with pytest.raises(OSError, match=r"answered 4\d\d .*\(\w+: ") as caught:
            action()
        assert "\n" not in str(caught.value)


def test_a_deletion_whose_answer_was_lost_is_no_error(any_server, any_bucket, put, lake):
    for key in ("in/d/1", "in/d/2", "in/e"):
        put(key)
    lost = {"times": 1, "kind": "DELETE" if any_server.scheme == "gs" else "POST"}
    any_server.fail_next(any_server.lose_answer, **lost)
    patiently(lambda: lake.delete_tree("in/d"))
    any_server.fail_next(any_server.lose_answer, **lost)
    patiently(lambda: lake.delete("in/e"))
    assert any_server.keys(any_bucket) == []


def test_a_store_that_is_away_is_waited_for(any_server, any_bucket, put, lake):
    put("in/a")
    any_server.away_for(1.0)
    assert lake.whole("in/a") == b"x"
    any_server.away_for(1.0)
    patiently(lambda: lake.create("in/b", b"y"))
    any_server.away_for(1.0)
    assert lake.listed() == ["in/a", "in/b"]


def test_a_request_that_hangs_is_given_up_and_repeated(any_server, any_bucket, put):
    put("in/a")
    lake = opened(any_server, any_bucket, timeout=0.5)
    any_server.fail_next(any_server.hang(2), times=2)
    assert lake.whole("in/a") == b"x"


def test_missing_permission_is_reported_at_once(any_server, lake):
    any_server.fail_next(any_server.refuse("403 Forbidden", "AccessDenied"), times=99)
    for action in (
        lambda: lake.read("in/a"),
        lake.listed,
        lambda: lake.create("in/a", b""),
    ):
        with pytest.raises(PermissionError, match="403 Forbidden"):
            patiently(action)


def test_a_missing_bucket_is_no_empty_one(any_server, any_bucket):
    lake = opened(any_server, "nowhere-at-all")
    with pytest.raises(FileNotFoundError, match=r"NoSuchBucket|ContainerNotFound"):
        lake.listed()
    with pytest.raises(FileNotFoundError):
        lake.names("in")
    with pytest.raises(FileNotFoundError):
        lake.create("in/a", b"x")
