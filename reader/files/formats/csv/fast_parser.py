"""The fast path of CSV: pyarrow's parser, for blocks whose quotes are all where they should be.

Refuses (returns None) if Spark's parser might see something else.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from ...options import ReaderOptions
from ...values.numbers import decimals
from ...values.rows import batch_of, columns_of
from ...values.strings import has_lone_return, is_utf8
from ...values.times.temporal import Temporal
from .quote_check import DelimiterBitmap, doubles_quotes, has_blank_line

_types = pa.types
# Spark takes any case. The exact path reads the rare spellings, which Arrow refuses.
_TRUE = ["true", "True", "TRUE"]
_FALSE = ["false", "False", "FALSE"]


class CsvFast:
    """Parses blocks of whole records without headers and comments."""

    def __init__(
        self, schema: pa.Schema, data: pa.Schema, options: ReaderOptions, temporal: Temporal
    ) -> None:
        """`schema` is that of the batches, `data` that of what records hold."""
        self._schema, self._data = schema, data
        self._options = options
        self._temporal = temporal
        trims = options.ignore_leading_white_space or options.ignore_trailing_white_space
        self.is_possible = (
            len(data) > 0
            and len(options.sep) == 1
            and ord(options.sep) < 128
            and options.quote != options.sep
            and not (
                # Cutting blanks would cut such a separator. A field of blanks at the end of a text
                # is `emptyValue`, which Arrow cannot tell from null.
                trims and (ord(options.sep) <= 32 or options.null_value or options.empty_value)
            )
            and max(map(ord, options.quote + options.escape), default=0) < 128
            and not _has_numeric_words(data, options)
        )
        self._blanks = _edge_blanks(options) if self.is_possible else None
        mark = re.escape(options.comment.encode())
        self._comments = re.compile(rb"^%s[^\n]*(?:\n|\Z)" % mark, re.MULTILINE) if mark else None
        self._numbers = {f.name for f in data if _types.is_integer(f.type)}
        self._intermediate = {f.name: _intermediate_type(f.type, options) for f in data}

    def as_lines(self, data: bytes, *, may_move: bool) -> bytes | None:
        """Return the records with a line feed behind each; None if other line breaks are in them.

        Without `may_move`, every byte stays in its place.
        """
        lines = data
        if separator := self._options.line_sep.encode():
            count = data.count(separator)
            for other in (b"\n", b"\r"):
                if data.count(other) != count * separator.count(other):
                    return None
            lines = data.replace(separator, b"\n")
        # Removing comments moves what follows, and packed files are found by their offsets.
        if self._comments is None:
            return lines
        return self._comments.sub(b"", lines) if may_move and not has_lone_return(data) else None

    def quoted(
        self, data: bytes, names: Sequence[str], line_break: str, *, is_last: bool
    ) -> tuple[pa.RecordBatch | None, int]:
        """Parse records that may span lines, and return where they end; None if it refuses."""
        # Inside of quotes a separator that was set stays as it is, in which no fast parser agrees.
        options = self._options
        if not self.is_possible or options.comment or options.line_sep not in ("", "\n"):
            return None, 0
        marks, end = DelimiterBitmap(data, options.sep, options.quote), len(data)
        lines = _with_feeds(data, line_break, marks)
        if lines is None:
            return None, 0
        if not is_last:
            end = marks.end_of_last(line_break[-1])
            lines = _with_feeds(data[:end], line_break, marks)
            marks.cut(end)
        if not lines:
            return None, 0
        # Marks are places in `data`, and `lines` has fewer bytes once each CR LF is one.
        return self.parse(
            lines, names, lines=False, marks=marks if line_break == "\n" else None
        ), end

    def parse(
        self,
        data: bytes,
        names: Sequence[str],
        *,
        lines: bool,
        marks: DelimiterBitmap | None = None,
    ) -> pa.RecordBatch | None:
        """Return all records; None if it refuses. `lines` is true where a record cannot span lines.

        `marks` are those of `data`, if the caller knows them.
        """
        if data.isspace() if lines else data.startswith(b"\n") and not data.strip(b"\n"):
            return batch_of(self._schema, 0)
        if not self.is_possible or self._is_odd(data, names, lines=lines):
            return None
        options = self._options
        if not is_utf8(data):
            data, marks = data.decode("utf-8", "replace").encode(), None
        marks = marks or DelimiterBitmap(data, options.sep, options.quote)
        if not marks.are_trusted(options, lines=lines):
            return None
        if self._blanks is not None:
            if not marks.has_quotes:
                data = self._blanks.sub(b"", data)
            elif self._blanks.search(data):
                # Within quotes blanks are text, which the expression does not tell from others.
                return None
        if data.startswith(codecs.BOM_UTF8):
            # Arrow drops one at the beginning of any block.
            data = codecs.BOM_UTF8 + data
        in_doubt = bool(self._numbers) and marks.has_doubtful_numbers()
        intermediate = self._intermediate | dict.fromkeys(
            self._numbers if in_doubt else (), pa.string()
        )
        file_columns = set(names)
        kept = [f.name for f in self._data if f.name in file_columns]
        try:
            table = pa_csv.read_csv(
                pa.BufferReader(data),
                pa_csv.ReadOptions(
                    # Spark has a task on each core; one block makes columns that need no copy.
                    use_threads=False,
                    block_size=len(data) + 1,
                    column_names=list(names),
                ),
                pa_csv.ParseOptions(
                    delimiter=options.sep,
                    # Without quotes to look for, the parser is a tenth faster.
                    quote_char=options.quote if marks.has_quotes else False,
                    double_quote=doubles_quotes(options),
                    escape_char=False,
                    newlines_in_values=not lines,
                ),
                pa_csv.ConvertOptions(
                    # `is_utf8` has looked, and replaced what is not.
                    check_utf8=False,
                    column_types={name: intermediate[name] for name in kept},
                    include_columns=kept,
                    null_values=["", options.null_value or ""],
                    true_values=_TRUE,
                    false_values=_FALSE,
                    # Spark compares the text without its quotes to `nullValue`, in columns of
                    # strings as well.
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                ),
            )
            return self._batch(table)
        except (ValueError, pa.ArrowException):
            return None

    def _is_odd(self, data: bytes, names: Sequence[str], *, lines: bool) -> bool:
        """True if something other than quotes means more to Spark's parser, or to the columns."""
        options = self._options
        if has_lone_return(data):
            return True
        if options.rescued_data_column and not self._intermediate.keys() >= set(names):
            return True
        if b"\0" in data and not (options.quote and options.escape):
            # Spark's parser takes a zero byte for the character that is not set.
            return True
        blank_lines_count = len(names) == 1 or ord(options.sep) <= 32
        # Spark drops a line of blanks; with one column, or blanks for separators, Arrow makes a
        # record of it.
        return (blank_lines_count or bool(self._blanks and not lines)) and has_blank_line(data)

    def _batch(self, table: pa.Table) -> pa.RecordBatch:
        # Asked for no columns, Arrow gives all of them, in types of its own.
        parsed = {n: c for n, c in columns_of(table).items() if n in self._intermediate}
        columns = {
            f.name: self._finished(parsed[f.name], f) for f in self._schema if f.name in parsed
        }
        return batch_of(self._schema, table.num_rows, columns)

    def _finished(self, column: pa.Array, field: pa.Field) -> pa.Array:
        kind = field.type
        if _types.is_floating(kind):
            # Arrow reads more spellings of these than Spark does. Nulls are zeros beneath.
            values = np.frombuffer(column.buffers()[1], kind.to_pandas_dtype(), len(column))
            if not np.isfinite(values).all():
                raise ValueError("not a finite number")
            return column
        if column.type == kind:
            return column
        if field.name in self._numbers:
            return _integers(column, kind)
        if _types.is_decimal(kind):
            return decimals(column, kind)
        return self._temporal.column(column, kind)


