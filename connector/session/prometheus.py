"""Hands the figures of queries to Prometheus.

    listener = PrometheusListener()
    spark.streams.addListener(listener)
    prometheus_client.start_http_server(9100)

Add it before the queries start. Every number in a source's part of the progress event becomes a
metric: `backlogSplits` becomes the gauge `sluice_backlog_splits`, what only grows becomes a
counter (`read.rows` is `sluice_read_rows_total`), and counts by reason (`filesSkipped`) one gauge
with the label `reason`. To these come metrics of the query as a whole: `sluice_up`, the times of
its last success and last error, and how often it failed.

Labels are the query's name (its id, where it has no name) and, for what a source reports, its
number within the query. The series of a query that has ended stay for `keep_seconds`, with
`sluice_up` 0, so that an alert can fire.

Ages are computed when they are asked for. Spark reports on a query after each trigger only, so a
query that hangs reports nothing, and a figure that was taken over as it came would not change.
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

from ...errors import not_installed
from .query_figures import QueryFigures, families

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
            what = "metrics cannot be exported to Prometheus"
            raise not_installed(
                what, "PrometheusListener", "prometheus-client", "prometheus"
            ) from error
        self._lock = threading.Lock()
        self._keep_seconds = keep_seconds
        self._clock = clock
        self._queries: dict[str, QueryFigures] = {}
        """By the name of the query."""
        self._foreign: set[str] = set()
        """Runs of queries that do not read with this package."""
        # Last: the client collects at once, to learn the names of the metrics.
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
            # Queries of other sources have no figures here, and Spark reports on all of a session.
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
                # An idle query is sound: an alert on its last success must not fire.
                query.last_success = self._clock()

    @override
    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """The query has ended; its series stay for a while."""
        run = str(event.runId)
        with self._lock:
            # A run ends once: without this the set would grow with every query of the session.
            self._foreign.discard(run)
            query = self._of_run(run)
            if query is not None:
                query.terminated(event.exception, self._clock())

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics; Prometheus' client calls it for each scrape."""
        now = self._clock()
        with self._lock:
            for query in list(self._queries.values()):
                # Here, as nothing else runs regularly once a query has ended.
                if query.ended is not None and now - query.ended > self._keep_seconds:
                    del self._queries[query.name]
            samples = [one for query in self._queries.values() for one in query.samples(now)]
        yield from families(samples)

    def _of_run(self, run: str) -> QueryFigures | None:
        return next((one for one in self._queries.values() if one.run == run), None)

    def _begin(self, name: str, run: str) -> QueryFigures:
        query = self._queries.get(name)
        if query is None:
            query = self._queries[name] = QueryFigures(name, run, self._clock())
        else:
            query.run, query.ended, query.last_success = run, None, self._clock()
        return query
