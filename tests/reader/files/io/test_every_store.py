"""Files of disks and of object stores: each is read in the version that was found."""

from __future__ import annotations

import gzip
import os
import random
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint import PartBudget
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.storage import storage_errors
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.discovery import make_listing
from pyspark_sluice.errors import FileChangedError, FileVanishedError, OptionError, SplitReadError
from pyspark_sluice.reader.api import RemainingBudget
from pyspark_sluice.reader.files.io.compressed import gzip as points_of_gzip
from pyspark_sluice.reader.files.io.source_file import SourceFile, contents
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.reader import FileSplitReader
from pyspark_sluice.reader.files.testing import CONTEXT, read, version
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json
from pyspark_sluice.tests.enumerator.files.discovery.finding import lister_of
from pyspark_sluice.tests.reader.files.formats.packers import zipped

pytestmark = pytest.mark.slow


class Bucket:
    def __init__(self, server, name, options):
        self.server, self.name, self.options = server, name, options

    def put(self, key, data):
        self.server.put(self.name, key, data)

    def found(self, path="in"):
        url = f"{self.server.scheme}://{self.name}/{path}"
        return files_of(path=url, storageOptions=as_json(self.options))


def files_of(**options):
    return lister_of(make_listing(parse_options(options, streaming=False)))(())


