"""The JVM and the session in zones of a test's choice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def in_zones(spark: Any, session: str, machine: str) -> Iterator[None]:
    """For a while, another zone of the session and of the JVM itself."""
    zone = spark._jvm.java.util.TimeZone
    before = str(spark.conf.get("spark.sql.session.timeZone")), zone.getDefault().getID()
    spark.conf.set("spark.sql.session.timeZone", session)
    zone.setDefault(zone.getTimeZone(machine))
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", before[0])
        zone.setDefault(zone.getTimeZone(before[1]))
