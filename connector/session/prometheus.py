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
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from typing_extensions import override

from ... import errors
from ...errors import not_installed

_BY_REASON: Final = ("filesSkipped",)
"""Figures that are counts by reason. Files that are passed over again count again: a gauge."""

_COUNTERS: Final = ("read", "notifications", "cleaned")
"""Parts of the report whose numbers only grow while a query runs, but for `_NOW`."""

_COUNTS: Final = ("abandonedReaders", "abandonedSplits", "failedListings")
"""Further numbers of that kind."""

_NOW: Final = ("held", "failing", "checkpointsToClean")
"""Numbers within `_COUNTERS` that go up and down."""

_AGE: Final = "backlogOldestSeconds"
_OF_SPARK: Final = ("inputRowsPerSecond", "processedRowsPerSecond")

# Only names of this package's errors become labels: free text would make a series for each error.
_ERRORS: Final = re.compile(
    r"\b("
    + "|".join(
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.SluiceError)
    )
    + r")\b"
)


class Sample(NamedTuple):
    """One value of one metric."""

    metric: str
    labels: Mapping[str, str]
    value: float
    kind: Literal["gauge", "counter"] = "gauge"


@dataclass
class QueryFigures:
    """One query by its name; a run that is started under the same name takes it over."""

    name: str
    run: str
    last_success: float
    """When a trigger last ended, with or without a batch. The start of a run counts as one."""

    ended: float | None = None
    last_batch: float | None = None
    last_error: tuple[str, float] | None = None
    failures: int = 0
    batches: int = 0
    reported: float = 0.0
    """Time of the progress event that brought `sources`."""

    sources: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Number of the source -> what it reported last."""

    rows: dict[str, int] = field(default_factory=dict)
    """Number of the source -> rows that Spark took from it."""

    def progressed(self, progress: Mapping[str, Any], now: float) -> bool:
        """Take over a progress event; False if the query has no source of this package."""
        own = {
            str(number): source
            for number, source in enumerate(progress["sources"])
            if any(_names_checkpoint(source.get(key)) for key in ("latestOffset", "endOffset"))
        }
        if not own:
            return False
        self.last_success = self.last_batch = now
        self.batches += 1
        for number, source in own.items():
            self.rows[number] = self.rows.get(number, 0) + max(0, source.get("numInputRows") or 0)
        # A batch that is repeated after a restart comes without a report.
        reports: dict[str, Mapping[str, Any]] = {
            number: {**report, **_of_spark(source, progress)}
            for number, source in own.items()
            if (report := _names_checkpoint(source.get("latestOffset")))
        }
        if reports:
            self.sources, self.reported = reports, now
        return True

    def terminated(self, exception: str | None, now: float) -> None:
        """The run has ended; with an exception it has failed."""
        self.ended = now
        if exception is not None:
            self.failures += 1
            self.last_error = (error_name(exception), now)

    def samples(self, now: float) -> Iterator[Sample]:
        """Everything about the query at this moment."""
        label = {"query": self.name}
        yield Sample("sluice_up", label, float(self.ended is None))
        yield Sample("sluice_last_success_timestamp_seconds", label, self.last_success)
        yield Sample("sluice_failures_total", label, self.failures, "counter")
        yield Sample("sluice_batches_total", label, self.batches, "counter")
        if self.last_batch is not None:
            yield Sample("sluice_last_batch_timestamp_seconds", label, self.last_batch)
        if self.last_error is not None:
            error, when = self.last_error
            yield Sample("sluice_last_error_timestamp_seconds", {**label, "error": error}, when)
        for number, report in self.sources.items():
            labels = {**label, "source": number}
            rows = self.rows.get(number, 0)
            yield Sample("sluice_input_rows_total", labels, rows, "counter")
            for sample in _of_report(report, now - self.reported):
                yield sample._replace(labels={**labels, **sample.labels})


def error_name(exception: str) -> str:
    """The class of the error that is in the text of an exception, or `other`.

    The last one that it names is what the others were made of.
    """
    names = _ERRORS.findall(exception)
    return str(names[-1]) if names else "other"


def _names_checkpoint(report: Any) -> Mapping[str, Any] | None:
    """An offset or a report of this package; None for those of any other source."""
    value = report
    if isinstance(report, str):
        with suppress(ValueError):
            value = json.loads(report)
    return value if isinstance(value, dict) and {"checkpoint", "epoch"} <= set(value) else None


def _of_spark(source: Mapping[str, Any], progress: Mapping[str, Any]) -> Mapping[str, Any]:
    seconds = progress.get("durationMs", {}).get("triggerExecution", 0) / 1000
    return {**{key: source[key] for key in _OF_SPARK if key in source}, "batchSeconds": seconds}


def _of_report(report: Mapping[str, Any], since: float) -> Iterator[Sample]:
    """The samples of a report that came `since` seconds ago."""
    figures = dict(report)
    listing = dict(figures.pop("lastListing", {}))
    if "endedAt" in listing:
        ended = float(listing.pop("endedAt"))
        yield Sample("sluice_last_listing_timestamp_seconds", {}, ended)
    if "backlogSplits" in figures:
        age = figures.pop(_AGE, None)
        if age is not None:
            yield Sample(_metric(_AGE), {}, age + max(0.0, since))
        elif not figures["backlogSplits"]:
            yield Sample(_metric(_AGE), {}, 0.0)
        yield Sample("sluice_listing_failing", {}, float("listingError" in figures))
    yield Sample("sluice_unreadable_state", {}, len(figures.pop("unreadableState", ())))
    yield from _numbers({**figures, "lastListing": listing}, "sluice", counts=False)


def _numbers(figures: Mapping[str, Any], above: str, *, counts: bool) -> Iterator[Sample]:
    """Every number in a report, however deep."""
    for key, value in figures.items():
        name = _metric(key, above)
        if isinstance(value, dict) and key in _BY_REASON:
            yield from (Sample(name, {"reason": reason}, count) for reason, count in value.items())
        elif isinstance(value, dict):
            yield from _numbers(value, name, counts=counts or key in _COUNTERS)
        # JSON's true is an int in Python.
        elif isinstance(value, int | float) and not isinstance(value, bool):
            if key in _COUNTS or (counts and key not in _NOW):
                yield Sample(f"{name}_total", {}, value, "counter")
            else:
                yield Sample(name, {}, value)


def _metric(key: str, above: str = "sluice") -> str:
    return f"{above}_{re.sub(r'(?<!^)(?=[A-Z])', '_', key).lower()}"


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
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        now = self._clock()
        with self._lock:
            for query in list(self._queries.values()):
                # Here, as nothing else runs regularly once a query has ended.
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
