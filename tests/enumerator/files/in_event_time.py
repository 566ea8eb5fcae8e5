"""Event times of files that a test makes up, read by Python's own clock."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark_sluice.enumerator.files.discovery.selection.event_times import EventTimes
from pyspark_sluice.enumerator.files.event_time_batches import EventTimePolicy, OnLateFile
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.enumerator.files.ledger.pending import EventTimeOrder

HOUR = 3_600_000_000


def moment(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000_000)


def times(pattern="", *bases, may_be_missing=False):
    return EventTimes(pattern, bases, "UTC", moment, may_be_missing=may_be_missing)


def in_event_time(skew=HOUR, on_late=OnLateFile.READ, found=None):
    """What an enumerator is given for `fileOrder=eventTime`."""
    found = found or times()
    return {
        "event_time": EventTimePolicy(found, skew, on_late),
        "ledger": LedgerPolicy(EventTimeOrder(found)),
    }
