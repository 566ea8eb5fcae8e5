"""onDelete=retract: files that are gone, what is not taken for one, and what is refused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pyspark_sluice.checkpoint_meta.documents.layout import CLEANED
from pyspark_sluice.checkpoint_meta.files.file_split import retraction_of
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.views.state_view import StateView, file_splits
from pyspark_sluice.errors import OptionError, SourceUnavailable
from pyspark_sluice.tests.connector.queries import Query, drained

pytestmark = pytest.mark.slow

DELETING = {
    "fileFormat": "json",
    "onDelete": "retract",
    "retractAfter": "1s",
    "writeFileColumn": "file",
    "discoveryAttempts": "1",
}


def query_of(root: Path, **more: str) -> Query:
    options = {**DELETING, "writeTo": str(root / "table"), **more}
    return Query(root, None, {}, **options)


def retracted(query: Query) -> list[str]:
    """Names of the files whose rows left the table in the newest batch."""
    link = StateView(query.store).chain()[0]
    splits = file_splits(link, "read")
    assert splits == [retraction_of(split.file.path) for split in splits]
    return [split.file.path.rpartition("/")[2] for split in splits]


@pytest.mark.effect_of("onDelete", "retractAfter")
def test_rows_of_a_file_that_is_gone_leave_the_table_after_a_delay_that_spans_runs(tmp_path):
    query = query_of(tmp_path)
    query.land("a.json", "b.json")
    assert len(drained(query)) == 2
    (query.data / "a.json").unlink()
    # This run says only since when it is absent.
    drained(query)
    newest = CheckpointHistory(query.store).load(query.done).header
    assert (newest.assigned_splits, len(newest.cursors["absent"])) == (0, 1)
    time.sleep(1.1)
    drained(query)
    assert retracted(query) == ["a.json"]
    query.land("a.json")
    assert len(drained(query)) == 1


def test_a_loaded_path_without_any_file_is_an_error_and_takes_no_rows(tmp_path):
    query = query_of(tmp_path)
    query.land("a.json", "b.json")
    drained(query)
    stored = [(query.data / name) for name in ("a.json", "b.json")]
    contents = [path.read_bytes() for path in stored]
    for path in stored:
        path.unlink()
    drained(query)
    time.sleep(1.1)
    with pytest.raises(SourceUnavailable, match="a loaded path has no files any more"):
        drained(query)
    # With one of its files back, the others are gone.
    stored[0].write_bytes(contents[0])
    query.coordinator.close()
    drained(query)
    assert retracted(query) == ["b.json"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"discoveryMode": "incremental"}, "discoveryMode=full"),
        ({"cleanSource": "delete"}, "cleanSource=off"),
        ({"onOverwrite": "reprocess"}, "onOverwrite=ignore or onOverwrite=replace"),
        ({"writeFileColumn": ""}, "writeFileColumn"),
    ],
)
def test_what_would_take_other_rows_along_is_refused(tmp_path, more, says):
    given = {"path": str(tmp_path), "writeTo": str(tmp_path / "table"), **DELETING, **more}
    with pytest.raises(OptionError, match=says):
        parse_options({k: v for k, v in given.items() if v}, streaming=False)


def test_a_query_that_has_cleaned_up_is_refused(tmp_path):
    query = query_of(tmp_path)
    query.store.publish(f"{CLEANED}/0000000001-0000000001.json", b"{}")
    query.land("a.json")
    with pytest.raises(OptionError, match="files of this query were cleaned up"):
        drained(query)
    for option in ("onDelete", "retractAfter"):
        del query.options[option]
    assert len(drained(query)) == 1
