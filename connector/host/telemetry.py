"""Reports of a run to others: a span a batch by OpenTelemetry, an event a run by OpenLineage.

Both are off, and cost nothing, unless the program has loaded OpenTelemetry, or the environment
configures OpenLineage.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final
from urllib.parse import urlsplit

from ...checkpoint_meta.documents.run_summary import RunSummary
from ...checkpoint_meta.storage.urls import Location, loaded_paths
from ..options.model import SluiceOptions
from .run_record import BatchReport

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
                inputs=[InputDataset(*each) for each in _inputs(options)],
                outputs=[OutputDataset(*_dataset(to))],
            )
        )
    except Exception as error:  # noqa: BLE001 - a run is not its report
        log.warning(
            "OpenLineage did not get the event of a run: %s: %s", type(error).__name__, error
        )


def _inputs(options: SluiceOptions) -> Sequence[tuple[str, str]]:
    return [_dataset(path.base) for path in loaded_paths(options.path)]


def _dataset(place: str | Location) -> tuple[str, str]:
    """The namespace and the name of a place, as OpenLineage spells them."""
    url = urlsplit(Location.of(place).url)
    if not url.scheme or url.scheme == "file":
        return "file", url.path
    return f"{url.scheme}://{url.netloc}", url.path.strip("/")
