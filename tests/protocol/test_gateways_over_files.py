"""A query over files with a row limit: each way to break its gateways is refused by name."""

from __future__ import annotations

import json
from functools import partial

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.query.partitions import ReaderPartition
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.testing import Row, Trial
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.enumerator.coordinator.subtask_gateway import SubtaskGateway
from pyspark_sluice.errors import ProtocolError
from pyspark_sluice.tests.protocol import broken_in_flight as broken

SCHEMA = pa.schema([("id", pa.int64())])
LIMIT = 20
FILES, ROWS = 6, 40
UNREAD = 3
"""The batch of which Spark reads one reader only (a limit downstream): no commit, no mark of it."""


class Limited(Trial):
    """One reader of one batch never runs."""

    def _attempt(self, partition: ReaderPartition) -> list[Row] | None:
        if len(self.sink) == UNREAD and partition.reader == 0:
            return []
        return super()._attempt(partition)

    def _background(self) -> None:
        # It is slower than the tasks of the batch after that.
        if len(self.sink) != UNREAD + 1:
            super()._background()


def run(tmp_path, gateway: type[SubtaskGateway]) -> Limited:
    for file in range(FILES):
        rows = ({"id": file * ROWS + row} for row in range(ROWS))
        (tmp_path / f"{file}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = parse_options({"path": str(tmp_path), "stateLocation": "unused"}, streaming=True)
    trial = Limited(partial(FileSource, options, SCHEMA), limits=BatchLimits(rows=LIMIT))
    trial.coordinator._open(NO_CHECKPOINT).gateways.gateway = gateway
    trial.run_to_end()
    return trial


def test_a_query_over_files_ends_its_batches_where_readers_say_and_goes_on_there(tmp_path):
    trial = run(tmp_path, SubtaskGateway)
    assert max(map(len, trial.sink)) <= LIMIT
    assert any(checkpoint.header.origins for checkpoint in trial.checkpoints())
    # What the limit downstream has left unread counts as read, and nothing else is missing.
    assert len({row["id"] for row in trial.rows}) == len(trial.rows)
    assert FILES * ROWS - len(trial.rows) > 0


@pytest.mark.parametrize(
    "gateway",
    [
        broken._Absent,
        broken.GatewayNeverOpens,
        broken._OpensForAnother,
        broken._OpensAtHandOut,
        broken.OpensOnTheFirstCommit,
    ],
)
def test_a_broken_gateway_is_refused_by_name(tmp_path, gateway):
    with pytest.raises(ProtocolError, match=r"before its reader has committed|is held until"):
        run(tmp_path, gateway)
