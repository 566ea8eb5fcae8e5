"""What a message of the queue says: objects that were created, in any of the forms S3 has.

Not here: receiving (`queue.py`), and what becomes of the objects (`discovery.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote_plus


class Told(NamedTuple):
    """An object that a message tells of."""

    bucket: str
    key: str


class MalformedMessage(ValueError):
    """A message that is none of S3's; says what is wrong with it."""


def objects_of(body: str) -> list[Told]:
    """The objects that a message tells to be there; none for a test event or a deletion.

    Whether they still are, and as what, only the store knows: events come late, twice, in any
    order.

    Raises:
        MalformedMessage: it is no event of S3, nor an envelope around one.
    """
    try:
        return list(_objects(json.loads(body)))
    except MalformedMessage:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MalformedMessage(f"{type(error).__name__}: {error}") from error


def _objects(event: Any) -> Iterator[Told]:
    if not isinstance(event, Mapping):
        raise MalformedMessage(f"JSON of type {type(event).__name__}, not an object")
    if event.get("Type") == "Notification" and "Message" in event:
        # SNS, without raw message delivery.
        yield from _objects(json.loads(event["Message"]))
    elif "Records" in event:
        for record in event["Records"]:
            yield from _record(record)
    elif event.get("source") == "aws.s3" and "detail" in event:
        # EventBridge writes the key as it is.
        if str(event["detail-type"]).startswith("Object Created"):
            detail = event["detail"]
            yield Told(str(detail["bucket"]["name"]), str(detail["object"]["key"]))
    elif event.get("Event") != "s3:TestEvent":
        raise MalformedMessage(f"no Records, detail or Message, but {sorted(map(str, event))[:5]}")


def _record(record: Mapping[str, Any]) -> Iterator[Told]:
    name = str(record["eventName"]).removeprefix("s3:")
    if name.startswith("ObjectCreated:"):
        entity = record["s3"]
        yield Told(str(entity["bucket"]["name"]), unquote_plus(entity["object"]["key"]))
