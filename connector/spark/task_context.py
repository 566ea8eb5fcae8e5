"""What a Spark task knows about itself, as far as reading needs it."""

from __future__ import annotations

import os

from pyspark import TaskContext

from ...reader.task import Attempt
from ..options.model import SluiceOptions

_LOCAL_TIME = "/etc/localtime"


def current_attempt() -> Attempt:
    """The attempt this code runs in."""
    context = TaskContext.get()
    if context is None:
        return Attempt()
    query = context.getLocalProperty("sql.streaming.queryId") or ""
    return Attempt(context.attemptNumber(), query)


def with_session_time_zone(options: SluiceOptions) -> SluiceOptions:
    """`options` with the session's time zone where the user named none.

    Spark hands a session's own settings to its tasks; without one the machine's zone counts.
    """
    if options.time_zone:
        return options
    context = TaskContext.get()
    zone = context.getLocalProperty("spark.sql.session.timeZone") if context else None
    return options.model_copy(update={"time_zone": zone or _machine_time_zone()})


def _machine_time_zone() -> str:
    if os.environ.get("TZ"):
        # POSIX permits a colon before the name of a zone.
        return os.environ["TZ"].lstrip(":")
    # Only the target of the link says the name; the file itself does not.
    target = os.path.realpath(_LOCAL_TIME)
    return target.partition("zoneinfo/")[2] or "UTC"
