"""`sluice take-back-schema`: the next start uses the version before the newest change."""

import json

import pytest

from pyspark_sluice.checkpoint_meta.documents.epochs import claim_epoch
from pyspark_sluice.checkpoint_meta.documents.query_records import SchemaHistory
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.schema_evolution import stored_with
from pyspark_sluice.connector.source.schemas import (
    arrow_schema_of,
    resolved,
    schema_of_rows,
)
from pyspark_sluice.connector.source.state_location import open_state
from pyspark_sluice.reader.files.evolution.new_columns import NewColumnsSeen
from pyspark_sluice.reader.files.reader import FileSplitReader
from pyspark_sluice.reader.files.testing import CONTEXT, cut

pytestmark = pytest.mark.slow


@pytest.fixture
def query(tmp_path):
    """A query with one column, which a file of another separator has given a wrong second one."""
    landing, state = tmp_path / "landing", tmp_path / "state"
    landing.mkdir()
    (landing / "1.json").write_text('{"id": 1}\n')
    given = {"path": str(landing), "fileFormat": "json", "stateLocation": str(state)}
    options = parse_options(given, streaming=True)
    schema_of_rows(options)[0]
    # As a query that has ended leaves it.
    claim_epoch(open_state(options), "test")
    grow(landing, options, "2.json", '{"id": 2, "<!DOCTYPE html>": 1}\n')
    return landing, options, state


def grow(landing, options, name, text):
    (landing / name).write_text(text)
    store = open_state(options)
    stored = SchemaHistory(store).latest()
    schema = arrow_schema_of(stored.struct)
    filled = resolved(options, schema.names, inferred=True)
    splits = cut(landing / name, ())
    reader = FileSplitReader(schema, filled, CONTEXT, schema_is_inferred=True)
    with pytest.raises(NewColumnsSeen) as caught:
        list(reader.read(splits))
    stored_with(caught.value, [split.file for split in splits], filled, schema, store)


def take_back(state, capsys, *arguments):
    code = main(["take-back-schema", str(state), "--json", *arguments])
    printed = capsys.readouterr()
    return code, json.loads(printed.out) if code == 0 else printed.err


def test_a_wrong_column_is_taken_back_and_the_next_load_is_without_it(query, capsys):
    _, options, state = query
    assert schema_of_rows(options)[0].names == ["id", "<!DOCTYPE html>"]
    _, plan = take_back(state, capsys)
    assert (plan["removes"], plan["written"]) == (["<!DOCTYPE html>"], False)
    assert schema_of_rows(options)[0].names == ["id", "<!DOCTYPE html>"]
    _, plan = take_back(state, capsys, "--yes")
    assert (plan["takes_back_to"], plan["new_version"]) == (0, 2)
    assert schema_of_rows(options)[0].names == ["id"]
    # The record stays: who reads old batches finds the schema that they were read with.
    assert len(SchemaHistory(open_state(options)).all()) == 3


def test_it_goes_back_one_change_at_a_time_also_past_what_was_taken_back(query, capsys):
    landing, options, state = query
    take_back(state, capsys, "--yes")
    grow(landing, options, "3.json", '{"id": 3, "good": 1}\n')
    grow(landing, options, "4.json", '{"id": 4, "good": 1, "bad": 1}\n')
    for names in (["id", "good"], ["id"]):
        take_back(state, capsys, "--yes")
        assert schema_of_rows(options)[0].names == names
    code, error = take_back(state, capsys, "--yes")
    assert code != 0
    assert "there is no schema to go back to" in error
