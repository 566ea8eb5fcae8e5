"""What is read: groups of files with one schema and one set of options; and what came of it."""

from __future__ import annotations

import bz2
import gzip
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
Rows = list[Row]
Outcome = Rows | str
"""Rows, or why they are missing: `refused` for an error that names the file."""

CORRUPT = "_corrupt_record"
MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
_COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".deflate": zlib.compress,
}


@dataclass(frozen=True)
class Group:
    """Files that one query of Spark reads, and one reader of Sluice."""

    file_format: str
    schema: pa.Schema
    """The columns that are asked for, without that of corrupt records."""

    options: Mapping[str, str]
    files: tuple[bytes, ...]
    """What is in the files, before compression."""

    suffix: str = ""
    names: tuple[str, ...] = ()
    """Odd parts of the files' names; their numbers come before."""

    bad: bytes = b""
    """A record, or a file, that is malformed for sure."""

    line_end: bytes = b""
    """What ends a record, where records can be put behind each other; empty where not."""

    only_spark: Mapping[str, str] = field(default_factory=dict)
    """Options that only Spark has."""

    @property
    def has_modes(self) -> bool:
        """True if a record can be malformed on its own."""
        return self.file_format in ("csv", "json", "xml")

    def name(self, number: int) -> str:
        """The file's name; its number makes it unique."""
        odd = self.names[number] if self.names else ""
        return f"{number:05}{odd}.{self.file_format}{self.suffix}"

    def write(self, folder: Path) -> list[Path]:
        """Write all files."""
        compress = _COMPRESSED.get(self.suffix, bytes)
        paths = []
        for number, data in enumerate(self.files):
            paths.append(folder / self.name(number))
            paths[-1].write_bytes(compress(data))
        return paths

    def with_files(self, files: tuple[bytes, ...]) -> Group:
        """The same for other bytes."""
        return replace(self, files=files, names=())


@dataclass
class Difference:
    """Two readings of the same bytes that are not the same."""

    group: Group
    mode: str
    reading: str
    """Which of the five readings, or `spark`."""

    data: bytes
    expected: Outcome
    found: Outcome

    @property
    def column(self) -> str:
        """The first column that differs."""
        return _first_column(self.expected, self.found)

    @property
    def signature(self) -> tuple[object, ...]:
        """Differences that are alike have the same; only the first of them is shown."""
        kinds = {f.name: f.type for f in self.group.schema}
        kind = kinds.get(self.column)
        return (
            self.group.file_format,
            self.kind,
            self.column if kind is None else _family(str(kind)),
            self.found[:30] if isinstance(self.found, str) else "rows",
            self.expected[:60] if isinstance(self.expected, str) else "rows",
            tuple(name for name in sorted(self.group.options) if name in _TELLING),
        )

    @property
    def kind(self) -> str:
        """Which reading it was, without the places of its cuts."""
        return self.reading.partition(" at ")[0]


def _family(kind: str) -> str:
    """Types that fail alike."""
    return re.sub(r"[\d<(\[].*", "", kind)


_TELLING = ("multiLine", "lineSep", "locale", "header", "dateFormat", "timestampFormat", "encoding")
"""Options under which the same columns differ for reasons of their own."""


def _first_column(expected: Outcome, found: Outcome) -> str:
    if isinstance(expected, str) or isinstance(found, str):
        return "outcome"
    if len(expected) != len(found):
        return "rows"
    for one, other in zip(expected, found, strict=True):
        for name, value in one.items():
            if other.get(name) != value and name != CORRUPT:
                return name
    return CORRUPT
