"""Content compressed by each codec as one member, which others may follow."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import zlib
from collections.abc import Callable

import pyarrow as pa

from pyspark_sluice.reader.files.options import Compression


def _frame(codec, data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as out:
        out.write(data)
    return sink.getvalue().to_pybytes()


def hadoop_stream(codec, data, parts=3):
    """One block of several parts, as Hadoop writes what is longer than its buffer."""
    step = max(1, -(-len(data) // parts))
    pieces = [data[at : at + step] for at in range(0, len(data), step)]
    packed = [pa.Codec(codec).compress(piece, asbytes=True) for piece in pieces]
    blocks = b"".join(struct.pack(">I", len(one)) + one for one in packed)
    return struct.pack(">I", len(data)) + blocks


def snappy_stream(data):
    frames = [b"\xff\x06\x00\x00sNaPpY"]
    for at in range(0, len(data), 65536):
        body = b"\0\0\0\0" + pa.Codec("snappy").compress(data[at : at + 65536], asbytes=True)
        frames.append(b"\0" + len(body).to_bytes(3, "little") + body)
    return b"".join(frames)


MEMBERS: dict[str, tuple[Compression, Callable[[bytes], bytes]]] = {
    "gzip": (Compression.GZIP, gzip.compress),
    "deflate": (Compression.DEFLATE, zlib.compress),
    "bzip2": (Compression.BZIP2, bz2.compress),
    "xz": (Compression.XZ, lambda data: lzma.compress(data, preset=0)),
    "zstd": (Compression.ZSTD, lambda data: _frame("zstd", data)),
    "lz4": (Compression.LZ4, lambda data: _frame("lz4", data)),
    "hadoop lz4": (Compression.LZ4, lambda data: hadoop_stream("lz4_raw", data)),
    "hadoop snappy": (Compression.SNAPPY, lambda data: hadoop_stream("snappy", data)),
    "snappy": (Compression.SNAPPY, snappy_stream),
}
