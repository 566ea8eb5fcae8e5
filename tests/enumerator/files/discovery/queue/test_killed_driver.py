"""A driver that holds messages is killed: each file is ingested once, and the queue gets empty."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json
from pyspark_sluice.tests.enumerator.files.discovery.queue import driver
from pyspark_sluice.tests.patience import wait_until

pytestmark = pytest.mark.slow

_SECONDS = 120
"""After which a driver that has not got there never will; it takes some three."""


def test_a_driver_that_is_killed_with_messages_ingests_each_file_once(service, bucket, tmp_path):
    queue, dead = service.make_queue(), service.make_queue()
    options = {
        "path": f"{service.store.scheme}://{bucket}/in",
        "storageOptions": as_json(service.store.options),
        "discoveryMode": "notifications",
        "queueUrl": queue,
        "deadLetterQueueUrl": dead,
    }
    chance, told = random.Random(7), []

    def arrive(count):
        for number in range(len(told), len(told) + count):
            service.store.put(bucket, f"in/{number}", json.dumps({"id": number}).encode())
            told.append(f"in/{number}")
            service.send(queue, service.event(bucket, told[-1]))
        service.send(queue, service.event(bucket, *chance.sample(told, 2)))

    def ingested():
        return driver.ingested(tmp_path)

    def batches(place):
        return len(list((tmp_path / place).glob("[0-9]*")))

    @contextmanager
    def running(last=""):
        command = [sys.executable, "-m", driver.__name__, tmp_path, json.dumps(options), last]
        process = subprocess.Popen(command)

        def wait_for(condition):
            wait_until(
                lambda: process.poll() is not None or condition(),
                lambda: f"{sorted(ingested())} of {len(told)}, messages: {service.left(queue)}",
                _SECONDS,
            )
            return process.returncode

        try:
            yield wait_for
        finally:
            process.kill()
            process.wait()

    for moment in driver.MOMENTS:
        arrive(2)
        first = batches("offsets") + 1
        with running(moment) as wait_for:
            assert wait_for(lambda first=first: batches("sink") >= first) is None
            # No full pass is due: these are found by their messages only.
            arrive(2)
            assert wait_for(lambda: False) == -signal.SIGKILL
        # What is not ingested is announced still, to another receiver.
        assert sum(service.left(queue)) >= len(told) - len(ingested())
    service.send(queue, "no event")
    arrive(1)
    with running() as wait_for:
        done = wait_for(lambda: len(ingested()) >= len(told) and service.left(queue) == (0, 0))
        assert done is None
    assert sorted(ingested()) == list(range(len(told)))
    # More than once, if the machine was too slow to keep it.
    assert set(service.bodies(dead)) == {"no event"}
