"""A queue on a server of this machine, and streams that are announced there."""

from __future__ import annotations

import uuid

import pytest

from pyspark_sluice.enumerator.files.discovery.queue import message_receiver as inboxes
from pyspark_sluice.tests.enumerator.files.discovery.queue.streams import (
    Stream,
)


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
