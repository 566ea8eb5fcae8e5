"""JSON records as batches under the reader's mode: the exact path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from .....errors import MalformedDataError
from ...evolution.new_columns import NewColumnsSeen, written
from ...evolution.type_growth import is_variant
from ...options import ParseMode, ReaderOptions
from ...values.rows import batch_of, gc_paused
from ...values.times.temporal import Temporal
from ..records.outcome import RecordRows
from ..records.record_format import malformed
from ..records.unknown_fields import UnknownFields
from .flat_records import NAME_ESCAPED, record_type
from .json_values import misfit
from .raw_records import Texts, named, readers
from .strict_json import NoRecord, NotJson, decoded, tree_of, trees
from .strict_json import written as as_written

_ANY = msgspec.json.Decoder(msgspec.Raw)

_All = dict[str, msgspec.Raw]

Where = Callable[[int], str]
"""Names the place of a record, by its number."""


class Records(NamedTuple):
    """The content of records, before it is decided what becomes of those that do not fit."""

    batch: pa.RecordBatch
    rows_of: list[int]
    """Rows of each record."""

    problems: dict[int, str]
    """Problems, by the number of the record."""


class Kept(NamedTuple):
    """Records as the mode leaves them."""

    batch: pa.RecordBatch
    rows_of: list[int]
    dropped: dict[int, str]
    """Why a record is dropped, by its number."""


class JsonRows(RecordRows):
    """Reads records exactly, and applies the mode."""

    expected = "a JSON object that fits the schema"

    def __init__(
        self,
        schema: pa.Schema,
        data: pa.Schema,
        options: ReaderOptions,
        temporal: Temporal,
        query_columns: frozenset[str],
    ) -> None:
        """Raises TypeError for a column type that JSON cannot be read into."""
        super().__init__(schema, data, options)
        self.unknown_fields = UnknownFields(data, options, query_columns)
        self._readers = readers(data, options, temporal)
        self._nested = [f.name for f in data if pa.types.is_nested(f.type)]
        self.keeps_text = bool(self._corrupt)
        """True if the schema has a column for the text of malformed records."""
        self._single = options.single_variant_column
        if self._single and (data.names != [self._single] or not is_variant(data.types[0])):
            raise TypeError(f"columns other than the one variant {self._single}")
        # A dictionary has all fields of a record, an object of a type only those of the schema.
        self._has_all = bool(self._rescued or self._single) or self.unknown_fields.stops
        self._has_all |= any(NAME_ESCAPED.search(name) for name in data.names)
        fields = [(name, msgspec.Raw) for name in data.names]
        one: Any = _All if self._has_all else record_type(fields, known_only=False)
        self._one, self._many = msgspec.json.Decoder(one), msgspec.json.Decoder(list[one])

    def read(self, records: Sequence[bytes], where: Where, *, elements: bool = False) -> Records:
        """Read records, of which one may have several rows; `elements` are objects and no arrays.

        Raises:
            NotJson: an element is not an object, or none by itself.
            NewColumnsSeen: one has fields that the schema does not have, if that stops the query.
        """
        objects, rows_of, problems = list[Any](), list[int](), dict[int, str]()
        with gc_paused():
            for number, record in enumerate(records):
                try:
                    rows = self._objects(record, elements=elements)
                    if self.unknown_fields.stops:
                        self._stop_for_new(record, rows, number, where)
                except NoRecord:
                    rows = []
                except (ValueError, msgspec.ValidationError) as err:
                    if elements:
                        raise NotJson(str(err)) from err
                    # A record that is not JSON has no values, and is a row of nulls.
                    problems[number], rows = str(err), [self._one.decode(b"{}")]
                objects += rows
                rows_of.append(len(rows))
            batch, lost = self._columns(objects)
        if not self._rescued:
            owners = np.repeat(np.arange(len(records)), rows_of).tolist()
            for row, problem in lost.items():
                problems.setdefault(owners[row], problem)
        return Records(batch, rows_of, dict(sorted(problems.items())))

    def keep(self, read: Records, records: Sequence[bytes], where: Where) -> Kept:
        """Decide what becomes of the records that do not fit.

        Raises:
            MalformedDataError: there is one, under `FAILFAST`.
        """
        batch, rows_of, problems = read
        if not problems:
            return Kept(batch, rows_of, {})
        first = next(iter(problems))
        if self._options.mode is ParseMode.FAILFAST:
            raise self.error(where(first), problems[first])
        good = np.ones(len(records), bool)
        good[list(problems)] = False
        if self._options.mode is ParseMode.DROPMALFORMED:
            mask = pa.array(np.repeat(good, rows_of))
            counts = [count if kept else 0 for count, kept in zip(rows_of, good, strict=True)]
            return Kept(batch.filter(mask), counts, problems)
        if self._corrupt:
            texts = [
                records[at].decode("utf-8", "replace") if at in problems else None
                for at in np.repeat(np.arange(len(records)), rows_of).tolist()
            ]
            index = batch.schema.get_field_index(self._corrupt)
            batch = batch.set_column(index, batch.schema.field(index), pa.array(texts, pa.string()))
        return Kept(batch, rows_of, {})

    def error(self, where: str, problem: str) -> MalformedDataError:
        """Return the error for a record, under `FAILFAST`."""
        return malformed(where, problem, self.expected)

    def refused(self, problem: str) -> Records:
        """Return one record that is not JSON."""
        return Records(batch_of(self.out_schema, 1), [1], {0: problem})

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

    def _objects(self, record: bytes, *, elements: bool) -> list[Any]:
        head = record.lstrip()[:1]
        if self._single:
            return [{self._single: decoded(_ANY, record, self._options)}]
        if head == b"{":
            return [decoded(self._one, record, self._options)]
        if head == b"[" and not elements:
            return decoded(self._many, record, self._options)
        value = bytes(decoded(_ANY, record, self._options))
        if elements or value[:1] not in (b"{", b"["):
            raise misfit(value.decode(), "an object")
        # Behind a byte order mark, or in another encoding.
        return self._objects(value, elements=elements)

    def _stop_for_new(self, record: bytes, rows: Sequence[_All], number: int, where: Where) -> None:
        if any(self.unknown_fields.may_be_in(row) for row in rows):
            columns = self.unknown_fields.of_records(trees(record, self._options))
            if not pa.types.is_null(columns):
                raise NewColumnsSeen(where(number), columns)

    def _columns(self, objects: Sequence[Any]) -> tuple[pa.RecordBatch, dict[int, str]]:
        """Return the batch, and what does not fit by row."""
        columns, problems = dict[str, pa.Array](), dict[int, str]()
        rescued = list[dict[str, str]]([{} for _ in objects] if self._rescued else ())
        texts_of = self._texts(objects)
        for name, reader in self._readers.items():
            texts = next(texts_of, ())
            column = reader(texts)
            columns[name] = column.array
            lost = named(name, column)
            problems = lost | problems
            for at in lost if self._rescued else ():
                text = texts[at]
                rescued[at][name] = as_written(bytes(text)) if text is not None else ""
        if self._rescued:
            for row, more in zip(objects, rescued, strict=True):
                self._add_unknown(row, more)
            values = [written(more, str) if more else None for more in rescued]
            columns[self._rescued] = pa.array(values, pa.string())
        return batch_of(self.out_schema, len(objects), columns), problems

    def _texts(self, objects: Sequence[Any]) -> Iterator[Texts]:
        """Yield the texts of each column."""
        if self._has_all:
            return ([row.get(name) for row in objects] for name in self._readers)
        return zip(*map(msgspec.structs.astuple, objects), strict=True)

    def _add_unknown(self, row: _All, more: dict[str, str]) -> None:
        for name, text in row.items():
            if name not in self._readers:
                more[name] = as_written(bytes(text))
        for name in self._nested:
            if name in row and name not in more:
                part = self.unknown_fields.within(name, tree_of(bytes(row[name]), self._options))
                if part is not None:
                    more[name] = part
