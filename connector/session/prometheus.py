"""Hands the figures of running queries to Prometheus.

    listener = PrometheusListener()
    spark.streams.addListener(listener)
    prometheus_client.start_http_server(9100)

Every number in a source's part of the progress event becomes a gauge: `splitsOutstanding` becomes
`sluice_splits_outstanding`, `read.rows` `sluice_read_rows`, and counts by reason
(`filesSkipped`) one gauge with the label `reason`. Labels are the query's name (its id, where it
has no name) and the number of the source within the query. A query that has ended is no longer
shown.

Not here: who computes the figures (the enumerator and its coordinator).
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from typing_extensions import override

from ...errors import OptionError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import GaugeMetricFamily

_LABELS = ("query", "source")
_BY_REASON = ("filesSkipped",)
"""Figures that are counts by reason."""

_OF_SPARK = ("inputRowsPerSecond", "processedRowsPerSecond", "numInputRows")


class PrometheusListener(StreamingQueryListener):
    """Keeps the newest figures of each query for whoever scrapes them.

    Add it with `spark.streams.addListener`; it is safe for several queries and threads.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Registers with `registry`, or with the client's own.

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
        self._figures: dict[str, dict[tuple[str, str], Mapping[str, Any]]] = {}
        """Run of a query -> (its name, number of the source) -> the newest figures."""
        (registry or REGISTRY).register(self)

    @override
    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing is known yet."""

    @override
    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Takes the figures of the sources that are Sluice's."""
        progress = json.loads(event.progress.json)
        name = progress.get("name") or progress["id"]
        found: dict[tuple[str, str], Mapping[str, Any]] = {}
        for number, source in enumerate(progress["sources"]):
            report = _report_of(source)
            if report is not None:
                of_spark = {key: source[key] for key in _OF_SPARK if key in source}
                durations = {"batchMs": progress.get("durationMs", {}).get("triggerExecution", 0)}
                found[name, str(number)] = {**report, **of_spark, **durations}
        with self._lock:
            self._figures[progress["runId"]] = found

    @override
    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """The figures stay as they were."""

    @override
    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """What has ended has no figures."""
        with self._lock:
            self._figures.pop(str(event.runId), None)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """What Prometheus' client calls for each scrape."""
        from prometheus_client.core import GaugeMetricFamily

        with self._lock:
            kept = [one for queries in self._figures.values() for one in queries.items()]
        families: dict[str, GaugeMetricFamily] = {}
        for labels, figures in kept:
            for name, more, value in _numbers(figures):
                family = families.get(name)
                if family is None:
                    text = f"{name.removeprefix('sluice_').replace('_', ' ')}, from the progress"
                    family = GaugeMetricFamily(name, text, labels=[*_LABELS, *more])
                    families[name] = family
                family.add_metric([*labels, *more.values()], value)
        yield from families.values()


def _report_of(source: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a source of ours reports; None for any other source."""
    report = source.get("latestOffset")
    if isinstance(report, str):
        report = json.loads(report)
    return report if isinstance(report, dict) and {"checkpoint", "epoch"} <= set(report) else None


def _numbers(
    figures: Mapping[str, Any], above: str = "sluice"
) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """(metric, further labels, value) of every number in a report, however deep."""
    for key, value in figures.items():
        name = f"{above}_{re.sub(r'(?<!^)(?=[A-Z])', '_', key).lower()}"
        if isinstance(value, dict) and key in _BY_REASON:
            yield from ((name, {"reason": reason}, count) for reason, count in value.items())
        elif isinstance(value, dict):
            yield from _numbers(value, name)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield name, {}, value
