"""What a file is by its first bytes, for the error where it is not what the options say.

Not here: codecs by the suffix of a name (`codecs.py`). Nothing is read by what is found here.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass

from ....checkpoint_meta.documents.file_split import FileVersion
from ....errors import MalformedDataError, SluiceError
from ..options import FileFormatName, ReaderOptions
from ..options.values import is_built_in
from .codecs import codec_of
from .source_file import SourceFile

_HEAD = 64
_MAY_BE_COMPRESSED = tuple(map(FileFormatName, ("json", "csv", "text", "xml")))
# Bytes that text does not have: control characters other than white space.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")


@dataclass(frozen=True)
class _Kind:
    """A kind of file; `option` is how it is read, empty if it is not."""

    name: str
    magic: bytes
    option: str = ""
    value: str = ""
    is_text: bool = False
    """True if a text may begin with the same letters: then control characters have to follow."""


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
    _Kind("a zip archive", b"PK\x03\x04"),
)


def another_kind(
    beginning: bytes, file: FileVersion, options: ReaderOptions
) -> MalformedDataError | None:
    """The error for a file that begins as another kind does; None if it does not.

    Only for formats that are built in: one of the user's own may be made of any of these.
    """
    head = beginning[:_HEAD]
    kind = next((kind for kind in _KINDS if head.startswith(kind.magic)), None)
    if kind is None or (kind.is_text and not _CONTROL.search(head)):
        return None
    as_given = (options.file_format, codec_of(file.path, options.compression).value)
    if kind.value in as_given or not is_built_in(options.file_format):
        return None
    # Any file is a value there.
    if options.file_format == FileFormatName.BINARY_FILE:
        return None
    may_be_told = kind.option == "fileFormat" or options.file_format in _MAY_BE_COMPRESSED
    way = f"Set {kind.option}={kind.value}" if kind.option and may_be_told else "Unpack it"
    return MalformedDataError(
        f"the file is not {options.file_format}",
        file.path,
        f"{kind.name}: it begins with {kind.magic!r}",
        str(options.file_format),
        f"{way}, or leave such files out with pathGlobFilter.",
    )


def recognised(file: FileVersion, options: ReaderOptions) -> MalformedDataError | None:
    """The same for a file that could not be read, whose first bytes are looked at."""
    # If the file cannot be opened, the error that is known already is the better one.
    with suppress(SluiceError, OSError):
        with SourceFile(file, options.storage_options).opened() as source:
            beginning = source.read_at(0, min(_HEAD, file.size))
        return another_kind(beginning, file, options)
    return None
