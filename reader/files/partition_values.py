"""What a `key=value` part of a path means as a value of a column: Spark's rules for partitions.

Two things are refused where Spark changes the value without a word: a `byte` or `short` that is out
of range (it wraps around there) and a decimal with too many digits (null there).
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

from .values.numbers import boolean, cast_decimal, floating, integer
from .values.times.temporal import cast_text

__all__ = ["NULL", "unescaped", "value_of"]

NULL = "__HIVE_DEFAULT_PARTITION__"
"""What a path has for null."""

_types = pa.types
_ESCAPE = re.compile("%([0-9a-fA-F]{2})")


def unescaped(text: str) -> str:
    """`%XX` as the one character of that number, as Spark writes and reads it (no UTF-8)."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def value_of(text: str, kind: pa.DataType, zone: str) -> pa.Scalar:
    """The value that `text`, as written in the path, has in a column of this type.

    Timestamps that name no zone are in `zone`.

    Raises:
        ValueError: it is not a value of that type.
    """
    if not text:
        raise ValueError("there is nothing after the equals sign")
    if text == NULL:
        return pa.scalar(None, kind)
    if _types.is_timestamp(kind):
        return cast_text(unescaped(text), kind, zone)
    if _types.is_date(kind):
        return cast_text(text, kind, zone)
    for is_kind, convert in _CONVERTERS.items():
        if is_kind(kind):
            return convert(text, kind)
    raise ValueError(f"paths hold no values of type {kind}")


_CONVERTERS: dict[Callable[[pa.DataType], bool], Callable[[str, pa.DataType], pa.Scalar]] = {
    _types.is_string: lambda text, kind: pa.scalar(unescaped(text), kind),
    _types.is_binary: lambda text, kind: pa.scalar(text.encode(), kind),
    _types.is_integer: lambda text, kind: pa.scalar(integer(text, kind), kind),
    _types.is_floating: lambda text, kind: pa.scalar(floating(text, kind), kind),
    _types.is_decimal: lambda text, kind: pa.scalar(cast_decimal(text, kind), kind),
    _types.is_boolean: lambda text, kind: pa.scalar(boolean(text), kind),
}
