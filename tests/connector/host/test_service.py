"""The files of `examples/service`: units, manifest, tasks of schedulers."""

import configparser
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
import yaml

from pyspark_sluice.connector.cli.commands.run import call_of
from pyspark_sluice.connector.cli.run_arguments import RunArguments
from pyspark_sluice.tables import delta
from pyspark_sluice.tests.connector.host.feeds import Feeds
from pyspark_sluice.tests.repository import ROOT

SERVICE = ROOT / "examples/service"


def test_the_feeds_of_the_example_have_nothing_wrong():
    text = (SERVICE / "sluice.toml").read_text()
    call = call_of(RunArguments(config=str(SERVICE / "sluice.toml")))
    assert list(call.feeds) == list(tomllib.loads(text)["feed"])


def test_the_manifest_runs_the_image_without_root_and_knows_the_exit_codes():
    _, manifest = yaml.safe_load_all((SERVICE / "cronjob.yaml").read_text())
    job = manifest["spec"]["jobTemplate"]["spec"]
    image = (SERVICE / "Containerfile").read_text()
    assert f"USER {job['template']['spec']['securityContext']['runAsUser']}" in image
    rules = job["podFailurePolicy"]["rules"]
    codes = {rule["action"]: rule["onExitCodes"]["values"] for rule in rules}
    assert codes == {"Ignore": [75], "FailJob": [1, 2]}
    # The policy is valid with this one only.
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    assert job["template"]["spec"]["containers"][0]["args"][0] == "run"


def test_the_feeds_of_the_manifest_have_nothing_wrong_and_their_secrets_are_mounted(tmp_path):
    config, manifest = yaml.safe_load_all((SERVICE / "cronjob.yaml").read_text())
    (container,) = manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    text = config["data"]["sluice.toml"]
    for name in re.findall(rf'"{mounts["secrets"]}/(.+)"', text):
        (tmp_path / name).write_text("a mounted secret\n")
    (tmp_path / "sluice.toml").write_text(text.replace(mounts["secrets"], str(tmp_path)))
    feed = call_of(RunArguments(config=str(tmp_path / "sluice.toml"))).feeds["orders"]
    assert feed.options["storageOptions"] == {
        "aws_access_key_id": "a mounted secret",
        "aws_secret_access_key": "a mounted secret",
    }
    assert container["args"][-1] == f"{mounts['config']}/sluice.toml"


@pytest.mark.parametrize(("code", "is_mailed"), [(0, False), (75, False), (1, True), (2, True)])
def test_cron_mails_the_end_of_the_log_if_a_person_is_needed(tmp_path, code, is_mailed):
    *_, line = (SERVICE / "sluice.cron").read_text().splitlines()
    *_, user, command = line.split(maxsplit=6)
    assert user == "sluice"
    # In place of the program, one that ends with this code.
    program = tmp_path / "sluice"
    program.write_text(f"#!/bin/sh\necho $* ended with {code}\nexit {code}\n")
    program.chmod(0o755)
    log = tmp_path / "run.log"
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(log)}
    call = ["/bin/sh", "-c", command]
    ended = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
    said = f"run --config /etc/sluice/sluice.toml ended with {code}\n"
    assert log.read_text() == said
    assert (ended.stdout, ended.stderr) == (said if is_mailed else "", "")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
@pytest.mark.parametrize("unit", ["sluice.timer", "sluice-daemon.service"])
def test_systemd_finds_nothing_wrong_in_the_units(tmp_path, unit):
    for path in [*SERVICE.glob("*.service"), *SERVICE.glob("*.timer")]:
        # A program that is here.
        text = path.read_text().replace("/opt/sluice/bin/sluice", sys.executable)
        (tmp_path / path.name).write_text(text)
    failed = tmp_path / "sluice-failed@sluice.service.service"
    call = ["systemd-analyze", "verify", "--man=no", str(tmp_path / unit), str(failed)]
    ended = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (ended.returncode, "sluice" in ended.stderr) == (0, False), ended.stderr


def test_a_process_that_stays_is_started_again_after_75_and_a_person_is_called_after_1_and_2():
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(SERVICE / "sluice-daemon.service")
    service = unit["Service"]
    assert (service["Restart"], service["RestartPreventExitStatus"]) == ("on-failure", "1 2")
    # A code of success is none of failure, and nothing would start the process again.
    assert "SuccessExitStatus" not in service
    assert unit["Unit"]["OnFailure"] == "sluice-failed@%n.service"


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_a_unit_that_fails_sends_the_end_of_its_journal(tmp_path):
    unit = (SERVICE / "sluice-failed@.service").read_text()
    (command,) = re.findall(r"(?m)^ExecStart=/bin/sh -c '(.+)'$", unit)
    command = command.replace("%i", "sluice.service").replace("$$", "$")
    # In place of the program, which needs a journal.
    program = tmp_path / "journalctl"
    program.write_text("#!/bin/sh\necho $*\n")
    program.chmod(0o755)
    sent = []

    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self):
            sent.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Webhook) as server:
        Thread(target=server.handle_request, daemon=True).start()
        environment = {
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "ALERT_URL": f"http://127.0.0.1:{server.server_port}",
        }
        subprocess.run(["/bin/sh", "-c", command], env=environment, check=True, timeout=60)
    assert sent == ["--unit=sluice.service --lines=20 --no-pager\n"]


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
