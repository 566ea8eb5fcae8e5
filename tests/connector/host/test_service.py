"""The files of `examples/service`: units, manifest, tasks of schedulers."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib

import pytest
import yaml

from pyspark_sluice.connector.cli.run_arguments import RunArguments
from pyspark_sluice.connector.cli.run_call import call_of
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


@pytest.mark.thorough("installs three schedulers from an index; `make test` reads their tasks")
@pytest.mark.parametrize("name", ["airflow", "dagster", "prefect"])
def test_a_task_reads_new_files_and_is_not_repeated_for_a_person(name):
    call = [sys.executable, str(SERVICE / "try_schedulers.py"), name]
    ended = subprocess.run(call, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
