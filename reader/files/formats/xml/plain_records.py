"""Many records at once: plain ones are taken apart and converted by whole columns.

A record is plain if it has elements, attributes and texts, each at a place of its own in the
schema. Comments, CDATA sections, mixed content, what has no place, what is not well-formed and
values that do not fit are not: such records are read one by one (`element_values.py`).
`PlainRecords` refuses a block if it is not sure of each record in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...options import ReaderOptions
from ...values.numbers import decimals
from ...values.strings import BLANKS
from ...values.times.temporal import Temporal
from .elements import XmlNames
from .xml_types import scalar

_types = pa.types
_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*(?::[A-Za-z_][A-Za-z0-9_.-]*)?"
# With empty values.
_TAG = re.compile(rf"<(/?)({_NAME})((?:[ \t\n]+{_NAME}\s*=\s*\"\")*)\s*(/?)>")
_ATTRIBUTE = re.compile(rf"({_NAME})\s*=")
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&amp;": "&"}
"""The last one is looked up last: `&amp;lt;` is the text `&lt;`."""
_NO_CHARACTERS = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")
_LINE_ENDS = (b"\t", b"\n")
_DEEPEST = 100
_WHITE = " \t\n"
_KNOWN_TAGS = 10_000
"""Tags that are remembered between blocks."""


class _NotPlain(Exception):
    """Some record of the block has to be read by itself."""


class PlainRecords:
    """Reads blocks of records into the columns of a schema."""

    def __init__(self, data: pa.Schema, options: ReaderOptions, temporal: Temporal) -> None:
        self._names, self._temporal = XmlNames(options), temporal
        self._data = data
        self._ignores_attributes = options.exclude_attribute
        self._root = _Node(data, self._names)
        self.is_possible = (
            not options.row_validation_xsd_path
            and data.get_field_index(options.wildcard_col_name) < 0
            and all(map(_is_plain, data.types))
        )
        self._may_skip = not options.keeps_every_field
        self._tags: dict[str, _Tag] = {}

    def columns(self, records: Sequence[bytes]) -> dict[str, pa.Array] | None:
        """Return the columns that the records have; None if some record is not plain."""
        try:
            tokens = self._tokens(records)
            slots = np.arange(len(records))
            return self._fields(self._root, tokens, 0, slots, is_record=True)
        except (_NotPlain, ValueError, pa.ArrowException):
            return None

    def _tokens(self, records: Sequence[bytes]) -> _Tokens:
        data = b"".join(records)
        if b"]]>" in data or (not data.isascii() and any(map(data.__contains__, _NO_CHARACTERS))):
            raise _NotPlain
        if b"\r" in data:
            # Before anything is parsed, says the specification.
            records = [r.replace(b"\r\n", b"\n").replace(b"\r", b"\n") for r in records]
            data = b"".join(records)
        raw = np.frombuffer(data, np.uint8)
        if b"&" in data:
            _require_entities(raw)
        if np.count_nonzero(raw < ord(" ")) != sum(map(data.count, _LINE_ENDS)):
            raise _NotPlain
        begins, ends = np.flatnonzero(raw == ord("<")), np.flatnonzero(raw == ord(">")) + 1
        # A text may have more of these.
        if len(ends) != len(begins):
            ends = np.append(ends, len(raw))[np.searchsorted(ends, begins, side="right")]
        # Of tags and the texts behind them in turn.
        offsets = np.empty(2 * len(begins) + 1, np.int32)
        offsets[0:-1:2], offsets[1:-1:2], offsets[-1] = begins, ends, len(raw)
        if offsets[0] or (np.diff(offsets) < 0).any():
            raise _NotPlain
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        parts = pa.Array.from_buffers(pa.binary(), 2 * len(begins), buffers).cast(pa.string())
        tags = parts.take(pa.array(np.arange(0, len(parts), 2))).dictionary_encode()
        lengths = np.fromiter(map(len, records), np.int64, len(records))
        starts = np.cumsum(lengths) - lengths
        found = _Tokens(parts, tags, self._tag)
        found.has_entities = b"&" in data
        if not np.array_equal(begins[found.elements(0).places], starts):
            raise _NotPlain
        return found

    def _tag(self, text: str) -> _Tag:
        tag = self._tags.get(text)
        if tag is None:
            tag = _tag_of(text, self._names)
            if len(self._tags) < _KNOWN_TAGS:
                self._tags[text] = tag
        return tag

    def _fields(
        self, node: _Node, tokens: _Tokens, level: int, slots: np.ndarray, *, is_record: bool
    ) -> dict[str, pa.Array]:
        """Return the fields of the elements of a level; `slots` are their rows, or -1 for no row.

        A record without a column has nulls there.
        """
        found: dict[str, pa.Array] = {}
        elements = tokens.elements(level)
        rows = int(slots.max(initial=-1)) + 1
        mine = elements.places[slots >= 0]
        attributes = {} if self._ignores_attributes else tokens.attributes(mine)
        for name, (where, texts) in attributes.items():
            column = node.find(self._names.attribute_prefix + name)
            if column is None:
                self._skip()
                continue
            if column.name in found or _types.is_nested(column.type):
                raise _NotPlain
            array = self._scalars(texts, column.type, blank_is_null=False)
            found[column.name] = _scattered(array, where, rows)
        self._take_texts(node, tokens, mine, rows, found, is_record=is_record)
        if level + 1 >= tokens.levels:
            return found
        inner = tokens.elements(level + 1)
        parents = slots[inner.parents]
        inside = parents >= 0
        for code in np.unique(inner.names[inside]).tolist():
            column = node.find(tokens.names[code])
            chosen = np.flatnonzero(inside & (inner.names == code))
            if column is None:
                self._skip()
                continue
            if column.name in found:
                raise _NotPlain
            array = self._elements(column, tokens, level + 1, chosen)
            found[column.name] = _nested(column, array, parents[chosen], rows)
        return found

    def _skip(self) -> None:
        if not self._may_skip:
            raise _NotPlain

    def _take_texts(
        self,
        node: _Node,
        tokens: _Tokens,
        places: np.ndarray,
        rows: int,
        found: dict[str, pa.Array],
        *,
        is_record: bool,
    ) -> None:
        """Take the texts of elements without others in them; no others may have any."""
        leaves = tokens.is_leaf[places]
        texts = tokens.texts(places[leaves])
        has_text = pc.not_equal(pc.utf8_trim(texts, _WHITE), "").fill_null(False)
        if not pc.any(has_text).as_py():
            return
        column = node.find_exactly(self._names.value_tag)
        if column is None or _types.is_nested(column.type) or column.name in found or is_record:
            raise _NotPlain
        kept = pc.if_else(has_text, texts, None)
        array = self._scalars(_unescaped(kept), column.type, blank_is_null=False)
        found[column.name] = _scattered(array, np.flatnonzero(leaves), rows)

    def _elements(
        self, column: _Column, tokens: _Tokens, level: int, chosen: np.ndarray
    ) -> pa.Array:
        """Return the values of some elements of a level."""
        places = tokens.elements(level).places[chosen]
        if column.node is not None:
            slots = np.full(len(tokens.elements(level).places), -1)
            slots[chosen] = np.arange(len(chosen))
            fields = self._fields(column.node, tokens, level, slots, is_record=False)
            kind = column.value_type
            arrays = [fields.get(field.name, pa.nulls(len(chosen), field.type)) for field in kind]
            return pa.StructArray.from_arrays(arrays, fields=list(kind))
        if not tokens.is_leaf_or_empty[places].all():
            raise _NotPlain
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


def _require_entities(raw: np.ndarray) -> None:
    places = np.flatnonzero(raw == ord("&"))
    count = 0
    for entity in _ENTITIES:
        found = places[places + len(entity) <= len(raw)]
        for at, byte in enumerate(entity.encode()):
            found = found[raw[found + at] == byte]
        count += len(found)
    if count < len(places):
        raise _NotPlain


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
        found = pc.index_in(texts, pa.array(["false", "true", "0", "1"]))
        if found.null_count > texts.null_count:
            raise ValueError("no usual word")
        return pc.equal(pc.bit_wise_and(found, 1), 1)
    return temporal.column(texts, kind)


def _unescaped(texts: pa.StringArray) -> pa.StringArray:
    if pc.any(pc.match_substring(texts, "&")).as_py():
        for entity, character in _ENTITIES.items():
            texts = pc.replace_substring(texts, entity, character)
    return texts


def _nested(column: _Column, values: pa.Array, rows_of: np.ndarray, rows: int) -> pa.Array:
    """Return the values at their rows, or as lists of them."""
    if not column.is_list:
        if (np.diff(rows_of) == 0).any():
            raise _NotPlain
        return _scattered(values, rows_of, rows)
    counts = np.bincount(rows_of, minlength=rows)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    valid = pa.array(counts > 0)
    buffers = [None if (counts > 0).all() else valid.buffers()[1], pa.py_buffer(offsets)]
    return pa.Array.from_buffers(column.type, rows, buffers, children=[values])


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
    node: _Node | None
    """The fields of a struct."""

    @property
    def is_list(self) -> bool:
        return bool(self.value_type != self.type)


class _Node:
    """The fields of a record or of a struct, found as in `element_values.py`."""

    def __init__(self, fields: Iterable[pa.Field], names: XmlNames) -> None:
        columns = [_column(field, names) for field in fields]
        self._exact = {column.name: column for column in columns}
        self._folded = {column.name.lower(): column for column in reversed(columns)}

    def find(self, name: str) -> _Column | None:
        """Return the column of an element or attribute."""
        return self._exact.get(name) or self._folded.get(name.lower())

    def find_exactly(self, name: str) -> _Column | None:
        """Return the column of this very name."""
        return self._exact.get(name)


def _column(field: pa.Field, names: XmlNames) -> _Column:
    kind = field.type
    value = kind.value_type if _types.is_list(kind) else kind
    return _Column(
        field.name, kind, value, _Node(value, names) if _types.is_struct(value) else None
    )


class _Tag(NamedTuple):
    """What a tag says, values of attributes excepted."""

    step: int
    """1 for a start, -1 for an end, 0 for an element without content."""
    name: str
    """As it is written."""
    field: str
    attributes: tuple[str, ...]


def _tag_of(text: str, names: XmlNames) -> _Tag:
    match = _TAG.fullmatch(text)
    if match is None:
        raise _NotPlain
    ends, name, inner, is_empty = match.groups()
    written = _ATTRIBUTE.findall(inner)
    attributes = tuple(map(names.name, written))
    if (ends and (inner or is_empty)) or len({*written}) < len(written):
        raise _NotPlain
    # Two prefixes of one name, which the option leaves out.
    if len({*attributes}) < len(attributes):
        raise _NotPlain
    step = -1 if ends else 0 if is_empty else 1
    return _Tag(step, name, names.name(name), attributes)


def _with_one_quote(tags: pa.StringArray) -> pa.StringArray:
    """Return tags whose values are in double quotes; those with both kinds are not plain."""
    single = pc.match_substring(tags, "'")
    if pc.any(single).as_py():
        if pc.any(pc.and_(single, pc.match_substring(tags, '"'))).as_py():
            raise _NotPlain
        tags = pc.replace_substring(tags, "'", '"')
    return tags


class _Level(NamedTuple):
    """The elements of one depth, in order."""

    places: np.ndarray
    """Their tags."""
    parents: np.ndarray
    """Places in the level above."""
    names: np.ndarray


class _Tokens:
    """The tags of a block, each with the text behind it, as a tree of elements."""

    def __init__(
        self, parts: pa.StringArray, tags: pa.DictionaryArray, tag_of: Callable[[str], _Tag]
    ) -> None:
        """Raises _NotPlain for tags that do not match each other, and for mixed content."""
        self.has_entities = True
        self._parts, self._written = parts, tags.indices.to_numpy()
        quoted = _with_one_quote(tags.dictionary)
        shapes = pc.replace_substring_regex(quoted, '"[^"]*"', '""').dictionary_encode()
        # Blanks in values become spaces, and entities characters, which others do better.
        blanks = pc.count_substring_regex(quoted, "[\t\n&]")
        blanks_of_shapes = pc.count_substring_regex(shapes.dictionary, "[\t\n&]")
        if not blanks.equals(blanks_of_shapes.take(shapes.indices)):
            raise _NotPlain
        self._values = pc.split_pattern(quoted, '"')
        tags = [*map(tag_of, shapes.dictionary.to_pylist())]
        self._tags, codes = tags, shapes.indices.to_numpy()[self._written]
        self._codes = codes
        self.names = sorted({tag.field for tag in tags})
        steps = np.array([tag.step for tag in tags], np.int8)[codes]
        depths = np.cumsum(steps, dtype=np.int32)
        self._depths = depths - (steps > 0)
        self.levels = int(self._depths.max(initial=-1)) + 1
        if depths[-1] or self._depths.min() < 0 or self.levels > _DEEPEST:
            raise _NotPlain
        self._require_ends(steps)
        self._is_element = steps >= 0
        opens_leaf = np.zeros(len(steps), np.bool_)
        opens_leaf[:-1] = (steps[:-1] > 0) & (steps[1:] < 0)
        self.is_leaf = opens_leaf
        self.is_leaf_or_empty = opens_leaf | (steps == 0)
        # A start without a text is an element without one.
        gaps = self.texts(np.flatnonzero(~opens_leaf)).dictionary_encode().dictionary
        if any(gap.strip(_WHITE) for gap in gaps.to_pylist()):
            raise _NotPlain
        self._levels: dict[int, _Level] = {}

    def _require_ends(self, steps: np.ndarray) -> None:
        written = sorted({tag.name for tag in self._tags})
        names = np.array([written.index(tag.name) for tag in self._tags])[self._codes]
        pairs = np.flatnonzero(steps)
        # Of each depth, starts and ends take turns.
        pairs = pairs[np.argsort(self._depths[pairs].astype(np.int16), kind="stable")]
        if (names[pairs[::2]] != names[pairs[1::2]]).any():
            raise _NotPlain

    @cached_property
    def _fields_of_tags(self) -> np.ndarray:
        places = {name: at for at, name in enumerate(self.names)}
        return np.array([places[tag.field] for tag in self._tags])

    def elements(self, level: int) -> _Level:
        """Return the elements of a depth."""
        if level not in self._levels:
            places = np.flatnonzero(self._is_element & (self._depths == level))
            above = np.cumsum(self._is_element & (self._depths == level - 1), dtype=np.int32)
            parents = above[places] - 1
            names = self._fields_of_tags[self._codes[places]]
            self._levels[level] = _Level(places, parents, names)
        return self._levels[level]

    def texts(self, places: np.ndarray) -> pa.StringArray:
        """Return the texts behind some tags."""
        return self._parts.take(pa.array(2 * places + 1))

    def attributes(self, places: np.ndarray) -> dict[str, tuple[np.ndarray, pa.StringArray]]:
        """Return by name: which of the elements have it, and its texts."""
        codes = self._codes[places]
        found: dict[str, list[tuple[np.ndarray, pa.StringArray]]] = {}
        for code in np.unique(codes).tolist():
            if names := self._tags[code].attributes:
                where = np.flatnonzero(codes == code)
                values = self._values.take(pa.array(self._written[places[where]]))
                for at, name in enumerate(names):
                    texts = pc.list_element(values, 2 * at + 1)
                    found.setdefault(name, []).append((where, texts))
        return {name: _in_order(parts) for name, parts in found.items()}


def _in_order(
    parts: Sequence[tuple[np.ndarray, pa.StringArray]],
) -> tuple[np.ndarray, pa.StringArray]:
    if len(parts) == 1:
        return parts[0]
    where = np.concatenate([places for places, _ in parts])
    order = np.argsort(where)
    return where[order], pa.concat_arrays([texts for _, texts in parts]).take(pa.array(order))
