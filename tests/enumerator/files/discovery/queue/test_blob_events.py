"""What a message of Event Grid announces, in every form that it comes in."""

from __future__ import annotations

import base64
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.enumerator.files.discovery.queue.api import MalformedMessage
from pyspark_sluice.enumerator.files.discovery.queue.storage_queue import StorageQueue
from pyspark_sluice.tests.enumerator.files.discovery.queue.services import (
    as_cloud_event,
    blob_event,
    in_base64,
)

objects_of = StorageQueue.objects_of

KEY = "in/a b+c%20ä/blobs/x.json"


def test_every_form_of_an_event_is_understood():
    one = blob_event("c", KEY)
    for event in (one, as_cloud_event(one)):
        assert objects_of(in_base64(event)) == objects_of(json.dumps(event)) == [("c", KEY)]
    assert objects_of(in_base64([one, blob_event("c", "y")])) == [("c", KEY), ("c", "y")]
    assert objects_of(in_base64(blob_event("c", KEY, api="FlushWithClose"))) == [("c", KEY)]
    assert objects_of(in_base64(blob_event("c", KEY, "BlobRenamed", "RenameFile"))) == [("c", KEY)]


@pytest.mark.parametrize(
    ("kind", "api"),
    [("BlobDeleted", "DeleteBlob"), ("BlobTierChanged", "SetBlobTier"),
     ("DirectoryCreated", "CreateDirectory"), ("BlobCreated", "CreateFile")],
)  # fmt: skip
def test_what_leaves_no_finished_blob_announces_nothing(kind, api):
    assert objects_of(in_base64(blob_event("c", KEY, kind, api))) == []


@pytest.mark.parametrize(
    "body",
    ["", "no event", "{}", "[1]", "[" * 50_000, in_base64({"eventType": "Other.Created"}), "bm8=",
     in_base64({"eventType": "Microsoft.Storage.BlobCreated", "data": {}, "subject": "/other"}),
     in_base64({"eventType": "Microsoft.Storage.BlobCreated", "data": {}}), "/w==",
     *(in_base64(blob_event("c", key)) for key in ("in//a", "../a", "a\n", "", "in/\ud800"))],
    ids=lambda body: body[:40],
)  # fmt: skip
def test_what_is_not_an_event_or_not_a_name_is_malformed(body):
    with pytest.raises(MalformedMessage):
        objects_of(body)


@given(st.text() | st.binary().map(lambda data: base64.b64encode(data).decode()))
def test_no_text_raises_anything_else(body):
    with suppress(MalformedMessage):
        objects_of(body)
