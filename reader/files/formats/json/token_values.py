"""Tokens as values of a schema, by the rules of Spark's JSON reader: what does not fit included.

The exact path. A value that does not fit is a `Misfit`; the fields of a struct, elements of an
array and values of a map that do fit are kept, as a `Partial` that goes up. Where Spark goes on
after an error is in `tokenizer.py`; what it does then falls out of reading on. Single values are in
`json_values.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from ...evolution.type_growth import is_variant
from ...options import ReaderOptions
from ...values.times.temporal import Temporal
from .json_values import Misfit, Number, clean, misfit, scalar
from .tokenizer import TokenStream
from .variant_encoder import encode

Convert = Callable[[TokenStream], Any]
_types = pa.types


class Partial(Misfit):
    """A value of which a part fits."""

    def __init__(self, message: str, value: Any) -> None:
        super().__init__(message)
        self.value = value
        """The part that fits, with nulls for the rest."""


def converters(
    fields: pa.Schema | pa.StructType, options: ReaderOptions, temporal: Temporal
) -> dict[str, Convert]:
    """One `converter` for each field."""
    return {field.name: converter(field.type, options, temporal) for field in fields}


def converter(kind: pa.DataType, options: ReaderOptions, temporal: Temporal) -> Convert:
    """A function from a stream at a value, or at its name, to what `pa.array` takes for `kind`.

    It raises `Misfit`, or `MalformedText` of the stream.

    Raises:
        TypeError: JSON cannot be read into columns of this type.
    """
    if is_variant(kind):
        # The one type that has a null of its own, as which Spark reads JSON's.
        return variant_of
    if _types.is_struct(kind):
        fields = converters(kind, options, temporal)
        return _opened("{", "an object", lambda stream: struct_of(stream, fields))
    if _types.is_list(kind):
        inner = converter(kind.value_type, options, temporal)
        return _opened("[", "an array", lambda stream: _array(stream, inner))
    if _types.is_map(kind):
        if not _types.is_string(kind.key_type):
            raise TypeError("JSON can be read only into maps with string keys")
        inner = converter(kind.item_type, options, temporal)
        return _opened("{", "an object", lambda stream: _map(stream, inner))
    if _types.is_string(kind):
        return _string
    if _types.is_binary(kind):
        return _binary
    return _scalar(kind, options, temporal)


def rows_of(stream: TokenStream, fields: Mapping[str, Convert]) -> list[dict[str, Any]]:
    """The rows of a record whose first token has been taken: an object, or an array of them.

    Raises:
        Partial: with the rows, of which a value does not fit.
        ValueError: nothing of the record fits, or it is not JSON.
    """
    if stream.found == "{":
        try:
            return [struct_of(stream, fields)]
        except Partial as err:
            raise Partial(str(err), [err.value]) from err
    if stream.found == "[":
        return _array(stream, _opened("{", "an object", lambda s: struct_of(s, fields)), rows=True)
    raise misfit(stream.found or "nothing", "an object")


def struct_of(stream: TokenStream, fields: Mapping[str, Convert]) -> dict[str, Any]:
    """The known fields of the object that has been opened; of a name twice, the last that fits.

    A value that does not fit is no problem if a later one of its name does: the fast parsers see
    the last one only.
    """
    row: dict[str, Any] = {}
    problems: dict[str, str] = {}
    while stream.next() not in (None, "}"):
        name = stream.name
        convert = fields.get(name) if name is not None else None
        if name is None or convert is None:
            stream.skip_children()
            continue
        try:
            row[name] = convert(stream)
            # A later value of the name makes up for one that does not fit, but not for text that is
            # no JSON.
            if not stream.has_failed:
                problems.pop(name, None)
        except Partial as err:
            problems.setdefault(name, f"{name}: {err}")
            row[name] = err.value
        except ValueError as err:
            problems.setdefault(name, f"{name}: {err}")
            stream.skip_children()
    if problems:
        raise Partial(next(iter(problems.values())), row)
    return row


def variant_of(stream: TokenStream) -> dict[str, bytes]:
    """The next value as a variant, JSON's null included."""
    if stream.found == "name":
        stream.next()
    value = tree_of(stream)
    try:
        return encode(value)
    except ValueError as err:
        raise Misfit(str(err)) from err


