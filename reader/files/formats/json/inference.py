"""The types of records without a schema: block by block, each through one typed decoder.

Most blocks of a file have nothing that the blocks before had not. msgspec proves that: it decodes
them as records of the types that are known so far, and refuses any other field. Only a block that
it refuses is decoded to objects, whose values tell its types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from types import NoneType
from typing import Any

import msgspec
import pyarrow as pa

from ...evolution.type_growth import merged, wider_or_text
from ...options import ReaderOptions
from ...values.rows import gc_paused
from ..records.shape import type_of_values
from .flat_records import LONG, NAME_ESCAPED, record_type
from .strict_json import trees

_types = pa.types
_PARSED = msgspec.json.Decoder(list[Any])


def type_of_texts(blocks: Iterable[Sequence[bytes]], options: ReaderOptions) -> pa.DataType:
    """Return the type that takes all of these records, a block at a time; null without any."""
    exact = options.infer_column_types and not options.primitives_as_string
    kind: pa.DataType = pa.null()
    holds: Callable[[bytes], Any] | None = None
    for texts in blocks:
        with gc_paused():
            joined = b"[" + b",".join(text for text in texts if text and not text.isspace()) + b"]"
            if holds is not None:
                with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    holds(joined)
                    continue
            own = type_of_values(list(_objects(joined, texts, options)), exact=exact)
        kind = merged(kind, own, wider_or_text)
        holds = _proof_of(kind)
    return kind


def _objects(
    joined: bytes, texts: Sequence[bytes], options: ReaderOptions
) -> Iterator[dict[str, Any]]:
    try:
        # With Python's own numbers, of which only the type counts.
        values = _PARSED.decode(joined)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        values = list(chain.from_iterable(trees(text, options) for text in texts))
    for value in values:
        for record in value if isinstance(value, list) else [value]:
            if isinstance(record, dict):
                yield record


def _proof_of(kind: pa.DataType) -> Callable[[bytes], Any] | None:
    """Return a function that raises for records with anything that would change the type."""
    if not _types.is_struct(kind):
        return None
    try:
        return msgspec.json.Decoder(list[_proof(kind)]).decode  # type: ignore[misc]
    except TypeError:
        return None


_LIST: Any = list


def _proof(kind: pa.DataType) -> Any:
    if _types.is_struct(kind):
        if any(NAME_ESCAPED.search(field.name) for field in kind):
            raise TypeError("a name that is escaped")
        fields = [(field.name, _nullable(_proof(field.type))) for field in kind]
        return record_type(fields, known_only=True)
    if _types.is_list(kind):
        return _LIST[_nullable(_proof(kind.value_type))]
    if _types.is_decimal(kind):
        raise TypeError("numbers whose digits are counted")
    # A column of strings remains one with any other value.
    return {pa.null(): NoneType, pa.bool_(): bool, pa.int64(): LONG, pa.float64(): float}.get(
        kind, msgspec.Raw
    )


def _nullable(proof: Any) -> Any:
    return proof if proof is msgspec.Raw else proof | None
