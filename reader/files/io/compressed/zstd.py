"""Where the frames of a zstd file begin: each can be decompressed by itself.

Found by walking from header to header, which decompresses nothing. A file of one frame, as the
command `zstd` writes it, is one piece; `pzstd`, the seekable format and files that were put
together have many. indexed_zstd 1.7 was tried: it takes paths only, no object store, and its
offsets are those found here.
"""

from __future__ import annotations

from ..source_file import RandomAccess

_FRAME = b"\x28\xb5\x2f\xfd"


def frames(source: RandomAccess, size: int) -> list[int]:
    """The bytes at which frames begin, in order; skippable ones belong to the frame before.

    Raises:
        ValueError: the bytes are no frames of zstd, or end within one. Zeros behind a frame are not
            padding, neither to the decoder nor to the command `zstd`.
    """
    starts, at = list[int](), 0
    while at < size:
        magic = _some(source, at, 4)
        if magic == _FRAME:
            starts.append(at)
            at = _behind_frame(source, at, size)
        # Skippable frames: 0x184D2A50 to 0x184D2A5F, little endian.
        elif magic[1:] == b"\x2a\x4d\x18" and magic[0] >> 4 == 5:
            at += 8 + int.from_bytes(_some(source, at + 4, 4), "little")
        else:
            raise ValueError(f"no frame of zstd at byte {at}")
    if at > size:
        raise ValueError("the compressed data ends within a frame")
    return starts


def _behind_frame(source: RandomAccess, at: int, size: int) -> int:
    # The frame header descriptor, from which the length of the header follows (RFC 8878, 3.1.1.1).
    flags = _some(source, at + 4, 1)[0]
    single = flags >> 5 & 1
    content = (single, 2, 4, 8)[flags >> 6]
    at += 5 + (not single) + (0, 1, 2, 4)[flags & 3] + content
    while at < size:
        head = int.from_bytes(_some(source, at, 3), "little")
        kind, length = head >> 1 & 3, head >> 3
        if kind == 3:
            raise ValueError(f"no block of zstd at byte {at}")
        # A block of one repeated byte stores that byte once; its length is that of the content.
        at += 3 + (1 if kind == 1 else length)
        if head & 1:
            return at + 4 * (flags >> 2 & 1)
    raise ValueError("the compressed data ends within a frame")


def _some(source: RandomAccess, at: int, count: int) -> bytes:
    if data := source.read_at(at, count):
        return data
    raise ValueError("the compressed data ends within a frame")
