"""Events of S3 in a real queue: each file once, and no message deleted before it is safe."""

from __future__ import annotations

import itertools
import json
import time
import uuid

import numpy as np
import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import make_discovery
from pyspark_sluice.enumerator.batch_budget import UNLIMITED, BatchBudget
from pyspark_sluice.enumerator.files.cutting import SplitCutter
from pyspark_sluice.enumerator.files.discovery.queue import message_receiver as inboxes
from pyspark_sluice.enumerator.files.enumerator import FileSplitEnumerator
from pyspark_sluice.enumerator.files.file_policy import FilePolicy
from pyspark_sluice.enumerator.files.ledger.changes import OnOverwrite
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.enumerator.files.spreading import SplitSpreader
from pyspark_sluice.enumerator.testing import HandCrankedContext
from pyspark_sluice.errors import OptionError, SourceUnavailable
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json, kind_of
from pyspark_sluice.tests.enumerator.files.bench import AnyByte
from pyspark_sluice.tests.enumerator.files.discovery.queue.s3_events import (
    TEST_EVENT,
    event,
    in_event_bridge,
    in_sns,
    record,
)
from pyspark_sluice.tests.patience import PATIENCE, wait_until

pytestmark = pytest.mark.slow


class Ledger:
    """What a ledger answers, kept as a list of paths."""

    def __init__(self, paths=()):
        self.paths = list(paths)

    def __len__(self):
        return len(self.paths)

    def are_known(self, paths):
        return np.array([path in self.paths for path in paths], np.bool_)


class Stream:
    """A discovery and its ledger, driven by hand as the enumerator does it."""

    def __init__(self, server, bucket, queue, path="in", known=(), **options):
        given = {
            "path": f"s3a://{bucket}/{path}",
            "storageOptions": as_json(server.options),
            "discoveryMode": "notifications",
            "queueUrl": queue,
            "failOnMissingPath": "false",
            **options,
        }
        self.bucket = bucket
        self.discovery = make_discovery(parse_options(given, streaming=False))
        self.ledger = Ledger(known)

    def found(self):
        """A pass; what it brings, known from now on."""
        files = [f for part in self.discovery.listing(self.ledger) for f in part.versions()]
        self.ledger.paths += [file.path for file in files]
        self.discovery.notify_entered()
        return [file.path.removeprefix(f"s3://{self.bucket}/") for file in files]

    def found_within(self, seconds=PATIENCE, count=1):
        found = []

        def enough():
            found.extend(self.found())
            return len(found) >= count

        wait_until(enough, lambda: f"only {found}", seconds)
        return found

    def checkpoint(self, identity):
        self.discovery.notify_cut(identity, self.ledger)
        self.discovery.notify_checkpoint_complete(identity)

    def receive_all(self, count):
        """Wait until so many messages have been received, without a pass."""
        wait_until(lambda: self.figures.get("received", 0) >= count, lambda: self.figures)

    def until_deleted(self, count):
        """Wait until so many messages have been deleted, without a pass."""
        wait_until(lambda: self.figures.get("deleted", 0) >= count, lambda: self.figures)

    @property
    def figures(self):
        return dict(self.discovery.report()["notifications"])

    def until(self, **figures):
        """Wait until the figures are these."""
        known = dict.fromkeys(figures, 0)

        def as_wanted():
            self.found()
            return figures.items() <= {**known, **self.figures}.items()

        wait_until(as_wanted, lambda: f"{self.figures}, not {figures}")


class Bench:
    """An enumerator over a discovery, turned by hand."""

    def __init__(self, discovery):
        self.context = HandCrankedContext(1)
        cutter, spreader = SplitCutter(AnyByte(), 100), SplitSpreader(1000, 1, 1)
        policy = FilePolicy(0.0, ledger=LedgerPolicy(on_overwrite=OnOverwrite.REPROCESS))
        self.enumerator = FileSplitEnumerator(
            self.context, discovery, cutter, spreader, policy, None
        )
        self.enumerator.start()

    def discovered(self):
        """What one call to discovery makes pending."""
        before = len(self.context.assigned)
        self.context.run_calls()
        self.enumerator.plan_batch(BatchBudget(UNLIMITED))
        return ["in/" + s.file.path.rpartition("/")[2] for _, s in self.context.assigned[before:]]

    @property
    def error(self):
        return self.enumerator.backlog().get("listingError", "")


