"""More text than one column holds goes through a coordinator and a restart."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.file_columns import FileSplitSerializer
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.tests.protocol.opened import opened

pytestmark = pytest.mark.slow

ROWS = [{"id": number} for number in range(60)]


class NarrowSource(FileSource):
    """A file source whose columns hold a thousand bytes, not two billion."""

    @property
    def split_serializer(self):
        return FileSplitSerializer(1000)


def test_every_file_is_assigned_once_before_and_after_a_restart(tmp_path):
    for row in ROWS:
        (tmp_path / f"{row['id']:03}.json").write_text(json.dumps(row))
    options = parse_options({"path": str(tmp_path)}, streaming=False)
    schema, limits = pa.schema([("id", pa.int64())]), BatchLimits(files=40)
    trial = Trial(lambda: NarrowSource(options, schema), limits=limits, parallelism=2)
    assert trial.step()
    trial.restart()
    trial.run_to_end()
    trial.check(ROWS)
    assert len(trial.checkpoints()[0].assigned) > 2
    trial.restart()
    assert not trial.step()
    assert len(opened(trial.coordinator).enumerator.ledger.seen) == len(ROWS)
