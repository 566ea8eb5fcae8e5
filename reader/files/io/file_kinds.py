"""Recognises a file that is not of its format by its first bytes, before they become rows.

Nothing is read by what is recognised: the error says how to read the file, or to leave it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from ....checkpoint_meta.files.file_split import FileVersion
from ....errors import WITHOUT_THE_FILE, MalformedDataError, SluiceError
from ..options import Compression, FileFormatName, ReaderOptions
from ..options.values import LINE_FORMATS, TEXT_FORMATS, is_built_in
from .codecs import codec_of
from .source_file import SourceFile

HEAD = 512
"""Bytes at the beginning of a file that are looked at: the header block of a tar archive."""

# Bytes that text does not have: control characters other than white space.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_IS_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?P<tag><(?:!doctype\s+html|html))[\s>]", re.IGNORECASE
)
_UNFIT_RECORDS = 100


@dataclass(frozen=True)
class _Kind:
    """A kind of file; `option` is how it is read, empty if it is not."""

    name: str
    magic: bytes
    option: str = ""
    value: str = ""
    is_text: bool = False
    """True if a text may begin with the same letters: then control characters have to follow."""

    position: int = 0
    """Where in the file the magic is."""

    remedy: str = "Unpack it"
    """What to do with it where no option reads it."""


_KINDS = (
    _Kind("a Parquet file", b"PAR1", "fileFormat", "parquet", is_text=True),
    _Kind("an ORC file", b"ORC", "fileFormat", "orc", is_text=True),
    _Kind("an Avro file", b"Obj\x01", "fileFormat", "avro"),
    _Kind("an Arrow file", b"ARROW1\0\0", "fileFormat", "arrow"),
    _Kind("a file compressed with gzip", b"\x1f\x8b", "compression", "gzip"),
    _Kind("a file compressed with bzip2", b"BZh", "compression", "bzip2", is_text=True),
    _Kind("a file compressed with zstd", b"\x28\xb5\x2f\xfd", "compression", "zstd"),
    _Kind("a file compressed with xz", b"\xfd7zXZ\0", "compression", "xz"),
    _Kind("a file compressed with lz4", b"\x04\x22\x4d\x18", "compression", "lz4"),
    _Kind("a file compressed with compress", b"\x1f\x9d"),
    _Kind("a zip archive", b"PK\x03\x04", remedy="Unpack it, or end its name in .zip"),
    _Kind("a zip archive without files", b"PK\x05\x06"),
    _Kind(
        "a tar archive",
        b"ustar",
        position=257,
        remedy="Unpack it, or end its name in .tar or .tar.gz",
    ),
    _Kind("a 7z archive", b"7z\xbc\xaf\x27\x1c", remedy="Unpack it, or end its name in .7z"),
    _Kind("a RAR archive", b"Rar!\x1a\x07"),
    _Kind("a file of Microsoft Office, such as .xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
    _Kind("text in UTF-16", b"\xff\xfe", "encoding", "utf-16"),
    _Kind("text in UTF-16", b"\xfe\xff", "encoding", "utf-16"),
    _Kind("a PDF document", b"%PDF-1."),
    _Kind("a message encrypted with PGP", b"-----BEGIN PGP MESSAGE-----"),
)
_ANY = re.compile(
    b"|".join(b".{%d}%s" % (kind.position, re.escape(kind.magic)) for kind in _KINDS), re.DOTALL
)


def another_kind(
    beginning: bytes,
    file: FileVersion,
    options: ReaderOptions,
    codec: Compression = Compression.NONE,
    *,
    is_stored: bool = False,
) -> MalformedDataError | None:
    """Return the error for a file that begins as another kind does; None if it does not.

    Only for formats that are built in: one of the user's own may be made of any of these.
    `beginning` is decompressed from `codec`, unless `is_stored`.
    """
    # Thousands of small files are looked at in a row, and nearly all of them are what they should.
    html = _IS_HTML.match(beginning) if options.file_format in ("json", "csv") else None
    if html is None and _ANY.match(beginning) is None:
        return None
    if html:
        kind = _Kind("an HTML page", html["tag"], remedy="Remove the error page")
    else:
        kind = next(kind for kind in _KINDS if beginning.startswith(kind.magic, kind.position))
    if kind.is_text and not _CONTROL.search(beginning, 0, 64):
        return None
    as_given = [options.file_format, *([codec.value] if is_stored else [])]
    if kind.value in as_given or not is_built_in(options.file_format):
        return None
    # Another encoding may begin with these bytes, and documents may name their own.
    is_lines = options.encoding == "utf-8" and not (options.multi_line or options.wholetext)
    if kind.option == "encoding" and not (is_lines and options.file_format in LINE_FORMATS):
        return None
    # Any file is a value there.
    if options.file_format == FileFormatName.BINARY_FILE:
        return None
    # What is compressed twice can be decompressed once.
    is_once = options.file_format in TEXT_FORMATS and (is_stored or codec is Compression.NONE)
    may_be_told = kind.option in ("fileFormat", "encoding") or is_once
    way = f"Set {kind.option}={kind.value}" if kind.option and may_be_told else kind.remedy
    return MalformedDataError(
        f"the file is not {options.file_format}",
        file.path,
        f"{kind.name}: its first bytes contain {kind.magic!r}",
        str(options.file_format),
        f"{way}. {WITHOUT_THE_FILE} Leave the next ones out with pathGlobFilter.",
    )


def checked(
    content: Iterator[bytes], file: FileVersion, options: ReaderOptions, codec: Compression
) -> Iterator[bytes]:
    """Yield the content of a file from its beginning; the first piece has `HEAD` bytes, if any has.

    Raises:
        MalformedDataError: it begins as another kind of file does.
    """
    head = b""
    while len(head) < HEAD and (more := next(content, b"")):
        head += more
    if wrong := another_kind(head, file, options, codec):
        raise wrong
    yield head
    yield from content


def recognised(file: FileVersion, options: ReaderOptions) -> MalformedDataError | None:
    """Return the same error for a file that could not be read, by its first bytes as stored."""
    # If the file cannot be opened, the error that is known already is the better one.
    with suppress(SluiceError, OSError):
        with SourceFile(file, options.storage_options).opened() as source:
            beginning = source.read_at(0, min(HEAD, file.size))
        codec = codec_of(file.path, options.compression)
        return another_kind(beginning, file, options, codec, is_stored=True)
    return None


def refuse_unfit(file: FileVersion, dropped: int) -> None:
    """Refuse a file whose first records are all malformed, where they would be dropped.

    Raises:
        MalformedDataError: a hundred records or more, and no other.
    """
    if dropped >= _UNFIT_RECORDS:
        raise MalformedDataError(
            "the file has no record that fits the schema",
            file.path,
            f"{dropped:,} malformed records and no other",
            "at least one record that fits",
            "It may have another separator, another layout or another format: replace it by a "
            "repaired file of the same name. To drop all of its records, set "
            f"acceptUnrelatedFiles. {WITHOUT_THE_FILE}",
        )


def refuse_share(file: FileVersion, rows: int, dropped: int, share: float) -> None:
    """Refuse a file of which more is dropped than maxBadRecordShare permits.

    Raises:
        MalformedDataError: a hundred records or more, and more than this share of all.
    """
    records = rows + dropped
    if dropped >= _UNFIT_RECORDS and dropped > share * records:
        raise MalformedDataError(
            "more records of the file are malformed than may be dropped",
            file.path,
            f"{dropped:,} malformed records of {records:,}",
            f"at most a share of {share:g}, as maxBadRecordShare says",
            "Replace it by a repaired file of the same name, or raise maxBadRecordShare. "
            f"{WITHOUT_THE_FILE}",
        )
