"""Compressed text is entered in the middle: any cuts give the records of the whole file."""

import bz2
import gzip
import json
import random
from itertools import pairwise

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.stores.open_store import StorageStateStore
from pyspark_sluice.errors import MalformedDataError, SplitReadError
from pyspark_sluice.reader.api import SplitFinished
from pyspark_sluice.reader.files.formats.api import FormatContext, Splittability
from pyspark_sluice.reader.files.formats.registry import make_format
from pyspark_sluice.reader.files.io.compressed import bzip2
from pyspark_sluice.reader.files.io.compressed import gzip as points_of_gzip
from pyspark_sluice.reader.files.io.cut_places import MemoryCutPlaces, StoredCutPlaces
from pyspark_sluice.reader.files.io.source_file import SourceFile
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.reader import FileSplitReader
from pyspark_sluice.reader.files.testing import CONTEXT, cut, version, whole

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
JSON = ReaderOptions(file_format="json")
COUNT = 45_000


def _lines(count=COUNT):
    chance = random.Random(1)
    texts = (f"{chance.getrandbits(4 * chance.randrange(1, 800)):x}" for _ in range(count))
    return "".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in enumerate(texts)).encode()


@pytest.fixture(scope="module")
def data():
    return _lines()


@pytest.fixture(scope="module")
def in_gzip(data):
    return gzip.compress(data, 6)


@pytest.fixture(autouse=True)
def _near(monkeypatch):
    # rapidgzip's own points are one to four megabytes of content apart, by its release.
    monkeypatch.setattr(points_of_gzip, "SPACING", 1)


def _zstd(data):
    codec, step = pa.Codec("zstd"), 100_000
    frames = [bytes(codec.compress(data[i : i + step])) for i in range(0, len(data), step)]
    skippable = b"\x53\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"notes"
    return skippable + b"".join(frames[:3]) + skippable + b"".join(frames[3:])


STORED = {
    "gz": lambda data: gzip.compress(data, 6),
    "members.gz": lambda data: b"".join(
        gzip.compress(data[i : i + 3_000_000], 6) for i in range(0, len(data), 3_000_000)
    ),
    "bz2": lambda data: bz2.compress(data[:1_000_000], 1) + bz2.compress(data[1_000_000:], 2),
    "zst": _zstd,
}


def _read(splits, cut_places=None, options=JSON):
    reader = FileSplitReader(SCHEMA, options, CONTEXT, cut_places=cut_places)
    batches, reports = [], []
    for item in reader.read(splits):
        (batches if isinstance(item, pa.RecordBatch) else reports).append(item)
    return pa.Table.from_batches(batches, SCHEMA), reports


def _made(cut_places, options=JSON):
    return make_format(options, SCHEMA, FormatContext(cut_places=cut_places))


def _first_lines(data, kind):
    """All of them where points to enter gzip at are megabytes apart; else a quarter."""
    count = COUNT if kind.endswith("gz") else COUNT // 4
    return count, b"".join(data.splitlines(keepends=True)[:count])


