"""Where JSON records begin and end: lines, and whether a parser took each for one record.

The parsers skip line feeds like blanks, so that `{"a":` and `1}` on two lines would be a record,
and two objects on one line would be two; for Spark both are malformed. Not here: parsing.
"""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from ...values.strings import has_lone_return
from ..record_format import Source

_OPENS = re.compile(rb"\s*\{")


def parseable(data: bytes) -> bool:
    """True if the fast parsers may be given these bytes at all.

    They begin with an object, and every carriage return belongs to a line feed: a lone one ends a
    line for Spark.
    """
    return _OPENS.match(data) is not None and not has_lone_return(data)


def rows_by_file(data: bytes, source: Source, rows: int) -> list[int] | None:
    """Records of each file if each line held exactly one, or nothing but blanks; None if not.

    `rows` is what a parser found in `data`, which is valid JSON if blanks may stand anywhere.
    Every line feed between `}` and `{` then is a border between two records: inside of one, a
    comma would stand between them. With as many records as lines, each line has one.
    """
    raw = np.frombuffer(data, np.uint8)
    feeds = np.flatnonzero(raw == ord("\n"))
    inner = feeds[:-1] if data.endswith(b"\n") else feeds
    clean = (
        data.startswith(b"{")
        and (raw[inner - 1] == ord("}")).all()
        and (raw[inner + 1] == ord("{")).all()
    )
    if clean and rows == len(inner) + 1:
        if len(source.files) == 1:
            return [rows]
        return source.by_file(feeds, len(data))
    return _rows_by_line(data, source, rows)


def _rows_by_line(data: bytes, source: Source, rows: int) -> list[int] | None:
    """The same for lines with blanks around the records, and for blank lines."""
    counts = []
    for begin, end in pairwise([*source.starts, len(data)]):
        lines = [line.strip() for line in data[begin:end].split(b"\n")]
        records = [line for line in lines if line]
        if not all(line.startswith(b"{") and line.endswith(b"}") for line in records):
            return None
        counts.append(len(records))
    return counts if sum(counts) == rows else None
