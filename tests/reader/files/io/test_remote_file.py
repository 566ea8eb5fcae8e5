"""Files of a bucket: found by one listing, read by one request, each in the version found."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import fsspec
import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint import PartBudget
from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.discovery import make_listing
from pyspark_sluice.errors import (
    FileChangedError,
    FileVanishedError,
    OptionError,
    SplitReadError,
)
from pyspark_sluice.reader.budget import RemainingBudget
from pyspark_sluice.reader.files.io.source_file import SourceFile
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.reader import FileSplitReader
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json
from pyspark_sluice.tests.enumerator.files.discovery.finding import lister_of
from pyspark_sluice.tests.reader.files.reading import CONTEXT, read

pytestmark = pytest.mark.slow


@pytest.fixture(params=["obstore", "fsspec"])
def storage(request, server):
    return {**server.options, "client": request.param}


def _found(bucket, storage, path="in", **options):
    given = {"path": f"s3a://{bucket}/{path}", "storageOptions": as_json(storage), **options}
    return lister_of(make_listing(parse_options(given, streaming=False)))(())


@pytest.mark.parametrize("options", [{}, {"ignoreMissingFiles": "true"}])
def test_a_key_that_ends_in_a_slash_is_a_directory_with_any_content(
    server, bucket, storage, options
):
    for key in ("in/", "in/sub/", "in/sub/a", "in/alone/", "in/deep/er/"):
        server.put(bucket, key, b'{"id": 1}\n' if key == "in/sub/a" else b'{"id": 2}\n')
    files = _found(bucket, storage)
    given = {"fileFormat": "json", "storageOptions": as_json(storage), **options}
    schema = pa.schema([("id", pa.int64())])
    table, reports = read([FileSplit(file, 0, file.size) for file in files], schema, **given)
    assert table.to_pylist() == [{"id": 1}]
    assert all("ends in a slash" in report.skipped for report in reports if not report.rows)
    # One that is gone is still an error.
    server.put(bucket, "in/gone", b'{"id": 3}\n')
    (gone,) = _found(bucket, storage, "in/gone")
    server.remove(bucket, "in/gone")
    if options:
        return
    with pytest.raises(FileVanishedError, match="in/gone"):
        read([FileSplit(gone, 0, gone.size)], schema, **given)


def test_a_store_that_stays_away_is_named_with_the_file(server, bucket, monkeypatch):
    from pyspark_sluice.checkpoint_meta.storage import storage_errors

    storage = {**server.options, "retry_config": {"max_retries": 1}}
    server.put(bucket, "in/a", b"abc")
    (file,) = _found(bucket, storage)
    waited = []
    server.fail_next(server.slow_down, times=999)
    monkeypatch.setattr(storage_errors.patiently, "__defaults__", (8, waited.append, 0.1))
    with pytest.raises(SplitReadError, match=r"in/a; found the store answered 503.*SlowDown"):
        SourceFile(file, storage).content()
    assert 10 < sum(waited) < 30


def test_options_that_the_client_does_not_know_are_refused_when_it_is_made(server, bucket):
    with pytest.raises(OptionError, match="not known to the client of s3"):
        _found(bucket, {**server.options, "region": "x", "acl": "public-read"})


def test_a_limit_on_seconds_changes_no_request_of_another_query(server, bucket):
    storage = server.options
    server.put(bucket, "in/a", b"a line\n" * 1_000_000)
    (file,) = _found(bucket, storage)
    split, schema = FileSplit(file, 0, file.size), pa.schema([("value", pa.string())])
    options = ReaderOptions(file_format="text", storage_options=storage)

    def requests(seconds):
        budget = RemainingBudget(PartBudget(seconds=seconds))
        reader = FileSplitReader(schema, options, replace(CONTEXT, budget=budget))
        return server.counted(lambda: list(reader.read([split])))["GET"]

    without = requests(None)
    # So little time that each request is one of the smallest.
    requests(0.001)
    assert requests(None) == without


def test_a_replaced_file_of_equal_size_is_noticed_behind_fsspec():
    files = fsspec.filesystem("memory")
    for name in ("a", "b"):
        files.pipe_file(f"/replaced/{name}", b"one")
    options = parse_options({"path": "memory://replaced"}, streaming=False)
    listed = lister_of(make_listing(options))(())
    files.pipe_file("/replaced/b", b"two")
    stored = files.store["/replaced/b"]
    stored.created += timedelta(seconds=2)
    same, replaced = (SourceFile(file, {}) for file in listed)
    assert same.content() == b"one"
    with pytest.raises(FileChangedError, match="modified at"):
        replaced.content()
    present = replaced.present_version()
    assert (present.size, present.modified) == (3, int(stored.created.timestamp() * 1_000_000))