def _with_feeds(data: bytes, line_break: str, marks: DelimiterBitmap) -> bytes | None:
    """Return `data` with line feeds for line breaks; None if a lone CR or LF is something else."""
    if line_break == "\n":
        return None if b"\r" in data else data
    if line_break == "\r":
        # A line feed ends a line as well, but not every field.
        return None if b"\n" in data else data.replace(b"\r", b"\n")
    lines = data.replace(b"\r\n", b"\n")
    return None if b"\r" in lines or marks.has_lone_feeds() else lines


def _integers(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Integers of a column in which some might be written as Java reads none."""
    data = texts.buffers()[2]
    raw = np.frombuffer(data if data is not None else b"", np.uint8)
    if np.isin(raw, np.frombuffer(b" \txX", np.uint8)).any():
        raise ValueError("a number with blanks or in hexadecimal digits")
    return texts.cast(kind)


def _has_numeric_words(data: pa.Schema, options: ReaderOptions) -> bool:
    """Return whether a word for infinity or not-a-number would be read as a number."""
    if not any(_types.is_floating(kind) for kind in data.types):
        return False
    # Arrow would take such a word, like `1` for infinity, for the number.
    words = (options.nan_value, options.positive_inf, options.negative_inf)
    return any(character.isdigit() for word in words for character in word)


def _edge_blanks(options: ReaderOptions) -> re.Pattern[bytes] | None:
    """Blanks at the edges of fields, which are to be dropped; None if none are."""
    sep = re.escape(options.sep.encode())
    leading = rb"(?:(?<=[\r\n%s])|\A)[\x00-\x09\x0b\x0c\x0e-\x20]+" % sep
    trailing = rb"[\x00-\x09\x0b\x0c\x0e-\x20]+(?=[\r\n%s]|\Z)" % sep
    wanted = [leading] if options.ignore_leading_white_space else []
    wanted += [trailing] if options.ignore_trailing_white_space else []
    return re.compile(b"|".join(wanted)) if wanted else None


def _intermediate_type(kind: pa.DataType, options: ReaderOptions) -> pa.DataType:
    is_formatted = _types.is_date(kind) and options.date_format
    if _types.is_timestamp(kind) or _types.is_decimal(kind) or is_formatted:
        return pa.string()
    return kind
