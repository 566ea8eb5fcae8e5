"""Each queue with the store that its events come from, and streams that are announced there."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from pyspark_sluice.enumerator.files.discovery.queue import message_receiver as inboxes
from pyspark_sluice.tests.checkpoint_meta.storage.azure_server import AzureQueueServer, AzureServer
from pyspark_sluice.tests.enumerator.files.discovery.queue.services import (
    Service,
    Sqs,
    StorageQueues,
)
from pyspark_sluice.tests.enumerator.files.discovery.queue.streams import Stream
from pyspark_sluice.tests.thorough import AZURE


@pytest.fixture(params=["sqs", pytest.param("storageQueues", marks=AZURE)])
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    """A store with a queue of its own kind."""
    if request.param == "sqs":
        server = request.getfixturevalue("server")
        server.fault = None
        yield Sqs(server, server)
        server.fault = None
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
