"""A path that cannot be read or written is named in one message, without a traceback."""

from __future__ import annotations

import pytest

from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.cli.output import Exit
from pyspark_sluice.tests.connector.queries import Query


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    query = Query(tmp_path_factory.mktemp("query"))
    query.land("a.json")
    query.batch()
    query.coordinator.close()
    return str(query.location)


@pytest.mark.parametrize(
    ("arguments", "path", "reason"),
    [
        (["report", "STATE", "-o", "/nonexistent/x.html"], "/nonexistent/x.html", "ENOENT"),
        (["report", "STATE", "-o", "/proc/x.html"], "/proc/x.html", ""),
        (["report", "STATE", "-o", "/tmp"], "/tmp", "EISDIR"),
        (["fork", "STATE", "/proc/xx", "--yes"], "/proc/xx", ""),
    ],
    ids=["no such directory", "proc", "a directory", "a new state"],
)
def test_a_command_names_the_path_and_the_reason(state, capsys, arguments, path, reason):
    given = [state if argument == "STATE" else argument for argument in arguments]
    assert main(given) == Exit.FAILED
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f": {path}; found " in told
    assert f"({reason}" in told
