"""The outcome of a record that does not fit, for every format."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from ...evolution.new_columns import written
from ...options import ParseMode, ReaderOptions
from ...values.rows import Row, Rows
from .record_format import malformed


class ValueMisfit(ValueError):
    """A value that is not of its column's type."""


class Partial(ValueMisfit):
    """A value of which a part fits."""

    def __init__(self, message: str, value: Any) -> None:
        super().__init__(message)
        self.value = value
        """The part that fits, with nulls for the rest."""


class RecordOutcome(NamedTuple):
    """The rows of one record, or the reason why it is dropped."""

    rows: Sequence[Row]
    dropped: str = ""


class RecordRows(Rows):
    """Applies `mode`, the column of corrupt records and the rescued data column to records."""

    expected = "a record that fits the schema"
    """Names in errors what a record should be."""

    def __init__(self, schema: pa.Schema, data: pa.Schema, options: ReaderOptions) -> None:
        """`schema` is that of the batches, `data` that of what records hold."""
        super().__init__(schema, data)
        self._options = options
        self._corrupt = self._string_column(options.column_name_of_corrupt_record)
        self._rescued = self._string_column(options.rescued_data_column)

    def rescue(self, row: Row, lost: dict[str, Any], leaf: Callable[[Any], str]) -> Row:
        """Put what has no column, or does not fit it, into the rescued data column as JSON."""
        if lost:
            row[self._rescued] = written(lost, leaf)
        return row

    def refuse(
        self, rows: Sequence[Row], record: bytes | str, problem: str, where: Callable[[], str]
    ) -> RecordOutcome:
        """Decide what a record that does not fit becomes; `rows` are the parts of it that fit.

        Raises:
            MalformedDataError: under `FAILFAST`.
        """
        if self._options.mode is ParseMode.FAILFAST:
            raise malformed(where(), problem, self.expected)
        if self._options.mode is ParseMode.DROPMALFORMED:
            return RecordOutcome((), problem or "malformed")
        if self._corrupt:
            rows = [{**row, self._corrupt: text_of(record)} for row in rows]
        return RecordOutcome(rows)


def json_text(value: Any) -> str:
    """Write a value without line breaks and with its characters as they are."""
    return json.dumps(value, ensure_ascii=False)


def text_of(record: bytes | str) -> str:
    """Return the text of a record; bytes that are not UTF-8 are replaced."""
    return record if isinstance(record, str) else record.decode("utf-8", "replace")
