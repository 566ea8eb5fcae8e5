"""Content is cut into whole records, looking at each byte once; a record is not without end."""

import bz2
import gzip
import random
import re
import time
from itertools import pairwise

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.files.file_split import FileVersion
from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.files.io.codecs import Content
from pyspark_sluice.reader.files.io.lines import line_blocks, records
from pyspark_sluice.reader.files.io.memory_bounds import RecordLimit
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.testing import cut, read, whole

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("a", pa.string())])
MIB = 1 << 20
SIZE = 32_000_000
OPTIONS = ReaderOptions(file_format="json")
NO_LIMIT = RecordLimit(FileVersion("a", 1, 1), OPTIONS)


@pytest.mark.parametrize("separator", [b"\n", b"\r\n", b"|~|"])
def test_with_any_bytes_at_the_borders_each_record_is_in_one_split(separator):
    chance = random.Random(4)
    for _ in range(300):
        content = _lines(chance, separator)
        points = sorted({0, len(content), *(chance.randrange(len(content) + 1) for _ in "abc")})
        found = b""
        for start, end in pairwise(points):
            own = _pieces(content[start:end], chance.randrange(1, 5))
            beyond = _pieces(content[end:], chance.randrange(1, 5))
            step = chance.choice([1, 4, 100])
            split = Content(own, beyond, 0)
            for at, piece in records(split, separator, step, NO_LIMIT, is_first=start == 0):
                assert content[start + at :].startswith(piece)
                found += piece
        assert found == content, (points, content)


@pytest.mark.parametrize("separator", [b"aa", b"\n\n", b"aba", b"||"])
def test_separators_that_overlap_themselves_are_counted_from_the_beginning(separator):
    chance = random.Random(5)
    for _ in range(300):
        content = bytes(chance.choice(separator + b"x") for _ in range(chance.randrange(60)))
        found = Content(_pieces(content, chance.randrange(1, 5)), iter(()), 0)
        given = [piece for _, piece in records(found, separator, 3, NO_LIMIT, is_first=True)]
        assert b"".join(given) == content
        assert all(piece.split(separator)[-1] == b"" for piece in given[:-1])
        split = [part for piece in given for part in piece.split(separator)[:-1]]
        assert split == content.split(separator)[:-1]


@pytest.mark.parametrize("separator", [b"\n", b"|~|"])
def test_a_record_may_be_as_long_as_the_limit_and_no_longer(separator):
    chance = random.Random(6)
    for size in (1, 2, 3, 4):
        limit = RecordLimit(
            FileVersion("a", 1, 1), ReaderOptions.model_construct(max_record_bytes=9)
        )
        for content in (b"abc" + separator + b"x" * 9, b"x" * 9 + separator + b"y"):
            found = Content(_pieces(content, size), iter(()), 0)
            assert b"".join(p for _, p in records(found, separator, 4, limit, is_first=True))
            longer = content.replace(b"x" * 9, b"x" * 10)
            border = chance.randrange(longer.index(b"x") + 1, len(longer))
            found = Content(_pieces(longer[:border], size), _pieces(longer[border:], size), 0)
            with pytest.raises(MalformedDataError, match=rf"\Wa, byte {longer.index(b'x')}\W"):
                list(records(found, separator, 4, limit, is_first=True))


STORED = {"json": lambda data: data, "json.gz": gzip.compress, "json.bz2": bz2.compress}


@pytest.mark.parametrize("kind", STORED)
def test_a_record_without_an_end_costs_what_as_many_bytes_of_short_ones_do(tmp_path, kind):
    endless, short = tmp_path / f"endless.{kind}", tmp_path / f"short.{kind}"
    endless.write_bytes(STORED[kind](b'{"a":1}\n{"a":"' + b"x" * SIZE))
    short.write_bytes(STORED[kind](b'{"a":1}\n' + (b"x" * 999 + b"\n") * (SIZE // 1000)))
    # A search that begins again with each piece takes 60 times as long.
    assert min(_seconds(endless) for _ in range(2)) < 20 * min(_seconds(short) for _ in range(2))


def _seconds(path):
    size = path.stat().st_size
    splits = [whole(path)] if path.suffix == ".gz" else cut(path, [max(1, size // 2)])
    began = time.process_time()
    given = sum(len(b.data) for split in splits for b in line_blocks(split, OPTIONS, 64 * 1024))
    assert given >= SIZE
    return time.process_time() - began


TOO_LONG = b'{"a":"1"}\n{"a":"' + b"x" * 3 * MIB + b'"}\n'
LONG = [
    *((f"a.{kind}", STORED[kind](TOO_LONG), {}, 10) for kind in STORED),
    ("a.csv", b"1\n" + b"x" * 3 * MIB + b"\n", {"file_format": "csv"}, 2),
    ("a.csv", b'1\n"' + b"x\n" * 2 * MIB, {"file_format": "csv", "multi_line": True}, 2),
    ("a.txt", b"1\n" + b"x" * 3 * MIB + b"\n", {"file_format": "text"}, 2),
    ("a.txt", b"x" * 3 * MIB, {"file_format": "text", "wholetext": True}, 0),
    ("a.json", b'{"a":"' + b"x" * 3 * MIB + b'"}', {"multi_line": True}, 0),
    ("a.json", b'[{"a":"1"},{"a":"' + b"x" * 3 * MIB + b'"}]', {"multi_line": True}, 11),
    ("a.json", b'[{"a":"1"},{"a":"' + b"x" * 3 * MIB, {"multi_line": True}, 11),
    ("a.json", "1\n".encode("utf-16") + b"xx" * 3 * MIB, {"encoding": "utf-16"}, 2),
]


# Without ids the names of the tests would have the contents.
@pytest.mark.parametrize(("name", "content", "options", "place"), LONG, ids=range(len(LONG)))
def test_the_limit_holds_for_every_format_of_records(tmp_path, name, content, options, place):
    path = tmp_path / name
    path.write_bytes(content)
    message = rf"{re.escape(str(path))}, byte {place};.*set maxRecordBytes"
    options |= {"max_record_bytes": "2m", "mode": "DROPMALFORMED"}
    with pytest.raises(MalformedDataError, match=message):
        read([whole(path)], SCHEMA, **options)
    _, [report] = read([whole(path)], SCHEMA, **options, ignore_corrupt_files=True)
    assert report.skipped


def _lines(chance, separator):
    count = chance.randrange(1, 9)
    lines = [b"x" * chance.choice([0, 1, 2, 5]) + bytes([65 + i]) for i in range(count)]
    return separator.join(lines) + separator * chance.randrange(2)


def _pieces(content, size):
    return iter([content[i : i + size] for i in range(0, len(content), size)])
