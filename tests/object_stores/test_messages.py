"""What a message tells of, in every form that it comes in."""

from __future__ import annotations

import pytest

from pyspark_sluice.enumerator.files.discovery.notifications.messages import (
    MalformedMessage,
    Told,
    objects_of,
)
from pyspark_sluice.tests.object_stores.s3_events import (
    TEST_EVENT,
    event,
    in_event_bridge,
    in_sns,
    record,
)


def test_every_form_of_an_event_is_understood():
    key = "in/a b+c%20ä.json"
    told = [Told("b", key)]
    assert objects_of(event(record("b", key))) == told
    assert objects_of(event(record("b", key, "s3:ObjectCreated:CompleteMultipartUpload"))) == told
    assert objects_of(in_sns(event(record("b", key)))) == told
    assert objects_of(in_event_bridge("b", key)) == told
    assert objects_of(event(record("b", "x"), record("b", "y"))) == [("b", "x"), ("b", "y")]
    assert objects_of(TEST_EVENT) == objects_of(in_sns(TEST_EVENT)) == []
    assert objects_of(event(record("b", key, "ObjectRemoved:Delete"))) == []
    assert objects_of(in_event_bridge("b", key, "Object Deleted")) == []


@pytest.mark.parametrize(
    "body",
    ["", "no JSON", "[]", "{}", '{"Records": [{}]}', '{"Records": 1}', '{"Type": "Notification"}',
     '{"Type": "Notification", "Message": "x"}', '{"source": "aws.s3", "detail": {}}'],
)  # fmt: skip
def test_what_is_no_event_is_malformed(body):
    with pytest.raises(MalformedMessage):
        objects_of(body)
