"""`sluice doctor` finds what would keep a query from starting, and leaves nothing behind."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_sluice.checkpoint_meta.stores.open_store import race
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.cli.doctor_checks import tried
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


def test_a_package_that_is_too_old_is_named(capsys, monkeypatch):
    monkeypatch.setattr(
        "importlib.metadata.version", lambda name: "1.0" if name == "xxhash" else "2099"
    )
    packages = looked(capsys, code=1)["packages"]
    assert re.fullmatch(r"xxhash 1\.0, not \d+\.\d+ or newer", packages["found"])


def test_places_that_are_well_are_left_as_they_were(tmp_path, capsys):
    landing = tmp_path / "landing"
    landing.mkdir()
    (landing / "a.json").write_text("{}")
    found = looked(capsys, str(tmp_path / "new" / "ck"), "--path", str(landing))
    looks = ("state from the driver", "files of the path", "java", "packages")
    assert [found[what]["verdict"] for what in looks] == ["ok"] * 4
    assert "/new/ck/sluice/source; 1 of 8" in found["state from the driver"]["found"]
    assert "a.json" in found["files of the path"]["found"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["landing"]
    assert main(["doctor", str(tmp_path)]) == 0
    assert "at a time created it" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["landing"]


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
    options = ("--to", "badRecordsPath", "sourceArchiveDir")
    assert [found[option]["verdict"] for option in options] == ["failed", "ok", "ok"]
    assert "learned that they had created it" in found["--to"]["found"]
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
    assert found["packages"]["verdict"] == "ok"


def leave_out(monkeypatch, *modules):
    for name in modules:
        monkeypatch.setitem(sys.modules, name, None)


def test_a_client_that_is_missing_is_named_with_its_extra(capsys, monkeypatch):
    leave_out(monkeypatch, "obstore")
    found = looked(capsys, "s3://bucket/ck", "--path", "s3a://bucket/in", code=1)
    for what in ("state from the driver", "files of the path"):
        assert found[what]["verdict"] == "failed"
        assert ".[s3]" in found[what]["found"]
    other = looked(capsys, "nosuch://host/ck", code=1)
    assert other["state from the driver"]["verdict"] == "failed"


def test_a_bucket_is_tried_like_a_directory(server, bucket, capsys):
    server.put(bucket, "in/a.json", b"{}")
    options = ["--storage-options", json.dumps(server.options)]
    url = f"s3://{bucket}"
    found = looked(capsys, f"{url}/ck", "--path", f"{url}/in", *options)
    assert [found[what]["verdict"] for what in ("state from the driver", "files of the path")] == [
        *("ok", "ok")
    ]
    assert server.keys(bucket) == ["in/a.json"]
