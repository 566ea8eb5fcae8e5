"""The blocks of bzip2, each of which can be decompressed by itself.

A block begins with 48 bits that are known, at any bit. Every split finds its first block by them,
and takes as its own what begins in it; what lies between two such marks is one block, so nothing
can be passed over: where a mark is damaged, the block before it does not decompress. Should the
mark be within a block by chance (once in a hundred thousand files of 1 GB), the block is tried
again up to the next one.

indexed_bzip2 1.7 was tried: it enters at offsets that it is given, but to know them it
decompresses the whole file first, at 40 MB/s a core, where finding a mark takes a millisecond.
"""

from __future__ import annotations

import bz2
from collections.abc import Iterator
from itertools import takewhile

from .....checkpoint_meta.files.file_split import FileSplit
from ..codecs import FAULTS, Content, StoredFile
from ..cut_places import NEAR_START_BYTES
from ..source_file import RandomAccess

_BLOCK, _END = 0x314159265359, 0x177245385090
_WINDOW = 1 << 20
_PADDING = 1 << 14
_TRIES = 4

Mark = tuple[int, bool]
"""Bit at which a mark begins, and whether a block begins there; else the stream ends."""


def content_of(split: FileSplit, stored: StoredFile) -> Content:
    """The blocks that begin in `split`, and those that follow."""
    size, end = split.file.size, split.end
    blocks = _named(stored, split.start, size)
    first_beyond: list[bytes] = []

    def own() -> Iterator[bytes]:
        for bit, content in blocks:
            if bit >= 8 * end and end < size:
                # The next split's, but decompressed already: the last record here may end in it.
                first_beyond.append(content)
                return
            yield content

    def beyond() -> Iterator[bytes]:
        yield from first_beyond
        yield from (content for _, content in blocks)

    position, since = 0, split.start
    if 0 < split.start <= NEAR_START_BYTES:
        before = takewhile(lambda one: one[0] < 8 * split.start, _named(stored, 0, size))
        position, since = sum(len(content) for _, content in before), 0
    return Content(own(), beyond(), position, since)


def _named(stored: StoredFile, start: int, size: int) -> Iterator[tuple[int, bytes]]:
    """`blocks`, whose errors name the file."""
    at = start
    try:
        for bit, content in blocks(stored.source, size, start):
            at = bit // 8
            yield bit, content
    except FAULTS as err:
        raise stored.broken(at, err) from err


def blocks(source: RandomAccess, size: int, start: int) -> Iterator[tuple[int, bytes]]:
    """The bit at which each block begins and its content, from the first one at byte `start` on.

    Raises:
        ValueError: the bytes are no blocks of bzip2.
        EOFError: they end before the end mark.
    """
    marks = _marks(source, start, size)
    mark = next(marks, None)
    if start == 0:
        _check_header(source, _behind_zeros(source, 0), mark)
    # The end of a stream before the first block belongs to the split before.
    while start and mark is not None and not mark[1]:
        mark = next(marks, None)
    while mark is not None:
        bit, is_block = mark
        if is_block:
            content, mark = _content(source, bit, marks)
            yield bit, content
            continue
        # The mark, the checksum of the stream, and bits up to the next whole byte.
        after = (bit + 48 + 32 + 7) // 8
        if after > size:
            raise EOFError("the compressed data ends before its end mark")
        mark = next(marks, None)
        after = _behind_zeros(source, after)
        if mark is None and after >= size:
            return
        _check_header(source, after, mark)


def _check_header(source: RandomAccess, at: int, mark: Mark | None) -> None:
    head = source.read_at(at, 4)
    if head[:3] != b"BZh" or not head[3:].isdigit() or mark is None or mark[0] != 8 * (at + 4):
        what = "a block" if len(head) == 4 else "an end"
        raise ValueError(f"{what} where a stream of bzip2 should begin, at byte {at}")


def _behind_zeros(source: RandomAccess, at: int) -> int:
    """Return where the padding ends that may follow a stream."""
    while data := source.read_at(at, _PADDING):
        if rest := data.lstrip(b"\0"):
            return at + len(data) - len(rest)
        at += len(data)
    return at


def _content(source: RandomAccess, bit: int, marks: Iterator[Mark]) -> tuple[bytes, Mark]:
    fault: Exception = EOFError("the compressed data ends before its end mark")
    for _ in range(_TRIES):
        following = next(marks, None)
        if following is None:
            break
        try:
            return bz2.decompress(_as_stream(source, bit, following[0])), following
        except (OSError, ValueError) as err:
            fault = err
    raise fault


def _as_stream(source: RandomAccess, bit: int, end: int) -> bytes:
    """One block as a whole stream: its checksum is the stream's."""
    data = source.read_at(bit // 8, -(-end // 8) - bit // 8)
    length = end - bit
    bits = (int.from_bytes(data) >> (-end % 8)) & ((1 << length) - 1)
    checksum = (bits >> (length - 80)) & 0xFFFFFFFF
    bits = (((bits << 48) | _END) << 32) | checksum
    length += 80
    # Level 9 has the largest blocks, so a decoder takes blocks of any level under it.
    return b"BZh9" + (bits << (-length % 8)).to_bytes(-(-length // 8))


def _marks(source: RandomAccess, at: int, size: int) -> Iterator[Mark]:
    """All marks from byte `at` on, in order."""
    while at < size:
        # A mark may begin in the last bit of the window; six more bytes hold the rest of it.
        data = source.read_at(at, _WINDOW + 6)
        positions = sorted(
            (8 * place + shift, mark == _BLOCK)
            for mark in (_BLOCK, _END)
            for shift in range(8)
            for place in _places(data, mark, shift)
        )
        for bit, is_block in positions:
            # A mark that begins behind the window is found again in the next one.
            if bit < 8 * _WINDOW or len(data) <= _WINDOW:
                yield 8 * at + bit, is_block
        at += _WINDOW


def _places(data: bytes, mark: int, shift: int) -> Iterator[int]:
    """Bytes of `data` in which a mark begins that is shifted by so many bits."""
    whole = (mark << (8 - shift)).to_bytes(7)
    inner = whole[1:6]  # Of the bytes at the ends some bits are another's.
    low, high = 0xFF >> shift, (0xFF << (8 - shift)) & 0xFF
    place = data.find(inner, 1)
    while place >= 0:
        if data[place - 1] & low == whole[0] and (
            not shift or (place + 5 < len(data) and data[place + 5] & high == whole[6])
        ):
            yield place - 1
        place = data.find(inner, place + 1)