class FilesOfAStore:
    """What each store and each client has to pass; subclasses make the bucket."""

    def test_hidden_names_directories_and_empty_objects_are_distinguished(self, bucket):
        for key in ("in/_hidden", "in/.x/y", "in/day=1/b", "in/a", "in2/c"):
            bucket.put(key, b"abc")
        bucket.put("in/empty", b"")
        begin = f"{bucket.server.path_scheme}://{bucket.name}/"
        found = bucket.found()
        assert [file.path for file in found] == [f"{begin}in/a", f"{begin}in/day=1/b"]
        assert all(file.size == 3 and file.etag for file in found)
        assert contents(found, bucket.options) == [b"abc", b"abc"]
        (one,) = bucket.found("in/_hidden")
        assert one.path == f"{begin}in/_hidden"

    def test_a_file_is_read_in_stretches_and_anywhere(self, bucket):
        data = bytes(range(251)) * 80_000
        bucket.put("in/large", data)
        (file,) = bucket.found()
        with SourceFile(file, bucket.options).opened() as opened:
            for position, count in ((0, 10), (10, 9_000_000), (15_000_000, 100), (20_079_990, 99)):
                assert opened.read_at(position, count) == data[position : position + count]
            assert opened.read_at(len(data), 5) == b""
        assert SourceFile(file, bucket.options).content() == data

    def test_parquet_is_read_and_another_version_is_named_within(self, bucket):
        table = pa.table({"id": range(1000)})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        bucket.put("in/a.parquet", sink.getvalue().to_pybytes())
        (file,) = bucket.found()
        with SourceFile(file, bucket.options).native() as opened:
            assert pq.read_table(opened).equals(table)
        bucket.put("in/a.parquet", b"x" * file.size)
        with (
            pytest.raises(FileChangedError, match="ETag"),
            SourceFile(file, bucket.options).native() as opened,
        ):
            pq.read_table(opened)

    def test_members_of_an_archive_are_read_in_one_version(self, bucket):
        data = zipped({f"{n}.csv": b"%d\n" % n * 9_000 for n in range(3)})
        bucket.put("in/a.zip", data)
        (file,) = bucket.found()
        splits = [FileSplit(file, a, b) for a, b in pairwise([0, len(data) // 2, len(data)])]
        schema, options = pa.schema([("n", pa.int64())]), {"storage_options": bucket.options}
        rows, _ = read(splits, schema, file_format="csv", **options)
        assert rows["n"].to_pylist() == [n for n in range(3) for _ in range(9_000)]
        bucket.put("in/a.zip", zipped({"b.csv": b"7\n"}))
        with pytest.raises(FileChangedError):
            read(splits[-1:], schema, file_format="csv", **options)

    @pytest.mark.parametrize("now", [b"xyz", b""])
    def test_a_file_in_another_version_is_refused(self, bucket, now):
        bucket.put("in/a", b"abc")
        (file,) = bucket.found()
        bucket.put("in/a", now)
        found = "ETag" if len(now) == 3 else f"{len(now)} bytes"
        for listed in (file, FileVersion(file.path, 3, file.modified)):
            if listed.etag or len(now) != 3:
                with pytest.raises(FileChangedError, match=f"in/a; found {found}"):
                    SourceFile(listed, bucket.options).content()
        if now:
            assert SourceFile(file, bucket.options).present_version().size == len(now)

    def test_a_file_that_is_gone_is_named(self, bucket):
        bucket.put("in/a", b"abc")
        (file,) = bucket.found()
        bucket.server.remove(bucket.name, "in/a")
        for action in (SourceFile.content, SourceFile.present_version):
            with pytest.raises(FileVanishedError, match="in/a"):
                action(SourceFile(file, bucket.options))


class TestEveryStore(FilesOfAStore):
    @pytest.fixture
    def bucket(self, any_server, any_bucket):
        return Bucket(any_server, any_bucket, any_server.options)

    def test_a_small_file_is_one_request(self, bucket):
        bucket.put("in/a", b"abc")
        (file,) = bucket.found()
        counted = bucket.server.counted(SourceFile(file, bucket.options).content)
        assert counted == {"GET": 1}

    def test_gzip_has_the_same_points_as_on_a_local_disk(self, bucket, tmp_path, monkeypatch):
        pytest.importorskip("rapidgzip")
        monkeypatch.setattr(points_of_gzip, "SPACING", 1)
        path = tmp_path / "a.gz"
        path.write_bytes(gzip.compress(random.Random(1).randbytes(8_000_000).hex().encode(), 1))
        bucket.put("in/a.gz", path.read_bytes())
        (file,) = bucket.found()
        points = points_of_gzip.find_points(file, bucket.options)
        assert points
        assert points == points_of_gzip.find_points(version(path), {})


class TestS3ByFsspec(FilesOfAStore):
    @pytest.fixture
    def bucket(self, server, bucket):
        return Bucket(server, bucket, {**server.options, "client": "fsspec"})


@pytest.mark.parametrize("options", [{}, {"ignoreMissingFiles": "true"}])
@pytest.mark.parametrize("client", ["obstore", "fsspec"])
def test_a_key_that_ends_in_a_slash_is_a_directory_with_any_content(
    server, bucket, client, options
):
    lake = Bucket(server, bucket, {**server.options, "client": client})
    for key in ("in/", "in/sub/", "in/sub/a", "in/alone/", "in/deep/er/"):
        lake.put(key, b'{"id": 1}\n' if key == "in/sub/a" else b'{"id": 2}\n')
    splits = [FileSplit(file, 0, file.size) for file in lake.found()]
    schema, options = pa.schema([("id", pa.int64())]), {**options, "storageOptions": lake.options}
    table, reports = read(splits, schema, fileFormat="json", **options)
    assert table.to_pylist() == [{"id": 1}]
    assert all("ends in a slash" in report.skipped for report in reports if not report.rows)
    # One that is gone is still an error.
    lake.put("in/gone", b'{"id": 3}\n')
    (gone,) = lake.found("in/gone")
    server.remove(bucket, "in/gone")
    if "ignoreMissingFiles" not in options:
        with pytest.raises(FileVanishedError, match="in/gone"):
            read([FileSplit(gone, 0, gone.size)], schema, fileFormat="json", **options)


def test_a_store_that_stays_away_is_named_with_the_file(server, bucket, monkeypatch):
    lake = Bucket(server, bucket, {**server.options, "retry_config": {"max_retries": 1}})
    lake.put("in/a", b"abc")
    (file,) = lake.found()
    waited = []
    server.fail_next(server.slow_down, times=999)
    monkeypatch.setattr(storage_errors.patiently, "__defaults__", (8, waited.append, 0.1))
    with pytest.raises(SplitReadError, match=r"in/a; found the store answered 503.*SlowDown"):
        SourceFile(file, lake.options).content()
    assert 10 < sum(waited) < 30


def test_options_that_the_client_does_not_know_are_refused_when_it_is_made(server, bucket):
    with pytest.raises(OptionError, match="not known to the client of s3"):
        Bucket(server, bucket, {**server.options, "region": "x", "acl": "public-read"}).found()


def test_a_limit_on_seconds_changes_no_request_of_another_query(server, bucket):
    lake = Bucket(server, bucket, server.options)
    lake.put("in/a", b"a line\n" * 1_000_000)
    (file,) = lake.found()
    split, schema = FileSplit(file, 0, file.size), pa.schema([("value", pa.string())])
    options = ReaderOptions(file_format="text", storage_options=lake.options)

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
    listed = files_of(path="memory://replaced")
    files.pipe_file("/replaced/b", b"two")
    stored = files.store["/replaced/b"]
    stored.created += timedelta(seconds=2)
    same, replaced = (SourceFile(file, {}) for file in listed)
    assert same.content() == b"one"
    with pytest.raises(FileChangedError, match="modified at"):
        replaced.content()
    present = replaced.present_version()
    assert (present.size, present.modified) == (3, int(stored.created.timestamp() * 1_000_000))


def test_a_file_that_is_written_to_with_its_old_times_has_changed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"1,old\n" * 1000)
    file = version(path)

    def overwrite() -> None:
        status = path.stat()
        with path.open("r+b") as target:
            target.write(b"2,new\n" * 1000)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert version(path) == file

    with SourceFile(file, {}).opened() as source:
        assert source.read_at(0, 6) == b"1,old\n"
        overwrite()
        with pytest.raises(FileChangedError, match="while it was read"):
            source.read_at(3000, 6)
    with SourceFile(file, {}).opened() as source:
        assert source.read_at(0, 6) == b"2,new\n"
    with pytest.raises(FileChangedError, match="while it was read"):  # noqa: SIM117
        with SourceFile(file, {}).native():
            overwrite()
