"""CSV records as rows: the exact path.

Fields become values by the rules of Spark's reader, which are Java's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ...evolution.new_columns import NewColumnsSeen
from ...evolution.type_growth import wider_in_text
from ...options import ReaderOptions
from ...values.numbers import floating
from ...values.rows import Row
from ...values.text_types import TextTypes, text_converter
from ...values.times.temporal import Temporal
from ..records.outcome import RecordOutcome, RecordRows, json_text
from .header import LOG, fitting_separator
from .univocity_scanner import Token

_types = pa.types


class CsvRows(RecordRows):
    """Makes rows of records under the reader's mode."""

    def __init__(
        self, schema: pa.Schema, data: pa.Schema, options: ReaderOptions, temporal: Temporal
    ) -> None:
        """Raises TypeError for a column type that CSV cannot be read into."""
        super().__init__(schema, data, options)
        self._null = options.null_value or ""
        self._sep = options.sep
        self._has_warned = False
        self._quote, self._is_line = options.quote, not options.multi_line
        self._may_be_doubled = bool(options.quote) and options.escape != options.quote
        self._widens = options.mode_of_evolution.widens
        self._types = TextTypes(temporal)
        self._converters = {f.name: converter(f.type, options, temporal) for f in data}

    def of_record(
        self, tokens: Sequence[Token], names: Sequence[str], text: str, where: Callable[[], str]
    ) -> RecordOutcome:
        """Parse a record with a field for each of `names`.

        Raises:
            MalformedDataError: the record does not fit, under `FAILFAST`.
        """
        row: Row = {}
        rescued: dict[str, Any] = {}
        problem = ""
        # A record may have fewer or more fields than there are names; that is judged below.
        for name, token in zip(names, tokens, strict=False):
            # An empty field without quotes is null for any `nullValue`, as in Spark's
            # `UnivocityParser`.
            if token is None or token == self._null:
                continue
            convert = self._converters.get(name)
            if convert is None:
                rescued[name] = token
                continue
            try:
                row[name] = convert(token)
            except (ValueError, OverflowError):
                self._refuse_wider(name, token, where)
                rescued[name] = token
                kind = self.out_schema.field(name).type
                problem = problem or f"column {name}: {token[:100]!r} where {kind} is expected"
        # Where no column is asked for, Spark counts lines and looks into none of them.
        if len(tokens) != len(names) and self._converters:
            problem = self._of_length(tokens, names, text)
            # Spark's names for columns without a name.
            rescued |= {f"_c{i}": tokens[i] for i in range(len(names), len(tokens))}
        problem += self._of_quotes(tokens, text, where, is_malformed=bool(problem))
        if self._rescued:
            return RecordOutcome((self.rescue(row, rescued, json_text),))
        if problem:
            return self.refuse((row,), text, problem, where)
        return RecordOutcome((row,))

    def _of_length(self, tokens: Sequence[Token], names: Sequence[str], text: str) -> str:
        problem = f"{len(tokens)} fields where {len(names)} are expected"
        if self._is_line and self._quote and text.count(self._quote) % 2:
            problem += "; a quote is open: if values contain line breaks, set multiLine"
        if len(tokens) == 1 and (sep := fitting_separator(text, len(names), self._sep)):
            problem += f", as with sep={sep}"
        return problem

    def _of_quotes(
        self, tokens: Sequence[Token], text: str, where: Callable[[], str], *, is_malformed: bool
    ) -> str:
        """Return the part of a message on doubled quotes; warn, once, where there is no message."""
        if not (self._may_be_doubled and 2 * self._quote in text):
            return ""
        if is_malformed:
            return f"; quotes are doubled: set escape={self._quote}"
        # Univocity keeps the quotes around a value whose inner quotes it cannot read.
        is_kept = (t and t[0] == self._quote and 2 * self._quote in t for t in tokens)
        if not self._has_warned and any(is_kept):
            self._has_warned = True
            LOG.warning(
                "%s: quotes are doubled, and the value keeps all of its quotes, as in Spark; set "
                "escape=%s if they are to be read as one",
                where(),
                self._quote,
            )
        return ""

    def _refuse_wider(self, name: str, token: str, where: Callable[[], str]) -> None:
        if not self._widens:
            return
        kind, wider = self.out_schema.field(name).type, self._types.of(token)
        if pa.types.is_decimal(kind) and pa.types.is_floating(wider):
            # `TextTypes` calls a fraction `double`; here its digits say which decimal would take
            # it.
            with suppress(ArithmeticError, ValueError):
                wider = pa.scalar(Decimal(token)).type
        if wider_in_text(kind, wider) not in (None, kind):
            raise NewColumnsSeen(where(), pa.struct([(name, wider)]))


def converter(
    kind: pa.DataType, options: ReaderOptions, temporal: Temporal
) -> Callable[[str], Any]:
    """A function from a field's text to what `pa.array` takes; raises ValueError where it fails.

    `OverflowError` means the same.

    Raises:
        TypeError: CSV cannot be read into columns of this type.
    """
    if _types.is_binary(kind):
        return str.encode
    words = {
        options.nan_value: math.nan,
        options.positive_inf: math.inf,
        options.negative_inf: -math.inf,
    }

    def floats(text: str, kind: pa.DataType) -> float:
        return words[text] if text in words else floating(text, kind)

    return text_converter(kind, temporal, floats=floats)
