"""JSON records as rows: the exact path, by the rules of Spark's reader.

A value that does not fit is a `ValueMisfit`; fields of a struct, elements of an array and values of
a map that do fit are kept, as a `Partial` that goes up. Where Spark goes on after an error is in
`tokenizer.py`; what it does then falls out of reading on. Single values are in `json_values.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa

from ...evolution.type_growth import is_variant
from ...options import ReaderOptions
from ...values.rows import Row
from ...values.times.temporal import Temporal
from ...values.variant.json_variant import encode
from ..records.outcome import Partial, RecordOutcome, RecordRows, ValueMisfit
from . import plain_records
from .json_text import MalformedText, recoded
from .json_values import clean, misfit, scalar
from .tokenizer import TokenStream, UnknownJsonFields, tree_of

Convert = Callable[[TokenStream], Any]
_types = pa.types


def converters(
    fields: pa.Schema | pa.StructType, options: ReaderOptions, temporal: Temporal
) -> dict[str, Convert]:
    """Return one `converter` for each field."""
    return {field.name: converter(field.type, options, temporal) for field in fields}


def converter(kind: pa.DataType, options: ReaderOptions, temporal: Temporal) -> Convert:
    """A function from a stream at a value, or at its name, to what `pa.array` takes for `kind`.

    It raises `ValueMisfit`, or `MalformedText` of the stream.

    Raises:
        TypeError: JSON cannot be read into columns of this type.
    """
    if is_variant(kind):
        # The one type that has a null of its own, as which Spark reads JSON's.
        return variant_of
    if _types.is_struct(kind):
        fields = converters(kind, options, temporal)
        return _opened("{", "an object", lambda stream: struct_of(stream, fields))
    if _types.is_list(kind):
        inner = converter(kind.value_type, options, temporal)
        return _opened("[", "an array", lambda stream: _array(stream, inner))
    if _types.is_map(kind):
        if not _types.is_string(kind.key_type):
            raise TypeError("JSON can be read only into maps with string keys")
        inner = converter(kind.item_type, options, temporal)
        return _opened("{", "an object", lambda stream: _map(stream, inner))
    if _types.is_string(kind):
        return _string
    if _types.is_binary(kind):
        return _binary
    return _scalar(kind, options, temporal)


def rows_of(stream: TokenStream, fields: Mapping[str, Convert]) -> list[dict[str, Any]]:
    """Return the rows of a record whose first token has been taken: an object, or an array of them.

    Raises:
        Partial: with the rows, of which a value does not fit.
        ValueError: nothing of the record fits, or it is not JSON.
    """
    if stream.symbol == "{":
        try:
            return [struct_of(stream, fields)]
        except Partial as err:
            raise Partial(str(err), [err.value]) from err
    if stream.symbol == "[":
        return _array(stream, _opened("{", "an object", lambda s: struct_of(s, fields)), rows=True)
    raise misfit(stream.symbol or "nothing", "an object")


def struct_of(stream: TokenStream, fields: Mapping[str, Convert]) -> dict[str, Any]:
    """The known fields of the object that has been opened; of a name twice, the last that fits.

    A value that does not fit is no problem if a later one of its name does: the fast parsers see
    the last one only.
    """
    row: dict[str, Any] = {}
    problems: dict[str, str] = {}
    while stream.next() not in (None, "}"):
        name = stream.name
        convert = fields.get(name) if name is not None else None
        if name is None or convert is None:
            stream.skip_children()
            continue
        try:
            row[name] = convert(stream)
            # A later value of the name makes up for one that does not fit, but not for text that is
            # no JSON.
            if not stream.has_failed:
                problems.pop(name, None)
        except Partial as err:
            problems.setdefault(name, f"{name}: {err}")
            row[name] = err.value
        except ValueError as err:
            problems.setdefault(name, f"{name}: {err}")
            stream.skip_children()
    if problems:
        raise Partial(next(iter(problems.values())), row)
    return row


def variant_of(stream: TokenStream) -> dict[str, bytes]:
    """Return the next value as a variant, JSON's null included."""
    if stream.symbol == "name":
        stream.next()
    value = tree_of(stream)
    try:
        return encode(value)
    except ValueError as err:
        raise ValueMisfit(str(err)) from err


def _opened(bracket: str, expected: str, convert: Convert) -> Convert:
    def converted(stream: TokenStream) -> Any:
        symbol = _value(stream)
        if symbol == bracket:
            return convert(stream)
        return None if symbol is None else _refuse(stream, expected)

    return converted


def _value(stream: TokenStream) -> str | None:
    """Return the token of the value at which the stream is; None for null and for nothing."""
    while stream.symbol == "name":
        stream.next()
    return None if stream.symbol == "null" else stream.symbol


def _refuse(stream: TokenStream, expected: object) -> Any:
    # A string is read even so, and may turn out not to be one.
    raise misfit(
        stream.text() if stream.symbol == "string" else stream.symbol or "nothing", expected
    )


