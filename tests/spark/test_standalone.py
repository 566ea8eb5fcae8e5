"""A standalone cluster of one master and two workers, with data and state in S3 on loopback."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pyspark_sluice.tests.patience import output_of
from pyspark_sluice.tests.spark.standalone import BUCKET, standalone

pytestmark = [
    pytest.mark.spark,
    pytest.mark.drivers,
    pytest.mark.thorough("a Spark of its own; test_cluster.py kills an executor on one"),
]

PROGRAM = Path(__file__).parent / "programs" / "standalone_query.py"


def _lines(ids: range) -> bytes:
    return "".join(json.dumps({"id": i, "text": f"row {i}"}) + "\n" for i in ids).encode()


def _run(master: str, home: Path, queries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    command = [sys.executable, str(PROGRAM), master, json.dumps(queries)]
    said = output_of(command, cwd=home, environment=environment)
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


def test_state_is_shared_by_a_cluster_or_the_query_fails_by_name(tmp_path):
    home, landing = tmp_path / "home", tmp_path / "landing"
    for folder in (home, landing):
        folder.mkdir()
    for number in range(6):
        ids = range(number * 10, number * 10 + 10)
        (landing / f"{number}.json").write_bytes(_lines(ids))
    (landing / "bad.json").write_bytes(b'{"id": 1, "te')
    in_s3 = {
        "source": f"s3a://{BUCKET}/in",
        "sink": str(tmp_path / "sink-s3"),
        "checkpoint": str(tmp_path / "checkpoint-s3"),
    }
    # A relative path means something else to every process, and so does this absolute one.
    relative = {"source": str(landing), "sink": str(tmp_path / "sink"), "checkpoint": "relative"}
    elsewhere = {
        "source": str(landing),
        "sink": str(tmp_path / "sink-elsewhere"),
        "checkpoint": "/proc/self/cwd/elsewhere",
    }
    sent_back = {"onSplitError": "return", "maxSplitAttempts": "2", "parallelism": "3"}
    with standalone(tmp_path / "cluster") as (cluster, server):
        for number in range(6):
            ids = range(number * 10, number * 10 + 10)
            server.files.pipe_file(f"{BUCKET}/in/{number}.json", _lines(ids))
        options = {
            "storageOptions": server.storage_options,
            "stateLocation": f"s3a://{BUCKET}/state",
            "maxFilesPerTrigger": "3",
        }
        queries = [
            {**in_s3, "options": options},
            {**relative, "options": sent_back},
            {**elsewhere, "options": sent_back},
        ]
        first, second, third = _run(cluster.url, home, queries)
        kinds = Counter(path.split("/")[3] for path in server.files.find(f"{BUCKET}/state"))
    assert (first["error"], second["error"]) == ("", "")
    assert (kinds["checkpoints"], kinds["epochs"], kinds["abandoned"]) == (2, 1, 0)
    assert kinds["readers"] >= 2
    for query in (in_s3, relative):
        ids = pq.read_table(query["sink"], columns=["id"]).column("id").to_pylist()
        assert Counter(ids) == Counter(range(60))
    # The state is where Spark's own checkpoint is, and the bad file went its way.
    assert (home / "relative" / "offsets" / "0").exists()
    assert list((home / "relative" / "sluice" / "source" / "readers").iterdir())
    assert second["latest"]["abandonedReaders"] == 0
    assert "StateNotSharedError" in third["error"], third["error"]
    assert "this executor does not see the state that the driver writes" in third["error"]
    assert "/proc/self/cwd/elsewhere/sluice/source/checkpoints/" in third["error"]
    assert not (tmp_path / "sink-elsewhere" / "_spark_metadata" / "0").exists()


def test_executors_are_asked_by_doctor_whether_they_share_the_state(tmp_path):
    command = [sys.executable, "-m", "pyspark_sluice", "doctor", str(tmp_path / "ck"), "--spark"]
    findings = json.loads(output_of([*command, "--json"]))["findings"]
    found = {each["what"]: each for each in findings}
    wanted = ("session", "source in Spark", "state from executors")
    assert [found[what]["verdict"] for what in wanted] == ["ok"] * 3
    assert found["state from executors"]["found"].startswith("4 tasks on ")
    assert not (tmp_path / "ck").exists()
