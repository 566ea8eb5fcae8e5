"""Queues, messages and objects that fail: named, and nothing else waits for them."""

from __future__ import annotations

from contextlib import suppress

import pytest

from pyspark_sluice.errors import SourceUnavailable
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import kind_of
from pyspark_sluice.tests.enumerator.files.discovery.queue.s3_events import (
    TEST_EVENT,
    event,
    record,
)
from pyspark_sluice.tests.enumerator.files.discovery.queue.streams import (
    Bench,
    put,
    remaining,
)
from pyspark_sluice.tests.patience import wait_until

pytestmark = pytest.mark.slow


@pytest.mark.effect_of("deadLetterQueueUrl")
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
    assert remaining(sqs, other) == (0, 1), "left to the queue's own redrive"
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
    put(server, bucket, "in/a", "in/b")
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
    put(server, bucket, *(f"in/{i}" for i in range(5)))
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
    put(server, bucket, "in/after")
    sqs.send_message(QueueUrl=queue, MessageBody=event(record(bucket, "in/after")))
    found = []

    def found_again():
        with suppress(SourceUnavailable):
            found.extend(stream.found())
        return found

    wait_until(found_again, "file that came after the failure")
    assert found == ["in/after"]


def test_a_queue_that_is_not_there_is_named_at_once(server, bucket, sqs, make_queue, open_stream):
    queue = make_queue()
    sqs.delete_queue(QueueUrl=queue)
    stream = open_stream(queue)
    with pytest.raises(SourceUnavailable, match="FileNotFoundError"):
        stream.found()
