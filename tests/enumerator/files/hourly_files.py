"""Files of one hour of event time each."""

from __future__ import annotations

from pyspark_sluice.tests.enumerator.files.bench import file
from pyspark_sluice.tests.enumerator.files.in_event_time import HOUR, times


def hourly(hour, name="a", modified=0):
    return file(f"date=2026-01-{1 + hour // 24:02}/hour={hour % 24:02}/{name}", 10, modified)


def hours(splits):
    """Hours since the first of January, of splits in order of their time."""
    begin = times().of(hourly(0).path)
    return sorted((times().of(split.file.path) - begin) // HOUR for split in splits)