def _splits(path, share, cut_places=None, options=JSON):
    """The file in splits of about a share of it, as the driver cuts it."""
    made, file = _made(cut_places, options), version(path)
    if made.splittability(file) is Splittability.RECORDS:
        return cut(path, range(1, file.size, file.size // share))
    assert made.splittability(file) is Splittability.BLOCKS
    blocks = made.blocks(file)
    assert all(one.end == other.start for one, other in pairwise(blocks))
    return cut(path, [block.start for block in blocks])


@pytest.mark.sample("gz", "zst", why="more codecs")
@pytest.mark.parametrize("kind", STORED)
def test_the_splits_of_a_compressed_file_have_its_records_once_and_in_order(tmp_path, data, kind):
    path = tmp_path / f"a.json.{kind}"
    count, data = _first_lines(data, kind)
    path.write_bytes(STORED[kind](data))
    cut_places = MemoryCutPlaces()
    splits = _splits(path, 40, cut_places)
    assert len(splits) >= 3
    table, reports = _read(splits, cut_places)
    assert table.column("id").to_pylist() == list(range(count))
    assert table.equals(_read([whole(path)])[0].cast(SCHEMA))
    rows = [report.rows for report in reports if isinstance(report, SplitFinished)]
    assert sum(1 for rows_in_it in rows if rows_in_it) >= 3
    # A reader that is given one of them alone, in any order.
    for split, expected in zip(splits[::-7], rows[::-7], strict=True):
        assert _read([split], cut_places)[0].num_rows == expected


@pytest.mark.parametrize("zeros", [1, 100])
def test_zeros_between_members_of_bzip2_are_skipped_at_any_cut_of_the_file(
    spark_answers, tmp_path, zeros
):
    path = tmp_path / "a.json.bz2"
    members = [_lines(400)[:40_000], _lines(400)[40_000:]]
    stored = [b"", bz2.compress(members[0], 1), bz2.compress(members[1]), b""]
    path.write_bytes(bytes(zeros).join(stored))

    def rows_of_spark(spark):
        frame = spark.read.schema("id long, text string").json(str(path))
        return len({row["id"] for row in frame.collect()}), frame.count()

    assert spark_answers(rows_of_spark, zeros, members) == (400, 400)
    size = path.stat().st_size
    for cuts in ([], [size // 2], list(range(size // 9, size, size // 9)), [10, size - 3]):
        table, reports = _read(cut(path, cuts))
        assert table.column("id").to_pylist() == list(range(400)), cuts
        assert not any(report.skipped for report in reports)


@pytest.mark.parametrize("zeros", [4, 100])
def test_zeros_behind_a_frame_of_zstd_are_an_error_in_a_file_that_is_not_cut(tmp_path, zeros):
    path, frame = tmp_path / "a.json.zst", bytes(pa.Codec("zstd").compress(_lines(400)))
    for stored in (frame + bytes(zeros), frame + bytes(zeros) + frame):
        path.write_bytes(stored)
        assert len(_made(MemoryCutPlaces()).blocks(version(path))) == 1
        with pytest.raises(MalformedDataError, match="cannot be decompressed as zstd"):
            _read([whole(path)])


# Frames of zstd have a sum only if their writer wished, and a block of bzip2 is a test above.
def test_a_changed_byte_of_gzip_is_an_error_or_changes_no_row(tmp_path, data):
    path = tmp_path / "a.json.gz"
    stored = gzip.compress(data[: data.rindex(b"\n", 0, 700_000) + 1], 6)
    chance = random.Random(3)
    path.write_bytes(stored)
    cut_places = MemoryCutPlaces()
    splits = _splits(path, 5, cut_places)
    expected = _read(splits, cut_places)[0]
    for _ in range(12):
        changed = bytearray(stored)
        changed[chance.randrange(len(stored))] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        # As if it had been found so: points are looked for again.
        cut_places = MemoryCutPlaces()
        try:
            found, _ = _read(_splits(path, 5, cut_places), cut_places)
        except SplitReadError as error:
            assert error.where.startswith(str(path))  # noqa: PT017 it may be whole as well
        else:
            assert found.equals(expected)


def test_a_damaged_mark_or_an_early_end_of_bzip2_hides_no_block(tmp_path):
    path = tmp_path / "a.json.bz2"
    stored = bz2.compress(_lines(2000), 1)
    path.write_bytes(stored)
    with SourceFile(version(path), {}).opened() as source:
        bits = [bit for bit, _ in bzip2.blocks(source, len(stored), 0)]
    place = bits[len(bits) // 2] // 8
    for end in (place + 1000, len(stored) - 2):
        path.write_bytes(stored[:end])
        with pytest.raises(MalformedDataError):
            _read(cut(path, [place - 3])[1:])
    damaged = bytearray(stored)
    damaged[place + 2] ^= 1
    path.write_bytes(damaged)
    for boundary in (place - 3, place, place + 9):
        with pytest.raises(MalformedDataError):
            _read(cut(path, [boundary]))


@pytest.mark.sample("bz2", why="a codec that is cut at its blocks")
@pytest.mark.parametrize("kind", ["gz", "bz2"])
def test_a_header_is_left_out_once_and_names_the_columns_of_every_split(tmp_path, data, kind):
    options = {"file_format": "csv", "header": True, "enforce_schema": False, "comment": "#"}
    path, (count, lines) = tmp_path / f"a.csv.{kind}", _first_lines(data, kind)
    rows = [json.loads(line) for line in lines.splitlines()]
    records = "".join(f"{row['text']},{row['id']}\n" for row in rows)
    path.write_bytes(STORED[kind](f"# made by hand\ntext,id\n{records}".encode()))
    cut_places, made = MemoryCutPlaces(), ReaderOptions(**options)
    found, _ = _read(_splits(path, 9, cut_places, made), cut_places, made)
    assert found.column("id").to_pylist() == list(range(count))
    assert found.column("text").to_pylist() == [row["text"] for row in rows]


def test_points_that_are_gone_are_named_and_a_file_of_one_frame_is_whole(tmp_path, data, in_gzip):
    path = tmp_path / "a.json.gz"
    path.write_bytes(in_gzip)
    cut_places = MemoryCutPlaces()
    splits = _splits(path, 3, cut_places)
    with pytest.raises(SplitReadError, match="was split are missing"):
        _read(splits[1:2], MemoryCutPlaces())
    made = _made(None)
    assert made.splittability(version(path)) is Splittability.WHOLE
    path = tmp_path / "a.json.zst"
    path.write_bytes(bytes(pa.Codec("zstd").compress(data)))
    assert len(_made(cut_places).blocks(version(path))) == 1


def test_a_file_that_takes_too_long_to_look_through_is_read_whole(tmp_path, in_gzip, monkeypatch):
    path = tmp_path / "a.json.gz"
    path.write_bytes(in_gzip)
    store = StorageStateStore(str(tmp_path / "state"))
    cut_places = StoredCutPlaces(store)
    monkeypatch.setattr(points_of_gzip, "PATIENCE", 0.01)
    assert len(_made(cut_places).blocks(version(path))) == 1
    monkeypatch.undo()
    # It is not looked through again at each restart.
    again = StoredCutPlaces(store)
    assert len(_made(again).blocks(version(path))) == 1
    assert _read([whole(path)], again)[0]["id"].to_pylist() == list(range(COUNT))


def test_a_file_has_so_many_points_at_most(tmp_path, in_gzip, monkeypatch):
    path = tmp_path / "a.json.gz"
    path.write_bytes(in_gzip)
    counts = []
    for most in (2000, 2):
        monkeypatch.setattr(points_of_gzip, "MOST", most)
        cut_places = MemoryCutPlaces()
        counts.append(len(_made(cut_places).blocks(version(path))))
    assert 3 >= counts[1] < counts[0]
