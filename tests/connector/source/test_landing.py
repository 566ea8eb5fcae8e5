"""Where rows are landed: data files of attempts that lost go with the query's upkeep."""

from __future__ import annotations

from pathlib import Path

from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.landing import swept
from pyspark_sluice.tests.checkpoint_meta.test_history import chain
from pyspark_sluice.tests.tables.sinks import batch_of, commit_of, ids


def test_only_the_checkpoints_that_are_let_go_of_are_swept(tmp_path):
    store = open_store(str(tmp_path / "state"))
    chain(store, 3)
    history = CheckpointHistory(store)
    first, second, _ = history.checkpoints()
    lineage = history.header(first).lineage
    table = tmp_path / "table"
    lost = [batch_of(table, number, ids(0), lineage=lineage, token="f" * 12) for number in (1, 2)]
    for number in (1, 2):
        won = batch_of(table, number, ids(0), lineage=lineage)
        ReaderCommits(store).publish(commit_of(won))
    options = parse_options(
        {"path": str(tmp_path / "in"), "landAt": str(table), "landSchema": "id long"},
        streaming=False,
    )
    assert swept(options, store, [first]).superseded == [lost[0].files[0].path]
    assert [Path(batch.files[0].path).exists() for batch in lost] == [False, True]
    assert swept(options, store, [first, second]).superseded == [lost[1].files[0].path]
    assert len(list(table.iterdir())) == 2
