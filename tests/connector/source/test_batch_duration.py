"""maxBatchDuration on a slow bucket: no reader reads for much longer, and no batch is empty."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import S3Server, as_json
from pyspark_sluice.tests.connector.stream import Stream

# Other figures are for measuring: SLUICE_SLOW_BUCKET="50 5" has 50 batches of 5 seconds.
BATCHES, SECONDS = map(int, os.environ.get("SLUICE_SLOW_BUCKET", "6 2").split())
BYTES_PER_SECOND = 1024 * 1024
"""Of each connection."""

CHUNK = 16 * 1024


def throttled(server: S3Server) -> Callable[..., Iterable[bytes] | None]:
    """Answer requests for data so that their bytes come slowly."""

    def answer(environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes] | None:
        if server.kind_of(environ) != "GET":
            return None
        body = b"".join(server._served(environ, respond))

        def slowly() -> Iterator[bytes]:
            for first in range(0, len(body), CHUNK):
                time.sleep(CHUNK / BYTES_PER_SECOND)
                yield body[first : first + CHUNK]

        return slowly()

    return answer


@pytest.mark.thorough("fifteen seconds of waiting for a slow bucket")
def test_no_reader_reads_for_much_longer_than_the_limit_on_a_slow_bucket(
    server, bucket, tmp_path, record_property
):
    lines = [json.dumps({"id": 10**12 + i}) for i in range(3 * SECONDS * BYTES_PER_SECOND // 23)]
    for number in range(BATCHES):
        server.put(bucket, f"in/{number}.json", "\n".join(lines).encode())
    options = {
        "path": f"s3a://{bucket}/in",
        "storageOptions": as_json(server.options),
        "maxBatchDuration": f"{SECONDS}s",
        "parallelism": "2",
    }
    stream = Stream(tmp_path, options)
    seconds, sizes = list[float](), list[int]()

    def read(partition: Any) -> int:
        began = time.monotonic()
        rows = sum(batch.num_rows for batch in stream.reader.read(partition))
        seconds.append(time.monotonic() - began)
        return rows

    server.fault = throttled(server)
    try:
        with ThreadPoolExecutor(2) as pool:
            while len(sizes) < BATCHES:
                end, partitions = stream.plan()
                if partitions:
                    sizes.append(sum(pool.map(read, partitions)))
                    stream.reader.commit(end)
                    stream.at = end
    finally:
        server.fault = None
    figures = {"longest": max(seconds), "shortest": min(seconds), "parts": len(seconds)}
    record_property("seconds of reading", figures)
    print(figures, sizes)
    # A file alone takes a reader three times as long.
    assert max(seconds) < 2 * SECONDS, figures
    assert all(sizes)
