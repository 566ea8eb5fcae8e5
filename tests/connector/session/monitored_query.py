"""A real query without Spark under the eyes of the Prometheus listener, with a clock of its own.

The report in each progress event is what the coordinator of the query says; around it is what Spark
puts there (`tests/spark/test_prometheus.py` has Spark's own events).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import prometheus_client
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
)

from pyspark_sluice.connector.session.prometheus import PrometheusListener
from pyspark_sluice.tests.connector.queries import Query
from pyspark_sluice.tests.connector.session.prometheus_rules import Alert, Labels, Scrapes

TICK = 60.0
"""Seconds between two scrapes, and two evaluations of the rules."""

BEGIN = 1_000_000.0


class MonitoredQuery:
    """A query, its listener, a Prometheus server that scrapes it, and the alerts that fired."""

    def __init__(
        self, root: Path, alerts: list[Alert], settings: Mapping[str, Any], **options: str
    ) -> None:
        self.now = BEGIN
        self.alerts = alerts
        self.query = Query(root, settings=settings, **options)
        self.registry = prometheus_client.CollectorRegistry()
        self.listener = PrometheusListener(self.registry, clock=lambda: self.now)
        self.scrapes = Scrapes()
        self.fired: set[tuple[str, Labels]] = set()
        self.firing: set[tuple[str, Labels]] = set()
        self.is_reachable = True
        self._batch = -1
        self._id = uuid.uuid4()
        self._run = uuid.uuid4()
        self._files = 0
        self.begin()

    def begin(self) -> None:
        """Spark starts the query, or starts it again."""
        self._run = uuid.uuid4()
        started = {"id": str(self._id), "runId": str(self._run), "name": "orders", "timestamp": ""}
        self.listener.onQueryStarted(QueryStartedEvent.fromJson(started))

    def land(self, count: int = 1, *, age: float = 0.0, text: str | None = None) -> None:
        """Files that were written `age` seconds ago."""
        for _ in range(count):
            name = f"{self._files:05d}.json"
            self._files += 1
            self.query.land(f".{name}", text=text)
            written = self.now - age
            os.utime(self.query.data / f".{name}", (written, written))
            os.rename(self.query.data / f".{name}", self.query.data / name)

    def plan(self) -> Any:
        """The next batch, and what the source reports of it."""
        ref = self.query.plan()
        return ref, self.report()

    def report(self) -> dict[str, Any]:
        """Of the source, at the time of this clock."""
        opened = self.query.coordinator._opened
        if opened is not None:
            backlog = opened.enumerator._backlog
            backlog._clock = lambda: self.now
            # It would take the oldest file for known for a second of the real clock.
            backlog._looked_at = (float("-inf"), -1)
        return self.query.coordinator.report()

    def batch(self, seconds: float = TICK) -> None:
        """A batch that takes so long; the rules are evaluated meanwhile."""
        ref, report = self.plan()
        self.query.read(ref)
        self.query.done = ref
        self.wait(seconds)
        self.progress(report)

    def progress(self, report: Any, end: Any = None) -> None:
        """A batch has ended, whose source reported this."""
        self._batch += 1
        event = {"progress": self._progress(report, end)}
        self.listener.onQueryProgress(QueryProgressEvent.fromJson(event))

    def idle(self, seconds: float) -> None:
        """Spark finds nothing to do, and says so every 10 seconds."""
        until = self.now + seconds
        while self.now < until:
            found = {"id": str(self._id), "runId": str(self._run), "timestamp": ""}
            self.listener.onQueryIdle(QueryIdleEvent.fromJson(found))
            self.wait(TICK)

    def end(self, error: BaseException | None = None) -> None:
        """The query has ended; with an error as Spark puts it."""
        told = None
        if error is not None:
            told = (
                "[STREAM_FAILED] Query [id = ...] terminated with exception: "
                f"[PYTHON_DATA_SOURCE_ERROR] ... {type(error).__name__}: {error}"
            )
        event = {
            "id": str(self._id),
            "runId": str(self._run),
            "exception": told,
            "errorClassOnException": told and "STREAM_FAILED",
        }
        self.listener.onQueryTerminated(QueryTerminatedEvent.fromJson(event))

    def wait(self, seconds: float) -> None:
        """Time passes; Prometheus scrapes and evaluates."""
        end = self.now + seconds
        while self.now < end:
            self.now += TICK
            self.scrapes.scrape(self.now, self.scraped() if self.is_reachable else "")
            self.firing = {
                (alert.name, labels)
                for alert in self.alerts
                for labels in alert.firing(self.scrapes, self.now)
            }
            self.fired |= self.firing

    def scraped(self) -> str:
        """What the listener answers now."""
        return prometheus_client.generate_latest(self.registry).decode()

    def _progress(self, report: Any, end: Any) -> dict[str, Any]:
        rates = {"inputRowsPerSecond": 1.0, "processedRowsPerSecond": 1.0}
        source = {
            "description": "",
            "startOffset": None,
            "endOffset": end,
            "latestOffset": report,
            "numInputRows": 3,
            "metrics": {},
            **rates,
        }
        return {
            "id": str(self._id),
            "runId": str(self._run),
            "name": "orders",
            "timestamp": "",
            "batchId": self._batch,
            "batchDuration": 100,
            "durationMs": {"triggerExecution": 100},
            "eventTime": {},
            "stateOperators": [],
            "sources": [source],
            "sink": {"description": "", "numOutputRows": 3, "metrics": {}},
            "numInputRows": 3,
            "observedMetrics": {},
            **rates,
        }
