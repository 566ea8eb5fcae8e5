"""Batches of data files as manifests: each once, with the files that it had first."""

from collections import Counter
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from pyspark_sluice.errors import TableError
from pyspark_sluice.reader.written_files import rows_about
from pyspark_sluice.tables.manifests import Manifests
from pyspark_sluice.tables.written_batch import FileBatch, WrittenBatch
from pyspark_sluice.tests.tables.sinks import batch_of, commit_of, identity_of, ids


@pytest.fixture
def manifests(tmp_path):
    return Manifests(str(tmp_path / "manifests"), {})


def rows_of(manifests):
    paths = manifests.paths()
    assert max(Counter(paths).values()) == 1
    return sorted(pl.read_parquet(list(paths))["id"].to_list())


def test_a_file_that_is_gone_is_named_before_there_is_a_manifest(tmp_path, manifests):
    batch = batch_of(tmp_path / "data", 1, ids(0))
    Path(batch.files[0].path).unlink()
    with pytest.raises(TableError, match=r"data files of a batch are missing.*: 1 of"):
        manifests.add(batch)
    assert list(manifests.paths()) == []


def test_manifests_in_a_bucket_name_each_batch_once(bucket, server):
    url, storage = f"s3://{bucket}/lake", server.options
    manifests = Manifests(f"{url}/manifests", storage)
    server.fail_next(server.lose_answer, kind="PUT")
    for number in (1, 2, 2):
        manifests.add(batch_of(f"{url}/data", number, ids(3 * number), storage=storage))
    assert len(set(manifests.paths())) == len(list(manifests.paths())) == 2
    assert {path.rpartition("/")[0] for path in manifests.paths()} == {f"{url}/data"}


def test_a_manifest_that_was_confirmed_and_not_stored_is_an_error_and_written_again(bucket, server):
    manifests = Manifests(f"s3://{bucket}/lake/manifests", server.options)
    batch = batch_of(f"s3://{bucket}/lake/data", 1, ids(0), storage=server.options)
    server.fail_next(server.confirm_only, kind="PUT")
    with pytest.raises(TableError, match="missing directly after it was written"):
        manifests.add(batch)
    manifests.add(batch)
    assert list(manifests.paths()) == [file.path for file in batch.files]


def test_a_batch_has_files_of_one_query_only(tmp_path):
    batches = [batch_of(tmp_path, 1, ids(0), lineage=lineage * 16) for lineage in "ef"]
    rows = [
        row
        for b in batches
        for row in rows_about(commit_of(b), identity_of(1, lineage=b.lineage), "0-", looks=False)
    ]
    with pytest.raises(TableError, match="files of 2 queries"):
        WrittenBatch.of(FileBatch(pa.Table.from_batches(rows), {}), {})
