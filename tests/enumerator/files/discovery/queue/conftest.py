"""Each queue with the store that its events come from, and streams that are announced there."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.discovery import make_discovery
from pyspark_sluice.enumerator.files.discovery.queue import message_receiver as inboxes
from pyspark_sluice.tests.checkpoint_meta.storage.azure_server import AzureQueueServer, AzureServer
from pyspark_sluice.tests.checkpoint_meta.storage.google_server import GoogleServer
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json
from pyspark_sluice.tests.enumerator.files.discovery.finding import Ledger
from pyspark_sluice.tests.enumerator.files.discovery.queue.pubsub_server import PubSubServer
from pyspark_sluice.tests.enumerator.files.discovery.queue.services import (
    PubSub,
    Service,
    Sqs,
    StorageQueues,
)
from pyspark_sluice.tests.patience import PATIENCE, wait_until
from pyspark_sluice.tests.thorough import AZURE


@pytest.fixture(params=["sqs", "pubSub", pytest.param("storageQueues", marks=AZURE)])
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    """A store with a queue of its own kind."""
    if request.param == "sqs":
        server = request.getfixturevalue("server")
        server.fault = None
        yield Sqs(server, server)
        server.fault = None
        return
    if request.param == "pubSub":
        google, pubsub = GoogleServer(), PubSubServer()
        yield PubSub(google, pubsub)
        google.close()
        pubsub.close()
        return
    pytest.importorskip("azure.storage.queue")
    store = AzureServer(request.getfixturevalue("azurite"))
    queues = AzureQueueServer(request.getfixturevalue("azurite_queues"))
    yield StorageQueues(store, queues)
    store.close()
    queues.close()


@pytest.fixture
def bucket(service: Service) -> str:
    """The name of a fresh bucket, or container."""
    name = f"lake-{uuid.uuid4().hex[:12]}"
    service.store.make_bucket(name)
    return name


@pytest.fixture
def make_queue(service):
    return service.make_queue


@pytest.fixture
def stream(open_stream):
    """A stream whose first pass has found nothing."""
    made = open_stream()
    assert made.found() == []
    return made


@pytest.fixture
def open_stream(service, bucket, monkeypatch):
    streams = []
    monkeypatch.setattr(inboxes, "LONG_POLL", 1)
    monkeypatch.setattr(inboxes, "SHORT_POLL", 0)

    def make(queue=None, **options):
        queue = queue or service.make_queue()
        streams.append(Stream(service, bucket, queue, **options))
        return streams[-1]

    yield make
    for stream in streams:
        stream.discovery.close()


class Stream:
    """A discovery and its ledger, driven by hand as the enumerator does it."""

    def __init__(self, service, bucket, queue, path="in", known=(), **options):
        self.service, self.bucket, self.queue, server = service, bucket, queue, service.store
        given = {
            "path": f"{server.scheme}://{bucket}/{path}",
            "storageOptions": as_json(server.options),
            "discoveryMode": "notifications",
            "queueUrl": queue,
            "failOnMissingPath": "false",
            **options,
        }
        self.root = f"{server.path_scheme}://{bucket}/"
        self.discovery = make_discovery(parse_options(given, streaming=False))
        self.ledger = Ledger(*known)

    def put(self, *keys):
        for key in keys:
            self.service.store.put(self.bucket, key, b"abc")

    def tell(self, *keys):
        """One message about these, or one about each; returns how many."""
        bodies = self.service.events(self.bucket, *keys)
        for body in bodies:
            self.service.send(self.queue, body)
        return len(bodies)

    def left(self):
        """How many messages anybody may receive, and how many are hidden."""
        return self.service.left(self.queue)

    def found(self):
        """A pass; what it brings, known from now on."""
        files = [f for part in self.discovery.listing(self.ledger) for f in part.versions()]
        self.ledger.paths |= {file.path for file in files}
        self.discovery.notify_entered()
        return [file.path.removeprefix(self.root) for file in files]

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