@pytest.fixture
def sqs(server, bucket):
    return server.client("sqs")


@pytest.fixture
def make_queue(sqs):
    def make(visibility=30):
        name = f"q-{uuid.uuid4().hex[:12]}"
        attributes = {"VisibilityTimeout": str(visibility)}
        return sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]

    return make


@pytest.fixture
def open_stream(server, bucket, monkeypatch):
    streams = []
    monkeypatch.setattr(inboxes, "LONG_POLL", 1)
    monkeypatch.setattr(inboxes, "SHORT_POLL", 0)

    def make(queue, **options):
        streams.append(Stream(server, bucket, queue, **options))
        return streams[-1]

    yield make
    for stream in streams:
        stream.discovery.close()


def _put(server, bucket, *keys):
    for key in keys:
        server.client().put_object(Bucket=bucket, Key=key, Body=b"abc")


def _left(sqs, queue):
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"]
    return tuple(int(found[name]) for name in names)


def test_what_was_there_is_listed_and_what_comes_is_announced(
    server, bucket, sqs, make_queue, open_stream
):
    queue = make_queue()
    _put(server, bucket, "in/old")
    stream = open_stream(queue)
    assert stream.found() == ["in/old"]
    _put(server, bucket, "in/new", "in/ä b", "in/silent")
    for key in ("in/new", "in/ä b"):
        sqs.send_message(QueueUrl=queue, MessageBody=event(record(bucket, key)))
    listed = server.requests.count("LIST")
    assert sorted(stream.found_within(count=2)) == ["in/new", "in/ä b"]
    assert server.requests.count("LIST") == listed, "a pass between full ones has listed"
    # The same version that a listing has: nothing is found twice by its version either.
    (one,) = (
        file
        for part in open_stream(make_queue()).discovery.listing(Ledger())
        for file in part.versions()
        if file.path.endswith("in/new")
    )
    head = server.client().head_object(Bucket=bucket, Key="in/new")
    assert one.etag == head["ETag"].strip('"')
    assert one.modified == int(head["LastModified"].timestamp() * 1_000_000)


def test_a_message_is_deleted_only_when_a_checkpoint_with_its_files_is_complete(
    server, bucket, sqs, make_queue, open_stream
):
    queue = make_queue()
    stream = open_stream(queue)
    stream.ledger.paths.append("elsewhere")
    stream.discovery._whole.full_listing = time.time()
    _put(server, bucket, "in/a", "in/b", "in/c")
    stream.discovery.notify_cut(1, stream.ledger)
    both = event(record(bucket, "in/a"), record(bucket, "in/b"))
    sqs.send_message(QueueUrl=queue, MessageBody=both)
    assert sorted(stream.found_within(count=2)) == ["in/a", "in/b"]
    stream.discovery.notify_checkpoint_complete(1)
    assert stream.figures["held"] == 1, "the first checkpoint was cut before they were found"
    stream.discovery.notify_cut(2, stream.ledger)
    sqs.send_message(QueueUrl=queue, MessageBody=event(record(bucket, "in/c")))
    stream.found_within()
    assert stream.figures["held"] == 2
    stream.discovery.notify_aborted(2)
    stream.discovery.notify_checkpoint_complete(2)
    assert stream.figures["held"] == 2, "a checkpoint that was taken back holds nothing"
    stream.discovery.notify_cut(3, stream.ledger)
    stream.discovery.notify_checkpoint_complete(3)
    stream.until(held=0, deleted=2)
    assert _left(sqs, queue) == (0, 0)


def test_after_a_crash_a_message_comes_again_and_its_file_once(
    server, bucket, sqs, make_queue, open_stream
):
    queue = make_queue()
    stream = open_stream(queue)
    stream.found()
    _put(server, bucket, "in/safe", "in/lost")
    sqs.send_message(QueueUrl=queue, MessageBody=event(record(bucket, "in/safe")))
    stream.found_within()
    stream.checkpoint(1)
    sqs.send_message(QueueUrl=queue, MessageBody=event(record(bucket, "in/lost")))
    stream.found_within()
    stream.discovery.close()
    # What the crash left: the checkpoint knows one of the two, and both messages come again.
    for key in ("in/safe", "in/lost", "in/lost", "in/safe"):
        sqs.send_message(QueueUrl=queue, MessageBody=event(record(bucket, key)))
    again = open_stream(queue, known=[f"s3://{bucket}/in/safe"])
    again.discovery.resume(stream.discovery.position())
    assert again.found_within() == ["in/lost"]
    # Those of the file that was safe before are done with at once.
    again.until(deleted=2, held=2)
    assert again.found() == []
    again.checkpoint(1)
    again.until(held=0, deleted=4)


