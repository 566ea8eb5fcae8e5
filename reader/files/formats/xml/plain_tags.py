"""The tags of many records at once, as a tree of elements in arrays.

What is not plain is refused: comments, sections, instructions, references to characters, mixed
content, deep nesting, names outside of ASCII, and what is not well-formed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .elements import XmlNames

_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*(?::[A-Za-z_][A-Za-z0-9_.-]*)?"
# With empty values.
_TAG = re.compile(rf"<(/?)({_NAME})((?:[ \t\n]+{_NAME}\s*=\s*\"\")*)\s*(/?)>")
_ATTRIBUTE = re.compile(rf"({_NAME})\s*=")
ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&amp;": "&"}
"""The last one is looked up last: `&amp;lt;` is the text `&lt;`."""
_NO_CHARACTERS = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")
_LINE_ENDS = (b"\t", b"\n")
_DEEPEST = 100
WHITE = " \t\n"
_KNOWN_TAGS = 10_000
"""Tags that are remembered between blocks."""


class NotPlain(Exception):
    """Some record of the block has to be read by itself."""


class Tags:
    """Takes records apart; remembers what tags say."""

    def __init__(self, names: XmlNames) -> None:
        self._tag = lru_cache(_KNOWN_TAGS)(lambda text: _tag_of(text, names))

    def of(self, records: Sequence[bytes]) -> Elements:
        """Return the elements of all records.

        Raises:
            NotPlain: at least one has something else in it.
        """
        data = b"".join(records)
        if b"]]>" in data or (not data.isascii() and any(map(data.__contains__, _NO_CHARACTERS))):
            raise NotPlain
        if b"\r" in data:
            # Before anything is parsed, says the specification.
            records = [r.replace(b"\r\n", b"\n").replace(b"\r", b"\n") for r in records]
            data = b"".join(records)
        raw = np.frombuffer(data, np.uint8)
        if b"&" in data:
            _require_entities(raw)
        if np.count_nonzero(raw < ord(" ")) != sum(map(data.count, _LINE_ENDS)):
            raise NotPlain
        begins, ends = np.flatnonzero(raw == ord("<")), np.flatnonzero(raw == ord(">")) + 1
        # A text may have more of these.
        if len(ends) != len(begins):
            ends = np.append(ends, len(raw))[np.searchsorted(ends, begins, side="right")]
        # Of tags and the texts behind them in turn.
        offsets = np.empty(2 * len(begins) + 1, np.int32)
        offsets[0:-1:2], offsets[1:-1:2], offsets[-1] = begins, ends, len(raw)
        if offsets[0] or (np.diff(offsets) < 0).any():
            raise NotPlain
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        parts = pa.Array.from_buffers(pa.binary(), 2 * len(begins), buffers).cast(pa.string())
        tags = parts.take(pa.array(np.arange(0, len(parts), 2))).dictionary_encode()
        lengths = np.fromiter(map(len, records), np.int64, len(records))
        starts = np.cumsum(lengths) - lengths
        elements = Elements(parts, tags, self._tag, has_entities=b"&" in data)
        if not np.array_equal(begins[elements.elements(0).places], starts):
            raise NotPlain
        return elements


def _require_entities(raw: np.ndarray) -> None:
    places = np.flatnonzero(raw == ord("&"))
    count = 0
    for entity in ENTITIES:
        starts = places[places + len(entity) <= len(raw)]
        for at, byte in enumerate(entity.encode()):
            starts = starts[raw[starts + at] == byte]
        count += len(starts)
    if count < len(places):
        raise NotPlain


class _Tag(NamedTuple):
    """The content of a tag, values of attributes excepted."""

    step: int
    """1 for a start, -1 for an end, 0 for an element without content."""
    name: str
    """As it is written."""
    field: str
    attributes: tuple[str, ...]


def _tag_of(text: str, names: XmlNames) -> _Tag:
    match = _TAG.fullmatch(text)
    if match is None:
        raise NotPlain
    ends, name, inner, is_empty = match.groups()
    written = _ATTRIBUTE.findall(inner)
    attributes = tuple(map(names.name, written))
    if (ends and (inner or is_empty)) or len({*written}) < len(written):
        raise NotPlain
    # Two prefixes of one name, which the option leaves out.
    if len({*attributes}) < len(attributes):
        raise NotPlain
    step = -1 if ends else 0 if is_empty else 1
    return _Tag(step, name, names.name(name), attributes)


def _with_one_quote(tags: pa.StringArray) -> pa.StringArray:
    """Return tags whose values are in double quotes; those with both kinds are not plain."""
    single = pc.match_substring(tags, "'")
    if pc.any(single).as_py():
        if pc.any(pc.and_(single, pc.match_substring(tags, '"'))).as_py():
            raise NotPlain
        tags = pc.replace_substring(tags, "'", '"')
    return tags


class Level(NamedTuple):
    """The elements of one depth, in order."""

    places: np.ndarray
    """Their tags."""
    parents: np.ndarray
    """Places in the level above."""
    names: np.ndarray


class Elements:
    """The tags of a block, each with the text behind it, as a tree of elements."""

    def __init__(
        self,
        parts: pa.StringArray,
        tags: pa.DictionaryArray,
        tag_of: Callable[[str], _Tag],
        *,
        has_entities: bool,
    ) -> None:
        """Raises NotPlain for tags that do not match each other, and for mixed content."""
        self.has_entities = has_entities
        self._parts, self._written = parts, tags.indices.to_numpy()
        quoted = _with_one_quote(tags.dictionary)
        shapes = pc.replace_substring_regex(quoted, '"[^"]*"', '""').dictionary_encode()
        # Blanks in values become spaces, and entities characters, which others do better.
        blanks = pc.count_substring_regex(quoted, "[\t\n&]")
        blanks_of_shapes = pc.count_substring_regex(shapes.dictionary, "[\t\n&]")
        if not blanks.equals(blanks_of_shapes.take(shapes.indices)):
            raise NotPlain
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
            raise NotPlain
        self._require_ends(steps)
        self._is_element = steps >= 0
        opens_leaf = np.zeros(len(steps), np.bool_)
        opens_leaf[:-1] = (steps[:-1] > 0) & (steps[1:] < 0)
        self.is_leaf = opens_leaf
        self.is_leaf_or_empty = opens_leaf | (steps == 0)
        # A start without a text is an element without one.
        gaps = self.texts(np.flatnonzero(~opens_leaf)).dictionary_encode().dictionary
        if any(gap.strip(WHITE) for gap in gaps.to_pylist()):
            raise NotPlain
        self._levels: dict[int, Level] = {}

    def _require_ends(self, steps: np.ndarray) -> None:
        written = sorted({tag.name for tag in self._tags})
        names = np.array([written.index(tag.name) for tag in self._tags])[self._codes]
        pairs = np.flatnonzero(steps)
        # Of each depth, starts and ends take turns.
        pairs = pairs[np.argsort(self._depths[pairs].astype(np.int16), kind="stable")]
        if (names[pairs[::2]] != names[pairs[1::2]]).any():
            raise NotPlain

    @cached_property
    def _fields_of_tags(self) -> np.ndarray:
        places = {name: at for at, name in enumerate(self.names)}
        return np.array([places[tag.field] for tag in self._tags])

    def elements(self, level: int) -> Level:
        """Return the elements of a depth."""
        if level not in self._levels:
            places = np.flatnonzero(self._is_element & (self._depths == level))
            above = np.cumsum(self._is_element & (self._depths == level - 1), dtype=np.int32)
            parents = above[places] - 1
            names = self._fields_of_tags[self._codes[places]]
            self._levels[level] = Level(places, parents, names)
        return self._levels[level]

    def texts(self, places: np.ndarray) -> pa.StringArray:
        """Return the texts behind some tags."""
        return self._parts.take(pa.array(2 * places + 1))

    def attributes(self, places: np.ndarray) -> dict[str, tuple[np.ndarray, pa.StringArray]]:
        """Return by name: which of the elements have it, and its texts."""
        codes = self._codes[places]
        parts_of: dict[str, list[tuple[np.ndarray, pa.StringArray]]] = {}
        for code in np.unique(codes).tolist():
            if names := self._tags[code].attributes:
                where = np.flatnonzero(codes == code)
                values = self._values.take(pa.array(self._written[places[where]]))
                for at, name in enumerate(names):
                    texts = pc.list_element(values, 2 * at + 1)
                    parts_of.setdefault(name, []).append((where, texts))
        return {name: _in_order(parts) for name, parts in parts_of.items()}


def _in_order(
    parts: Sequence[tuple[np.ndarray, pa.StringArray]],
) -> tuple[np.ndarray, pa.StringArray]:
    if len(parts) == 1:
        return parts[0]
    where = np.concatenate([places for places, _ in parts])
    order = np.argsort(where)
    return where[order], pa.concat_arrays([texts for _, texts in parts]).take(pa.array(order))
