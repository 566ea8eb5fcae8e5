"""How long a trigger takes on a slow state store, by the number of checkpoints that may wait.

First the coordinator, driven as Spark drives it: 200 batches of 50 ms each, one file a batch, on a
store whose every write of a checkpoint takes 100 ms. Then 200 batches of Spark's, with state in a
bucket on loopback whose writes of checkpoints are held up for as long.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from typing_extensions import override

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.layout import CHECKPOINTS
from pyspark_sluice.checkpoint_meta.documents.reader_assignment import readers_of
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommit, ReaderCommits
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings

from .bench import Bench, Result
from .flight import batch_milliseconds, bucket_state, loopback_bucket

BATCHES, BATCH_SECONDS, WRITE_SECONDS = 200, 0.05, 0.1


class _SlowStore(MemoryStateStore):
    @override
    def publish(self, name: str, data: bytes) -> None:
        if name.startswith(CHECKPOINTS):
            time.sleep(WRITE_SECONDS)
        super().publish(name, data)


def ahead(bench: Bench) -> Iterator[Result]:
    """200 batches on a store that takes 100 ms to write, with 0 to 4 checkpoints ahead."""
    yield from _by_the_coordinator()
    with loopback_bucket() as options, _held_up(options) as slower:
        found = {}
        for waiting in (0, 1, 2, 4):
            state = bucket_state(slower, f"ahead-{waiting}")
            more = {**state, "checkpointsAhead": str(waiting)}
            found[waiting] = batch_milliseconds(bench.spark, more)["triggerExecution"]
    for waiting in (1, 2, 4):
        work = f"a trigger of Spark's, checkpointsAhead={waiting}"
        yield Result(work, found[waiting], found[0], "ms", "checkpointsAhead=0")


def _by_the_coordinator() -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as landing:
        for number in range(BATCHES):
            (Path(landing) / f"{number:04}.json").write_text('{"id": 1}\n', encoding="utf-8")
        on_request = _trigger_seconds(landing, 0)
        for waiting in (1, 2, 4):
            yield Result(
                f"a trigger of a 50 ms batch, checkpointsAhead={waiting}",
                _trigger_seconds(landing, waiting) * 1000,
                on_request * 1000,
                "ms",
                "checkpointsAhead=0",
            )


@contextmanager
def _held_up(options: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Storage options of the same bucket, behind a proxy that holds up writes of checkpoints."""
    client = options["client_kwargs"]
    there = urlsplit(client["endpoint_url"])

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _passed_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.command == "PUT" and f"/{CHECKPOINTS}/" in self.path:
                time.sleep(WRITE_SECONDS)
            passed_on = HTTPConnection(there.hostname or "", there.port)
            passed_on.request(self.command, self.path, body, dict(self.headers.items()))
            answer = passed_on.getresponse()
            data = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                    self.send_header(name, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else len(data)
            self.send_header("Content-Length", str(length or 0))
            self.end_headers()
            self.wfile.write(data)
            passed_on.close()

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _passed_on  # noqa: N815 - http.server's names

        @override
        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_port}"
        yield {**options, "client_kwargs": {**client, "endpoint_url": endpoint}}
    finally:
        server.shutdown()
        server.server_close()


def _trigger_seconds(landing: str, waiting: int) -> float:
    options = parse_options({"path": landing, "fileFormat": "json"}, streaming=False)
    store = _SlowStore()
    source = FileSource(options, pa.schema([("id", pa.int64())]))
    settings = CoordinatorSettings(
        BatchLimits(files=1), parallelism=1, checkpoints_ahead=waiting, commit_patience=0.0
    )
    coordinator = Coordinator(source, store, settings)
    coordinator.prepare_available_now()
    before, ref = NO_CHECKPOINT, coordinator.latest(NO_CHECKPOINT)
    commits, seconds = ReaderCommits(store), list[float]()
    while True:
        began = time.monotonic()
        (checkpoint,) = coordinator.assignments(before, ref)
        time.sleep(BATCH_SECONDS)
        for reader in readers_of(checkpoint):
            zeros = [0] * checkpoint.header.assigned_splits
            commits.publish(
                ReaderCommit(
                    checkpoint=ref.checkpoint, epoch=ref.epoch, reader=reader, attempt=0,
                    rows=zeros, input_bytes=zeros, microseconds=zeros,
                )
            )  # fmt: skip
        following = coordinator.latest(ref)
        if following == ref:
            coordinator.close()
            return median(seconds)
        seconds.append(time.monotonic() - began)
        before, ref = ref, following
