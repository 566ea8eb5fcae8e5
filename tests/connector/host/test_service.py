"""The files of `examples/service`: units, manifest, tasks of schedulers."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import tomllib

import pytest
import yaml

from pyspark_sluice.connector.cli.run_arguments import RunArguments
from pyspark_sluice.connector.cli.run_call import call_of
from pyspark_sluice.tables import delta
from pyspark_sluice.tests.connector.host.feeds import Feeds
from pyspark_sluice.tests.repository import ROOT

SERVICE = ROOT / "examples/service"


def test_the_feeds_of_the_example_have_nothing_wrong():
    text = (SERVICE / "sluice.toml").read_text()
    call = call_of(RunArguments(config=str(SERVICE / "sluice.toml")))
    assert list(call.feeds) == list(tomllib.loads(text)["feed"])


def test_the_manifest_runs_the_image_without_root_and_knows_the_exit_codes():
    manifest = yaml.safe_load((SERVICE / "cronjob.yaml").read_text())
    job = manifest["spec"]["jobTemplate"]["spec"]
    image = (SERVICE / "Containerfile").read_text()
    assert f"USER {job['template']['spec']['securityContext']['runAsUser']}" in image
    rules = job["podFailurePolicy"]["rules"]
    codes = {rule["action"]: rule["onExitCodes"]["values"] for rule in rules}
    assert codes == {"Ignore": [75], "FailJob": [1, 2]}
    # The policy is valid with this one only.
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    assert job["template"]["spec"]["containers"][0]["args"][0] == "run"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_finds_nothing_wrong_in_the_units(tmp_path):
    for unit in ("sluice.service", "sluice.timer"):
        text = (SERVICE / unit).read_text()
        # A program that is here.
        (tmp_path / unit).write_text(text.replace("/opt/sluice/bin/sluice", sys.executable))
    call = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "sluice.timer")]
    ended = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (ended.returncode, "sluice" in ended.stderr) == (0, False), ended.stderr


@pytest.mark.slow
def test_a_store_that_takes_connections_and_never_answers_is_given_up_within_a_minute(tmp_path):
    feeds = Feeds(tmp_path, "input", "state", "table")
    for name in feeds.names:
        feeds.land(name, "0.json", 1)
    # A kernel takes connections of which a program knows nothing.
    with socket.create_server(("127.0.0.1", 0), backlog=200) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        keys = {"endpoint": endpoint, "key": "k", "secret": "s", "region": "us-east-1"}
        text = feeds.file.read_text()
        for name, here, there in (
            ("input", 'path = "in/input"', 'path = "s3://bucket/in"'),
            ("state", 'checkpoint = "checkpoint/state"', 'checkpoint = "s3://bucket/state"'),
            ("table", 'to = "delta:table/table"', 'to = "delta:s3://bucket/table"'),
        ):
            text = text.replace(here, there)
            text += f"\n[feed.{name}.options]\nstorageOptions = '{json.dumps(keys)}'\n"
        feeds.file.write_text(text)
        began = time.monotonic()
        with feeds.started() as process:
            # After its check of the place a table is asked by delta-rs.
            with pytest.raises(OSError, match="Generic S3 error"):
                delta("s3://bucket/table", storage_options=keys).identity()
            _, errors = process.communicate(timeout=60)
        assert time.monotonic() - began < 60
    assert process.returncode == 75, errors
    for name, place in (("input", "in"), ("state", "state"), ("table", "table")):
        lines = [line for line in errors.splitlines() if line.startswith(f"{name}: ")]
        assert any(f"s3://bucket/{place}" in line for line in lines), errors
        assert feeds.ids(name) == []


@pytest.mark.thorough("installs three schedulers from an index; `make test` reads their tasks")
@pytest.mark.parametrize("name", ["airflow", "dagster", "prefect"])
def test_a_task_reads_new_files_and_is_not_repeated_for_a_person(name):
    call = [sys.executable, str(SERVICE / "try_schedulers.py"), name]
    ended = subprocess.run(call, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
