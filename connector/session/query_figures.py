"""The figures of queries as samples for Prometheus, whichever host runs them.

Every number in a source's part of a progress event becomes a metric; ages are computed when they
are asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from ... import errors

if TYPE_CHECKING:
    from prometheus_client.core import Metric

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


FINISHED: Final = "sluice_last_finished_timestamp_seconds"


@dataclass
class QueryFigures:
    """One query by its name; a run that is started under the same name takes it over."""

    name: str
    run: str
    last_success: float
    """Time at which a trigger last ended, with or without a batch; the start counts as one."""

    ended: float | None = None
    last_finished: float | None = None
    """Time at which a run last ended without an error."""

    last_batch: float | None = None
    last_error: tuple[str, float] | None = None
    failures: int = 0
    batches: int = 0
    reported: float = 0.0
    """Time of the progress event that brought `sources`."""

    sources: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Number of the source -> what it reported last."""

    rows: dict[str, int] = field(default_factory=dict)
    """Number of the source -> rows that were taken from it."""

    last_figures: Mapping[str, Any] = field(default_factory=dict)
    """Figures of the newest batch, of a host that hands them over apart."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """More labels than the name."""

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
        if exception is None:
            self.last_finished = now
        else:
            self.failures += 1
            self.last_error = (error_name(exception), now)

    def samples(self, now: float) -> Iterator[Sample]:
        """Everything about the query at this moment."""
        label = {"query": self.name, **self.labels}
        yield Sample("sluice_up", label, float(self.ended is None))
        yield Sample("sluice_last_success_timestamp_seconds", label, self.last_success)
        yield Sample("sluice_failures_total", label, self.failures, "counter")
        yield Sample("sluice_batches_total", label, self.batches, "counter")
        if self.last_batch is not None:
            yield Sample("sluice_last_batch_timestamp_seconds", label, self.last_batch)
        if self.last_finished is not None:
            yield Sample(FINISHED, label, self.last_finished)
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


def families(samples: Iterable[Sample]) -> Iterator[Metric]:
    """The metrics that samples belong to, for the Prometheus client."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    by_metric: dict[str, Metric] = {}
    for metric, labels, value, kind in samples:
        family = by_metric.get(metric)
        if family is None:
            family_of = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
            family = family_of(metric, _help(metric), labels=list(labels))
            by_metric[metric] = family
        family.add_metric(list(labels.values()), value)  # type: ignore[attr-defined]
    yield from by_metric.values()


def _help(metric: str) -> str:
    words = metric.removeprefix("sluice_").removesuffix("_total").replace("_", " ")
    return f"{words} of a streaming query that reads with pyspark-sluice"