def _array(stream: TokenStream, inner: Convert, *, rows: bool = False) -> list[Any]:
    values: list[Any] = []
    problem = ""
    while stream.next() not in (None, "]"):
        try:
            value = inner(stream)
        except Partial as err:
            problem = problem or str(err)
            value = err.value
        # `JacksonParser` fails at a null between records, while a null element of a column is a
        # value.
        if rows and value is None:
            raise misfit("null", "an object")
        values.append(value)
    if problem:
        raise Partial(problem, values)
    return values


def _map(stream: TokenStream, inner: Convert) -> list[tuple[str, Any]]:
    """Return all entries as written, names that come twice included; none if a value is bad."""
    entries: list[tuple[str, Any]] = []
    partial, bad = "", ""
    while stream.next() not in (None, "}"):
        name = clean(stream.name or "")
        try:
            entries.append((name, inner(stream)))
        except Partial as err:
            partial = partial or f"{name}: {err}"
            entries.append((name, err.value))
        except ValueError as err:
            bad = bad or f"{name}: {err}"
            stream.skip_children()
    if bad:
        raise ValueMisfit(bad)
    if partial:
        raise Partial(partial, entries)
    return entries


def _string(stream: TokenStream) -> str | None:
    """Text; of anything else the text as it was written."""
    symbol = _value(stream)
    if symbol is None:
        return None
    if symbol == "string":
        return clean(stream.text())
    return stream.raw().decode("utf-8", "replace")


def _binary(stream: TokenStream) -> bytes | None:
    symbol = _value(stream)
    if symbol == "string":
        return stream.base64()
    return None if symbol is None else _refuse(stream, "base64 text")


def _scalar(kind: pa.DataType, options: ReaderOptions, temporal: Temporal) -> Convert:
    convert = scalar(kind, options, temporal)

    def converted(stream: TokenStream) -> Any:
        symbol = _value(stream)
        if symbol is None:
            return None
        if symbol in ("string", "int", "float"):
            return convert(symbol, stream.text())
        return convert(symbol, symbol)

    return converted


class JsonRows(RecordRows):
    """Makes rows of records under the reader's mode."""

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
        self.unknown_fields = UnknownJsonFields(data, options, query_columns)
        self._fields = converters(data, options, temporal)
        self._takers = plain_records.takers(data, options, temporal)
        self._texts = [f.name for f in data if pa.types.is_string(f.type)]
        self.keeps_text = bool(self._corrupt)
        """True if the schema has a column for the text of malformed records."""
        self._single = options.single_variant_column
        if self._single and (data.names != [self._single] or not is_variant(data.types[0])):
            raise TypeError(f"columns other than the one variant {self._single}")

    def of_record(self, record: bytes, where: Callable[[], str]) -> RecordOutcome:
        """Parse one record, which may have several rows.

        Raises:
            MalformedDataError: the record does not parse or fit, under `FAILFAST`.
            NewColumnsSeen: it has fields that the schema does not have, if that stops the query.
        """
        # Before the mode applies: a new field stops the query, also in a record that does not fit.
        self.unknown_fields.look(record, where)
        try:
            return RecordOutcome(self._plain(record))
        except plain_records.REFUSALS:
            pass
        try:
            return RecordOutcome(self._read(record))
        except Partial as err:
            return self.refuse(err.value, record, str(err), where)
        except ValueError as err:
            # As in Spark, a record of which nothing fits is one row of nulls.
            return self.refuse([{}], record, str(err), where)

    def of_element(self, element: bytes, where: Callable[[], str]) -> Row:
        """Return the row of one element of a document that is an array.

        Raises:
            Partial: with the row, of which a value does not fit.
            ValueError: it is not an object, or none by itself.
            NewColumnsSeen: as for a record.
        """
        self.unknown_fields.look(element, where)
        if element.lstrip()[:1] != b"{":
            raise MalformedText("an element that is not an object")
        with suppress(*plain_records.REFUSALS):
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
        value = plain_records.parsed(record, self._options)
        if self._single:
            value = {self._single: value}
        plain_records.keep_written(value, self._texts, record)
        rows = plain_records.rows_of(value, self._takers)
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
        if stream.symbol == "{":
            return [self._rescued_row(stream)]
        rows = list[Row]()
        if stream.symbol == "[":
            while stream.next() == "{":
                rows.append(self._rescued_row(stream))
        if stream.symbol != "]":
            raise misfit(stream.symbol or "nothing", "an object")
        return rows

    def _rescued_row(self, stream: TokenStream) -> Row:
        """Return one object; what has no column or does not fit it goes to the column for such."""
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
            except ValueMisfit as err:
                row[name] = err.value if isinstance(err, Partial) else None
                rescued[name] = raw.decode("utf-8", "replace")
        return self.rescue(row, rescued, str)
