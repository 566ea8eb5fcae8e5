"""What a run tells monitoring: metrics, a log of JSON, spans and events of lineage."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

from pyspark_sluice.connector.session.query_figures import QueryFigures
from pyspark_sluice.tests.connector.session.prometheus_rules import RULES, Scrapes, alerts_of
from pyspark_sluice.tests.patience import wait_until


def samples(text):
    return {
        (sample.name, sample.labels.get("feed")): (sample.value, sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_file_has_the_figures_of_each_feed_also_of_one_that_fails(feeds, tmp_path):
    feeds.land("a", "1.json", 1, 2)
    (feeds.directory("b") / "1.json").write_text("{broken\n")
    assert feeds.run("--metrics-file", str(tmp_path / "sluice.prom"))[0] == 1
    found = samples((tmp_path / "sluice.prom").read_text())
    assert found["sluice_input_rows_total", "a"][0] == 2
    assert found["sluice_failures_total", "a"][0] == 0
    assert found["sluice_failures_total", "b"][0] == 1
    error, labels = found["sluice_last_error_timestamp_seconds", "b"]
    assert labels == {"feed": "b", "query": "b", "error": "MalformedDataError"}
    assert error > found["sluice_last_success_timestamp_seconds", "b"][0]
    assert found["sluice_backlog_splits", "a"][0] == 0
    # It came by a rename: what was written first is gone.
    assert [path.name for path in tmp_path.glob("*.prom*")] == ["sluice.prom"]


def test_a_run_that_never_came_fires_an_alert_and_a_run_that_failed_does_not_hide_it(
    feeds, tmp_path
):
    file = tmp_path / "sluice.prom"
    feeds.land("a", "1.json", 1)
    assert feeds.run("--metrics-file", str(file))[0] == 0
    finished = samples(file.read_text())["sluice_last_finished_timestamp_seconds", "a"][0]
    (feeds.directory("a") / "2.json").write_text("{broken\n")
    assert feeds.run("--metrics-file", str(file))[0] == 1
    assert samples(file.read_text())["sluice_last_finished_timestamp_seconds", "a"][0] == finished
    (alert,) = (each for each in alerts_of(RULES) if each.name == "SluiceRunOverdue")
    scrapes = Scrapes()
    for hours, fires in ((1, []), (3, ["a", "b", "c"])):
        scrapes.scrape(finished + 3600 * hours, file.read_text())
        found = alert.firing(scrapes, finished + 3600 * hours)
        assert sorted(dict(labels)["feed"] for labels in found) == fires


def test_a_file_that_cannot_be_written_stops_no_feed(feeds, tmp_path, caplog):
    feeds.land("a", "1.json", 1)
    assert feeds.run("--metrics-file", str(tmp_path / "nowhere/sluice.prom"))[0] == 0
    assert feeds.ids("a") == [1]
    assert "cannot be written: No such file or directory" in caplog.text


def test_the_names_of_metrics_are_those_of_the_listener(feeds, tmp_path):
    feeds.land("a", "1.json", 1)
    feeds.run("--only", "a", "--metrics-file", str(tmp_path / "sluice.prom"))
    figures = QueryFigures("a", "run", 0.0)
    figures.last_batch = 0.0
    figures.sources = {"0": {"batchSeconds": 1.0}}
    names = {sample.metric for sample in figures.samples(1.0)}
    assert names < {name for name, _ in samples((tmp_path / "sluice.prom").read_text())}


@pytest.mark.slow
def test_a_port_serves_a_running_process_and_is_on_the_loopback_address(feeds):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    feeds.land("a", "1.json", 1)
    with feeds.started("--every", "1s", "--metrics-port", str(port)) as process:
        wait_until(lambda: feeds.ids("a") == [1])
        url = f"http://127.0.0.1:{port}/metrics"

        def scraped():
            with urllib.request.urlopen(url) as answer:
                return samples(answer.read().decode())

        wait_until(lambda: scraped()["sluice_batches_total", "a"][0] == 1)
        assert scraped()["sluice_up", "b"][0] == 1
        listens = Path(f"/proc/{process.pid}/net/tcp").read_text()
        assert f"0100007F:{port:04X}" in listens
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    code, _, errors = feeds.run("--metrics-port", "1", "--metrics-address", "203.0.113.7")
    assert code == 2
    assert "--metrics-port cannot be opened: 203.0.113.7:1" in errors


def test_with_log_format_json_errors_are_documents_too(feeds, tmp_path):
    (feeds.directory("b") / "1.json").write_text("{broken\n")
    call = [sys.executable, "-m", "pyspark_sluice", "run", "--config", str(feeds.file)]
    ended = subprocess.run(
        [*call, "--log-format", "json"], capture_output=True, text=True, check=False
    )
    (line,) = ended.stderr.splitlines()
    document = json.loads(line)
    assert (document["level"], document["sluice_feed"]) == ("error", "b")
    assert document["message"].startswith("MalformedDataError: ")


def test_a_batch_is_a_span_where_the_program_has_loaded_opentelemetry(feeds, monkeypatch):
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    feeds.land("a", "1.json", 1, 2, 3)
    assert feeds.run("--only", "a")[0] == 0
    (span,) = spans.get_finished_spans()
    assert span.name == "sluice.batch"
    assert dict(span.attributes or {})["sluice.rows"] == 3
    assert (span.end_time or 0) > (span.start_time or 0)


def test_a_run_is_an_event_of_openlineage_with_its_input_and_table(feeds):
    events = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self):
            events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_):
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Server)
    Thread(target=server.serve_forever, daemon=True).start()
    os.environ["OPENLINEAGE_URL"] = f"http://127.0.0.1:{server.server_port}"
    feeds.land("a", "1.json", 1)
    assert feeds.run("--only", "a")[0] == 0
    server.shutdown()
    server.server_close()
    # The client sets variables of its own.
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE_")]:
        del os.environ[name]
    (event,) = events
    assert event["eventType"] == "COMPLETE"
    (read,), (written,) = event["inputs"], event["outputs"]
    assert (read["namespace"], read["name"]) == ("file", str(feeds.directory("a")))
    assert (written["namespace"], written["name"]) == ("file", str(feeds.root / "table/a"))
