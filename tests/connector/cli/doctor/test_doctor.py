"""`sluice doctor` finds what would keep a query from starting, and leaves nothing behind."""

from __future__ import annotations

import configparser
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_sluice.checkpoint_meta.storage.providers import BY_SCHEME
from pyspark_sluice.checkpoint_meta.stores.exclusive_creates import race
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.cli.doctor.interpreters import _LEAST
from pyspark_sluice.connector.cli.doctor.storage import tried
from pyspark_sluice.enumerator.files.discovery.queue.queue_discovery import QUEUES
from pyspark_sluice.tests.connector.cli.command_line import run

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(autouse=True)
def java(tmp_path_factory, monkeypatch):
    """What the machine has: some Java that says its release."""
    home = tmp_path_factory.mktemp("jdk")
    made = java_home(home, "echo 'openjdk version \"17.0.1\" 2021-10-19' >&2")
    monkeypatch.setenv("JAVA_HOME", made)


def java_home(home, script):
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(f"#!/bin/sh\n{script}\n")
    (home / "bin" / "java").chmod(0o755)
    return str(home)


def looked(capsys, *arguments, code=0):
    report = run(capsys, "doctor", *arguments, code=code)
    assert report["failed"] == sum(each["verdict"] == "failed" for each in report["findings"])
    return {each["what"]: each for each in report["findings"]}


def in_a_process(*arguments, before="", **environment):
    program = (
        f"{before}\nimport sys\nfrom pyspark_sluice.connector.cli.app import main\n"
        f"sys.exit(main(['doctor', '--json', *{list(arguments)!r}]))"
    )
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=False, env={**surroundings, **environment},
    )  # fmt: skip
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert done.returncode == (1 if report["failed"] else 0)
    return {each["what"]: each for each in report["findings"]}


def test_what_is_expected_is_what_the_package_asks_for():
    packaging = configparser.ConfigParser()
    packaging.read(ROOT / "setup.cfg")
    needed = packaging["options"]["install_requires"]
    lines = (needed + packaging["options.extras_require"]["spark"]).split("\n")
    limits = [line.strip().split(",")[0] for line in lines if ">=" in line and "#" not in line]
    asked = dict(limit.split(">=") for limit in limits)
    # What the command that is running has imported already.
    for name in ("typing_extensions", "typer", "rich"):
        del asked[name]
    assert asked == _LEAST


