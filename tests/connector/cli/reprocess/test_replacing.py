"""requeue --replace, rewind --replace, retract: what they order, and what the query plans then."""

from __future__ import annotations

import pytest

from pyspark_sluice.checkpoint_meta.documents.query_records import QueryEnds, record_ends
from pyspark_sluice.checkpoint_meta.files.file_split import REPLACES, RETRACTS
from pyspark_sluice.checkpoint_meta.index.fingerprints import file_key
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.views.state_view import StateView, file_splits
from pyspark_sluice.tests.connector.cli.command_line import drained, land, run, states
from pyspark_sluice.tests.connector.queries import Query

pytestmark = pytest.mark.slow


def planned(query: Query) -> list[tuple[str, int]]:
    """The files of the newest checkpoint that assigned any, and what they replace."""
    for link in StateView(query.store).chain():
        splits = file_splits(link, "read")
        if splits:
            return sorted((s.file.path.rpartition("/")[2], s.replaces) for s in splits)
    return []


@pytest.fixture
def with_column(query: Query) -> Query:
    land(query, a=1, b=2)
    assert drained(query) == [1, 2]
    record_ends(query.store, QueryEnds(file_column="file"))
    return query


@pytest.mark.parametrize("way", [("requeue", "--matching", "*/a.json"), ("rewind", "--to", "1")])
def test_files_that_are_read_again_replace_their_rows(with_column, capsys, way):
    query = with_column
    if way[0] == "rewind":
        land(query, a2=1)
        assert drained(query) == [1]
    shown = run(capsys, way[0], query.state, *way[1:], "--replace", "--yes")
    (first,) = shown["first"]
    assert first["key"] == file_key(first["path"])
    assert drained(query) == [1]
    assert planned(query) == [("a.json" if way[0] == "requeue" else "a2.json", REPLACES)]
    assert drained(query) == []


def test_rows_of_files_are_retracted_and_these_versions_are_not_read_again(with_column, capsys):
    query = with_column
    assert main(["retract", query.state, "--matching", "*/a.json"]) == 0
    assert "rows that the table has of these files go" in capsys.readouterr().out
    assert query.store.list("orders") == []
    run(capsys, "retract", query.state, "--matching", "*/a.json", "--yes")
    assert drained(query) == []
    assert planned(query) == [("a.json", RETRACTS)]
    rows = run(capsys, "files", query.state, "--matching", "*/a.json")
    assert sorted(row["state"] for row in rows) == ["read", "retracted"]
    assert states(capsys, query)["b.json"] == ("read", None)


@pytest.mark.parametrize(
    "command", [("requeue", "--replace"), ("rewind", "--to", "1", "--replace"), ("retract",)]
)
def test_a_table_without_a_column_of_files_is_refused(query, capsys, command):
    land(query, a=1)
    drained(query)
    given = [command[0], query.state, "--matching", "*", *command[1:], "--yes"]
    assert main(given) == 2
    assert "the table has no column that names the file of a row" in capsys.readouterr().err
    assert query.store.list("orders") == []
