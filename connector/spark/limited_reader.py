"""The stream reader for Spark 4.2 and newer: start offsets, read limits and AvailableNow."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from ..session.processes import plain_errors
from .stream_reader import SluiceStreamReader

_NO_LIMIT = 2**31 - 1


class LimitedReader(SluiceStreamReader, SupportsTriggerAvailableNow):
    """The calls of Spark's `SupportsAdmissionControl` and `SupportsTriggerAvailableNow`."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Anything but ReadAllAvailable, which then can only mean Trigger.Once.

        Our own options limit the batch, together, inside `latestOffset`.
        """
        return ReadMaxFiles(_NO_LIMIT)

    @plain_errors()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The next checkpoint after `start`, already durable; `start` if there is nothing new."""
        return self._opened().latest_offset(start, isinstance(limit, ReadAllAvailable))
