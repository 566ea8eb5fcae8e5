"""Events of S3 in a real queue: each file once, and no message deleted before it is safe."""

import itertools
import json
import time

import pytest

from pyspark_sluice.enumerator.files.discovery.queue import message_receiver as inboxes
from pyspark_sluice.enumerator.files.discovery.queue import pubsub
from pyspark_sluice.tests.enumerator.files.discovery.finding import Ledger
from pyspark_sluice.tests.patience import wait_until

pytestmark = pytest.mark.slow


@pytest.mark.effect_of("discoveryMode", "queueUrl")
def test_what_was_there_is_listed_and_what_comes_is_announced(service, bucket, open_stream):
    queue = service.make_queue()
    stream = open_stream(queue, discoveryMode="notifications", queueUrl=queue)
    stream.put("in/old")
    assert stream.found() == ["in/old"]
    stream.put("in/new", "in/ä b", "in/silent")
    for key in ("in/new", "in/ä b"):
        stream.tell(key)
    listed = service.store.requests.count("LIST")
    assert sorted(stream.found_within(count=2)) == ["in/new", "in/ä b"]
    assert service.store.requests.count("LIST") == listed, "a pass between full ones has listed"
    # The same version that a listing has: nothing is found twice by its version either.
    (one,) = (
        file
        for part in open_stream().discovery.listing(Ledger())
        for file in part.versions()
        if file.path.endswith("in/new")
    )
    etag, modified = service.version(bucket, "in/new")
    assert one.etag == etag.strip('"')
    assert one.modified == int(modified.timestamp() * 1_000_000)


@pytest.mark.parametrize("is_full", [True, False])
def test_a_first_pass_neither_waits_for_a_queue_that_was_empty_nor_makes_discovery_rest(
    open_stream, monkeypatch, is_full
):
    stream = open_stream()
    monkeypatch.setattr(inboxes, "LONG_POLL", 20)
    discovery = stream.discovery
    discovery._patience = 60.0
    if not is_full:
        discovery._whole.full_listing = time.time()
    begin_pass = discovery._acks.begin_pass

    def late(known):
        begin_pass(known)
        wait_until(lambda: discovery._receiver._was_empty)

    monkeypatch.setattr(discovery._acks, "begin_pass", late)
    began = time.monotonic()
    assert stream.found() == []
    assert time.monotonic() - began < 15, "it has waited for another long poll"
    assert discovery.rest(10.0) == 0.0, "the next pass looks at messages only"
    monkeypatch.undo()
    stream.found()
    assert discovery.rest(10.0) == 40.0


def test_a_message_is_deleted_only_when_a_checkpoint_with_its_files_is_complete(open_stream):
    stream = open_stream()
    stream.ledger.paths.add("elsewhere")
    stream.discovery._whole.full_listing = time.time()
    stream.put("in/a", "in/b", "in/c")
    stream.discovery.notify_cut(1, stream.ledger)
    told = stream.tell("in/a", "in/b")
    assert sorted(stream.found_within(count=2)) == ["in/a", "in/b"]
    stream.discovery.notify_checkpoint_complete(1)
    assert stream.figures["held"] == told, "the first checkpoint was cut before they were found"
    stream.discovery.notify_cut(2, stream.ledger)
    stream.tell("in/c")
    stream.found_within()
    assert stream.figures["held"] == told + 1
    stream.discovery.notify_aborted(2)
    stream.discovery.notify_checkpoint_complete(2)
    assert stream.figures["held"] == told + 1, "a checkpoint that was taken back holds nothing"
    stream.checkpoint(3)
    stream.until(held=0, deleted=told + 1)
    assert stream.left() == (0, 0)


def test_after_a_crash_a_message_comes_again_and_its_file_once(stream, open_stream):
    stream.put("in/safe", "in/lost")
    stream.tell("in/safe")
    stream.found_within()
    stream.checkpoint(1)
    stream.tell("in/lost")
    stream.found_within()
    stream.discovery.close()
    # What the crash left: the checkpoint knows one of the two, and both messages come again.
    for key in ("in/safe", "in/lost", "in/lost", "in/safe"):
        stream.tell(key)
    again = open_stream(stream.queue, known=[f"{stream.root}in/safe"])
    again.discovery.resume(stream.discovery.position())
    assert again.found_within() == ["in/lost"]
    # Those of the file that was safe before are done with at once.
    again.until(deleted=2, held=2)
    assert again.found() == []
    again.checkpoint(1)
    again.until(held=0, deleted=4)


def test_a_run_that_ends_hides_no_later_message(open_stream):
    """A long poll that is still open at the server would take it, for two minutes."""
    stream = open_stream()
    stream.discovery.will_end()
    stream.found()
    wait_until(lambda: stream.discovery._receiver._was_empty)
    stream.discovery.close()
    # A busy server may take longer for the last poll than the run waits for it.
    wait_until(lambda: not stream.discovery._receiver._polling.is_alive())
    stream.tell("in/later")
    assert stream.left() == (1, 0)


