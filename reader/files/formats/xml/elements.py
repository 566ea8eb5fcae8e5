"""One record as a tree of elements, and what Spark's reader makes of an element as a whole.

expat parses, without namespaces, as Spark does: a prefix is part of the name. A record is parsed by
itself, so that no DOCTYPE is ever read: no entity is declared, expanded or fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from ...options import ReaderOptions
from ...values.strings import BLANKS

T = TypeVar("T")

DEEPEST = 1000
"""Levels that a record may have, as in Spark's parser."""

_DEEPEST_VALUE = 100
"""Levels below which an element is a text, in what is inferred or rescued."""

_ELEMENT, _ATTRIBUTE = 120, 240
"""Bytes that the tree takes for each, at most."""


MOST_OF_TREE = _ELEMENT + _ATTRIBUTE
"""Bytes of the tree for each byte of a record, at most."""


class ByName(Generic[T]):
    """Finds the column of an element or attribute: by its name, or else without case."""

    def __init__(self, columns: dict[str, T]) -> None:
        self.exact = columns
        # Reversed, so that of names that differ only in case the first column counts.
        self._folded = {name.lower(): column for name, column in reversed(columns.items())}

    def find(self, name: str) -> T | None:
        """Return the column of this name; None without one."""
        return self.exact.get(name) or self._folded.get(name.lower())


def size_of_tree(record: bytes) -> int:
    """Return how many bytes the tree of a record takes in addition to its texts, at most."""
    elements = record.count(b"<") - record.count(b"</")
    return _ELEMENT * elements + _ATTRIBUTE * record.count(b"=")


def parsed(record: bytes) -> Element:
    """Return the element that a record is, in UTF-8.

    Raises:
        ValueError: it is not well-formed, or has more than `DEEPEST` levels.
    """
    builder = TreeBuilder(insert_comments=True, insert_pis=True)
    parser = expat.ParserCreate("utf-8")
    # Without it, expat calls back for every line of a text.
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler = builder.data
    # Spark sees a comment as a boundary between two texts.
    parser.CommentHandler = builder.comment
    parser.ProcessingInstructionHandler = builder.pi
    # Fewer tags cannot be nested so deeply; counting levels costs a call for each tag.
    if record.count(b"<") > DEEPEST:
        _watch_levels(parser, builder)
    try:
        parser.Parse(record, True)
    except expat.ExpatError as err:
        raise ValueError(f"XML that is not well-formed: {err}") from err
    root: Element = builder.close()
    return root


def _watch_levels(parser: expat.XMLParserType, builder: TreeBuilder) -> None:
    level = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal level
        level += 1
        if level > DEEPEST:
            raise ValueError(f"more than {DEEPEST} levels of elements")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal level
        level -= 1
        builder.end(tag)

    parser.StartElementHandler, parser.EndElementHandler = start, end


def contents(element: Element) -> Iterator[Element | str]:
    """Child elements and texts in order; a comment or an instruction separates two texts."""
    if element.text:
        yield element.text
    for child in element:
        if isinstance(child.tag, str):
            yield child
        if child.tail:
            yield child.tail


def is_blank(text: str) -> bool:
    """True for white space only."""
    return not text.strip(" \t\r\n")


def as_text(element: Element) -> str:
    """Return what is in an element, as Spark writes it: without comments, and nothing escaped."""
    parts = list[str]()
    # No recursion: a thousand levels are allowed.
    stack: list[Iterator[Element | str] | str] = [contents(element)]
    while stack:
        top = stack[-1]
        if isinstance(top, str):
            parts.append(f"</{top}>")
            stack.pop()
            continue
        item = next(top, None)
        if item is None:
            stack.pop()
        elif isinstance(item, str):
            parts.append(item)
        else:
            attributes = "".join(f' {name}="{value}"' for name, value in item.items())
            parts.append(f"<{item.tag}{attributes}>")
            stack += [item.tag, contents(item)]
    return "".join(parts)


def put(into: dict[str, Any], name: str, value: Any) -> None:
    """Add a value under a name; what comes under one name more than once is a list."""
    if name not in into:
        into[name] = value
    elif isinstance(into[name], list):
        into[name].append(value)
    else:
        into[name] = [into[name], value]


class XmlNames:
    """The names of attributes, elements and texts, and which texts are null."""

    def __init__(self, options: ReaderOptions) -> None:
        self.attribute_prefix = options.attribute_prefix
        self.value_tag = options.value_tag
        self.null = options.null_value
        self._ignores_namespace = options.ignore_namespace
        self._excludes_attributes = options.exclude_attribute
        self.trims = options.ignore_surrounding_spaces

    def name(self, tag: str) -> str:
        """Return the name of the field of an element, or of an attribute without its prefix."""
        return tag.rpartition(":")[2] if self._ignores_namespace else tag

    def text(self, text: str) -> str | None:
        """Return a text as it counts."""
        text = text.strip(BLANKS) if self.trims else text
        return None if text == self.null else text

    def attributes(self, element: Element) -> Iterator[tuple[str, str | None]]:
        """Yield the names of the fields of its attributes, and their texts."""
        if not self._excludes_attributes:
            for name, value in element.items():
                yield self.attribute_prefix + self.name(name), self.text(value)

    def fields(self, element: Element, depth: int = 0) -> dict[str, Any]:
        """An element as names with text, objects, or lists of them; null where nothing is."""
        fields: dict[str, Any] = dict(self.attributes(element))
        for item in contents(element):
            if not isinstance(item, str):
                put(fields, self.name(item.tag), self.value(item, depth + 1))
            elif not is_blank(item):
                put(fields, self.value_tag, self.text(item))
        return fields

    def value(self, element: Element, depth: int = 0) -> Any:
        """Return the same; an element of nothing but text is that text."""
        if depth > _DEEPEST_VALUE:
            return self.text(as_text(element)) or None
        fields = self.fields(element, depth)
        if not fields:
            return None
        only = next(iter(fields.values()))
        is_text = fields.keys() == {self.value_tag} and not isinstance(only, (list, dict))
        return only if is_text and not element.attrib else fields
