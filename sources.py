"""The contracts of a source of your own: what it implements, and the built-in source of files."""

from .checkpoint_meta.documents.serializer import JsonSerializer, VersionedSerializer
from .checkpoint_meta.files.file_split import FileSplit
from .connector.source.api import Source
from .connector.source.file_source import FileSource
from .connector.source.hybrid_source import HybridSource
from .enumerator import BatchBudget, SplitEnumerator, SplitEnumeratorContext
from .reader.api import (
    ReaderContext,
    ReaderEvent,
    Report,
    SplitFinished,
    SplitReader,
    SplitReturned,
    SplitUnfinished,
)

__all__ = [
    "BatchBudget",
    "FileSource",
    "FileSplit",
    "HybridSource",
    "JsonSerializer",
    "ReaderContext",
    "ReaderEvent",
    "Report",
    "Source",
    "SplitEnumerator",
    "SplitEnumeratorContext",
    "SplitFinished",
    "SplitReader",
    "SplitReturned",
    "SplitUnfinished",
    "VersionedSerializer",
]
