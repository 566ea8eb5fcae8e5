"""Files of S3, Google Cloud Storage and Azure: each is read in the version that was found."""

from __future__ import annotations

import gzip
import random
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit, FileVersion
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.discovery import make_listing
from pyspark_sluice.errors import FileChangedError, FileVanishedError
from pyspark_sluice.reader.files.io.compressed import gzip as points_of_gzip
from pyspark_sluice.reader.files.io.source_file import SourceFile, contents
from pyspark_sluice.reader.files.testing import version as version_of
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json
from pyspark_sluice.tests.enumerator.files.discovery.finding import lister_of
from pyspark_sluice.tests.reader.files.formats.packers import zipped
from pyspark_sluice.tests.reader.files.reading import read

pytestmark = pytest.mark.slow


class Bucket:
    """Of one of the stores."""

    def __init__(self, server, name, options):
        self.server, self.name, self.options = server, name, options

    def put(self, key, data):
        self.server.put(self.name, key, data)

    def found(self, path="in"):
        url = f"{self.server.scheme}://{self.name}/{path}"
        given = {"path": url, "storageOptions": as_json(self.options)}
        return lister_of(make_listing(parse_options(given, streaming=False)))(())


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
        for version in (file, FileVersion(file.path, 3, file.modified)):
            if version.etag or len(now) != 3:
                with pytest.raises(FileChangedError, match=f"in/a; found {found}"):
                    SourceFile(version, bucket.options).content()
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
        assert points == points_of_gzip.find_points(version_of(path), {})


class TestS3ByFsspec(FilesOfAStore):
    @pytest.fixture
    def bucket(self, server, bucket):
        return Bucket(server, bucket, {**server.options, "client": "fsspec"})
