"""What of a JSON record a schema does not have: looked for beside the reading of it.

Not here: what is done about it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from ...evolution.seen import NewColumnsSeen
from ...evolution.types import wider
from ...options import ReaderOptions
from . import trees
from .encodings import recoded
from .scalars import Number
from .tokens import TokenStream
from .types import KnownFields, type_of_json
from .values import tree_of

__all__ = ["JsonNews", "tree_of_record", "written"]


class JsonNews:
    """Looks through records that the fast paths have refused."""

    def __init__(self, data: pa.Schema, options: ReaderOptions) -> None:
        self._options = options
        self._evolution = options.mode_of_evolution
        self._known = KnownFields(pa.struct(list(data)))
        self._kinds = dict(zip(data.names, data.types, strict=True))

    def look(self, record: bytes, where: Callable[[], str]) -> None:
        """Say what is new in a record; one that is no JSON has nothing new.

        Raises:
            NewColumnsSeen: a field that the schema does not have, and that stops the query.
        """
        if not self._evolution.stops:
            return
        value = tree_of_record(record, self._options)
        for one in value if isinstance(value, list) else [value]:
            unknown = self._known.unknown_part(one) or {}
            news = {name: part for name, part in unknown.items() if self._is_news(name)}
            if news:
                raise NewColumnsSeen(where(), news)
            if self._evolution.widens and isinstance(one, dict):
                self._look_for_wider(one, where)

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
            # A name stands twice in it, both times with a value: no part would hold both.
            return value.decode("utf-8", "replace")
        return written(part[name])

    def anything(self, value: Any) -> bool:
        """True if a parsed record has anything that the schema does not have."""
        return self._known.unknown_part(value) is not None

    def _is_news(self, name: str) -> bool:
        return name in self._kinds or name not in self._options.all_columns

    def _look_for_wider(self, record: Mapping[str, Any], where: Callable[[], str]) -> None:
        for name, value in record.items():
            kind = self._kinds.get(name)
            if type(value) is Number and kind is not None:
                found = wider(kind, type_of_json(value, exact=True))
                if found not in (None, kind) and not _fits(value, kind):
                    raise NewColumnsSeen(where(), {name: value}, widens=True)


def _fits(value: Number, kind: pa.DataType) -> bool:
    if not pa.types.is_integer(kind) or not value.lstrip("-").isdigit():
        return False
    bound = 1 << (int(kind.bit_width) - 1)
    return -bound <= int(value) < bound


def tree_of_record(record: bytes, options: ReaderOptions) -> Any:
    """A record as objects, lists and leaves, numbers as written; None if it is no JSON.

    What stands under a name that comes twice is all there, as if it had come once.
    """
    try:
        return trees.parsed(record, options)
    except trees.REFUSALS:
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


def written(value: Any) -> str:
    """Parsed values as compact JSON, numbers as they were written."""
    if type(value) is Number:
        return str(value)
    if isinstance(value, dict):
        inner = (f"{json.dumps(k, ensure_ascii=False)}:{written(v)}" for k, v in value.items())
        return "{" + ",".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
