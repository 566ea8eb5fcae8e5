"""What of a JSON record a schema does not have: looked for next to the reading of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from ...evolution.new_columns import KnownFields, NewColumnsSeen, written
from ...evolution.type_growth import merged, wider_in_text, wider_or_text
from ...options import ReaderOptions
from ...values.numbers import integer
from . import stdlib_parser
from .json_text import recoded
from .json_values import Number, as_maps, type_of_json
from .token_values import tree_of
from .tokenizer import TokenStream


class UnknownJsonFields:
    """Looks through records that the fast paths have refused."""

    def __init__(
        self, data: pa.Schema, options: ReaderOptions, known: frozenset[str] = frozenset()
    ) -> None:
        """`known` are columns that are not new, though they are not in `data`."""
        self._options = options
        self._columns = known
        self._evolution = options.mode_of_evolution
        self._whole = pa.struct(list(data))
        self._known = KnownFields(self._whole)
        self._kinds = dict(zip(data.names, data.types, strict=True))

    def look(self, record: bytes, where: Callable[[], str]) -> None:
        """Say what is new in a record; one that is no JSON has nothing new.

        Raises:
            NewColumnsSeen: a field that the schema does not have, and that stops the query.
        """
        if self._evolution.stops:
            found = self.of_records([record])
            if not pa.types.is_null(found):
                raise NewColumnsSeen(where(), found)

    def of_records(self, records: Iterable[bytes]) -> pa.DataType:
        """What these records have and the schema does not, in types for all; null if nothing."""
        new, longer = list[Any](), list[Any]()
        for record in records:
            value = tree_of_record(record, self._options)
            for one in value if isinstance(value, list) else [value]:
                unknown = self._known.unknown_part(one) or {}
                new.append({name: v for name, v in unknown.items() if self._is_new(name)})
                if self._evolution.widens and isinstance(one, dict):
                    longer.append(dict(self._longer(one)))
        found = type_of_json(new, exact=self._options.infer_column_types)
        found = merged(found, type_of_json(longer, exact=True), wider_or_text)
        return as_maps(found, self._whole)

    def nested(self, name: str, value: bytes) -> str | None:
        """What the struct in a column does not have, as JSON; None if nothing."""
        if not pa.types.is_nested(self._kinds[name]):
            return None
        part = self._known.unknown_part({name: tree_of_record(value, self._options)})
        if part is None:
            return None
        try:
            _tree(value, self._options)
        except ValueError:
            # A name is twice in it, both times with a value: no part would hold both.
            return value.decode("utf-8", "replace")
        return written(part[name], _leaf)

    def anything(self, value: Any) -> bool:
        """True if a parsed record has anything that the schema does not have."""
        return self._known.unknown_part(value) is not None

    def _is_new(self, name: str) -> bool:
        # A column of the path may be in records as well, and is not new there.
        return name in self._kinds or name not in self._columns

    def _longer(self, record: Mapping[str, Any]) -> Iterator[tuple[str, Number]]:
        for name, value in record.items():
            kind = self._kinds.get(name)
            if type(value) is Number and kind is not None:
                found = wider_in_text(kind, type_of_json([value], exact=True))
                if found not in (None, kind) and not _fits(value, kind):
                    yield name, value


def _fits(value: Number, kind: pa.DataType) -> bool:
    try:
        return pa.types.is_integer(kind) and integer(value, kind) is not None
    except ValueError:
        return False


def tree_of_record(record: bytes, options: ReaderOptions) -> Any:
    """A record as objects, lists and leaves, numbers as written; None if it is no JSON.

    All values of a name that comes twice are there, as if it had come once.
    """
    try:
        return stdlib_parser.parsed(record, options)
    except stdlib_parser.REFUSALS:
        pass
    try:
        return _tree(record, options, _together)
    except (ValueError, RecursionError):
        return None


def _tree(
    record: bytes, options: ReaderOptions, together: Callable[[Any, Any], Any] | None = None
) -> Any:
    stream = TokenStream(recoded(record)[0], options)
    return None if stream.next() is None else tree_of(stream, together)


def _together(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        both = {name: _together(one[name], other[name]) for name in one.keys() & other.keys()}
        return {**one, **other, **both}
    if isinstance(one, list) and isinstance(other, list):
        return one + other
    return one if other is None else other


def _leaf(value: Any) -> str:
    return str(value) if type(value) is Number else json.dumps(value, ensure_ascii=False)
