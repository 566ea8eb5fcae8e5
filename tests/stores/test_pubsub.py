"""A subscription on pstest, Google's own server for tests of Pub/Sub."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pyspark_sluice.enumerator.files.discovery.queue.pubsub import PubSubSubscription
from pyspark_sluice.tests.stores.servers import HOME

pytestmark = [
    pytest.mark.thorough("Google's server, which Go builds"),
    pytest.mark.skipif(
        os.environ.get("STORES") not in ("all", "pstest"), reason="`make stores` builds it"
    ),
]

VERSION = "v2.9.0"
PROGRAM = """package main

import (
	"fmt"

	"cloud.google.com/go/pubsub/v2/pstest"
)

func main() {
	fmt.Println(pstest.NewServer().Addr)
	select {}
}
"""


def _built() -> Path:
    home = HOME / f"pstest-{VERSION}"
    if not (home / "pstest").exists():
        go = shutil.which("go")
        if go is None:
            pytest.skip("pstest needs Go, whose command go is not here")
        home.mkdir(parents=True, exist_ok=True)
        (home / "main.go").write_text(PROGRAM)
        (home / "go.mod").write_text(
            f"module pstest\n\ngo 1.24\n\nrequire cloud.google.com/go/pubsub/v2 {VERSION}\n"
        )
        built = subprocess.run(
            [go, "build", "-mod=mod", "-o", "pstest", "."],
            cwd=home, check=False, capture_output=True, text=True,
        )  # fmt: skip
        if built.returncode:
            pytest.skip(f"pstest cannot be built: {built.stderr[-300:]}")
    return home / "pstest"


@pytest.fixture
def address():
    with subprocess.Popen([_built()], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


def test_messages_are_received_hidden_shown_acknowledged_and_sent_on(address):
    import grpc
    from google import pubsub_v1

    channel = grpc.insecure_channel(address)
    publisher, subscriber = (
        client(transport=client.get_transport_class("grpc")(channel=channel))
        for client in (pubsub_v1.PublisherClient, pubsub_v1.SubscriberClient)
    )
    for name in ("events", "dead"):
        publisher.create_topic({"name": f"projects/p/topics/{name}"})
        subscriber.create_subscription(
            {"name": f"projects/p/subscriptions/{name}", "topic": f"projects/p/topics/{name}"}
        )

    def queue(kind: str, name: str) -> PubSubSubscription:
        return PubSubSubscription(f"http://{address}/v1/projects/p/{kind}/{name}", {}, 60)

    events = queue("subscriptions", "events")
    assert events.receive(0) == []
    attributes = {"eventType": "OBJECT_FINALIZE", "bucketId": "b", "objectId": "in/a b+ä.json"}
    messages = [{"attributes": attributes}, {"data": b"not for us"}]
    publisher.publish({"topic": "projects/p/topics/events", "messages": messages})
    first = events.receive(1)
    assert len(first) == 2
    assert events.receive(0) == [], "they are hidden"
    events.release(first)
    again = events.receive(1)
    assert {one.identity for one in again} == {one.identity for one in first}
    events.keep(again)
    (announced, other) = sorted(again, key=lambda one: "OBJECT_FINALIZE" not in one.body)
    assert events.objects_of(announced.body) == [("b", "in/a b+ä.json")]
    queue("topics", "dead").send(other.body)
    assert [one.body for one in queue("subscriptions", "dead").receive(1)] == [other.body]
    assert events.delete(again) == 2
    with pytest.raises(FileNotFoundError):
        queue("subscriptions", "nothing").receive(0)
