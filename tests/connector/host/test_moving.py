"""Stories of the page on moving: its messages are met, and its commands run as they are there."""

import re
import shutil
import subprocess
import sys

import pytest

from pyspark_sluice.tests.connector.host.night import Night, sections
from pyspark_sluice.tests.patience import wait_until
from pyspark_sluice.tests.repository import ROOT

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs/moving.md"
SECTIONS = sections(PAGE)
CALL = "sluice run landing --to delta:orders --checkpoint cp"
MESSAGES = [
    message
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and "`sluice run` says" not in line
    for message in re.findall(r"^\| [^|]+ \| `([^`]+)`", line)
]


def refused(night, call, message):
    assert message in MESSAGES
    code, output = night.shell(call)
    assert code, output
    night.says(output, message)


def commands(heading):
    """The blocks of a section, each without its comments."""
    return SECTIONS[heading]["sh"].strip().split("\n\n")


def ids(night, table="orders"):
    return [row["id"] for row in night.rows(table)]


@pytest.fixture
def night(tmp_path):
    night = Night(tmp_path)
    night.put("1.json", {"id": 1})
    night.works(CALL)
    return night


def test_the_input_was_moved(night):
    (moved,) = commands("The input was moved")
    (night.home / "archive-disk").mkdir()
    (night.home / "link").symlink_to(night.home / "landing")
    refused(night, CALL.replace("landing", "link"), "this query has read another input")
    night.put("2.json", {"id": 2})
    night.works(moved)
    assert ids(night) == [1, 2]


def test_the_checkpoint_was_lost(night):
    (again,) = commands("The checkpoint was lost")
    shutil.rmtree(night.home / "cp")
    refused(night, CALL, "the table has rows of this input by another query")
    night.works(again)
    assert ids(night) == [1, 1]


def test_the_table_is_another_one(night):
    (clone,) = commands("The table is another one")
    night.put("2.json", {"id": 2})
    refused(night, CALL.replace("orders", "orders-clone"), "this query writes to another table")
    night.works(clone)
    assert (ids(night), ids(night, "orders-clone")) == ([1], [2])


def restored(night, what):
    backup = night.home / "backup"
    shutil.copytree(night.home / what, backup)
    night.put("2.json", {"id": 2})
    night.works(CALL)
    shutil.rmtree(night.home / what)
    backup.rename(night.home / what)


def test_the_checkpoint_was_restored(night):
    remove, _, _ = commands("The checkpoint or the table was restored")
    restored(night, "cp")
    refused(night, CALL, "the table is ahead of the checkpoint")
    night.put("3.json", {"id": 3})
    night.works(remove)
    assert ids(night) == [1, 2, 3]


@pytest.mark.parametrize("part", ["orders/_delta_log", "orders"], ids=["log", "whole"])
def test_the_table_was_restored(night, part):
    _, add, fork = commands("The checkpoint or the table was restored")
    restored(night, part)
    refused(night, CALL, "the table is behind the checkpoint")
    night.put("3.json", {"id": 3})
    night.works(add if part != "orders" else fork)
    assert ids(night) == [1, 2, 3]
    if part == "orders":
        refused(night, CALL, "the query is continued by another one")


def test_two_starts(night):
    wait, take_over = SECTIONS["Two starts"]["sh"].strip().splitlines()
    with (night.home / "log").open("w") as log:
        daemon = subprocess.Popen(
            [sys.executable, "-m", "pyspark_sluice", *CALL.split()[1:], "--every", "1s"],
            cwd=night.home,
            stdout=log,
            stderr=log,
        )
    try:
        night.put("2.json", {"id": 2})
        wait_until(lambda: ids(night) == [1, 2], "a batch", 120)
        refused(night, CALL, "another run of this query is at work")
        assert night.shell(CALL)[0] == 75
        assert night.shell(wait.replace("10m", "1s"))[0] == 75
        night.put("3.json", {"id": 3})
        night.works(take_over)
        daemon.wait(120)
        night.says((night.home / "log").read_text(), "FencedError")
    finally:
        daemon.kill()
    assert ids(night) == [1, 2, 3]
    night.works(wait)


def test_commands_say_that_a_query_of_spark_means_it(night):
    """The tests of a start in Spark are in `test_query_ends.py`."""
    night.works(f"checkpoint=cp\n{SECTIONS['In Spark']['sh']}")
    night.put("2.json", {"id": 2})
    night.works(CALL.replace("orders", "others"))
    assert ids(night, "others") == [2]
