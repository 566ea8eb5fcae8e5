"""A query with notifications as a program of its own, killed in the second batch that it plans.

It keeps an offset log and a sink that takes each batch once, as Spark does: the offset is durable
before the batch is read, and a batch that is in the log only is read again.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.enumerator.files.discovery.queue import message_receiver, queue_discovery
from pyspark_sluice.tests.connector.queries import Query

VISIBILITY = 2
"""Seconds, so that what a killed process had received soon comes again."""

MOMENTS = ("planned", "logged")
"""Of a batch: before its offset is durable, and before its rows are."""


def main(root: Path, options: dict[str, str], last: str) -> None:
    """Run batches; without a `last` moment, until somebody kills the process."""
    offsets, sink = root / "offsets", root / "sink"
    for place in (offsets, sink):
        place.mkdir(exist_ok=True)
    query = Query(root, **options)
    refs = [pickle.loads(path.read_bytes()) for path in sorted(offsets.glob("[0-9]*"))]
    if refs and not (sink / f"{len(refs):05}").exists():
        query.done = refs[-2] if len(refs) > 1 else NO_CHECKPOINT
        _write(sink / f"{len(refs):05}", json.dumps(query.read(refs[-1])).encode())
    second = len(refs) + 2
    while True:
        query.done = refs[-1] if refs else NO_CHECKPOINT
        refs.append(query.plan())
        number = len(refs)
        ends = last if number == second else ""
        _reached("planned", ends)
        _write(offsets / f"{number:05}", pickle.dumps(refs[-1]))
        _reached("logged", ends)
        _write(sink / f"{number:05}", json.dumps(query.read(refs[-1])).encode())


def ingested(root: Path) -> list[Any]:
    """All ids in the sink."""
    return [one for path in (root / "sink").glob("[0-9]*") for one in json.loads(path.read_bytes())]


def _reached(moment: str, last: str) -> None:
    if moment == last:
        # Meanwhile its threads receive, and would delete what must stay.
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)


def _write(path: Path, data: bytes) -> None:
    hidden = path.with_name(f".{path.name}")
    hidden.write_bytes(data)
    os.replace(hidden, path)


if __name__ == "__main__":
    short = partial(queue_discovery.Queues, visibility=VISIBILITY)
    with (
        mock.patch.object(queue_discovery, "Queues", short),
        mock.patch.object(message_receiver, "SHORT_POLL", 0),
    ):
        main(Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3])
