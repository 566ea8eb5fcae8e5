"""The figures of `sluice run` for Prometheus: at a port, or in a file for node_exporter.

They are those of the Spark listener. The label `query` is the name of the feed, so that dashboards
and rules serve both; the label `feed` has it as well.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Final

from ...checkpoint_meta.documents.query_records import RunSummary
from ...errors import OptionError, not_installed
from ..session.query_figures import FINISHED, QueryFigures, families

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from ..host.embedded_query import EmbeddedRun
    from ..host.run_record import BatchReport
    from .run_arguments import ProcessArguments

log = logging.getLogger(__name__)

_EVERY: Final = 15.0
"""Seconds between two writes of the file, as between two scrapes."""

_SOURCE: Final = "0"
"""A run has one source."""


class Metrics:
    """Watches feeds, and has their newest figures whenever Prometheus asks."""

    def __init__(self, finished: Mapping[str, float]) -> None:
        """`finished` says of feeds when a run before last ended without an error."""
        self._lock, self._finished = Lock(), finished
        self._feeds: dict[str, QueryFigures] = {}
        self._runs: dict[str, EmbeddedRun] = {}

    def begins(self, name: str, run: EmbeddedRun) -> None:
        """A run begins, of which the figures are asked from now on."""
        feed = name or run.checkpoint
        with self._lock:
            figures = self._figures_of(name, feed, run.last_look)
            figures.ended, figures.last_success = None, run.last_look
            self._runs[name] = run

    def on_task(self, name: str, done: int, tasks: int) -> None:
        """Tasks are in no figure."""

    def batch(self, name: str, report: BatchReport) -> None:
        """Count a batch."""
        with self._lock:
            feed = self._feeds[name]
            feed.batches += 1
            feed.last_batch = time.time()
            feed.rows[_SOURCE] = feed.rows.get(_SOURCE, 0) + report.rows
            feed.last_figures = {"batchSeconds": report.seconds}

    def ended(self, name: str, _: RunSummary | None, error: BaseException | None) -> None:
        """Keep the last figures, and the error."""
        with self._lock:
            # Also a feed that could not begin has an error.
            feed = self._figures_of(name, name, time.time())
            self._take(name, feed)
            self._runs.pop(name, None)
            feed.terminated(None if error is None else type(error).__name__, time.time())

    def _figures_of(self, name: str, feed: str, now: float) -> QueryFigures:
        if name not in self._feeds:
            figures = QueryFigures(feed, feed, now, labels={"feed": feed})
            figures.last_finished = self._finished.get(feed)
            self._feeds[name] = figures
        return self._feeds[name]

    def _take(self, name: str, feed: QueryFigures) -> None:
        run = self._runs.get(name)
        if run is not None:
            figures = run.figures()
            feed.last_success, feed.reported = run.last_look, time.time()
            if figures:
                feed.sources = {_SOURCE: {**figures, **feed.last_figures}}

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics; the client calls it for each scrape."""
        with self._lock:
            for name, feed in self._feeds.items():
                self._take(name, feed)
            now = time.time()
            samples = [one for feed in self._feeds.values() for one in feed.samples(now)]
        yield from families(samples)


@contextmanager
def exported(arguments: ProcessArguments) -> Iterator[Metrics | None]:
    """Serve and write what the arguments ask for; None if that is nothing.

    Raises:
        OptionError: the client is not installed, or the port is taken.
    """
    if arguments.metrics_port is None and not arguments.metrics_file:
        yield None
        return
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError as error:
        what = "metrics cannot be exported to Prometheus"
        raise not_installed(what, "", "prometheus-client", "prometheus") from error
    metrics, registry = Metrics(_finished_in(arguments.metrics_file)), CollectorRegistry()
    registry.register(metrics)
    server, is_over = None, Event()
    if arguments.metrics_port is not None:
        try:
            server, _ = start_http_server(
                arguments.metrics_port, arguments.metrics_address, registry
            )
        except OSError as error:
            where = f"{arguments.metrics_address}:{arguments.metrics_port}"
            expected = "an address of this machine, and a free port"
            what = "--metrics-port cannot be opened"
            raise OptionError(what, where, error.strerror or str(error), expected) from error
    writer = Thread(target=_write_on, args=(registry, arguments.metrics_file, is_over), daemon=True)
    if arguments.metrics_file:
        writer.start()
    try:
        yield metrics
    finally:
        is_over.set()
        if arguments.metrics_file:
            # Its last act is to write what is true at the end.
            writer.join()
        if server is not None:
            server.shutdown()
            server.server_close()


def _finished_in(path: str) -> Mapping[str, float]:
    """When feeds last finished, as the process before has written it; empty without such a file."""
    from prometheus_client.parser import text_string_to_metric_families

    finished: dict[str, float] = {}
    # A file of something else is replaced in any case.
    with suppress(OSError, ValueError, KeyError):
        for family in text_string_to_metric_families(Path(path).read_text(encoding="utf-8")):
            samples = (sample for sample in family.samples if sample.name == FINISHED)
            finished |= {sample.labels["feed"]: sample.value for sample in samples}
    return finished


def _write_on(registry: Any, path: str, is_over: Event) -> None:
    while not is_over.wait(_EVERY):
        _write(registry, path)
    _write(registry, path)


def _write(registry: Any, path: str) -> None:
    from prometheus_client import write_to_textfile

    try:
        # Into another file, which is then renamed.
        write_to_textfile(path, registry)
    except OSError as error:
        # A full disk of metrics stops no feed.
        log.warning("--metrics-file: %s cannot be written: %s", path, error.strerror or error)
