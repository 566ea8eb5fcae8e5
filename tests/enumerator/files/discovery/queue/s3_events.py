"""Messages as S3, SNS and EventBridge put them into a queue."""

from __future__ import annotations

import json
from urllib.parse import quote_plus


def record(bucket, key, name="ObjectCreated:Put"):
    entity = {"bucket": {"name": bucket}, "object": {"key": quote_plus(key), "size": 1}}
    return {"eventSource": "aws:s3", "eventName": name, "s3": entity}


def event(*records):
    return json.dumps({"Records": records})


def in_sns(body):
    return json.dumps({"Type": "Notification", "MessageId": "1", "Message": body})


def in_event_bridge(bucket, key, kind="Object Created"):
    detail = {"bucket": {"name": bucket}, "object": {"key": key}}
    return json.dumps({"source": "aws.s3", "detail-type": kind, "detail": detail})


TEST_EVENT = json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"})
