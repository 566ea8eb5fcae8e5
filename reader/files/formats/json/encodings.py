"""The encoding of one JSON record, by its first bytes.

Not here: the option `encoding`, by which whole files are decoded.
"""

from __future__ import annotations

__all__ = ["is_wide", "recoded"]


def is_wide(data: bytes) -> bool:
    """True if a record that begins so is in UTF-16 or UTF-32."""
    return bool(_wide_encoding(data[:4]))


def recoded(data: bytes) -> tuple[bytes, bool]:
    """`data` in UTF-8 without a byte order mark, and whether it was in UTF-16 or UTF-32.

    Spark goes by a record's first four bytes, as JSON's first standard allowed.
    """
    if data.startswith(b"\xef\xbb\xbf") and len(data) > 3:
        return data[3:], False
    encoding = _wide_encoding(data[:4])
    if not encoding:
        return data, False
    text = data.decode(encoding, "replace").removeprefix("\ufeff")
    return text.encode("utf-8", "surrogatepass"), True


def _wide_encoding(head: bytes) -> str:
    if len(head) == 4:
        if head in (b"\0\0\xfe\xff", b"\xff\xfe\0\0"):
            return "utf-32-be" if head[0] == 0 else "utf-32-le"
        if head[:3] == b"\0\0\0" or head[1:] == b"\0\0\0":
            return "utf-32-be" if head[0] == 0 else "utf-32-le"
    if len(head) >= 2:
        if head[:2] in (b"\xfe\xff", b"\xff\xfe"):
            return "utf-16-be" if head[0] == 0xFE else "utf-16-le"
        if (head[0] == 0) != (head[1] == 0):
            return "utf-16-be" if head[0] == 0 else "utf-16-le"
    return ""
