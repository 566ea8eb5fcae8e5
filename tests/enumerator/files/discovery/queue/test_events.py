"""What a message of either queue tells of, in every form that it comes in."""

import base64
import json
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_sluice.enumerator.files.discovery.queue.api import AnnouncedObject, MalformedMessage
from pyspark_sluice.enumerator.files.discovery.queue.pubsub import PubSubSubscription
from pyspark_sluice.enumerator.files.discovery.queue.sqs import SqsQueue
from pyspark_sluice.enumerator.files.discovery.queue.storage_queue import StorageQueue
from pyspark_sluice.tests.enumerator.files.discovery.queue.services import (
    TEST_EVENT,
    as_cloud_event,
    blob_event,
    event,
    in_base64,
    in_event_bridge,
    in_pubsub,
    in_sns,
    object_event,
    record,
)

objects_of = SqsQueue.objects_of
published_in = PubSubSubscription.objects_of
blobs_of = StorageQueue.objects_of


def test_every_form_of_an_event_is_understood():
    key = "in/a b+c%20ä.json"
    told = [AnnouncedObject("b", key)]
    assert objects_of(event(record("b", key))) == told
    assert objects_of(event(record("b", key, "s3:ObjectCreated:CompleteMultipartUpload"))) == told
    assert objects_of(in_sns(event(record("b", key)))) == told
    assert objects_of(in_event_bridge("b", key)) == told
    assert objects_of(event(record("b", "x"), record("b", "y"))) == [("b", "x"), ("b", "y")]
    assert objects_of(TEST_EVENT) == objects_of(in_sns(TEST_EVENT)) == []
    assert objects_of(event(record("b", key, "ObjectRemoved:Delete"))) == []
    assert objects_of(in_event_bridge("b", key, "Object Deleted")) == []


def test_an_event_of_cloud_storage_is_in_the_attributes_of_a_message():
    key = "in/a b+c%20ä.json"
    assert published_in(in_pubsub(object_event("b", key))) == [("b", key)]
    assert published_in(in_pubsub(object_event("b", key), b"\xff no matter")) == [("b", key)]
    for kind in ("OBJECT_DELETE", "OBJECT_ARCHIVE", "OBJECT_METADATA_UPDATE"):
        assert published_in(in_pubsub(object_event("b", key, kind))) == []
    for body in (in_pubsub({}), in_pubsub({}, b"{}"), in_pubsub({"eventType": "OBJECT_FINALIZE"})):
        with pytest.raises(MalformedMessage):
            published_in(body)
    for odd in ("in//a", "in/../a", "in/\n"):
        with pytest.raises(MalformedMessage):
            published_in(in_pubsub(object_event("b", odd)))


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "key", ["in//a", "/in/a", "in/./a", "in/../a", "in/a\n", "in/\x00", "in/\x7f", "in/\ud800", ""]
)
@pytest.mark.parametrize("form", ["record", "EventBridge"])
def test_a_key_that_no_client_can_ask_for_is_malformed(key, form):
    body = in_event_bridge("b", key)
    if form == "record":
        body = json.dumps({"Records": [record("b", "in/a")]})
        body = body.replace("in%2Fa", json.dumps(key)[1:-1])
    with pytest.raises(MalformedMessage):
        objects_of(body)


@pytest.mark.parametrize(
    "body",
    [
        DEEP,
        '{"Records": ' + DEEP + "}",
        in_sns(DEEP),
        in_event_bridge("\ud800", "a"),
        in_event_bridge({"a": 1}, "a"),
        in_event_bridge("b", 1),
        event({**record("b", "a"), "s3": None}),
        event(record("b", "a")).replace('"key": "a"', '"key": "%ED%A0%80"'),
        "1" * 5000,
        '{"Records": "text"}',
        '{"Records": {"a": 1}}',
        *("", "no JSON", "[]", "{}", '{"Records": [{}]}', '{"Records": 1}'),
        '{"Type": "Notification"}',
        '{"Type": "Notification", "Message": "x"}',
        '{"source": "aws.s3", "detail": {}}',
    ],
    ids=lambda body: body[:40],
)
def test_a_message_that_is_not_an_event_is_malformed_and_nothing_worse(body):
    with pytest.raises(MalformedMessage):
        objects_of(body)


