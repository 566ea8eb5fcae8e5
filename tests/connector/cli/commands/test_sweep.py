"""`sluice sweep`: what attempts that lost have written, and what counts and is in no table."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from pyspark_sluice.checkpoint_meta.documents.batch_mark import NO_BATCH, BatchMark
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.tables.delta_table import DeltaSink
from pyspark_sluice.tables.iceberg_table import IcebergSink
from pyspark_sluice.tables.manifests import Manifests
from pyspark_sluice.tests.checkpoint_meta.checkpoint_chains import chain
from pyspark_sluice.tests.tables.sinks import batch_of, commit_of, ids

pytestmark = pytest.mark.slow


@pytest.fixture
def landed(tmp_path):
    """Three batches that count, and the file of an attempt that lost to the second."""
    store = open_store(str(tmp_path / "sluice" / "source"))
    chain(store, 3)
    history, table = CheckpointHistory(store), tmp_path / "table"
    chained = [history.load(ref).identity for ref in history.checkpoints()]
    marks = [NO_BATCH, *map(BatchMark.of, chained)]
    batches = [
        batch_of(table, number, ids(3 * number), identity=identity, previous=previous)
        for number, (identity, previous) in enumerate(zip(chained, marks, strict=False), 1)
    ]
    lost = batch_of(table, 2, ids(6), token="f" * 12, identity=chained[1])
    for batch in batches:
        ReaderCommits(store).publish(commit_of(batch))
    return batches, lost


def swept(tmp_path, capsys, *more):
    code = main(["sweep", str(tmp_path), str(tmp_path / "table"), "--json", *more])
    return code, json.loads(capsys.readouterr().out)


def test_files_of_attempts_that_lost_are_shown_and_with_yes_deleted(landed, tmp_path, capsys):
    batches, lost = landed
    path = lost.files[0].path
    expected = {"superseded": [path], "undecided": [], "named": 3, "outside": None}
    assert swept(tmp_path, capsys) == (0, {**expected, "deleted": False})
    assert swept(tmp_path, capsys, "--yes") == (0, {**expected, "deleted": True})
    assert swept(tmp_path, capsys)[1]["superseded"] == []
    left = {str(file) for file in (tmp_path / "table").iterdir()}
    assert left == {file.path for batch in batches for file in batch.files}


@pytest.mark.parametrize("kind", ["delta", "iceberg", "manifest"])
def test_files_that_count_and_are_in_no_table_are_reported_and_stay(landed, tmp_path, capsys, kind):
    batches, _ = landed
    sink: DeltaSink | IcebergSink | Manifests
    if kind == "delta":
        table = str(tmp_path / "table")
        sink = DeltaSink(table, {})
    elif kind == "iceberg":
        catalog = SqlCatalog("x", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
        catalog.create_namespace("lake")
        made = catalog.create_table("lake.orders", pa.schema([("id", pa.int64())]))
        sink = IcebergSink(made)
    else:
        table = str(tmp_path / "manifests")
        sink = Manifests(table, {})
    for batch in batches[:2]:
        sink.add(batch)
    if kind == "iceberg":
        table = catalog.load_table("lake.orders").metadata_location
    code, found = swept(tmp_path, capsys, "--table", table, "--yes")
    assert (code, found["outside"]) == (0, [batches[2].files[0].path])
    sink.add(batches[2])
    if kind == "iceberg":
        table = catalog.load_table("lake.orders").metadata_location
    assert swept(tmp_path, capsys, "--table", table)[1]["outside"] == []
    if kind == "delta":  # As other commands name it.
        assert swept(tmp_path, capsys, "--table", f"delta:{table}")[1]["outside"] == []


def test_a_table_that_is_not_there_is_named(landed, tmp_path, capsys):
    assert main(["sweep", str(tmp_path), str(tmp_path / "table"), "--table", "/nowhere"]) != 0
    assert "no table to compare data files with" in capsys.readouterr().err
