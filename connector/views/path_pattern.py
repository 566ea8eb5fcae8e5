"""Selects files by a shell pattern over whole paths, in which * takes slashes, too."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

RowsT = TypeVar("RowsT", pa.Table, pa.RecordBatch)


def path_filter(pattern: str) -> Callable[[str], bool]:
    """Return whether a path matches; any path for an empty pattern."""
    if not pattern:
        return lambda _: True
    compiled = re.compile(translate(pattern))
    return lambda path: compiled.match(path) is not None


def matching(rows: RowsT, pattern: str) -> RowsT:
    """Return the rows whose column `path` matches, in Arrow: a state may have millions of them."""
    if not pattern:
        return rows
    return rows.filter(pc.match_substring_regex(rows.column("path"), matching_pattern(pattern)))


def matching_pattern(pattern: str) -> str:
    """Return a shell pattern as a regular expression of Arrow; * takes slashes, too."""
    # Python's translation, whose end and atomic groups RE2 does not know.
    text = translate(pattern).replace("(?>", "(?:")
    # Python 3.14 writes `\z` where earlier ones write `\Z`.
    return "^" + text.removesuffix(r"\Z").removesuffix(r"\z") + r"$"
