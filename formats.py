"""The contracts of a format of your own: the classes to derive from, and what they pass around."""

from .reader.files.formats.api import (
    NO_CONTEXT,
    Block,
    Decoded,
    FileFormat,
    FormatContext,
    Parsed,
    Splittability,
    TimeSpan,
)
from .reader.files.formats.blocks import BlockFormat
from .reader.files.formats.records.record_format import METADATA, Origin, RecordFormat
from .reader.files.options import ReaderOptions

__all__ = [
    "METADATA",
    "NO_CONTEXT",
    "Block",
    "BlockFormat",
    "Decoded",
    "FileFormat",
    "FormatContext",
    "Origin",
    "Parsed",
    "ReaderOptions",
    "RecordFormat",
    "Splittability",
    "TimeSpan",
]