def test_a_message_that_comes_after_the_cut_with_its_file_goes_when_that_is_complete(
    server, bucket, sqs, make_queue, open_stream
):
    queue = make_queue()
    stream = open_stream(queue)
    _put(server, bucket, "in/a")
    sqs.send_message(QueueUrl=queue, MessageBody=event(record(bucket, "in/a")))
    passing = stream.discovery.listing(stream.ledger)
    (files,) = [next(passing)]
    stream.ledger.paths += files.paths
    stream.discovery.notify_cut(1, stream.ledger)
    # The pass goes on with the queue, and is the only one of a bounded run.
    assert list(passing) == []
    stream.discovery.notify_entered()
    assert stream.figures["held"] == 1
    stream.discovery.notify_checkpoint_complete(1)
    stream.until(held=0, deleted=1)


def test_what_is_held_is_kept_from_others_for_as_long_as_it_takes(
    server, bucket, sqs, make_queue, open_stream
):
    queue = make_queue()
    stream = open_stream(queue)
    stream.found()
    stream.discovery._receiver._queue.visibility = 4
    _put(server, bucket, "in/a")
    sqs.send_message(QueueUrl=queue, MessageBody=event(record(bucket, "in/a")))
    stream.found_within()
    time.sleep(6.0)
    assert _left(sqs, queue) == (0, 1), "the message has become visible to others"
    assert stream.figures.get("redelivered", 0) == 0


def test_messages_that_tell_of_nothing_are_counted_and_done_with(
    server, bucket, sqs, make_queue, open_stream
):
    queue = make_queue()
    stream = open_stream(queue, pathGlobFilter="*.json")
    stream.found()
    _put(server, bucket, "in/_hidden.json", "in/x.csv", "out/a.json", "in/deep/a.json")
    server.client().put_object(Bucket=bucket, Key="in/empty.json", Body=b"")
    bodies = [
        TEST_EVENT,
        event(record(bucket, "in/gone.json")),
        event(record(bucket, "in/x.json", "ObjectRemoved:Delete")),
        event(*(record(bucket, f"{key}.json") for key in ("in/_hidden", "out/a"))),
        event(record(bucket, "in/x.csv"), record("another", "in/a.json")),
        event(record(bucket, "in/empty.json")),
        in_sns(in_event_bridge(bucket, "in/deep/a.json")),
    ]
    for body in bodies:
        sqs.send_message(QueueUrl=queue, MessageBody=body)
    assert stream.found_within() == ["in/deep/a.json"]
    stream.until(received=7, goneObjects=1, notChosen=4, deleted=6, held=1)
    assert stream.discovery.skipped.counts["empty"] == 1
    stream.checkpoint(1)
    stream.until(deleted=7, held=0)


def test_a_malformed_message_goes_to_the_dead_letters_or_stays(
    server, bucket, sqs, make_queue, open_stream
):
    queue, dead, other = make_queue(), make_queue(), make_queue()
    stream = open_stream(queue, deadLetterQueueUrl=dead)
    stream.found()
    sqs.send_message(QueueUrl=queue, MessageBody="not for us")
    stream.until(malformed=1, deleted=1, held=0)
    (held,) = sqs.receive_message(QueueUrl=dead)["Messages"]
    assert held["Body"] == "not for us"
    left = open_stream(other)
    left.found()
    sqs.send_message(QueueUrl=other, MessageBody="not for us")
    left.until(malformed=1, held=0)
    assert _left(sqs, other) == (0, 1), "left to the queue's own redrive"
    assert "deleted" not in left.figures


