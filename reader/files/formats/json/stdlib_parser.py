"""Records that CPython's parser takes, and of which every value fits: the quick exact path.

It gives what `token_values.py` gives, several times faster, and refuses everything that does not
fit, names that come twice, and what has to be kept as it was written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec
import pyarrow as pa

from ...evolution.type_growth import is_variant
from ...options import ReaderOptions
from ...values.times.temporal import Temporal
from .jackson_limits import may_exceed
from .json_text import SURROGATES
from .json_values import Number, clean, plain_base64, scalar
from .variant_encoder import encode

Take = Callable[[Any], Any]
_types = pa.types

REFUSALS = (ValueError, RecursionError, msgspec.MsgspecError)
"""What the functions here raise for records that the exact path has to read."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    # A name twice: which of its values count is for the exact path.
    if len(made) != len(pairs):
        raise ValueError
    return made


def _object_of_whole_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if any(SURROGATES.search(name) for name, _ in pairs):
        raise ValueError
    return _object(pairs)


def _decoder(hook: Callable[[list[tuple[str, Any]]], Any]) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=hook, parse_float=Number, parse_int=Number, parse_constant=Number
    )


_DECODER, _CAREFUL = _decoder(_object), _decoder(_object_of_whole_names)


def parsed(data: bytes, options: ReaderOptions) -> Any:
    """The one value that `data` is, with the digits of its numbers. Raises one of `REFUSALS`."""
    text = data.decode()
    if may_exceed(data):
        raise ValueError
    # The words may be in a string; the exact path decides then.
    if not options.allow_non_numeric_numbers and ("NaN" in text or "Infinity" in text):
        raise ValueError
    # Half a surrogate pair in a name is malformed for Jackson, and only an escape can write one.
    escaped_pair = "\\ud" in text or "\\uD" in text
    return (_CAREFUL if escaped_pair else _DECODER).decode(text)


_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])


def keep_written(value: Any, names: Collection[str], record: bytes) -> None:
    """Put the text of objects and arrays, as written, for the fields of `value` with these names.

    `value` is what `parsed` made of `record`. Raises one of `REFUSALS`.
    """
    if type(value) is not dict:
        return
    nested = [name for name in names if type(value.get(name)) in (dict, list)]
    if nested:
        written = _RAW.decode(record)
        for name in nested:
            value[name] = bytes(written[name]).decode()


def rows_of(value: Any, fields: Mapping[str, Take]) -> list[dict[str, Any]]:
    """The rows of a record. Raises one of `REFUSALS`."""
    return [_row(record, fields) for record in (value if type(value) is list else [value])]


def takers(
    fields: pa.Schema | pa.StructType, options: ReaderOptions, temporal: Temporal
) -> dict[str, Take]:
    """For each field a function from parsed values, `None` left out, to what `pa.array` takes."""
    return {field.name: _taker(field.type, options, temporal) for field in fields}


def _taker(kind: pa.DataType, options: ReaderOptions, temporal: Temporal) -> Take:
    if is_variant(kind):
        return encode
    take = _filled(kind, options, temporal)
    return lambda value: None if value is None else take(value)


def _filled(kind: pa.DataType, options: ReaderOptions, temporal: Temporal) -> Take:
    if _types.is_struct(kind):
        fields = takers(kind, options, temporal)
        return lambda value: _row(value, fields)
    if _types.is_list(kind):
        inner = _taker(kind.value_type, options, temporal)
        return lambda value: [inner(item) for item in _of(list, value)]
    if _types.is_map(kind):
        inner = _taker(kind.item_type, options, temporal)
        return lambda value: [(clean(k), inner(v)) for k, v in _of(dict, value).items()]
    if _types.is_string(kind):
        return _string
    if _types.is_binary(kind):
        return lambda value: plain_base64(_of(str, value))
    return _scalar(scalar(kind, options, temporal))


def _row(value: Any, fields: Mapping[str, Take]) -> dict[str, Any]:
    known = _of(dict, value)
    return {name: take(known[name]) for name, take in fields.items() if name in known}


def _of(kind: type, value: Any) -> Any:
    # Not `isinstance`: a `Number` is a `str`, too.
    if type(value) is not kind:
        raise ValueError
    return value


def _string(value: Any) -> str:
    if type(value) is str:
        return clean(value)
    if type(value) is Number:
        return str(value)
    if type(value) is bool:
        return "true" if value else "false"
    raise ValueError


def _scalar(convert: Callable[[str, str], Any]) -> Take:
    def taken(value: Any) -> Any:
        if type(value) is Number:
            return convert("int" if value.lstrip("-").isdigit() else "float", value)
        if type(value) is str:
            return convert("string", value)
        if type(value) is bool:
            word = "true" if value else "false"
            return convert(word, word)
        raise ValueError

    return taken
