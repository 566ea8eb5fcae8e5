"""One request of a query with notifications fails: each object is still delivered once."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.reader_assignment import readers_of, splits_of
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.enumerator import Coordinator, CoordinatorSettings
from pyspark_sluice.enumerator.files import backlog
from pyspark_sluice.enumerator.files.discovery.queue import message_receiver as inboxes
from pyspark_sluice.errors import SluiceError
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.thorough import sampled

pytestmark = pytest.mark.slow


class Refused:
    """Answers one request of a kind with 403, which no client repeats."""

    def __init__(self, service, kind, position):
        self.service, self.position = service, position
        self.kind = service.deletion if kind == DELETION else kind
        self.count = 0
        self._lock = threading.Lock()

    def __call__(self, environ, respond):
        if self.service.kind_of(environ) != self.kind:
            return None
        with self._lock:
            self.count += 1
            if self.count - 1 != self.position:
                return None
        respond("403 Forbidden", [("Content-Type", "application/xml")])
        return [b"<Error><Code>AccessDenied</Code><Message>No.</Message></Error>"]

    @property
    def has_happened(self):
        return self.count > self.position


class Stream:
    """A query over one bucket and queue: its state, and the paths that its batches have named."""

    def __init__(self, service, bucket, **options):
        self.service, self.bucket = service, bucket
        self.queue, self.dead = service.make_queue(), service.make_queue()
        given = {
            "path": f"{service.store.scheme}://{bucket}/in",
            "storageOptions": as_json(service.store.options),
            "discoveryMode": "notifications",
            "discoveryInterval": "50",
            "queueUrl": self.queue,
            "deadLetterQueueUrl": self.dead,
            "discoveryTimeout": "60s",
            **options,
        }
        self.source = FileSource(
            parse_options(given, streaming=False), pa.schema([("id", pa.int64())])
        )
        self.store = MemoryStateStore()
        self.start = NO_CHECKPOINT
        self.delivered = []

    def put(self, *names, told=()):
        for name in names:
            self.service.store.put(self.bucket, f"in/{name}", b"abc")
        for name in told:
            self.send(self.service.event(self.bucket, f"in/{name}"))

    def send(self, body):
        self.service.send(self.queue, body)

    def open(self, *, bounded):
        settings = CoordinatorSettings(parallelism=2, background_interval=0.05, commit_patience=0.0)
        coordinator = Coordinator(self.source, self.store, settings)
        if bounded:
            coordinator.prepare_available_now()
        return coordinator

    def batch(self, coordinator):
        """True if there was one."""
        end = coordinator.latest(self.start)
        if end == self.start:
            return False
        for checkpoint in coordinator.assignments(self.start, end):
            for reader in readers_of(checkpoint):
                splits = splits_of(checkpoint, reader, self.source.split_serializer)
                self.delivered += [split.file.path.rpartition("/")[2] for split in splits]
        coordinator.commit(self.start)
        self.start = end
        return True

    def available_now(self):
        """A run; the error that it ended with."""
        coordinator = self.open(bounded=True)
        try:
            while self.batch(coordinator):
                pass
        except SluiceError as error:
            return error
        finally:
            coordinator.close()
        return None

    def until(self, names):
        """A continuous run that is started again after each error, until all is delivered."""
        deadline = time.monotonic() + PATIENCE
        coordinator = self.open(bounded=False)
        try:
            while not set(names) <= set(self.delivered):
                assert time.monotonic() < deadline, f"only {self.delivered}"
                try:
                    self.batch(coordinator)
                except SluiceError:
                    coordinator.close()
                    coordinator = self.open(bounded=False)
        finally:
            coordinator.close()


OLD = [f"old-{number}" for number in range(5)]
NEW = ["new-0", "new-1"]


@pytest.fixture
def make_stream(service, bucket, monkeypatch):
    monkeypatch.setattr(inboxes, "LONG_POLL", 1)
    monkeypatch.setattr(inboxes, "SHORT_POLL", 0)
    monkeypatch.setattr(backlog, "_BACK_OFF_LIMIT", 0.05)
    yield lambda **options: Stream(service, bucket, **options)
    service.faulty(None)


DELETION = "delete messages"
"""Each queue has its own name for this request."""

# Kind and position of each request of a run in which nothing fails.
REQUESTS = [
    *(("LIST", 0), ("HEAD", 0), ("HEAD", 1), ("HEAD", 2)),
    *(("ReceiveMessage", 0), ("ReceiveMessage", 1), ("SendMessage", 0), (DELETION, 0)),
]
ONE_OF_A_KIND = dict(REQUESTS).items()
"""The last one of each."""

any_request = pytest.mark.parametrize(
    ("kind", "position"),
    sampled(
        REQUESTS,
        ONE_OF_A_KIND.__contains__,
        reason="the others of a kind; the queue answers each alike",
    ),
)


def begun(service, stream, kind, position):
    """Old objects, of which the queue announces three, and the fault that their requests meet."""
    stream.put(*OLD, told=OLD[:3])
    stream.send("no event")
    fault = Refused(service, kind, position)
    service.faulty(fault)
    return fault


@pytest.mark.effect_of("discoveryMode", "queueUrl")
@any_request
def test_a_continuous_run_delivers_each_object_once_when_any_request_fails(
    service, make_stream, kind, position
):
    stream = make_stream()
    fault = begun(service, stream, kind, position)
    stream.until(OLD)
    stream.put(*NEW, told=NEW)
    stream.until(OLD + NEW)
    assert fault.has_happened or kind == DELETION
    service.faulty(None)
    assert stream.available_now() is None
    assert sorted(stream.delivered) == sorted(OLD + NEW)


@pytest.mark.thorough("the same failures meet the continuous run")
@any_request
def test_what_was_there_at_the_start_is_never_read_as_new_when_any_request_fails(
    service, make_stream, kind, position
):
    # Every pass is a full listing.
    stream = make_stream(includeExistingFiles="false", fullListingInterval="1")
    begun(service, stream, kind, position)
    stream.available_now()
    service.faulty(None)
    if stream.start == NO_CHECKPOINT:
        assert stream.available_now() is None
    stream.put(*NEW, told=NEW[:1])
    assert stream.available_now() is None
    assert sorted(stream.delivered) == sorted(NEW)
