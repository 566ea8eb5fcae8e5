"""Collects what a run does, for its record, for the line at its end, and for reports to others.

The reports are a span a batch by OpenTelemetry, and an event a run by OpenLineage. Both are off,
and cost nothing, unless the program has loaded OpenTelemetry, or the environment configures
OpenLineage.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from ...checkpoint_meta.documents.epochs import newest_epoch
from ...checkpoint_meta.documents.query_records import RunSummary, SchemaHistory
from ...checkpoint_meta.storage.urls import Location, loaded_paths
from ...checkpoint_meta.stores.contract import StateStore
from ...errors import FencedError, SluiceError, StateError
from ..options.model import SluiceOptions
from ..source.state_location import open_state


@dataclass(frozen=True)
class BatchReport:
    """One batch that is in the table."""

    number: int
    """The batch number in the checkpoint, which Spark continues."""

    splits: int
    """Parts of files that were read; small files are one part each."""

    rows: int
    files: int
    """Data files that were added to the table."""

    bytes: int
    """Bytes of these data files."""

    seconds: float


class RunRecord:
    """One run, which may be several queries after each other."""

    def __init__(self, on_task: Callable[[int, int], None] = lambda *_: None) -> None:
        """`on_task` gets the number of finished tasks of a batch, and of all of them."""
        self.on_task = on_task
        self._began = time.time()
        self._store: StateStore | None = None
        self._columns: Mapping[str, str] = {}
        """Types of the columns of an inferred schema at the start of the run."""
        self._sums = Counter[str]()
        self.figures: Mapping[str, Any] = {}
        self._epoch = 0
        self.dead_workers: list[str] = []

    @property
    def has_begun(self) -> bool:
        """True if there is a state to record the run next to."""
        return self._store is not None

    def begin(self, options: SluiceOptions) -> None:
        """Note the state and its schema, once the schema of the first query is stored."""
        if self._store is None:
            self._store = open_state(options)
            self._columns = _columns_of(self._store)

    def add(self, batch: BatchReport) -> None:
        """Count a batch that is in the table."""
        self._sums["batches"] += 1
        self._sums["row_count"] += batch.rows
        for name in ("splits", "files", "bytes"):
            self._sums[name] += getattr(batch, name)

    def look(self, epoch: int, figures: Mapping[str, Any]) -> None:
        """Note the figures of a query that ends: those of its progress events."""
        self._epoch, self.figures = epoch or self._epoch, figures or self.figures
        read = figures.get("read", {})
        self._sums["skipped_files"] += read.get("skippedFiles", 0)
        self._sums["dropped_records"] += read.get("droppedRecords", 0)

    def end(self, error: BaseException | None = None, *, is_stopped: bool = False) -> RunSummary:
        """Return the summary, and publish it next to the state.

        A query that was superseded leaves the record to the one that runs.
        """
        end: Literal["finished", "stopped", "failed"] = "stopped" if is_stopped else "finished"
        figures = self.figures
        waiting = {
            name: figures.get(f"backlog{name.capitalize()}", 0)
            for name in ("files", "splits", "bytes")
        }
        after: Mapping[str, str] = {}
        epoch = 0
        if self._store is not None and not isinstance(error, StateError):
            # A state that cannot be read is the error of the run already.
            with contextlib.suppress(SluiceError, OSError):
                after, epoch = _columns_of(self._store), newest_epoch(self._store)
        summary = RunSummary(
            epoch=self._epoch,
            newest_epoch=epoch,
            host=socket.gethostname(),
            pid=os.getpid(),
            began=self._began,
            ended=time.time(),
            end="failed" if error else end,
            error=f"{type(error).__name__}: {error}" if error else "",
            left_out=figures.get("filesSkipped", {}),
            waiting=waiting if waiting["splits"] else {},
            quarantined=figures.get("quarantinedSplits", 0),
            new_columns=list(_changes(self._columns, after)),
            dead_workers=self.dead_workers,
            failing_upkeep=figures.get("failingUpkeep", {}),
            **self._sums,
        )
        if self._store is not None and not isinstance(error, FencedError | StateError):
            summary.publish(self._store)
        return summary


def _columns_of(store: StateStore) -> Mapping[str, str]:
    stored = SchemaHistory(store).latest()
    return {} if stored is None else dict(_leaves(stored.struct))


def _leaves(struct: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the paths and types of columns and fields of a stored schema."""
    for field in struct["fields"]:
        path, kind = f"{prefix}{field['name']}", field["type"]
        while isinstance(kind, dict) and kind["type"] in ("array", "map"):
            kind = kind["elementType" if kind["type"] == "array" else "valueType"]
        if isinstance(kind, dict) and kind["type"] == "struct":
            yield from _leaves(kind, f"{path}.")
        else:
            yield path, str(kind["type"] if isinstance(kind, dict) else kind)


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> Sequence[str]:
    if not before:
        return []  # The first schema of a query, or one that the user has given.
    return [
        f"+ {path} {kind}" if path not in before else f"{path} {before[path]} -> {kind}"
        for path, kind in after.items()
        if before.get(path) != kind
    ]


log = logging.getLogger(__name__)

_NAME: Final = "pyspark_sluice"

_CONFIGURES: Final = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT")
"""Beginnings of the variables that name a server; the client sets others by itself."""


def report_batch(batch: BatchReport, options: SluiceOptions) -> None:
    """Report a batch as a span that has just ended."""
    # A program with an SDK has loaded it (`opentelemetry-instrument sluice run ...`).
    if "opentelemetry" not in sys.modules:
        return
    from opentelemetry import trace

    end = time.time_ns()
    span = trace.get_tracer(_NAME, version("pyspark-sluice")).start_span(
        "sluice.batch",
        start_time=end - int(batch.seconds * 1e9),
        attributes={
            "sluice.checkpoint": options.checkpoint_location or "",
            "sluice.batch": batch.number,
            "sluice.splits": batch.splits,
            "sluice.rows": batch.rows,
            "sluice.files": batch.files,
            "sluice.bytes": batch.bytes,
        },
    )
    span.end(end)


def report_run(summary: RunSummary, options: SluiceOptions, to: str) -> None:
    """Report a run that has ended to the server that OpenLineage's variables name."""
    if not any(name.startswith(_CONFIGURES) for name in os.environ):
        return
    try:
        from openlineage.client import OpenLineageClient
        from openlineage.client.event_v2 import (
            InputDataset,
            Job,
            OutputDataset,
            Run,
            RunEvent,
            RunState,
        )

        state = RunState.FAIL if summary.end == "failed" else RunState.COMPLETE
        OpenLineageClient().emit(
            RunEvent(
                eventType=state,
                eventTime=datetime.fromtimestamp(summary.ended, UTC).isoformat(),
                run=Run(str(uuid.uuid4())),
                job=Job("sluice", Location.of(options.checkpoint_location or "").url),
                producer=f"{_NAME}/{version('pyspark-sluice')}",
                inputs=[InputDataset(*_dataset(p.base)) for p in loaded_paths(options.path)],
                outputs=[OutputDataset(*_dataset(to))],
            )
        )
    except Exception as error:  # noqa: BLE001 - a run is not its report
        log.warning(
            "OpenLineage did not get the event of a run: %s: %s", type(error).__name__, error
        )


def _dataset(place: str | Location) -> tuple[str, str]:
    """The namespace and the name of a place, as OpenLineage spells them."""
    url = urlsplit(Location.of(place).url)
    if not url.scheme or url.scheme == "file":
        return "file", url.path
    return f"{url.scheme}://{url.netloc}", url.path.strip("/")
