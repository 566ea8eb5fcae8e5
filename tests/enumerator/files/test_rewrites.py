"""Directories that are written again: when their files are entered, and how they are batches."""

import time

import pytest

from pyspark_sluice.checkpoint_meta.files.file_split import REPLACES, RETRACTS
from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.enumerator.files.event_time_batches import EventTimePolicy
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.enumerator.files.ledger.new_files import OnOverwrite
from pyspark_sluice.enumerator.files.ledger.pending import EventTimeOrder, FileOrder
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import S3Server
from pyspark_sluice.tests.enumerator.files.bench import HOUR, Bench, times
from pyspark_sluice.tests.enumerator.files.discovery.finding import land, make_discovery


def policy(order=FileOrder.MTIME):
    return LedgerPolicy(order, OnOverwrite.REPLACE, retracts=True, whole_directories=True)


def bench_over(root, state=None, storage=None, **more):
    more.setdefault("ledger", policy())
    listing = {"ready_marker": "_SUCCESS", "wants_versions": True}
    bench = Bench(
        state=state,
        parallelism=1,
        discovery=make_discovery(root, storage, **listing),
        retract_after=3600,
        **more,
    )
    bench.discover()
    return bench


def write(root, directory, *names):
    """Put files of these names in place of those that are there, then the marker."""
    for old in (root / directory).glob("*"):
        old.unlink()
    for name in (*names, "_SUCCESS"):
        land(root, f"{directory}/{name}", "x" * 10)


def names(splits):
    return [("-" if s.replaces == RETRACTS else "") + s.file.path[-3:] for s in splits]


def test_what_readers_send_back_comes_alone_and_replaces_nothing(tmp_path):
    write(tmp_path, "a", "1")
    bench = bench_over(tmp_path)
    bench.plan()
    bench.enumerator.snapshot_state(1)
    write(tmp_path, "a", "2", "3")
    bench.discover()
    batch = bench.plan()
    bench.enumerator.snapshot_state(2)
    bench.enumerator.add_splits_back([batch[1]], 0)
    assert [(names([s]), s.replaces) for s in bench.plan()] == [(["a/3"], 0)]
    bench.enumerator.snapshot_state(3)
    # An order for one of its files does not concern the others.
    bench.enumerator.requeue_splits([batch[0]])
    assert [(names([s]), s.replaces) for s in bench.plan()] == [(["a/2"], REPLACES)]


def test_a_pass_that_fails_enters_nothing_of_a_directory_with_known_files(tmp_path, monkeypatch):
    write(tmp_path, "a", "1")
    bench = bench_over(tmp_path)
    bench.plan()
    write(tmp_path, "a", "2")
    discovery = bench.enumerator._discovery
    with monkeypatch.context() as patch:
        patch.setattr(discovery, "look_into", lambda *_: 1 / 0)
        bench.discover()
    assert "ZeroDivisionError" in bench.enumerator.backlog()["listingError"]
    assert bench.plan() == []
    bench.discover()
    assert names(bench.plan()) == ["a/2", "-a/1"]


def test_a_directory_whose_event_times_are_far_apart_is_one_batch(tmp_path):
    found = times("{yyyy}-{MM}-{dd}-", str(tmp_path))
    write(tmp_path, "x", "2026-01-01-a", "2026-01-03-b")
    bench = bench_over(
        tmp_path, ledger=policy(EventTimeOrder(found)), event_time=EventTimePolicy(found, HOUR)
    )
    assert names(bench.plan()) == ["1-a"]
    bench.enumerator.snapshot_state(1)
    assert names(bench.plan()) == ["3-b"]
    bench.enumerator.snapshot_state(2)
    write(tmp_path, "x", "2026-01-02-c", "2026-01-04-d")
    bench.discover()
    assert names(bench.plan()) == ["2-c", "4-d", "-1-a", "-3-b"]


@pytest.mark.slow
def test_a_directory_of_a_bucket_is_one_batch_once_its_marker_is_new():
    server = S3Server()
    client = server.client()
    client.create_bucket(Bucket="lake")

    def put(*keys):
        for key in keys:
            client.put_object(Bucket="lake", Key=f"in/{key}", Body=b"x" * 10)

    put("a/1", "a/_SUCCESS", "b/1", "b/_SUCCESS")
    bench = bench_over("s3://lake/in", storage=server.options)
    assert len(bench.plan()) == 2
    # Times of objects have no fractions of seconds.
    time.sleep(1.1)
    client.delete_object(Bucket="lake", Key="in/a/1")
    put("a/2", "a/3")
    bench.discover()
    assert bench.plan() == []
    put("a/_SUCCESS")
    bench.discover()
    assert names(bench.plan(BatchLimits(files=1))) == ["a/2", "a/3", "-a/1"]
    server.close()
