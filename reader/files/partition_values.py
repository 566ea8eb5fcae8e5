"""What a `key=value` part of a path means as a value of a column: Spark's rules for partitions.

Two things are refused where Spark changes the value without a word: a `byte` or `short` that is out
of range (it wraps around there) and a decimal with too many digits (null there).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import pyarrow as pa

from .formats.times.temporal import cast_text

__all__ = ["NULL", "unescaped", "value_of"]

NULL = "__HIVE_DEFAULT_PARTITION__"
"""What stands in a path for null."""

_types = pa.types
_ESCAPE = re.compile("%([0-9a-fA-F]{2})")
_INTEGER = re.compile(r"[+-]?\d+\Z", re.ASCII)
_FLOAT = re.compile(
    r"([+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?=[dDfF]?\Z)))[dDfF]?\Z", re.ASCII
)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z", re.ASCII)


def unescaped(text: str) -> str:
    """`%XX` as the one character of that number, as Spark writes and reads it (no UTF-8)."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def value_of(text: str, kind: pa.DataType, zone: str) -> pa.Scalar:
    """The value that `text`, as it stands in the path, has in a column of this type.

    Timestamps that name no zone are in `zone`.

    Raises:
        ValueError: it is none.
    """
    if not text:
        raise ValueError("nothing stands behind the equals sign")
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


def _integer(text: str, kind: pa.DataType) -> pa.Scalar:
    if not _INTEGER.match(text):
        raise ValueError(f"{text!r} is no integer")
    return pa.scalar(int(text), kind)


def _float(text: str, kind: pa.DataType) -> pa.Scalar:
    match = _FLOAT.match(text.strip("".join(map(chr, range(33)))))
    if not match:
        raise ValueError(f"{text!r} is no number")
    return pa.scalar(float(match[1]), pa.float64()).cast(kind)


def _decimal(text: str, kind: pa.DataType) -> pa.Scalar:
    if not _DECIMAL.match(text):
        raise ValueError(f"{text!r} is no number")
    step = Decimal(1).scaleb(-kind.scale)
    try:
        rounded = Decimal(text).quantize(step, ROUND_HALF_UP, Context(prec=kind.precision))
    except InvalidOperation:
        raise ValueError(f"{text!r} has more digits than the type") from None
    return pa.scalar(rounded, kind)


def _boolean(text: str, kind: pa.DataType) -> pa.Scalar:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return pa.scalar(text.lower() == "true", kind)


_CONVERTERS: dict[Callable[[pa.DataType], bool], Callable[[str, pa.DataType], pa.Scalar]] = {
    _types.is_string: lambda text, kind: pa.scalar(unescaped(text), kind),
    _types.is_binary: lambda text, kind: pa.scalar(text.encode(), kind),
    _types.is_integer: _integer,
    _types.is_floating: _float,
    _types.is_decimal: _decimal,
    _types.is_boolean: _boolean,
}