def _refusing(kind, count):
    """403, which no client repeats, to the next `count` requests of a kind."""
    left = [count]

    def fault(environ, respond):
        if kind_of(environ) != kind or not left[0]:
            return None
        left[0] -= 1
        respond("403 Forbidden", [("Content-Type", "application/xml")])
        return [b"<Error><Code>AccessDenied</Code></Error>"]

    return fault


def test_a_dead_letter_queue_that_does_not_answer_holds_up_no_other_message(
    server, bucket, sqs, make_queue, open_stream
):
    queue, dead = make_queue(), make_queue()
    stream = open_stream(queue, deadLetterQueueUrl=dead)
    stream.found()
    _put(server, bucket, "in/a", "in/b")
    odd = event(record(bucket, "in//odd"))
    bodies = (event(record(bucket, "in/a")), odd, "[" * 100_000, event(record(bucket, "in/b")))
    for body in bodies:
        sqs.send_message(QueueUrl=queue, MessageBody=body)
    stream.receive_all(4)
    server.fault = _refusing("SendMessage", 1)
    context = Bench(discovery=stream.discovery)
    assert sorted(context.discovered()) == ["in/a", "in/b"]
    assert "dead-letter queue does not answer" in context.error
    server.fault = None
    stream.ledger.paths += [f"s3://{bucket}/in/{name}" for name in "ab"]
    stream.until(malformed=2, deleted=2, held=2)
    messages = sqs.receive_message(QueueUrl=dead, MaxNumberOfMessages=10)["Messages"]
    assert sorted(held["Body"] for held in messages) == sorted([odd, "[" * 100_000])


def test_an_object_that_cannot_be_looked_at_holds_up_no_other_and_keeps_its_message(
    server, bucket, sqs, make_queue, open_stream
):
    queue = make_queue()
    stream = open_stream(queue, onOverwrite="reprocess")
    stream.found()
    _put(server, bucket, *(f"in/{i}" for i in range(5)))
    for i in range(5):
        sqs.send_message(QueueUrl=queue, MessageBody=event(record(bucket, f"in/{i}")))
    stream.receive_all(5)
    server.fault = _refusing("HEAD", 1)
    bench = Bench(discovery=stream.discovery)
    first = bench.discovered()
    assert len(first) == 4
    # The checkpoint that holds the others does not hold the one that was refused.
    stream.discovery.notify_cut(1, stream.ledger)
    stream.discovery.notify_checkpoint_complete(1)
    stream.until_deleted(4)
    assert stream.figures["held"] == 1
    server.fault = None
    assert sorted(first + bench.discovered()) == [f"in/{i}" for i in range(5)]
    stream.checkpoint(2)
    stream.until_deleted(5)


def test_an_unreachable_queue_is_tried_again_and_then_named(
    server, bucket, sqs, make_queue, open_stream
):
    queue = make_queue()
    stream = open_stream(queue)
    stream.found()

    def broken(environ, respond):
        if "sqs" not in environ.get("HTTP_AUTHORIZATION", ""):
            return None
        respond("500 Internal Server Error", [("Content-Type", "application/json")])
        return [b"{}"]

    # A poll that is under way ends before the fault can show.
    sqs.send_message(QueueUrl=queue, MessageBody=TEST_EVENT)
    stream.until(deleted=1)
    server.fault = broken
    with pytest.raises(SourceUnavailable, match=r"does not answer: http.*q-.*answered 500"):
        stream.found_within(60)
    assert stream.figures["failedReceives"] >= 4
    server.fault = None
    _put(server, bucket, "in/after")
    sqs.send_message(QueueUrl=queue, MessageBody=event(record(bucket, "in/after")))
    deadline, found = time.monotonic() + PATIENCE, []
    while not found:
        assert time.monotonic() < deadline
        try:
            found = stream.found()
        except SourceUnavailable:
            time.sleep(0.1)
    assert found == ["in/after"]


def test_a_queue_that_is_not_there_is_named_at_once(server, bucket, sqs, make_queue, open_stream):
    queue = make_queue()
    sqs.delete_queue(QueueUrl=queue)
    stream = open_stream(queue)
    with pytest.raises(SourceUnavailable, match="FileNotFoundError"):
        stream.found()


