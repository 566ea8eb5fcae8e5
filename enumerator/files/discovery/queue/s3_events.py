"""What a message of the queue says: objects that were created, in any of the forms S3 has.

Not here: receiving (`sqs.py`), and what becomes of the objects (`queue_discovery.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Told(NamedTuple):
    """An object that a message tells of."""

    bucket: str
    key: str


class MalformedMessage(ValueError):
    """A message that is not an event of S3, or names what cannot be read; says what is wrong."""


def objects_of(body: str) -> list[Told]:
    """The objects that a message tells to be there; none for a test event or a deletion.

    Whether they still are, and as what, only the store knows: events come late, twice, in any
    order.

    Raises:
        MalformedMessage: it is not an event of S3 nor an envelope around one, or a key is one that
            the client cannot ask for.
    """
    try:
        return list(_objects(json.loads(body)))
    except MalformedMessage:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
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
            yield _told(event["detail"], event["detail"]["object"]["key"])
    elif event.get("Event") != "s3:TestEvent":
        raise MalformedMessage(f"no Records, detail or Message, but {sorted(map(str, event))[:5]}")


def _record(record: Mapping[str, Any]) -> Iterator[Told]:
    name = str(record["eventName"]).removeprefix("s3:")
    if name.startswith("ObjectCreated:"):
        entity = record["s3"]
        yield _told(entity, unquote_plus(entity["object"]["key"], errors="strict"))


def _told(entity: Mapping[str, Any], key: str) -> Told:
    told = Told(entity["bucket"]["name"], key)
    for text in told:
        # What the ledger and the client take: text that UTF-8 has, in whole parts.
        text.encode()
    if any(part in ("", ".", "..") for part in key.removesuffix("/").split("/")) or _CONTROL.search(
        key
    ):
        raise MalformedMessage(f"the client cannot request the key {key!r}")
    return told
