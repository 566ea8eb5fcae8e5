"""Incidents of the page: each is made, its message met, its commands run, and rows are right."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pyspark_sluice.tests.connector.host.night import Night, sections
from pyspark_sluice.tests.patience import wait_until
from pyspark_sluice.tests.repository import ROOT

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs/incidents.md"
CALL = "sluice run landing --to delta:orders --checkpoint checkpoint"
SEMICOLONS = f"{CALL} --format csv --option header=true"
UTC = f'{CALL} --format csv --schema "id long, at timestamp" --option timeZone=UTC'


SECTIONS = sections(PAGE)


@pytest.fixture
def night(tmp_path):
    return Night(tmp_path)


def _section(heading):
    section = SECTIONS[heading]
    commands = section["sh"].replace("\\\n", " ").strip()
    assert len(commands.splitlines()) <= 2
    return section.get("text", ""), commands


def test_there_are_ten_incidents_and_each_has_a_test():
    tested = set(re.findall(r'_section\("(.+?)"\)', Path(__file__).read_text(encoding="utf-8")))
    assert len(SECTIONS) == 10
    assert tested == set(SECTIONS)


def test_a_column_changes_its_type(night):
    message, commands = _section("A column changes its type")
    night.put("orders-1.json", {"id": 1, "amount": 12})
    night.works(CALL)
    night.put("orders-2.json", {"id": 2, "amount": "12.5 EUR"})
    night.fails(CALL, message)
    night.works(commands)
    assert night.rows() == [
        {"id": 1, "amount": 12, "_rescued": None},
        {"id": 2, "amount": None, "_rescued": '{"amount":"12.5 EUR"}'},
    ]


def test_a_partition_column_is_forgotten(night):
    message, commands = _section("A partition column is forgotten")
    first = pa.table({"id": [1], "day": ["a"]})
    write_deltalake(str(night.home / "orders"), first, partition_by=["day"])
    night.put("orders-2.json", {"id": 2, "day": "b"})
    night.fails(CALL, message)
    night.works(commands)
    assert night.rows() == [{"id": 1, "day": "a"}, {"id": 2, "day": "b"}]


def test_somebody_removes_the_file(night):
    message, commands = _section("Somebody removes the file")
    night.put("orders-1.json", {"id": 1})
    night.works(CALL)
    night.put("orders-2.json", "oops")
    night.put("orders-3.json", {"id": 3})
    night.fails(CALL, "MalformedDataError")
    (night.home / "landing/orders-2.json").unlink()
    night.fails(CALL, message)
    night.works(commands)
    assert night.rows() == [{"id": 1}, {"id": 3}]


def test_the_disk_is_full(night):
    message, commands = _section("The disk is full")
    night.put("orders-1.json", *({"id": n, "text": os.urandom(60).hex()} for n in range(9000)))
    (night.home / "disk").mkdir()
    call = CALL.replace("delta:orders", "delta:disk/orders")
    script = f"""
        mount -t tmpfs -o size=2m tmpfs disk || exit 77
        head -c 1900k /dev/zero > disk/old-exports
        {call} && exit 78
        {commands}
        python -c 'from deltalake import DeltaTable; print(DeltaTable("disk/orders").count(), "in")'
    """
    (night.home / "script").write_text(script)
    code, output = night.shell("unshare -rm bash script")
    if code in (1, 77) and "ENOSPC" not in output:
        pytest.skip("no file system can be mounted here")
    night.says(output, message)
    assert (code, "9000 in" in output) == (0, True), output


def test_a_key_has_expired(night, server, bucket):
    message, commands = _section("A key has expired")
    server.put(bucket, "landing/orders-1.json", b'{"id": 1}\n')
    night.environment |= {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": "old",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }
    commands = commands.replace("my-lake", bucket)
    expired = server.refuse("400 Bad Request", "ExpiredToken")

    def answer(environ, respond):
        is_old = "Credential=old/" in environ.get("HTTP_AUTHORIZATION", "")
        return expired(environ, respond) if is_old else None

    server.fault = answer
    try:
        night.fails(commands.splitlines()[1], message)
        night.works(commands)
    finally:
        server.fault = None
    assert night.rows() == [{"id": 1}]


def test_a_daemon_is_fenced(night):
    message, commands = _section("A daemon is fenced")
    night.put("orders-1.json", {"id": 1})
    log = night.home / "log"
    with log.open("w") as file:
        daemon = subprocess.Popen(
            [sys.executable, "-m", "pyspark_sluice", *CALL.split()[1:], "--every", "1s"],
            cwd=night.home,
            stdout=file,
            stderr=file,
        )
        wait_until(lambda: "batch 0" in log.read_text(), "a batch", 60)
        night.put("orders-2.json", {"id": 2})
        night.works(f"{CALL} --take-over")
        assert daemon.wait(60) == 75
    night.says(log.read_text(), message)
    night.put("orders-3.json", {"id": 3})
    night.works(commands)
    assert night.rows() == [{"id": 1}, {"id": 2}, {"id": 3}]


def test_an_archive_is_broken(night):
    message, commands = _section("An archive is broken")
    night.put("orders-1.json", {"id": 1})
    night.works(CALL)
    night.put("orders-2.zip", "PK\x03\x04 cut off")
    night.put("orders-3.json", {"id": 3})
    night.fails(CALL, message)
    code, output = night.shell(commands)
    assert (code, "1 split in quarantine" in output) == (0, True), output
    assert night.rows() == [{"id": 1}, {"id": 3}]
    (night.home / "landing/orders-2.json").write_text('{"id": 2}\n')
    shutil.make_archive(str(night.home / "whole"), "zip", night.home / "landing", "orders-2.json")
    (night.home / "landing/orders-2.json").unlink()
    (night.home / "whole.zip").rename(night.home / "landing/orders-2.zip")
    (again,) = re.findall(r"`(sluice requeue [^`]+)`", PAGE.read_text(encoding="utf-8"))
    night.works(f"{again}\n{CALL}")
    assert night.rows() == [{"id": 1}, {"id": 2}, {"id": 3}]


def test_a_file_has_another_separator(night):
    message, commands = _section("A file has another separator")
    night.put("orders-1.csv", "id,amount", "1,12")
    night.works(SEMICOLONS)
    night.put("orders-2.csv", "id;amount", "2;13")
    night.fails(SEMICOLONS, message)
    night.works(commands)
    assert night.rows() == [{"id": 1, "amount": 12}, {"id": 2, "amount": 13}]


def test_the_table_is_another_one(night):
    message, commands = _section("The table is another one")
    night.put("orders-1.json", {"id": 1})
    night.works(CALL)
    night.put("orders-2.json", {"id": 2})
    night.fails(CALL.replace("orders", "oders"), message)
    assert not (night.home / "oders").exists()
    night.works(commands)
    assert night.rows() == [{"id": 1}, {"id": 2}]


def test_the_time_zone_was_wrong(night):
    _, commands = _section("The time zone was wrong for three days")
    for day in (1, 2, 3):
        night.put(f"orders-{day}.csv", f"{day},2026-03-0{day} 08:00:00")
        night.works(UTC)
    assert {row["at"].hour for row in night.rows()} == {8}
    night.works(commands)
    assert [(row["id"], row["at"].hour) for row in night.rows("orders-berlin")] == [
        (day, 7) for day in (1, 2, 3)
    ]
