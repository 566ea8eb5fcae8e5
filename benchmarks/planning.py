"""How long `latestOffset` takes while a backlog waits: planned ahead, it is a cut and one object.

The real coordinator over a real directory and a real state directory; no Spark, so that nothing
else is in the figure.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.stores.open_store import LocalStateStore, open_store
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings

_BATCHES = 40
_PER_BATCH = 100


def latest_offset_milliseconds(landing: Path) -> tuple[float, float]:
    """(whole call, of which publishing one object of the same size): medians over the batches."""
    given = {"path": str(landing), "checkpointlocation": "/unused", "fileformat": "json"}
    source = FileSource(parse_options(given, streaming=True), pa.schema([("id", pa.int64())]))
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as home:
        settings = CoordinatorSettings(limits=BatchLimits(files=_PER_BATCH), commit_patience=0.0)
        coordinator = Coordinator(source, open_store(f"{home}/state"), settings)
        coordinator.prepare_available_now()
        ref = NO_CHECKPOINT
        calls = []
        for _ in range(_BATCHES):
            began = time.perf_counter()
            ref = coordinator.latest(ref)
            calls.append((time.perf_counter() - began) * 1000)
            # The batch runs meanwhile: the time in which the next one is planned.
            time.sleep(0.05)
        coordinator.close()
        newest = max(Path(home, "state", "checkpoints").iterdir()).read_bytes()
        store = LocalStateStore(f"{home}/peer")
        peers = []
        for number in range(_BATCHES):
            began = time.perf_counter()
            store.publish(f"objects/{number}", newest)
            peers.append((time.perf_counter() - began) * 1000)
    # The first call waits for the first listing.
    return statistics.median(calls[2:]), statistics.median(peers[2:])
