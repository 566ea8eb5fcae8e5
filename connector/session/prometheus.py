"""Hands the figures of queries to Prometheus.

    listener = PrometheusListener()
    spark.streams.addListener(listener)
    prometheus_client.start_http_server(9100)

Add it before the queries start. Every number in a source's part of the progress event becomes a
metric: `splitsOutstanding` becomes the gauge `sluice_splits_outstanding`, what only grows becomes a
counter (`read.rows` is `sluice_read_rows_total`), and counts by reason (`filesSkipped`) one gauge
with the label `reason`. To these come metrics of the query as a whole: `sluice_up`, the times of
its last success and last error, and how often it failed.

Labels are the query's name (its id, where it has no name) and, for what a source reports, its
number within the query. The series of a query that has ended stay for `keep_seconds`, with
`sluice_up` 0, so that an alert can fire.

Not here: what the series are (`query_figures.py`), and who computes the figures (the enumerator and
its coordinator).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from typing_extensions import override

from ...errors import OptionError
from .query_figures import QueryFigures

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

KEEP_SECONDS = 3600.0
"""How long the series of a query that has ended are shown."""


class PrometheusListener(StreamingQueryListener):
    """Keeps the newest figures of each query for scrapes.

    Add it with `spark.streams.addListener`; it is safe for several queries and threads. Spark does
    not say at the start whether a query reads with this package, so every query is shown until its
    first batch shows that it does not.
    """

    def __init__(
        self,
        registry: CollectorRegistry | None = None,
        *,
        keep_seconds: float = KEEP_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Registers with `registry`, or with the client's own.

        Args:
            registry: of the Prometheus client.
            keep_seconds: how long the series of a query that has ended are shown.
            clock: seconds since 1970.

        Raises:
            OptionError: the package `prometheus-client` is not there.
        """
        try:
            from prometheus_client import REGISTRY
        except ImportError as error:
            raise OptionError(
                "the figures cannot be handed to Prometheus",
                "PrometheusListener",
                "no package prometheus-client",
                "the client library of Prometheus",
                "Install it: pip install 'pyspark-sluice[prometheus]'",
            ) from error
        self._lock = threading.Lock()
        self._keep_seconds = keep_seconds
        self._clock = clock
        self._queries: dict[str, QueryFigures] = {}
        """By the name of the query."""
        self._foreign: set[str] = set()
        """Runs of queries that do not read with this package."""
        (registry or REGISTRY).register(self)

    @override
    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """A query runs; one of the same name that has ended is continued by it."""
        with self._lock:
            self._begin(event.name or str(event.id), str(event.runId))

    @override
    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A batch has ended: take the figures of the sources that are Sluice's."""
        progress = json.loads(event.progress.json)
        run = progress["runId"]
        with self._lock:
            if run in self._foreign:
                return
            # A query that was started before the listener was added begins with its first batch.
            query = self._of_run(run) or self._begin(progress.get("name") or progress["id"], run)
            if not query.progressed(progress, self._clock()):
                self._foreign.add(run)
                del self._queries[query.name]

    @override
    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """The query has looked and found nothing; its figures stay as they were."""
        with self._lock:
            query = self._of_run(str(event.runId))
            if query is not None:
                query.last_success = self._clock()

    @override
    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """The query has ended; its series stay for a while."""
        run = str(event.runId)
        with self._lock:
            self._foreign.discard(run)
            query = self._of_run(run)
            if query is not None:
                query.terminated(event.exception, self._clock())

    def collect(self) -> Iterator[Metric]:
        """What Prometheus' client calls for each scrape."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        now = self._clock()
        with self._lock:
            for query in list(self._queries.values()):
                if query.ended is not None and now - query.ended > self._keep_seconds:
                    del self._queries[query.name]
            samples = [one for query in self._queries.values() for one in query.samples(now)]
        families: dict[str, Metric] = {}
        for metric, labels, value, kind in samples:
            family = families.get(metric)
            if family is None:
                family_of = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
                family = family_of(metric, _help(metric), labels=list(labels))
                families[metric] = family
            family.add_metric(list(labels.values()), value)  # type: ignore[attr-defined]
        yield from families.values()

    def _of_run(self, run: str) -> QueryFigures | None:
        return next((one for one in self._queries.values() if one.run == run), None)

    def _begin(self, name: str, run: str) -> QueryFigures:
        query = self._queries.get(name)
        if query is None:
            query = self._queries[name] = QueryFigures(name, run, self._clock())
        else:
            query.run, query.ended, query.last_success = run, None, self._clock()
        return query


def _help(metric: str) -> str:
    words = metric.removeprefix("sluice_").removesuffix("_total").replace("_", " ")
    return f"{words} of a streaming query that reads with pyspark-sluice"