def test_a_message_that_comes_after_the_cut_with_its_file_goes_when_that_is_complete(open_stream):
    stream = open_stream()
    stream.put("in/a")
    stream.tell("in/a")
    passing = stream.discovery.listing(stream.ledger)
    (files,) = [next(passing)]
    stream.ledger.paths |= {*files.paths}
    stream.discovery.notify_cut(1, stream.ledger)
    # The pass goes on with the queue, and is the only one of a bounded run.
    assert list(passing) == []
    stream.discovery.notify_entered()
    assert stream.figures["held"] == 1
    stream.discovery.notify_checkpoint_complete(1)
    stream.until(held=0, deleted=1)


@pytest.mark.thorough("waits longer than a queue hides a message")
def test_what_is_held_is_kept_from_others_for_as_long_as_it_takes(stream):
    stream.discovery._receiver.queue.visibility = 4
    stream.put("in/a")
    stream.tell("in/a")
    stream.found_within()
    # The server's clock decides: without an extension the message would have come back by now.
    time.sleep(5.0)
    assert stream.left() == (0, 1), "the message has become visible to others"
    assert stream.figures.get("redelivered", 0) == 0


def test_messages_that_tell_of_nothing_are_counted_and_done_with(service, bucket, open_stream):
    stream = open_stream(pathGlobFilter="*.json")
    stream.found()
    stream.put("in/_hidden.json", "in/x.csv", "out/a.json", "in/deep/a.json")
    service.store.put(bucket, "in/empty.json", b"")
    bodies = [
        service.no_object,
        service.event(bucket, "in/gone.json"),
        service.event(bucket, "in/x.json", created=False),
        *service.events(bucket, "in/_hidden.json", "out/a.json"),
        *service.events(bucket, "in/x.csv", "out/b.json"),
        service.event(bucket, "in/empty.json"),
        service.wrapped(bucket, "in/deep/a.json"),
    ]
    for body in bodies:
        service.send(stream.queue, body)
    assert stream.found_within() == ["in/deep/a.json"]
    count = len(bodies)
    stream.until(received=count, goneObjects=1, notChosen=4, deleted=count - 1, held=1)
    assert stream.discovery.skipped.counts["empty"] == 1
    stream.checkpoint(1)
    stream.until(deleted=count, held=0)


def test_a_restart_lists_only_when_it_is_time_or_when_something_else_is_asked_for(
    make_queue, stream, open_stream
):
    position = json.loads(json.dumps(stream.discovery.position()))
    stream.put("in/a", "other/b")

    def found(queue, position, **options):
        again = open_stream(queue, **options)
        again.discovery.resume(position)
        return again.found()

    assert found(stream.queue, position) == []
    assert found(stream.queue, {}) == ["in/a"]
    assert found(make_queue(), position) == ["in/a"], "the new queue has never told of it"
    assert found(stream.queue, position, path="other") == ["other/b"]
    assert found(stream.queue, {**position, "fullListing": position["fullListing"] - 3601}) == [
        "in/a"
    ]


def test_a_file_that_is_not_ready_is_looked_at_again(open_stream):
    stream = open_stream(readyMarker="<name>.done")
    stream.found()
    stream.put("in/a", "in/b", "in/b.done")
    stream.tell("in/a", "in/b")
    assert stream.found_within() == ["in/b"]
    stream.checkpoint(1)
    assert stream.figures["held"] == 1
    stream.put("in/a.done")
    assert stream.found_within() == ["in/a"]
    stream.checkpoint(2)
    stream.until(held=0, deleted=1)


@pytest.mark.thorough("a thousand messages")
def test_messages_are_not_received_without_end(open_stream, monkeypatch):
    monkeypatch.setattr(inboxes, "_MOST_HELD", 20)
    monkeypatch.setattr(pubsub, "_AT_ONCE", 32)
    stream = open_stream()
    stream.found()
    keys = [f"in/{i:03}" for i in range(60)]
    stream.put(*keys)
    for key in keys:
        stream.tell(key)
    first = stream.found_within(count=20)
    # Nothing would tell that no more comes: time for several more polls, which last no time here.
    time.sleep(0.3)
    # A receive brings up to 32 messages of a Storage Queue, 10 of SQS.
    assert stream.figures["held"] <= 20 + 32
    found, checkpoints = first, itertools.count(1)

    def all_found():
        stream.checkpoint(next(checkpoints))
        found.extend(stream.found())
        return len(found) >= len(keys)

    wait_until(all_found, lambda: found)
    assert sorted(found) == keys


def test_a_message_of_a_file_outside_of_the_bounds_is_done_with_and_the_file_left_out(open_stream):
    stream = open_stream(startAt="2026-01-02", endAt="2026-01-04")
    stream.put("in/date=2026-01-01/listed", "in/date=2026-01-02/listed")
    assert stream.found() == ["in/date=2026-01-02/listed"]
    keys = [f"in/date=2026-01-0{day}/told" for day in (1, 3, 4)]
    stream.put(*keys)
    for key in keys:
        stream.tell(key)
    assert stream.found_within() == ["in/date=2026-01-03/told"]
    stream.receive_all(3)
    stream.found()
    stream.checkpoint(1)
    stream.until_deleted(3)
    assert stream.discovery.skipped.counts == {"endAt": 1, "startAt": 2}
