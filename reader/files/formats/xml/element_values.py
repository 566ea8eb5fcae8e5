"""Elements as values of a schema, by the rules of Spark's XML reader.

A value that does not fit is a `ValueMisfit`; what fits of a struct, an array or a map is kept, as a
`Partial` that goes up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import dropwhile
from typing import Any
from xml.etree.ElementTree import Element

import pyarrow as pa

from ...options import ReaderOptions
from ...values.times.temporal import Temporal
from ..records.outcome import Partial, ValueMisfit
from .elements import ByName, XmlNames, as_text, contents, is_blank, put
from .xml_types import Scalar, scalar

_types = pa.types


@dataclass(slots=True)
class Extra:
    """The parts of an element that are not in the schema, as names with text or objects."""

    unknown: dict[str, Any] = field(default_factory=dict)
    """What the schema has no field for."""

    lost: dict[str, Any] = field(default_factory=dict)
    """That, and what does not fit its field."""

    def new(self, name: str, value: Any) -> None:
        """Note what has no field in the schema; nothing is noted for an empty part."""
        if _has_value(value):
            put(self.unknown, name, value)
            put(self.lost, name, value)

    def inner(self, name: str, extra: Extra) -> None:
        """Note what was found within an element."""
        if extra.unknown:
            put(self.unknown, name, extra.unknown)
        if extra.lost:
            put(self.lost, name, extra.lost)


def _has_value(value: Any) -> bool:
    if isinstance(value, (dict, list)):
        return any(map(_has_value, value.values() if isinstance(value, dict) else value))
    return bool(value)


Convert = Callable[[Element, "Extra"], Any]


def record_reader(
    data: pa.Schema, options: ReaderOptions, temporal: Temporal
) -> Callable[[Element, Extra], dict[str, Any]]:
    """Return a function from a record's element to its row; what has no place goes to an `Extra`.

    It raises `Partial`, with the row, if a value does not fit.

    Raises:
        TypeError: a column that XML cannot be read into.
    """
    struct = _Struct(data, _Converters(options, temporal))
    return partial(struct.filled, elements_win=True)


class _Converters:
    """One function for each type."""

    def __init__(self, options: ReaderOptions, temporal: Temporal) -> None:
        self.names, self.wildcard = XmlNames(options), options.wildcard_col_name
        self.temporal, self.refuses_repeats = temporal, options.keeps_every_field

    def of(self, kind: pa.DataType, *, attributes: bool) -> Convert:
        """For an element whose attributes count, or do not."""
        if _types.is_struct(kind):
            struct = _Struct(kind, self)
            return struct.filled if attributes else struct.without_attributes
        if _types.is_map(kind):
            return _Map(kind, self, attributes=attributes).filled
        if _types.is_string(kind):
            return self.text
        return self._scalar(scalar(kind, self.temporal), kind)

    def text(self, element: Element, extra: Extra) -> str | None:
        """Return all that is in an element, markup included."""
        del extra
        text = as_text(element) if len(element) else element.text
        if not text:
            return None if self.names.null == "" else ""
        return self.names.text(text)

    def _scalar(self, convert: Scalar, kind: pa.DataType) -> Convert:
        trimmed = self.names.text

        def converted(element: Element, extra: Extra) -> object:
            del extra
            if len(element):
                parts = [item for item in contents(element) if not _is_gap(item)]
                if len(parts) > 1 or (parts and not isinstance(parts[0], str)):
                    raise ValueMisfit(f"elements, or parts of a text, where {kind} is expected")
                whole = str(parts[0]) if parts else None
            else:
                whole = element.text
            # In Spark, blank text is null unless the column is a string.
            if whole is None or is_blank(whole):
                return None
            text = trimmed(whole)
            return None if text is None else convert(text)

        return converted

    def of_text(self, kind: pa.DataType) -> Callable[[str | None], Any]:
        """For a text by itself, as attributes are."""
        if _types.is_nested(kind):

            def refuse(text: str | None) -> None:
                if text is not None:
                    raise ValueMisfit(f"{text[:100]!r} where {kind} is expected")

            return refuse
        convert = scalar(kind, self.temporal)
        return lambda text: None if text is None else convert(text)


def _is_gap(item: Element | str) -> bool:
    return isinstance(item, str) and is_blank(item)


_SECOND = "a second value where the schema has no array; schemaHints or .schema(...) can name one"


class _Map:
    """Elements and attributes as entries."""

    def __init__(self, kind: pa.MapType, converters: _Converters, *, attributes: bool) -> None:
        if not _types.is_string(kind.key_type):
            raise TypeError("XML can be read only into maps with string keys")
        if _types.is_list(kind.item_type):
            raise TypeError("XML cannot be read into maps of arrays")
        self._kind, self._names, self._attributes = kind, converters.names, attributes
        self._refuses_repeats = converters.refuses_repeats
        self._of_element = converters.of(kind.item_type, attributes=False)
        self._of_text = converters.of_text(kind.item_type)

    def filled(self, element: Element, extra: Extra) -> list[tuple[str, Any]] | None:
        """The entries; null if nothing is in the element, in spite of attributes, as in Spark.

        Raises:
            ValueMisfit: a value does not fit, or the element begins with text.
        """
        names = self._names
        items = list(dropwhile(_is_gap, contents(element)))
        if not items:
            return None
        if isinstance(items[0], str):
            raise ValueMisfit(f"text where {self._kind} is expected")
        entries: dict[str, Any] = {}
        for name, text in element.items() if self._attributes else ():
            entries[names.attribute_prefix + name] = self._of_text(names.text(text))
        for item in items:
            if isinstance(item, str):
                if is_blank(item):
                    continue
                name, value = names.value_tag, self._of_text(names.text(item))
            else:
                name = names.name(item.tag)
                value = self._value(name, item, extra)
            if self._refuses_repeats and name in entries:
                raise ValueMisfit(f"{name}: {_SECOND}")
            entries[name] = value
        return list(entries.items())

    def _value(self, name: str, element: Element, extra: Extra) -> Any:
        within = Extra()
        try:
            value = self._of_element(element, within)
        except Partial as err:
            raise ValueMisfit(f"{name}: {err}") from err
        extra.inner(name, within)
        return value


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    convert: Convert
    of_text: Callable[[str | None], Any]
    repeats: bool
    is_nested: bool
    """True if something within its elements may find no place."""


_Into = tuple[dict[str, Any], list[str], Extra]
"""The fields that are set, what does not fit, and what has no place."""


class _Struct:
    """The fields of a record or of a struct."""

    def __init__(self, fields: Iterable[pa.Field], converters: _Converters) -> None:
        self._converters, self._names = converters, converters.names
        self._refuses_repeats = converters.refuses_repeats
        columns = ByName({one.name: self._field(one) for one in fields})
        self._find = columns.find
        self._wildcard = columns.exact.get(converters.wildcard)
        self._value = columns.exact.get(self._names.value_tag)
        # Fields that an element sets completely, if it is the first: almost all.
        self._plain = {
            name: each.convert
            for name, each in columns.exact.items()
            if not (each.repeats or each.is_nested)
        }

    def _field(self, one: pa.Field) -> _Field:
        repeats = _types.is_list(one.type)
        kind = one.type.value_type if repeats else one.type
        if repeats and _types.is_list(kind):
            raise TypeError("XML cannot be read into arrays of arrays")
        if one.name == self._converters.wildcard and not _types.is_string(kind):
            raise TypeError(f"the wildcard column {one.name} has to be a string or array of them")
        whole = not repeats or _types.is_struct(kind)
        convert = self._converters.of(kind, attributes=whole)
        of_text = self._converters.of_text(kind)
        return _Field(one.name, convert, of_text, repeats, _types.is_nested(kind))

    def without_attributes(self, element: Element, extra: Extra) -> dict[str, Any] | None:
        """Return the struct of what is in an element; null if nothing does."""
        if element.text or len(element):
            return self.filled(element, extra, attributes=False)
        return None

    def filled(
        self,
        element: Element,
        extra: Extra,
        *,
        attributes: bool = True,
        elements_win: bool = False,
    ) -> dict[str, Any]:
        """Return the fields of an element; `elements_win` over attributes of the same name.

        Raises:
            Partial: with the fields that fit.
        """
        of_attributes, problems = dict[str, Any](), list[str]()
        if attributes and element.items():
            self._take_attributes(element, (of_attributes, problems, extra))
        # `StaxXmlParser.convertObject` sets attributes of a record first,
        # `convertObjectWithAttributes` those of a struct last.
        row = of_attributes if elements_win else dict[str, Any]()
        into = row, problems, extra
        # As `contents` has them; most of the time of reading goes by here.
        if element.text and not is_blank(element.text):
            self._take_text(element.text, into)
        for child in element:
            if isinstance(child.tag, str):
                name = self._names.name(child.tag)
                convert = self._plain.get(name)
                if convert is None or name in row:
                    self._take(name, child, self._find(name) or self._wildcard, into)
                else:
                    try:
                        row[name] = convert(child, extra)
                    except ValueMisfit:
                        self._take(name, child, self._find(name), into)
            if child.tail and not is_blank(child.tail):
                self._take_text(child.tail, into)
        if of_attributes and not elements_win:
            self._put_attributes(of_attributes, into)
        if problems:
            raise Partial(problems[0], row)
        return row

    def _take_attributes(self, element: Element, into: _Into) -> None:
        for name, text in self._names.attributes(element):
            self._take(name, text, self._find(name), into, is_attribute=True)

    def _put_attributes(self, values: dict[str, Any], into: _Into) -> None:
        row, problems, extra = into
        for name in row.keys() & values if self._refuses_repeats else ():
            problems.append(f"{name}: {_SECOND}")
            put(extra.lost, name, row.pop(name))
        row.update(values)

    def _take_text(self, text: str, into: _Into) -> None:
        self._take(self._names.value_tag, self._names.text(text), self._value, into)

    def _take(
        self,
        name: str,
        item: Element | str | None,
        column: _Field | None,
        into: _Into,
        *,
        is_attribute: bool = False,
    ) -> None:
        """Set the field of an element or a text, as far as it fits."""
        row, problems, extra = into
        if column is None:
            extra.new(name, self._kept(item))
            return
        if self._refuses_repeats and column.name in row and not column.repeats:
            problems.append(f"{name}: {_SECOND}")
            put(extra.lost, name, self._kept(item))
            return
        value, within = None, Extra() if column.is_nested else extra
        try:
            if isinstance(item, Element):
                value = column.convert(item, within)
            elif is_attribute and column.repeats and item is not None:
                raise ValueMisfit(f"{item[:100]!r} where an array is expected")
            else:
                value = column.of_text(item)
        except ValueMisfit as err:
            problems.append(f"{name}: {err}")
            if isinstance(err, Partial):
                value = err.value
            else:
                # All of it is noted here, so its parts are not noted again.
                if column.is_nested:
                    within.lost.clear()
                put(extra.lost, name, self._kept(item))
        if column.repeats and not is_attribute:
            # Elements of one name are an array, or else the last one counts.
            row.setdefault(column.name, []).append(value)
        else:
            row[column.name] = value
        if column.is_nested:
            extra.inner(name, within)

    def _kept(self, item: Element | str | None) -> Any:
        return self._names.value(item) if isinstance(item, Element) else item
