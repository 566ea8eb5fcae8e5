"""Figures for Prometheus, scraped over HTTP from real queries."""

from __future__ import annotations

import urllib.request

import prometheus_client
import pytest

from pyspark_sluice.connector.session.prometheus import PrometheusListener
from pyspark_sluice.tests.patience import PATIENCE

pytestmark = pytest.mark.spark


def _scraped(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")
    }


def test_a_running_query_s_figures_are_scraped_and_go_with_it(lake, until):
    registry = prometheus_client.CollectorRegistry()
    listener = PrometheusListener(registry)
    server, thread = prometheus_client.start_http_server(0, "127.0.0.1", registry)
    port = server.server_address[1]
    lake.spark.streams.addListener(listener)
    try:
        for i in range(4):
            lake.land(f"{i}.json", range(i * 10, i * 10 + 10))
        writer = lake.frame(maxFilesPerTrigger=2).writeStream.format("noop").queryName("figures")
        query = writer.option("checkpointLocation", str(lake.checkpoint)).start()
        at = '{query="figures",source="0"}'
        try:
            until(lambda: _scraped(port).get(f"sluice_checkpoint{at}") == 2, "second batch", 60)
            found = _scraped(port)
            assert found[f"sluice_files_seen{at}"] == 4
            assert found[f"sluice_splits_outstanding{at}"] == 0
            assert f"sluice_batch_ms{at}" in found
            lake.land("4.json", range(40, 50))
            until(lambda: _scraped(port).get(f"sluice_checkpoint{at}") == 3, "third batch", 60)
            # What a batch has read is counted with the next one, or with the one after that.
            assert _scraped(port)[f"sluice_read_rows{at}"] in (20, 40)
        finally:
            query.stop()
        until(lambda: not _scraped(port), "no figures")
    finally:
        lake.spark.streams.removeListener(listener)
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE)