def _opened(bracket: str, expected: str, convert: Convert) -> Convert:
    def converted(stream: TokenStream) -> Any:
        found = _value(stream)
        if found == bracket:
            return convert(stream)
        return None if found is None else _refuse(stream, expected)

    return converted


def _value(stream: TokenStream) -> str | None:
    """The token of the value at which the stream is; None for null and for nothing."""
    while stream.found == "name":
        stream.next()
    return None if stream.found == "null" else stream.found


def _refuse(stream: TokenStream, expected: object) -> Any:
    # A string is read even so, and may turn out not to be one.
    raise misfit(stream.text() if stream.found == "string" else stream.found or "nothing", expected)


def _array(stream: TokenStream, inner: Convert, *, rows: bool = False) -> list[Any]:
    values: list[Any] = []
    problem = ""
    while stream.next() not in (None, "]"):
        try:
            value = inner(stream)
        except Partial as err:
            problem = problem or str(err)
            value = err.value
        # `JacksonParser` fails at a null between records, while a null element of a column is a
        # value.
        if rows and value is None:
            raise misfit("null", "an object")
        values.append(value)
    if problem:
        raise Partial(problem, values)
    return values


def _map(stream: TokenStream, inner: Convert) -> list[tuple[str, Any]]:
    """All entries as written, names that come twice included; none if a value is bad."""
    entries: list[tuple[str, Any]] = []
    partial, bad = "", ""
    while stream.next() not in (None, "}"):
        name = clean(stream.name or "")
        try:
            entries.append((name, inner(stream)))
        except Partial as err:
            partial = partial or f"{name}: {err}"
            entries.append((name, err.value))
        except ValueError as err:
            bad = bad or f"{name}: {err}"
            stream.skip_children()
    if bad:
        raise Misfit(bad)
    if partial:
        raise Partial(partial, entries)
    return entries


def _string(stream: TokenStream) -> str | None:
    """Text; of anything else the text as it was written."""
    found = _value(stream)
    if found is None:
        return None
    if found == "string":
        return clean(stream.text())
    return stream.raw().decode("utf-8", "replace")


def _binary(stream: TokenStream) -> bytes | None:
    found = _value(stream)
    if found == "string":
        return stream.base64()
    return None if found is None else _refuse(stream, "base64 text")


def _scalar(kind: pa.DataType, options: ReaderOptions, temporal: Temporal) -> Convert:
    convert = scalar(kind, options, temporal)

    def converted(stream: TokenStream) -> Any:
        found = _value(stream)
        if found is None:
            return None
        if found in ("string", "int", "float"):
            return convert(found, stream.text())
        return convert(found, found)

    return converted


def tree_of(stream: TokenStream, together: Callable[[Any, Any], Any] | None = None) -> Any:
    """The value at which the stream is. No recursion: a thousand levels are allowed.

    `together` makes one of two values that an object has under one name; without it they are a
    `Misfit`.
    """
    above: list[_Holder] = []
    while True:
        found = stream.found
        if found in ("{", "["):
            above.append(_Holder(found, stream.name, together))
        else:
            if found in ("}", "]") and above:
                done = above.pop()
                name, made = done.name, done.finished()
            else:
                name, made = stream.name, _leaf(stream)
            if not above:
                return made
            above[-1].put(name, made)
        if stream.next() == "name":
            stream.next()


class _Holder:
    """An object or an array that is being read."""

    def __init__(
        self, bracket: str, name: str | None, together: Callable[[Any, Any], Any] | None
    ) -> None:
        self.name = name
        self._together = together
        self._made: Any = {} if bracket == "{" else []
        self._twice = ""

    def put(self, name: str | None, value: Any) -> None:
        if isinstance(self._made, list):
            self._made.append(value)
            return
        assert name is not None
        if name in self._made:
            if self._together is None:
                self._twice = f"{name!r} twice in a variant"
            else:
                value = self._together(self._made[name], value)
        self._made[name] = value

    def finished(self) -> Any:
        # Not before its end: Spark goes on there.
        if self._twice:
            raise Misfit(self._twice)
        return self._made


def _leaf(stream: TokenStream) -> Any:
    found = stream.found
    if found == "string":
        return stream.text()
    if found in ("int", "float"):
        return Number(stream.text())
    if found in ("true", "false", "null"):
        return {"true": True, "false": False}.get(found)
    raise misfit(found or "nothing", "a value")
