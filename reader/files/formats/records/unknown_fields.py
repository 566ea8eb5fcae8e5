"""Finds what parsed records have and a schema does not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from ...evolution.new_columns import unknown_part, written
from ...evolution.type_growth import merged, wider_in_text, wider_or_text
from ...options import ReaderOptions
from ...values.numbers import Number, integer
from .shape import as_maps, type_of_values


class UnknownFields:
    """Compares records as objects, lists and leaves with a schema."""

    def __init__(
        self, data: pa.Schema, options: ReaderOptions, query_columns: frozenset[str] = frozenset()
    ) -> None:
        """`query_columns` are columns that are not new, though they are not in `data`."""
        self._exact = options.infer_column_types
        self._columns = query_columns
        self._evolution = options.mode_of_evolution
        self._whole = pa.struct(list(data))
        self._unknown = unknown_part(self._whole)
        self._kinds = dict(zip(data.names, data.types, strict=True))
        self._is_flat = not any(map(pa.types.is_nested, data.types))

    @property
    def stops(self) -> bool:
        """True if a field that the schema does not have stops the query."""
        return self._evolution.stops

    def may_be_in(self, names: Iterable[str]) -> bool:
        """Return whether a record with these names may have something new."""
        is_covered = self._is_flat and not self._evolution.widens
        return not (is_covered and self._kinds.keys() >= set(names))

    def of_records(self, records: Iterable[Any]) -> pa.DataType:
        """Return what these records have and the schema does not, as types; null if nothing."""
        new, longer = list[Any](), list[Any]()
        for record in records:
            unknown = self._unknown(record) or {}
            new.append({name: v for name, v in unknown.items() if self._is_new(name)})
            if self._evolution.widens and isinstance(record, dict):
                longer.append(dict(self._longer(record)))
        columns = type_of_values(new, exact=self._exact)
        columns = merged(columns, type_of_values(longer, exact=True), wider_or_text)
        return as_maps(columns, self._whole)

    def within(self, name: str, value: Any) -> str | None:
        """Return what the struct in a column does not have, as JSON; None if nothing."""
        part = self._unknown({name: value})
        return None if part is None else written(part[name], _json_of)

    def _is_new(self, name: str) -> bool:
        # A column of the path may be in records as well, and is not new there.
        return name in self._kinds or name not in self._columns

    def _longer(self, record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for name, value in record.items():
            kind = self._kinds.get(name)
            if type(value) in (int, Number) and kind is not None:
                wider = wider_in_text(kind, type_of_values([value], exact=True))
                if wider not in (None, kind) and not _fits(str(value), kind):
                    yield name, value


def _fits(value: str, kind: pa.DataType) -> bool:
    try:
        return pa.types.is_integer(kind) and integer(value, kind) is not None
    except ValueError:
        return False


def _json_of(value: Any) -> str:
    return str(value) if type(value) is Number else json.dumps(value, ensure_ascii=False)