def test_what_no_message_told_of_is_found_by_the_scheduled_full_pass(
    server, bucket, sqs, make_queue, open_stream
):
    stream = open_stream(make_queue(), fullListingInterval="3600000")
    now = [time.time()]
    stream.discovery._whole._clock = lambda: now[0]
    assert stream.found() == []
    _put(server, bucket, "in/silent")
    now[0] += 3599
    assert stream.found() == []
    now[0] += 2
    assert stream.found() == ["in/silent"]


def test_a_restart_lists_only_when_it_is_time_or_when_something_else_is_asked_for(
    server, bucket, sqs, make_queue, open_stream
):
    queue = make_queue()
    stream = open_stream(queue)
    stream.found()
    position = json.loads(json.dumps(stream.discovery.position()))
    _put(server, bucket, "in/a", "other/b")

    def found(queue, position, **options):
        again = open_stream(queue, **options)
        again.discovery.resume(position)
        return again.found()

    assert found(queue, position) == []
    assert found(queue, {}) == ["in/a"]
    assert found(make_queue(), position) == ["in/a"], "the new queue has never told of it"
    assert found(queue, position, path="other") == ["other/b"]
    assert found(queue, {**position, "fullListing": position["fullListing"] - 3601}) == ["in/a"]


def test_a_file_that_is_not_ready_is_looked_at_again(server, bucket, sqs, make_queue, open_stream):
    queue = make_queue()
    stream = open_stream(queue, readyMarker="<name>.done")
    stream.found()
    _put(server, bucket, "in/a", "in/b", "in/b.done")
    told = event(*(record(bucket, f"in/{name}") for name in ("a", "b")))
    sqs.send_message(QueueUrl=queue, MessageBody=told)
    assert stream.found_within() == ["in/b"]
    stream.checkpoint(1)
    assert stream.figures["held"] == 1
    _put(server, bucket, "in/a.done")
    assert stream.found_within() == ["in/a"]
    stream.checkpoint(2)
    stream.until(held=0, deleted=1)


def test_messages_are_not_received_without_end(
    server, bucket, sqs, make_queue, open_stream, monkeypatch
):
    monkeypatch.setattr(inboxes, "_MOST_HELD", 20)
    queue = make_queue()
    stream = open_stream(queue)
    stream.found()
    keys = [f"in/{i:03}" for i in range(60)]
    _put(server, bucket, *keys)
    for key in keys:
        sqs.send_message(QueueUrl=queue, MessageBody=event(record(bucket, key)))
    first = stream.found_within(count=20)
    time.sleep(0.3)
    assert stream.figures["held"] <= 30
    found, checkpoints = first, itertools.count(1)

    def all_found():
        stream.checkpoint(next(checkpoints))
        found.extend(stream.found())
        return len(found) >= len(keys)

    wait_until(all_found, lambda: found)
    assert sorted(found) == keys


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"discoveryMode": "notifications"}, "queueUrl: found nothing"),
        ({"queueUrl": "http://q"}, "queueUrl: found without discoveryMode"),
        ({"discoveryMode": "notifications", "queueUrl": "http://q", "path": "/x"}, "s3://"),
        (
            {
                "discoveryMode": "notifications",
                "queueUrl": "http://q",
                "storageOptions": '{"client": "fsspec"}',
            },
            "obstore",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused_by_name(options, told):
    with pytest.raises(OptionError, match=told):
        parse_options({"path": "s3://b/in", **options}, streaming=False)


def test_a_message_of_a_file_outside_of_the_bounds_is_done_with_and_the_file_left_out(
    server, bucket, sqs, make_queue, open_stream
):
    queue = make_queue()
    stream = open_stream(queue, startAt="2026-01-02", endAt="2026-01-04")
    _put(server, bucket, "in/date=2026-01-01/listed", "in/date=2026-01-02/listed")
    assert stream.found() == ["in/date=2026-01-02/listed"]
    keys = [f"in/date=2026-01-0{day}/told" for day in (1, 3, 4)]
    _put(server, bucket, *keys)
    for key in keys:
        sqs.send_message(QueueUrl=queue, MessageBody=event(record(bucket, key)))
    assert stream.found_within() == ["in/date=2026-01-03/told"]
    stream.receive_all(3)
    stream.found()
    stream.checkpoint(1)
    stream.until_deleted(3)
    assert stream.discovery.skipped.counts == {"endAt": 1, "startAt": 2}
