"""One JSON record as rows, and what becomes of it if it does not fit: the exact path."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress

import pyarrow as pa

from ...evolution.type_growth import is_variant
from ...options import ParseMode, ReaderOptions
from ...values.rows import Row, Rows
from ...values.times.temporal import Temporal
from ..record_format import malformed
from . import stdlib_parser
from .json_text import MalformedText, recoded
from .json_values import Misfit, misfit
from .token_values import Partial, converters, rows_of, struct_of, variant_of
from .tokenizer import TokenStream
from .unknown_fields import UnknownJsonFields


class JsonRows(Rows):
    """Makes rows of records under the reader's mode."""

    def __init__(
        self,
        schema: pa.Schema,
        data: pa.Schema,
        options: ReaderOptions,
        temporal: Temporal,
        known: frozenset[str],
    ) -> None:
        """`known` are all columns of the query. Raises TypeError for columns that JSON has not."""
        super().__init__(schema, data)
        self._options = options
        self._mode = options.mode
        self.unknown_fields = UnknownJsonFields(data, options, known)
        self._fields = converters(data, options, temporal)
        self._takers = stdlib_parser.takers(data, options, temporal)
        self._texts = [f.name for f in data if pa.types.is_string(f.type)]
        self._corrupt = self._string_column(options.column_name_of_corrupt_record)
        self.keeps_text = bool(self._corrupt)
        """True if the schema has a column for the text of malformed records."""
        self._single = options.single_variant_column
        if self._single and (data.names != [self._single] or not is_variant(data.types[0])):
            raise TypeError(f"columns other than the one variant {self._single}")
        self._rescued = self._string_column(options.rescued_data_column)

    def of_record(self, record: bytes, where: Callable[[], str]) -> tuple[list[Row], str]:
        """The rows of one record, and why it is dropped; empty if it is not.

        Raises:
            MalformedDataError: the record does not parse or fit, under `FAILFAST`.
            NewColumnsSeen: it has fields that the schema does not have, if that stops the query.
        """
        # Before the mode applies: a new field stops the query, also in a record that does not fit.
        self.unknown_fields.look(record, where)
        try:
            return self._plain(record), ""
        except stdlib_parser.REFUSALS:
            pass
        try:
            return self._read(record), ""
        except Partial as err:
            return self._bad(err.value, record, str(err), where)
        except ValueError as err:
            # As in Spark, a record of which nothing fits is one row of nulls.
            return self._bad([{}], record, str(err), where)

    def of_element(self, element: bytes, where: Callable[[], str]) -> Row:
        """The row of one element of a document that is an array.

        Raises:
            Partial: with the row, of which a value does not fit.
            ValueError: it is not an object, or none by itself.
            NewColumnsSeen: as for a record.
        """
        self.unknown_fields.look(element, where)
        if element.lstrip()[:1] != b"{":
            raise MalformedText("an element that is not an object")
        with suppress(*stdlib_parser.REFUSALS):
            return self._plain(element)[0]
        stream = TokenStream(element, self._options)
        stream.next()
        try:
            row = self._rescued_row(stream) if self._rescued else struct_of(stream, self._fields)
        except Partial:
            self._require_end(stream)
            raise
        self._require_end(stream)
        return row

    def with_text(
        self, batch: pa.RecordBatch, text: str | None, most: int
    ) -> Iterator[pa.RecordBatch]:
        """`batch` with the text of the record that all of it comes from, of `most` bytes each."""
        if text is None:
            yield batch
            return
        index = batch.schema.get_field_index(self._corrupt)
        # Every row repeats the text, so its length decides how many rows are a batch.
        step = max(1, most // max(1, len(text)))
        for start in range(0, batch.num_rows, step):
            part = batch.slice(start, step)
            yield part.set_column(index, batch.schema.field(index), pa.array([text] * len(part)))

    def _plain(self, record: bytes) -> list[Row]:
        value = stdlib_parser.parsed(record, self._options)
        if self._single:
            value = {self._single: value}
        stdlib_parser.keep_written(value, self._texts, record)
        rows = stdlib_parser.rows_of(value, self._takers)
        if self._rescued and (
            type(value) is list
            or not value.keys() <= self._takers.keys()
            or self.unknown_fields.anything(value)
        ):
            # What is rescued is kept as it was written, which only the tokens know.
            raise ValueError("there may be something to rescue")
        return rows

    def _read(self, record: bytes) -> list[Row]:
        stream = TokenStream(recoded(record)[0], self._options)
        # As in Spark, a record of blanks and comments alone is no row.
        if stream.next() is None:
            return []
        if self._single:
            rows = [{self._single: variant_of(stream)}]
        elif self._rescued:
            rows = self._rescuing(stream)
        else:
            rows = rows_of(stream, self._fields)
        self._require_end(stream)
        return rows

    def _require_end(self, stream: TokenStream) -> None:
        if not stream.ends():
            raise MalformedText("more text after the record's end")

    def _rescuing(self, stream: TokenStream) -> list[Row]:
        if stream.found == "{":
            return [self._rescued_row(stream)]
        rows = list[Row]()
        if stream.found == "[":
            while stream.next() == "{":
                rows.append(self._rescued_row(stream))
        if stream.found != "]":
            raise misfit(stream.found or "nothing", "an object")
        return rows

    def _rescued_row(self, stream: TokenStream) -> Row:
        """One object; what has no column or does not fit it goes to the column for such."""
        row: Row = {}
        rescued: dict[str, str] = {}
        while stream.next() == "name":
            name = stream.name or ""
            stream.next()
            raw = stream.raw()
            if name not in self._fields:
                rescued[name] = raw.decode("utf-8", "replace")
                continue
            # From its own text, so that what does not fit cannot take its neighbours along.
            value = TokenStream(raw, self._options)
            value.next()
            try:
                row[name] = self._fields[name](value)
                if (more := self.unknown_fields.nested(name, raw)) is not None:
                    rescued[name] = more
            except Misfit as err:
                row[name] = err.value if isinstance(err, Partial) else None
                rescued[name] = raw.decode("utf-8", "replace")
        if rescued:
            parts = (
                f"{json.dumps(name, ensure_ascii=False)}:{raw}" for name, raw in rescued.items()
            )
            row[self._rescued] = "{" + ",".join(parts) + "}"
        return row

    def _bad(
        self, rows: list[Row], record: bytes, problem: str, where: Callable[[], str]
    ) -> tuple[list[Row], str]:
        if self._mode is ParseMode.FAILFAST:
            raise malformed(where(), problem, "a JSON object that fits the schema")
        if self._mode is ParseMode.DROPMALFORMED:
            return [], problem or "malformed"
        if self._corrupt:
            text = record.decode("utf-8", "replace")
            rows = [{**row, self._corrupt: text} for row in rows]
        return rows, ""
