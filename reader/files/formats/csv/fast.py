"""The fast path of CSV: pyarrow's parser, for blocks whose quotes are all where they should be.

Refuses (returns None) wherever Spark's parser might see something else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from ...options import ReaderOptions
from ..strings import has_lone_return
from ..times.temporal import Temporal

_types = pa.types
_TRUE = ["true", "True", "TRUE"]
_FALSE = ["false", "False", "FALSE"]


class CsvFast:
    """Parses blocks of whole records without headers and comments."""

    def __init__(self, data: pa.Schema, options: ReaderOptions, temporal: Temporal) -> None:
        self._data = data
        self._options = options
        self._temporal = temporal
        self.is_possible = (
            len(data) > 0
            and len(options.sep) == 1
            and ord(options.sep) < 128
            and options.quote != options.sep
            and (options.sep not in " \t" or not _trims(options))
            and max(map(ord, options.quote + options.escape), default=0) < 128
        )
        self._blanks = _edge_blanks(options) if self.is_possible else None
        self._double = bool(options.quote) and options.escape == options.quote
        self._wire = {f.name: _wire_type(f.type, options) for f in data}

    def parse(self, data: bytes, names: Sequence[str], lines: bool) -> list[pa.Array] | None:
        """Columns of the data schema; `lines` is true where a record cannot span lines."""
        if not self.is_possible or has_lone_return(data):
            return None
        options = self._options
        quoted = bool(options.quote) and options.quote.encode() in data
        if quoted and not self._is_regular(data, lines):
            return None
        if self._blanks is not None:
            if not quoted:
                data = self._blanks.sub(b"", data)
            elif self._blanks.search(data):
                return None
        kept = [f.name for f in self._data if f.name in self._wire and f.name in names]
        try:
            table = pa_csv.read_csv(
                pa.BufferReader(data),
                pa_csv.ReadOptions(
                    use_threads=False, block_size=len(data) + 1, column_names=list(names)
                ),
                pa_csv.ParseOptions(
                    delimiter=options.sep,
                    # Without quotes to look for, the parser is a tenth faster.
                    quote_char=options.quote if quoted else False,
                    double_quote=self._double,
                    escape_char=False,
                    newlines_in_values=not lines,
                ),
                pa_csv.ConvertOptions(
                    check_utf8=False,
                    column_types={name: self._wire[name] for name in kept},
                    include_columns=kept,
                    null_values=["", options.null_value],
                    true_values=_TRUE,
                    false_values=_FALSE,
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                ),
            )
            columns = dict(zip(table.column_names, table.columns, strict=True))
            return [self._finished(columns.get(f.name), f, len(table)) for f in self._data]
        except (ValueError, pa.ArrowException):
            return None

    def _finished(self, chunks: pa.ChunkedArray | None, field: pa.Field, rows: int) -> pa.Array:
        if chunks is None:
            return pa.nulls(rows, field.type)
        column = chunks.combine_chunks()
        if _types.is_floating(field.type):
            # Arrow reads more spellings of these than Spark does.
            if not pc.all(pc.is_finite(column), min_count=0).as_py():
                raise ValueError("not a finite number")
            return column
        return column if column.type == field.type else self._temporal.column(column, field.type)

    def _is_regular(self, data: bytes, lines: bool) -> bool:
        """True if every quote opens or closes a field, so that both parsers agree."""
        options = self._options
        quote = options.quote.encode()
        escape = options.escape.encode()
        if escape and not self._double and escape in data:
            return False
        if (options.null_value or options.empty_value) and quote * 2 in data:
            return False
        raw = np.frombuffer(data, np.uint8)
        at = np.flatnonzero(raw == quote[0])
        if len(at) % 2:
            return False
        opens, closes = at[0::2], at[1::2]
        sep = ord(options.sep)
        before = raw[np.maximum(opens - 1, 0)]
        opened = (before == sep) | (before == 10) | (opens == 0)
        after = raw[np.minimum(closes + 1, len(raw) - 1)]
        closed = (after == sep) | (after == 10) | (after == 13) | (closes == len(raw) - 1)
        if self._double:
            # The second of a doubled pair looks like an opening quote.
            pairs = np.zeros(len(opens), np.bool_)
            pairs[1:] = opens[1:] == closes[:-1] + 1
            opened |= pairs
            closed[:-1] |= pairs[1:]
        if not (opened.all() and closed.all()):
            return False
        if lines:
            feeds = np.flatnonzero(raw == 10)
            return bool((np.searchsorted(feeds, opens) == np.searchsorted(feeds, closes)).all())
        return True


def _trims(options: ReaderOptions) -> bool:
    return options.ignore_leading_white_space or options.ignore_trailing_white_space


def _edge_blanks(options: ReaderOptions) -> re.Pattern[bytes] | None:
    """Blanks at the edges of fields, which are to be dropped; None if none are."""
    sep = re.escape(options.sep.encode())
    leading = rb"(?:(?<=[\r\n%s])|\A)[ \t]+" % sep
    trailing = rb"[ \t]+(?=[\r\n%s]|\Z)" % sep
    wanted = [
        pattern
        for pattern, is_wanted in (
            (leading, options.ignore_leading_white_space),
            (trailing, options.ignore_trailing_white_space),
        )
        if is_wanted
    ]
    return re.compile(b"|".join(wanted)) if wanted else None


def _wire_type(kind: pa.DataType, options: ReaderOptions) -> pa.DataType:
    if _types.is_timestamp(kind) or (_types.is_date(kind) and options.date_format):
        return pa.string()
    return kind