def test_a_directory_that_somebody_has_drawn_is_no_malformed_message():
    assert objects_of(event(record("b", "in/folder/"))) == [("b", "in/folder/")]


ODD = st.text(st.characters(codec=None), max_size=8) | st.sampled_from(
    ["\ud800", "%ED%A0%80", "a//b", "..", "\x00", "aws.s3", "Notification", "ObjectCreated:Put"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ODD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def _mutated(draw):
    """An event with one of its values replaced."""
    body = draw(
        st.sampled_from(
            [event(record("b", "k")), in_event_bridge("b", "k"), in_sns(in_event_bridge("b", "k"))]
        )
    )
    whole = json.loads(body)
    place, at = whole, ""
    while isinstance(place, dict | list) and place and (not at or draw(st.booleans())):
        # A list of an event has one element.
        above = place[0] if isinstance(place, list) else place
        at = draw(st.sampled_from(sorted(above)))
        place = above[at]
    above[at] = draw(VALUES)
    return json.dumps(whole)


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")) | _mutated())
@example(DEEP)
def test_every_message_is_understood_or_malformed(body):
    with suppress(MalformedMessage):
        for bucket, key in objects_of(body):
            # What the ledger and the client do with it.
            f"s3://{bucket}/{key}".encode()
            assert not set(key.removesuffix("/").split("/")) & {"", ".", ".."}
            assert key.isprintable() or not any(ord(c) < 32 for c in key)


# Event Grid


BLOB = "in/a b+c%20ä/blobs/x.json"


def test_every_form_of_an_event_of_azure_is_understood():
    one = blob_event("c", BLOB)
    for told in (one, as_cloud_event(one)):
        assert blobs_of(in_base64(told)) == blobs_of(json.dumps(told)) == [("c", BLOB)]
    assert blobs_of(in_base64([one, blob_event("c", "y")])) == [("c", BLOB), ("c", "y")]
    assert blobs_of(in_base64(blob_event("c", BLOB, api="FlushWithClose"))) == [("c", BLOB)]
    assert blobs_of(in_base64(blob_event("c", BLOB, "BlobRenamed", "RenameFile"))) == [("c", BLOB)]


@pytest.mark.parametrize(
    ("kind", "api"),
    [("BlobDeleted", "DeleteBlob"), ("BlobTierChanged", "SetBlobTier"),
     ("DirectoryCreated", "CreateDirectory"), ("BlobCreated", "CreateFile")],
)  # fmt: skip
def test_what_leaves_no_finished_blob_announces_nothing(kind, api):
    assert blobs_of(in_base64(blob_event("c", BLOB, kind, api))) == []


@pytest.mark.parametrize(
    "body",
    ["", "no event", "{}", "[1]", "[" * 50_000, in_base64({"eventType": "Other.Created"}), "bm8=",
     in_base64({"eventType": "Microsoft.Storage.BlobCreated", "data": {}, "subject": "/other"}),
     in_base64({"eventType": "Microsoft.Storage.BlobCreated", "data": {}}), "/w==",
     *(in_base64(blob_event("c", key)) for key in ("in//a", "../a", "a\n", "", "in/\ud800"))],
    ids=lambda body: body[:40],
)  # fmt: skip
def test_an_unknown_event_of_azure_or_a_wrong_name_is_malformed(body):
    with pytest.raises(MalformedMessage):
        blobs_of(body)


@given(st.text() | st.binary().map(lambda data: base64.b64encode(data).decode()))
def test_no_text_of_azure_raises_anything_else(body):
    with suppress(MalformedMessage):
        blobs_of(body)
