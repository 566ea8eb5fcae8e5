"""Map columns of whole blocks of records, through msgspec; pyarrow's parser knows none.

A map keeps every entry that was written, in order and with repeated keys, as Spark's parser does.
A Python dict does not, so the entries are counted: each has exactly one colon outside of strings,
and as many colons as keys means that no key came twice. Where strings hold colons too the records
are left to a slower path only if a map of theirs cannot be told apart that way.

Not here: all other columns (`fast.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Self

import msgspec
import numpy as np
import pyarrow as pa

from ..collection import without_collection
from .structs import NAME_ESCAPED, python_type

_types = pa.types


class MapColumns:
    """Decodes columns that are maps from strings to numbers, booleans or strings."""

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        """`fields` are what `of` found."""
        self.names = [field.name for field in fields]
        self._fields = fields
        own = [f"column_{number}" for number in range(len(fields))]
        record = msgspec.defstruct(
            "Record",
            [(name, msgspec.Raw, msgspec.Raw(b"null")) for name in own],
            rename=dict(zip(own, self.names, strict=True)),
            gc=False,
        )
        self._records = msgspec.json.Decoder(record)
        self._maps = [msgspec.json.Decoder(_many(field.type)) for field in fields]

    @classmethod
    def of(cls, data: pa.Schema) -> Self | None:
        """For the columns of `data` that can be had this way; None if there are none."""
        fields = [field for field in data if _is_simple_map(field)]
        return cls(fields) if fields else None

    def columns(self, data: bytes) -> dict[str, pa.Array] | None:
        """Name -> column; None where a key may have been written twice.

        Raises:
            ArrowException: a number does not fit its type.
            Exception: one of `structs.REFUSALS`, for anything that is not exactly of its type.
        """
        with without_collection():
            return self._columns(data)

    def _columns(self, data: bytes) -> dict[str, pa.Array] | None:
        records = self._records.decode_lines(data)
        found = {}
        raw = zip(*map(msgspec.structs.astuple, records), strict=True)
        for field, decoder, texts in zip(self._fields, self._maps, raw, strict=False):
            text = b"[" + b",".join(map(bytes, texts)) + b"]"
            maps = decoder.decode(text)
            if text.count(b":") != sum(map(len, filter(None, maps))) and _has_repeats(texts, maps):
                return None
            found[field.name] = _array(maps, field.type)
        return found if len(found) == len(self._fields) else None


def _is_simple_map(field: pa.Field) -> bool:
    kind = field.type
    return (
        _types.is_map(kind)
        and _types.is_string(kind.key_type)
        # Of floats -0 and rounding have to be looked at; they are left to the exact path.
        and python_type(kind.item_type) in (str, int, bool)
        and NAME_ESCAPED.search(field.name) is None
    )


def _many(kind: pa.DataType) -> Any:
    item: Any = python_type(kind.item_type)
    return list[dict[str, item | None] | None]


def _has_repeats(texts: Sequence[msgspec.Raw], maps: Sequence[dict[str, object] | None]) -> bool:
    """True if a key may stand twice in a map. Colons of values are counted where they are."""
    for text, found in zip(texts, maps, strict=True):
        if not found:
            continue
        written = bytes(text)
        # A colon in a string stands there as it is, or escaped: then this counts too few.
        within = sum(s.count(":") for s in (*found, *found.values()) if isinstance(s, str))
        if b"\\u" in written or written.count(b":") != len(found) + within:
            return True
    return False


def _array(maps: Sequence[dict[str, object] | None], kind: pa.DataType) -> pa.Array:
    known = [found for found in maps if found]
    offsets = np.zeros(len(maps) + 1, np.int32)
    np.cumsum([len(found) if found else 0 for found in maps], out=offsets[1:])
    return pa.MapArray.from_arrays(
        pa.array(offsets),
        pa.array(list(chain.from_iterable(known)), kind.key_type),
        pa.array(list(chain.from_iterable(map(dict.values, known))), kind.item_type),
        type=kind,
        mask=pa.array([found is None for found in maps]) if None in maps else None,
    )
