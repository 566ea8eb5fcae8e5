"""Many records at once: plain ones are taken apart and converted by whole columns.

A record is plain if it has elements, attributes and texts, each at a place of its own in the
schema. Comments, CDATA sections, mixed content, what has no place, what is not well-formed and
values that do not fit are not: such records are read one by one (`element_values.py`).
`PlainRecords` refuses a block if it is not sure of each record in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...options import ReaderOptions
from ...values.numbers import decimals
from ...values.strings import BLANKS
from ...values.times.temporal import Temporal
from .elements import ByName, XmlNames
from .plain_tags import ENTITIES, WHITE, Elements, NotPlain, Tags
from .xml_types import scalar

_types = pa.types


class PlainRecords:
    """Reads blocks of records into the columns of a schema."""

    def __init__(self, data: pa.Schema, options: ReaderOptions, temporal: Temporal) -> None:
        self._names, self._temporal = XmlNames(options), temporal
        self._data = data
        self._ignores_attributes = options.exclude_attribute
        self._root = _columns_of(data)
        self.is_possible = (
            not options.row_validation_xsd_path
            and data.get_field_index(options.wildcard_col_name) < 0
            and all(map(_is_plain, data.types))
        )
        self._may_skip = not options.keeps_every_field
        self._tags = Tags(self._names)

    def columns(self, records: Sequence[bytes]) -> dict[str, pa.Array] | None:
        """Return the columns that the records have; None if some record is not plain."""
        try:
            tokens = self._tags.of(records)
            slots = np.arange(len(records))
            return self._fields(self._root, tokens, 0, slots, is_record=True)
        except (NotPlain, ValueError, pa.ArrowException):
            return None

    def _fields(
        self,
        fields: ByName[_Column],
        tokens: Elements,
        level: int,
        slots: np.ndarray,
        *,
        is_record: bool,
    ) -> dict[str, pa.Array]:
        """Return the fields of the elements of a level; `slots` are their rows, or -1 for no row.

        A record without a column has nulls there.
        """
        columns: dict[str, pa.Array] = {}
        elements = tokens.elements(level)
        rows = int(slots.max(initial=-1)) + 1
        mine = elements.places[slots >= 0]
        attributes = {} if self._ignores_attributes else tokens.attributes(mine)
        for name, (where, texts) in attributes.items():
            column = fields.find(self._names.attribute_prefix + name)
            if column is None:
                self._skip()
                continue
            if column.name in columns or _types.is_nested(column.type):
                raise NotPlain
            array = self._scalars(texts, column.type, blank_is_null=False)
            columns[column.name] = _scattered(array, where, rows)
        self._take_texts(fields, tokens, mine, rows, columns, is_record=is_record)
        if level + 1 >= tokens.levels:
            return columns
        inner = tokens.elements(level + 1)
        parents = slots[inner.parents]
        inside = parents >= 0
        for code in np.unique(inner.names[inside]).tolist():
            column = fields.find(tokens.names[code])
            chosen = np.flatnonzero(inside & (inner.names == code))
            if column is None:
                self._skip()
                continue
            if column.name in columns:
                raise NotPlain
            array = self._elements(column, tokens, level + 1, chosen)
            columns[column.name] = _nested(column, array, parents[chosen], rows)
        return columns

    def _skip(self) -> None:
        if not self._may_skip:
            raise NotPlain

    def _take_texts(
        self,
        fields: ByName[_Column],
        tokens: Elements,
        places: np.ndarray,
        rows: int,
        columns: dict[str, pa.Array],
        *,
        is_record: bool,
    ) -> None:
        """Take the texts of elements without others in them; no others may have any."""
        leaves = tokens.is_leaf[places]
        texts = tokens.texts(places[leaves])
        has_text = pc.not_equal(pc.utf8_trim(texts, WHITE), "").fill_null(False)
        if not pc.any(has_text).as_py():
            return
        column = fields.exact.get(self._names.value_tag)
        if column is None or _types.is_nested(column.type) or column.name in columns or is_record:
            raise NotPlain
        kept = pc.if_else(has_text, texts, None)
        array = self._scalars(_unescaped(kept), column.type, blank_is_null=False)
        columns[column.name] = _scattered(array, np.flatnonzero(leaves), rows)

    def _elements(
        self, column: _Column, tokens: Elements, level: int, chosen: np.ndarray
    ) -> pa.Array:
        """Return the values of some elements of a level."""
        places = tokens.elements(level).places[chosen]
        if column.fields is not None:
            slots = np.full(len(tokens.elements(level).places), -1)
            slots[chosen] = np.arange(len(chosen))
            inner = self._fields(column.fields, tokens, level, slots, is_record=False)
            kind = column.value_type
            arrays = [inner.get(field.name, pa.nulls(len(chosen), field.type)) for field in kind]
            return pa.StructArray.from_arrays(arrays, fields=list(kind))
        if not tokens.is_leaf_or_empty[places].all():
            raise NotPlain
        # Behind an element without content is a text of the element around it.
        texts, has_text = tokens.texts(places), tokens.is_leaf[places]
        if not has_text.all():
            texts = pc.if_else(pa.array(has_text), texts, None)
        if tokens.has_entities:
            texts = _unescaped(texts)
        if _types.is_string(column.value_type):
            texts = texts.fill_null("")
        return self._scalars(texts, column.value_type, blank_is_null=True)

    def _scalars(
        self, texts: pa.StringArray, kind: pa.DataType, *, blank_is_null: bool
    ) -> pa.Array:
        names = self._names
        bare = pc.utf8_trim(texts, BLANKS) if _has_blanks(texts) else texts
        if blank_is_null and not _types.is_string(kind) and _has_empty(bare):
            is_blank = pc.equal(bare, "")
            texts, bare = pc.if_else(is_blank, None, texts), pc.if_else(is_blank, None, bare)
        if names.trims:
            texts = bare
        if names.null is not None:
            texts = pc.if_else(pc.equal(texts, names.null), None, texts)
        if _types.is_string(kind):
            return texts
        try:
            return _converted(texts, kind, self._temporal)
        except (ValueError, pa.ArrowException):
            convert = scalar(kind, self._temporal)
            values = (None if text is None else convert(text) for text in texts.to_pylist())
            return pa.array(list(values), kind)


def _has_blanks(texts: pa.StringArray) -> bool:
    return bool((np.frombuffer(texts.buffers()[2] or b"", np.uint8) <= ord(" ")).any())


def _has_empty(texts: pa.StringArray) -> bool:
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return bool((ends[1:] == ends[:-1]).any())


def _converted(texts: pa.StringArray, kind: pa.DataType, temporal: Temporal) -> pa.Array:
    """Return texts of a column as values.

    Raises:
        ValueError: a text that this cannot read, or not with certainty.
    """
    if _types.is_integer(kind):
        # Arrow reads some that Java does not, such as 0x10.
        digits = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
        if (((digits < ord("0")) | (digits > ord("9"))) & (digits != ord("-"))).any():
            raise ValueError("a number with something else than digits")
        return texts.cast(kind)
    if _types.is_floating(kind):
        values = texts.cast(kind)
        # Arrow reads more words than Java, and rounds what is too large to infinity.
        if not pc.all(pc.is_finite(values)).as_py():
            raise ValueError("not a finite number")
        return values
    if _types.is_decimal(kind):
        return decimals(texts, kind)
    if _types.is_boolean(kind):
        word = pc.index_in(texts, pa.array(["false", "true", "0", "1"]))
        if word.null_count > texts.null_count:
            raise ValueError("no usual word")
        return pc.equal(pc.bit_wise_and(word, 1), 1)
    return temporal.column(texts, kind)


def _unescaped(texts: pa.StringArray) -> pa.StringArray:
    if pc.any(pc.match_substring(texts, "&")).as_py():
        for entity, character in ENTITIES.items():
            texts = pc.replace_substring(texts, entity, character)
    return texts


def _nested(column: _Column, values: pa.Array, rows_of: np.ndarray, rows: int) -> pa.Array:
    """Return the values at their rows, or as lists of them."""
    if not column.is_list:
        if (np.diff(rows_of) == 0).any():
            raise NotPlain
        return _scattered(values, rows_of, rows)
    counts = np.bincount(rows_of, minlength=rows)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    mask = None if (counts > 0).all() else pa.array(counts == 0)
    return pa.ListArray.from_arrays(offsets, values, type=column.type, mask=mask)


def _scattered(values: pa.Array, rows_of: np.ndarray, rows: int) -> pa.Array:
    """Return the values at their rows, and nulls between."""
    if len(values) == rows:
        return values
    places = np.full(rows, -1)
    places[rows_of] = np.arange(len(values))
    return values.take(pa.array(places, mask=places < 0))


def _is_plain(kind: pa.DataType) -> bool:
    if _types.is_map(kind) or kind == pa.struct([]):
        return False
    return all(_is_plain(kind.field(at).type) for at in range(kind.num_fields))


@dataclass(frozen=True)
class _Column:
    name: str
    type: pa.DataType
    value_type: pa.DataType
    fields: ByName[_Column] | None
    """Those of a struct."""

    @property
    def is_list(self) -> bool:
        return bool(self.value_type != self.type)


def _columns_of(fields: Iterable[pa.Field]) -> ByName[_Column]:
    return ByName({field.name: _column(field) for field in fields})


def _column(field: pa.Field) -> _Column:
    kind = field.type
    value = kind.value_type if _types.is_list(kind) else kind
    inner = _columns_of(value) if _types.is_struct(value) else None
    return _Column(field.name, kind, value, inner)
