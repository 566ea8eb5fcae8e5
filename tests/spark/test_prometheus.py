"""Figures for Prometheus, scraped over HTTP from real queries."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import prometheus_client
import pytest

from pyspark_sluice.connector.session.prometheus import PrometheusListener
from pyspark_sluice.tests.patience import PATIENCE, wait_until
from pyspark_sluice.tests.spark.versions import REPORTS

pytestmark = [
    pytest.mark.spark,
    REPORTS,
    pytest.mark.thorough("the figures have tests without Spark"),
]


def _scraped(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")
    }


@pytest.fixture
def port(lake: Any) -> Iterator[int]:
    """Where the figures of the session's queries are."""
    registry = prometheus_client.CollectorRegistry()
    listener = PrometheusListener(registry)
    server, thread = prometheus_client.start_http_server(0, "127.0.0.1", registry)
    lake.spark.streams.addListener(listener)
    yield server.server_address[1]
    lake.spark.streams.removeListener(listener)
    server.shutdown()
    server.server_close()
    thread.join(PATIENCE)


def test_a_running_query_s_figures_are_scraped_and_stay_when_it_has_ended(lake, port):
    for i in range(4):
        lake.land(f"{i}.json", range(i * 10, i * 10 + 10))
    writer = lake.frame(maxFilesPerTrigger=2).writeStream.format("noop").queryName("figures")
    query = writer.option("checkpointLocation", str(lake.checkpoint)).start()
    at, of = '{query="figures",source="0"}', '{query="figures"}'
    try:
        # The checkpoint that a report names can be one ahead of the batch.
        wait_until(lambda: _scraped(port).get(f"sluice_batches_total{of}") == 2, "second batch")
        lake.land("4.json", range(40, 50))
        wait_until(lambda: _scraped(port).get(f"sluice_batches_total{of}") == 3, "third batch")
        found = _scraped(port)
        assert found[f"sluice_files_seen{at}"] == 5
        assert found[f"sluice_backlog_splits{at}"] == 0
        assert found[f"sluice_checkpoint{at}"] >= 2
        assert f"sluice_batch_seconds{at}" in found
        # What a batch has read is counted with the next one, or with the one after that.
        assert found[f"sluice_read_rows_total{at}"] in (20, 40)
        assert found[f"sluice_up{of}"] == 1
        source = json.loads(query.lastProgress.json)["sources"][0]
        assert source["latestOffset"]["path"] == str(lake.source)
        assert source["latestOffset"]["state"] == str(lake.state)
        # If this fails, Spark asks a Python source for its description now: give it one.
        assert ".PythonMicroBatchStream" in source["description"]
        assert "@" in source["description"]
    finally:
        query.stop()
    wait_until(lambda: _scraped(port)[f"sluice_up{of}"] == 0, "the end")
    assert not any(name.startswith("sluice_last_error") for name in _scraped(port))
    assert _scraped(port)[f"sluice_files_seen{at}"] == 5
