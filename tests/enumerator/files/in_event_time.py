"""Files of event times that a test makes up, which are read by Python's own clock."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark_sluice.enumerator.files.discovery.selection.event_times import EventTimes
from pyspark_sluice.enumerator.files.event_time_batches import EventTimePolicy, OnLateFile
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.enumerator.files.ledger.pending import EventTimeOrder
from pyspark_sluice.tests.enumerator.files.bench import file

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


def hourly(hour, name="a", modified=0):
    """A file of one hour of event time."""
    return file(f"date=2026-01-{1 + hour // 24:02}/hour={hour % 24:02}/{name}", 10, modified)


def hours(splits):
    """Hours since the first of January, of splits in order of their time."""
    begin = times().of(hourly(0).path)
    return sorted((times().of(split.file.path) - begin) // HOUR for split in splits)
