"""Queues, messages and objects that fail: named, and nothing else waits for them."""

from contextlib import suppress

import pytest

from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.enumerator.files.ledger.new_files import OnOverwrite
from pyspark_sluice.errors import SourceUnavailable
from pyspark_sluice.tests.enumerator.files.bench import Bench
from pyspark_sluice.tests.patience import wait_until

pytestmark = pytest.mark.slow


@pytest.mark.effect_of("deadLetterQueueUrl")
def test_a_malformed_message_goes_to_the_dead_letters_or_stays(service, make_queue, open_stream):
    queue, dead, other = make_queue(), make_queue(), make_queue()
    stream = open_stream(queue, deadLetterQueueUrl=dead)
    stream.found()
    service.send(queue, "not for us")
    stream.until(malformed=1, deleted=1, held=0)
    assert service.bodies(dead) == ["not for us"]
    left = open_stream(other)
    left.found()
    service.send(other, "not for us")
    left.until(malformed=1, held=0)
    assert left.left() == (0, 1), "left to the queue's own redrive"
    assert "deleted" not in left.figures


def _refusing(service, kind, count):
    """403, which no client repeats, to the next `count` requests of a kind."""
    left = [count]

    def fault(environ, respond):
        if service.kind_of(environ) != kind or not left[0]:
            return None
        left[0] -= 1
        respond("403 Forbidden", [("Content-Type", "application/xml")])
        return [b"<Error><Code>AccessDenied</Code><Message>No.</Message></Error>"]

    return fault


def bench_of(stream):
    policy = LedgerPolicy(on_overwrite=OnOverwrite.REPROCESS)
    return Bench(discovery=stream.discovery, parallelism=1, ledger=policy)


def discovered(bench):
    """What one call to discovery makes pending."""
    bench.discover()
    return ["in/" + split.file.path.rpartition("/")[2] for split in bench.plan()]


def test_a_dead_letter_queue_that_does_not_answer_holds_up_no_other_message(
    service, bucket, make_queue, open_stream
):
    queue, dead = make_queue(), make_queue()
    stream = open_stream(queue, deadLetterQueueUrl=dead)
    stream.found()
    stream.put("in/a", "in/b")
    deep = "[" * service.longest_body
    odd = service.event(bucket, "in//odd")
    bodies = (service.event(bucket, "in/a"), odd, deep, service.event(bucket, "in/b"))
    for body in bodies:
        service.send(queue, body)
    stream.receive_all(4)
    # Each time: a client on a busy machine may have asked twice.
    service.faulty(_refusing(service, "SendMessage", 1_000))
    bench = bench_of(stream)
    assert sorted(discovered(bench)) == ["in/a", "in/b"]
    assert "dead-letter queue does not respond" in bench.enumerator.backlog()["listingError"]
    service.faulty(None)
    stream.ledger.paths |= {f"{stream.root}in/{name}" for name in "ab"}
    stream.until(malformed=2, deleted=2, held=2)
    assert sorted(service.bodies(dead)) == sorted([odd, deep])


def test_an_object_that_cannot_be_looked_at_holds_up_no_other_and_keeps_its_message(
    service, open_stream
):
    stream = open_stream(onOverwrite="reprocess")
    stream.found()
    stream.put(*(f"in/{i}" for i in range(5)))
    for i in range(5):
        stream.tell(f"in/{i}")
    stream.receive_all(5)
    service.faulty(_refusing(service, "HEAD", 1))
    bench = bench_of(stream)
    first = discovered(bench)
    assert len(first) == 4
    # The checkpoint that holds the others does not hold the one that was refused.
    stream.checkpoint(1)
    stream.until_deleted(4)
    assert stream.figures["held"] == 1
    service.faulty(None)
    assert sorted(first + discovered(bench)) == [f"in/{i}" for i in range(5)]
    stream.checkpoint(2)
    stream.until_deleted(5)


def test_what_was_deleted_is_not_deleted_again_because_others_could_not_be_kept(service, stream):
    stream.put("in/done", "in/held")
    stream.tell("in/done")
    stream.found_within()
    stream.discovery.notify_cut(1, stream.ledger)
    stream.tell("in/held")
    stream.found_within()
    service.faulty(_refusing(service, service.extension, 1_000))
    # What is held is due at once: every round keeps it, also the one that deletes.
    stream.discovery._receiver.queue.visibility = 0
    stream.discovery.notify_checkpoint_complete(1)
    stream.until_deleted(1)

    def failures():
        figures = stream.figures
        return figures.get("failedKeeps", 0) + figures.get("failedDeletes", 0)

    before = failures()
    wait_until(lambda: failures() >= before + 2, lambda: stream.figures)
    assert stream.figures["deleted"] == 1
    assert "failedDeletes" not in stream.figures


def test_a_message_that_could_not_be_deleted_is_deleted_later(service, stream):
    stream.put("in/a")
    stream.tell("in/a")
    stream.found_within()
    service.faulty(_refusing(service, service.deletion, 1))
    stream.checkpoint(1)
    stream.until_deleted(1)
    assert stream.figures["failedDeletes"] == 1
    assert stream.left() == (0, 0)


@pytest.mark.thorough("waits through the retries")
def test_an_unreachable_queue_is_tried_again_and_then_named(service, stream):
    def broken(environ, respond):
        if not service.is_queue(environ):
            return None
        respond("500 Internal Server Error", [("Content-Type", "application/json")])
        return [b"{}"]

    # A poll that is under way ends before the fault can show.
    service.send(stream.queue, service.no_object)
    stream.until(deleted=1)
    service.faulty(broken)
    with pytest.raises(
        SourceUnavailable, match=r"does not respond: http.*q-.*(answered 500|InternalServerError)"
    ):
        stream.found_within(60)
    assert stream.figures["failedReceives"] >= 4
    service.faulty(None)
    stream.put("in/after")
    stream.tell("in/after")
    found = []

    def found_again():
        with suppress(SourceUnavailable):
            found.extend(stream.found())
        return found

    wait_until(found_again, "file that came after the failure")
    assert found == ["in/after"]


def test_a_queue_that_is_not_there_is_named_at_once(service, make_queue, open_stream):
    queue = make_queue()
    service.delete_queue(queue)
    stream = open_stream(queue)
    with pytest.raises(SourceUnavailable, match="FileNotFoundError"):
        stream.found()
