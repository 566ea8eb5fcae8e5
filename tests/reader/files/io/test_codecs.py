"""Compressed content: whole, in bounded steps, and never less or more than there is."""

from __future__ import annotations

import lzma
import random
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.files.file_split import FileVersion
from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.files.io.codecs import StoredFile
from pyspark_sluice.reader.files.options import Compression
from pyspark_sluice.tests.reader.files.io.compressed_members import MEMBERS, hadoop_stream

pytestmark = pytest.mark.slow

NOISE = random.Random(3).randbytes(3_000_000)
ENDED = ["gzip", "deflate", "bzip2", "xz", "zstd", "lz4"]
"""Those that say where they end."""


class Stored:
    """Bytes that remember how far they were asked for."""

    def __init__(self, data):
        self.data, self.taken = data, 0

    def read_at(self, position, count):
        part = self.data[position : position + count]
        if position:
            self.taken = max(self.taken, position + len(part))
        return part

    def close(self):
        pass


def _read(stored, codec, count=1 << 20):
    file = FileVersion("/data/a", len(stored), 0)
    with StoredFile(file, Stored(stored), codec).stream() as stream:
        return b"".join(iter(lambda: stream.read(count), b""))


@pytest.mark.parametrize("name", MEMBERS)
@given(
    parts=st.lists(st.binary(min_size=1, max_size=300).map(lambda data: data * 40), max_size=4),
    count=st.sampled_from([1, 7, 4096, 1 << 20]),
    zeros=st.integers(0, 9),
)
def test_members_in_a_row_are_one_content_in_any_steps(name, parts, count, zeros):
    codec, compress = MEMBERS[name]
    # Zeros between gzip's, bzip2's and xz's members are padding.
    padding = bytes(zeros) if name in ENDED[:4] else b""
    stored = padding.join(map(compress, parts)) + (padding if parts else b"")
    content = b"".join(parts)
    assert _read(stored, codec, count if len(content) < 30_000 else 1 << 16) == content


@pytest.mark.parametrize("name", ENDED)
@given(st.data())
def test_an_end_in_the_middle_or_bytes_behind_the_end_are_errors(name, data):
    codec, compress = MEMBERS[name]
    member = compress(NOISE[: data.draw(st.sampled_from([1000, 70_000]))])
    cut = data.draw(st.integers(11, len(member) - 1))
    for stored in (member[:cut], member + member[:cut], member + b"and more"):
        with pytest.raises(MalformedDataError, match=r"/data/a, before byte \d+ of \d+"):
            _read(stored, codec)


@pytest.mark.parametrize("name", ["hadoop lz4", "hadoop snappy", "snappy"])
def test_a_block_cut_short_is_an_error(name):
    codec, compress = MEMBERS[name]
    stored = compress(NOISE[:100_000])
    for cut in (2, 5, 9, 12, 50_000, len(stored) - 1):
        with pytest.raises(MalformedDataError, match="before byte"):
            _read(stored[:-cut], codec)


@pytest.mark.parametrize("content", [NOISE, bytes(3_000_000)], ids=["noise", "zeros"])
@pytest.mark.parametrize("name", MEMBERS)
def test_a_decoder_gives_no_more_than_asked_for_and_takes_no_more_than_that_needs(name, content):
    codec, compress = MEMBERS[name]
    if "hadoop" in name:
        source = Stored(hadoop_stream("lz4_raw" if "lz4" in name else "snappy", content, parts=24))
    else:
        source = Stored(compress(content))
    file = FileVersion("/data/a", len(source.data), 0)
    given_out, ahead = 0, 0
    with StoredFile(file, source, codec).stream() as stream:
        while data := stream.read(4096):
            assert len(data) <= 4096
            given_out += len(data)
            ahead = max(ahead, source.taken - given_out)
    assert given_out == len(content)
    # A block of bzip2 has 900 kB; a chunk of input 256.
    assert ahead < 1_600_000


@pytest.mark.parametrize("codec", ["lz4", "snappy"])
def test_a_block_that_claims_gigabytes_is_refused_before_it_is_read(codec):
    stored = struct.pack(">II", 1 << 31, 1 << 31) + bytes(1000)
    with pytest.raises(MalformedDataError, match="claims 2147483648 compressed bytes"):
        _read(stored, Compression(codec))


def test_a_dictionary_of_a_gigabyte_is_refused_before_it_is_made():
    stored = bytearray(lzma.compress(b"x"))
    size = (stored[12] + 1) * 4
    header = stored[12 : 12 + size]
    header[header.index(b"\x21\x01") + 2] = 36
    header[-4:] = struct.pack("<I", zlib.crc32(header[:-4]))
    stored[12 : 12 + size] = header
    with pytest.raises(MalformedDataError, match=r"as xz.*[Mm]emory usage limit"):
        _read(bytes(stored), Compression.XZ)


BGZIP_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")


def _bgzip_block(data: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    raw = packer.compress(data) + packer.flush()
    head = b"\x1f\x8b\x08\x04" + bytes(4) + b"\0\xff"
    extra = struct.pack("<HBBHH", 6, 66, 67, 2, len(raw) + 25)
    return head + extra + raw + struct.pack("<II", zlib.crc32(data), len(data))


def test_a_bgzip_file_without_its_end_block_is_cut():
    blocks = [_bgzip_block(b"%d,x\n" % number * 100) for number in range(9)]
    assert len(_read(b"".join(blocks) + BGZIP_END, Compression.GZIP)) == 3600
    with pytest.raises(MalformedDataError, match="ends a bgzip file is missing"):
        _read(b"".join(blocks[:5]), Compression.GZIP)
