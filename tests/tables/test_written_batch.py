"""A batch as sinks see it."""

from __future__ import annotations

import pytest

from pyspark_sluice.errors import TableError
from pyspark_sluice.tables.written_batch import WrittenBatch
from pyspark_sluice.tests.tables.sinks import batch_of, ids


def test_a_batch_has_files_of_one_query_only(tmp_path):
    one = batch_of(tmp_path, 1, ids(0))
    other = batch_of(tmp_path, 1, ids(0), lineage="f" * 16)
    with pytest.raises(TableError, match="2 queries"):
        WrittenBatch.of_files([*one.files, *other.files], {})
