"""Makes the file of a difference small: all files that lack a part of it go into one reading."""

from __future__ import annotations

import time
from dataclasses import replace

import pyarrow as pa

from pyspark_sluice.tests.reader.readings.documented import row_of
from pyspark_sluice.tests.reader.readings.machine import Machine
from pyspark_sluice.tests.reader.readings.model import Difference, Group

SECONDS = 20
"""How long a file is made smaller; what is left then is small enough to be read."""

_AT_ONCE = 150


def minimised(machine: Machine, difference: Difference) -> Difference:
    """The same difference with fewer options, columns and bytes."""
    if not difference.group.is_text:
        return difference
    until = time.monotonic() + SECONDS
    smaller = difference
    # First without the options and the columns that have no part in it.
    for name in ("", *difference.group.options):
        if time.monotonic() < until:
            simpler = replace(smaller, group=_simpler(smaller.group, smaller.column, name))
            smaller = _again(machine, simpler, [smaller.data]) or smaller
    while time.monotonic() < until:
        found = _shorter(machine, smaller)
        if found is None:
            return smaller
        smaller = found
    return smaller


def _simpler(group: Group, column: str, option: str) -> Group:
    """Without this option; or uncompressed, and with only the column if the others do not count."""
    if option:
        return replace(group, options={k: v for k, v in group.options.items() if k != option})
    schema = group.schema
    if group.file_format == "json" and column in schema.names:
        schema = pa.schema([schema.field(column)])
    return replace(group, suffix="", schema=schema)


def _shorter(machine: Machine, difference: Difference) -> Difference | None:
    data = difference.data
    size = max(1, len(data) // 2)
    while True:
        starts = range(0, len(data), size)
        distinct = {data[:at] + data[at + size :] for at in starts}
        shorter = sorted(distinct, key=lambda each: (len(each), each))
        for first in range(0, len(shorter), _AT_ONCE):
            found = _again(machine, difference, shorter[first : first + _AT_ONCE])
            if found is not None:
                return found
        if size == 1:
            return None
        size = max(1, size // 2)


def _again(machine: Machine, difference: Difference, files: list[bytes]) -> Difference | None:
    """The first of these files of which the same difference is still true."""
    group = difference.group.with_files(tuple(files))
    kind = difference.kind
    for found in machine.differences(group, only=(difference.mode, kind)):
        # What differs has to be the same thing, or one fault would turn into another one.
        if found.kind == kind and _alike(found, difference) and not row_of(found):
            return found
    return None


def _alike(one: Difference, other: Difference) -> bool:
    return (
        isinstance(one.expected, str) == isinstance(other.expected, str)
        and isinstance(one.found, str) == isinstance(other.found, str)
        and one.column == other.column
    )