def test_places_that_are_well_are_left_as_they_were(tmp_path, capsys):
    landing = tmp_path / "landing"
    landing.mkdir()
    (landing / "a.json").write_text("{}")
    found = looked(capsys, str(tmp_path / "new" / "ck"), "--path", str(landing))
    looks = ("state from the driver", "create only once, from the driver", "files of the path")
    assert [found[what]["verdict"] for what in looks] == ["ok"] * 3
    assert found["java"]["verdict"] == found["pyarrow"]["verdict"] == "ok"
    assert found["state from the driver"]["found"].endswith("/new/ck/sluice/source")
    assert "a.json" in found["files of the path"]["found"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["landing"]
    assert main(["doctor", str(tmp_path)]) == 0
    assert "create only once" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["landing"]


@pytest.mark.slow
def test_each_place_of_the_call_is_tried(tmp_path, capsys, server, bucket):
    def ignore(environ, respond):
        # Old gateways do so; here only in one of the places.
        if f"/{bucket}/table" in environ["PATH_INFO"]:
            environ.pop("HTTP_IF_NONE_MATCH", None)

    server.fault = ignore
    places = ["--to", f"delta:s3://{bucket}/table", "--option", f"badRecordsPath=s3://{bucket}/bad"]
    archive = ["--option", f"sourceArchiveDir={tmp_path / 'old'}"]
    storage = ["--storage-options", json.dumps(server.options)]
    found = looked(capsys, str(tmp_path / "ck"), *places, *archive, *storage, code=1)
    verdicts = {
        option: (found[option]["verdict"], found[f"{option}: create only once"]["verdict"])
        for option in ("--to", "badRecordsPath", "sourceArchiveDir")
    }
    well = ("ok", "ok")
    assert verdicts == {
        "--to": ("ok", "failed"), "badRecordsPath": well, "sourceArchiveDir": well
    }  # fmt: skip
    assert server.keys(bucket) == []
    assert list(tmp_path.iterdir()) == []


def test_places_that_are_ill_are_named_with_the_way_out(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    found = looked(capsys, str(tmp_path / "file"), "--path", str(tmp_path / "none"), code=1)
    state, path = found["state from the driver"], found["files of the path"]
    assert (state["verdict"], path["verdict"]) == ("failed", "failed")
    assert "stateLocation" in state["way_out"]
    assert str(tmp_path / "none") in path["found"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert looked(capsys, "--path", str(empty))["files of the path"]["verdict"] == "warning"
    assert main(["doctor", str(tmp_path / "file")]) == 1
    assert "fix:" in capsys.readouterr().out
    assert main(["doctor", "--option", "nonsense"]) == 2
    assert "NAME=VALUE" in capsys.readouterr().err


def test_a_store_that_lets_an_object_be_created_twice_is_found():
    class Careless(MemoryStateStore):
        def publish(self, name, data):
            self.objects[name] = data

    class Forgetful(MemoryStateStore):
        def list(self, directory):
            return []

    class Top(MemoryStateStore):
        def list(self, directory):
            return sorted(self.objects)

    assert "1 of 8" in race(MemoryStateStore())
    assert "written" in tried(Top())
    with pytest.raises(AssertionError, match="8 of 8 learned that they had created it"):
        race(Careless())
    with pytest.raises(AssertionError, match="a listing does not show it"):
        tried(Forgetful())


@pytest.mark.parametrize(
    ("script", "verdict"),
    [
        ("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "failed"),
        ("echo 'java version \"1.8.0_402\"' >&2", "failed"),
        ("echo 'openjdk version \"21\" 2023-09-19' >&2", "ok"),
        ("exit 3", "failed"),
    ],
)
def test_the_release_of_java_is_looked_at(tmp_path, capsys, monkeypatch, script, verdict):
    monkeypatch.setenv("JAVA_HOME", java_home(tmp_path / "java", script))
    code = 1 if verdict == "failed" else 0
    assert looked(capsys, code=code)["java"]["verdict"] == verdict
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    assert looked(capsys, code=1)["java"]["verdict"] == "failed"


@pytest.mark.thorough("makes an environment")
@pytest.mark.slow
def test_the_interpreter_that_spark_starts_is_asked_what_it_has(tmp_path):
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    python = str(bare / "bin" / "python")
    found = in_a_process(PYSPARK_PYTHON=python)["python of Spark"]
    assert found["verdict"] == "failed"
    assert "No module named 'pyspark_sluice'" in found["found"]
    assert "PYSPARK_PYTHON" in found["way_out"]
    # The package is there, and Spark is not.
    away = in_a_process(PYSPARK_PYTHON=python, PYTHONPATH=str(ROOT / ".venv" / "typing"))
    if (ROOT / ".venv" / "typing" / "pyspark_sluice").exists():
        assert "No module named 'pyspark'" in away["python of Spark"]["found"]
    gone = in_a_process(PYSPARK_DRIVER_PYTHON=str(tmp_path / "none"))["python of Spark"]
    assert gone["verdict"] == "failed"
    assert "cannot be run" in gone["found"]
    # Nothing is named: the program's own, and what others would come by.
    shadow = tmp_path / "path"
    shadow.mkdir()
    (shadow / "python3").symlink_to(python)
    found = in_a_process(PATH=f"{shadow}:{os.environ['PATH']}")
    assert found["python of Spark"]["verdict"] != "failed"
    assert found["python3 of the PATH"]["verdict"] == "warning"


@pytest.mark.slow
def test_it_starts_where_spark_is_not_installed_well(tmp_path):
    found = in_a_process(before="import sys; sys.modules['pyspark'] = None")
    assert found["python"]["verdict"] == "ok"
    assert "pyspark" in found


def leave_out(monkeypatch, *modules):
    for name in modules:
        monkeypatch.setitem(sys.modules, name, None)


def test_the_client_of_a_queue_is_looked_for_by_the_kind_of_the_queue(capsys, monkeypatch):
    pytest.importorskip("azure.storage.queue")
    azure, amazon = "https://a.queue.core.windows.net/q", "https://sqs.eu-west-1.amazonaws.com/1/q"
    google = "https://pubsub.googleapis.com/v1/projects/p/subscriptions/s"
    paths = {"s3": "s3://bucket/in", "abfs": "abfss://c@a.dfs.core.windows.net/in"}
    paths["gs"] = "gs://bucket/in"
    assert paths.keys() == QUEUES.keys()
    cases = [(path, "", kind) for kind, path in paths.items()]
    cases += [("", amazon, "s3"), ("", azure, "abfs"), ("", google, "gs")]
    missing = {"s3": "boto3", "abfs": "azure.identity", "gs": "google.pubsub_v1"}
    # Without its client no place is looked at.
    leave_out(monkeypatch, "obstore", *missing.values())
    for path, url, kind in cases:
        given = ["--option", "discoveryMode=notifications", "--option", f"queueUrl={url}"]
        place = ["--path", path] if path else []
        found = looked(capsys, *place, *given, code=1)["discoveryMode=notifications"]
        assert found["found"] == f"not installed: {missing[kind]}", (path, url)
        assert f"[{BY_SCHEME[kind].extra}]" in found["way_out"]


def test_packages_that_places_and_options_need_are_looked_for(capsys, monkeypatch):
    leave_out(monkeypatch, "obstore", "fastavro")
    places = ["s3://bucket/ck", "--path", "s3a://bucket/in"]
    found = looked(capsys, *places, "--option", "fileFormat=avro", code=1)
    client = found["client for s3://"]
    assert (client["verdict"], client["found"]) == ("failed", "not installed: obstore")
    assert ".[s3]" in client["way_out"]
    assert ".[avro]" in found["fileFormat=avro"]["way_out"]
    # What cannot work is not tried.
    assert "state from the driver" not in found
    other = looked(capsys, "nosuch://host/ck", code=1)
    assert other["client for nosuch://"]["verdict"] == "failed"
    other = looked(capsys, "webhdfs://host/ck", code=1)
    assert other["state from the driver"]["verdict"] == "failed"


def test_a_bucket_is_tried_like_a_directory(server, bucket, capsys):
    server.put(bucket, "in/a.json", b"{}")
    options = ["--storage-options", json.dumps(server.options)]
    url = f"s3://{bucket}"
    found = looked(capsys, f"{url}/ck", "--path", f"{url}/in", *options)
    looks = ("client for s3://", "state from the driver", "create only once, from the driver")
    assert [found[what]["verdict"] for what in (*looks, "files of the path")] == ["ok"] * 4
    assert server.keys(bucket) == ["in/a.json"]
