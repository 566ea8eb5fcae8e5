"""Splits one JSON text into tokens as Spark's parser does, its errors and their places included.

Spark reads JSON with Jackson's parser of bytes. What a record that is not JSON still gives depends
on where that parser notices: it takes the scalar after a name together with the name, strings only
when they are asked for, and continues behind what it could not read. Here this is rebuilt, so
that a bad value costs as many of its neighbours as it costs in Spark, and no more.

Tried instead: `json`, msgspec and pyarrow say no more than that a text is wrong, and keep
neither duplicate names nor how values were written. Trees show which fields a schema does not have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...evolution.new_columns import KnownFields, NewColumnsSeen, written
from ...evolution.type_growth import merged, wider_in_text, wider_or_text
from ...options import ReaderOptions
from ...values.numbers import Number, integer
from ..records.outcome import ValueMisfit
from . import plain_records
from .json_text import JsonText, MalformedText, base64_value, recoded
from .json_values import (
    MAX_DEPTH,
    MAX_NAME,
    MAX_STRING,
    SURROGATES,
    as_maps,
    misfit,
    type_of_json,
)

Symbol = str | None
"""`{ } [ ]`, `name`, `string`, `int`, `float`, `true`, `false`, `null`, or None at the end."""

_UNQUOTED = re.compile(rb"[0-9A-Za-z_$@#*+\-\x80-\xff]+")
_WORDS = {ord("t"): "true", ord("f"): "false", ord("n"): "null"}


@dataclass(slots=True)
class _Context:
    """The open bracket, `{` or `[`, or nothing for the text itself."""

    kind: str
    entries: int = 0
    name: str | None = None


class TokenStream(JsonText):
    """The tokens of one text. After an error it can be asked on, as Spark does."""

    def __init__(self, data: bytes, options: ReaderOptions) -> None:
        super().__init__(data, options)
        self.symbol: Symbol = None
        """The current token."""
        self._contexts = [_Context("")]
        self._after_name: Symbol = None
        self._unread = False
        self._text = ""
        self._start = 0

    @property
    def name(self) -> str | None:
        """The name of the current field; that of a value that has just been opened too."""
        depth = -2 if self.symbol in ("{", "[") and len(self._contexts) > 1 else -1
        return self._contexts[depth].name

    def text(self) -> str:
        """Return the current string, or the digits of the current number.

        Raises:
            MalformedText: the string does not end well; it stays read up to there.
        """
        text = self._read()
        if (
            # A character is at most two units of UTF-16, so shorter strings need no closer look.
            len(text) > MAX_STRING // 2
            and len(text.encode("utf-16-le", "replace")) > 2 * MAX_STRING
        ):
            self.fail(f"a string of more than {MAX_STRING} characters")
        return text

    def _read(self) -> str:
        if self.symbol == "string" and self._unread:
            self._unread = False
            self._text = ""
            self._text = self.string(ord('"'))
        return self._text

    def raw(self) -> bytes:
        """Return the current value as it was written; what was opened is read to its end."""
        begin = self._start
        self._read()
        self.skip_children()
        return self.data[begin : self.at]

    def base64(self) -> bytes:
        """Return the current string's bytes, from base64 with all of its padding."""
        if not self._unread:
            # In single quotes, which are read at once.
            again = self._text.encode("utf-8", "replace") + b'"'
            return base64_value(JsonText(again, self.options))
        decoded = base64_value(self)
        self._unread = False
        return decoded

    def skip_children(self) -> None:
        """If the current token opens something, go to the token that closes it."""
        if self.symbol not in ("{", "["):
            return
        depth = 1
        while depth:
            symbol = self.next()
            if symbol is None:
                self.end_of_text()
            depth += (symbol in ("{", "[")) - (symbol in ("}", "]"))

    def ends(self) -> bool:
        """Return whether nothing but blanks and comments is left."""
        try:
            return self.blanks() is None
        except MalformedText:
            return False

    # `UTF8StreamJsonParser.nextToken`; the value of a name is taken by `_nextAfterName`.
    def next(self) -> Symbol:
        """Go to the next token. None at the end, or if a name has no value."""
        if self.symbol == "name":
            symbol, self._after_name = self._after_name, None
            self._open(symbol)
            self.symbol = symbol
            return symbol
        # A value that was not asked for.
        if self._unread:
            self._unread = False
            self.skip_string()
        char = self.blanks()
        if char is None:
            if len(self._contexts) > 1:
                self.end_of_text()
            self.symbol = None
        elif char in b"]}":
            self._close(chr(char))
        else:
            self._entry(char)
        return self.symbol

    def _entry(self, char: int) -> None:
        context = self._contexts[-1]
        context.entries += 1
        if len(self._contexts) > 1 and context.entries > 1:
            if char != ord(","):
                self.fail(f"{chr(char)!r} where a comma is expected")
            char = self.significant()
        if context.kind == "{":
            context.name = self._name(char)
            self.symbol = "name"
            char = self.colon()
            self._after_name = self._value(char)
        else:
            symbol = self._value(char)
            self._open(symbol)
            self.symbol = symbol

    def _open(self, symbol: Symbol) -> None:
        if symbol not in ("{", "["):
            return
        self._contexts.append(_Context(symbol))
        if len(self._contexts) - 1 > MAX_DEPTH:
            self.fail(f"more than {MAX_DEPTH} levels of nesting")

    def _close(self, char: str) -> None:
        self._start = self.at - 1
        if self._contexts[-1].kind != {"]": "[", "}": "{"}[char]:
            self.fail(f"{char!r} without an opening bracket")
        self._contexts.pop()
        self.symbol = char

    def _name(self, char: int) -> str:
        if char == ord('"') or (char == ord("'") and self.options.allow_single_quotes):
            name = self.string(char)
            if SURROGATES.search(name):
                self.fail("half of a surrogate pair in a name")
        else:
            match = _UNQUOTED.match(self.data, self.at - 1)
            if not self.options.allow_unquoted_field_names or not match:
                self.fail(f"{chr(char)!r} where a name in quotes is expected")
            self.at = match.end()
            name = match[0].decode("utf-8", "replace")
        # A character has at most four bytes, so shorter names need no closer look.
        if len(name) > MAX_NAME // 4 and len(name.encode("utf-8", "replace")) > MAX_NAME:
            self.fail(f"a name of more than {MAX_NAME} bytes")
        return name

    def _value(self, char: int) -> str:
        self._start = self.at - 1
        if char == ord('"'):
            # Jackson reads a string when it is asked for: one in an unwanted field is
            # skipped less strictly.
            self._unread = True
            return "string"
        if char in b"{[":
            return chr(char)
        if char in _WORDS:
            self.word(_WORDS[char], 1)
            return _WORDS[char]
        if 0x30 <= char <= 0x39 or char in b"-+NI":
            symbol = self.number(char)
            self._text = self.data[self._start : self.at].decode()
            return symbol
        if char == ord("'") and self.options.allow_single_quotes:
            self._text = self.string(char)
            return "string"
        if chr(char).isalpha() or chr(char) in "_$":
            self.unknown_word()
        return self.fail(f"{chr(char)!r} where a value is expected")


def tree_of(stream: TokenStream, together: Callable[[Any, Any], Any] | None = None) -> Any:
    """Return the value at which the stream is. No recursion: a thousand levels are allowed.

    `together` makes one of two values that an object has under one name; without it they are a
    `ValueMisfit`.
    """
    above: list[_Holder] = []
    while True:
        symbol = stream.symbol
        if symbol in ("{", "["):
            above.append(_Holder(symbol, stream.name, together))
        else:
            if symbol in ("}", "]") and above:
                done = above.pop()
                name, value = done.name, done.finished()
            else:
                name, value = stream.name, _leaf(stream)
            if not above:
                return value
            above[-1].put(name, value)
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
            raise ValueMisfit(self._twice)
        return self._made


def _leaf(stream: TokenStream) -> Any:
    symbol = stream.symbol
    if symbol == "string":
        return stream.text()
    if symbol in ("int", "float"):
        return Number(stream.text())
    if symbol in ("true", "false", "null"):
        return {"true": True, "false": False}.get(symbol)
    raise misfit(symbol or "nothing", "a value")


class UnknownJsonFields:
    """Looks through records that the fast paths have refused."""

    def __init__(
        self, data: pa.Schema, options: ReaderOptions, query_columns: frozenset[str] = frozenset()
    ) -> None:
        """`query_columns` are columns that are not new, though they are not in `data`."""
        self._options = options
        self._columns = query_columns
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
            columns = self.of_records([record])
            if not pa.types.is_null(columns):
                raise NewColumnsSeen(where(), columns)

    def of_records(self, records: Iterable[bytes]) -> pa.DataType:
        """Return what these records have and the schema does not, as types; null if nothing."""
        new, longer = list[Any](), list[Any]()
        for record in records:
            value = tree_of_record(record, self._options)
            for one in value if isinstance(value, list) else [value]:
                unknown = self._known.unknown_part(one) or {}
                new.append({name: v for name, v in unknown.items() if self._is_new(name)})
                if self._evolution.widens and isinstance(one, dict):
                    longer.append(dict(self._longer(one)))
        columns = type_of_json(new, exact=self._options.infer_column_types)
        columns = merged(columns, type_of_json(longer, exact=True), wider_or_text)
        return as_maps(columns, self._whole)

    def nested(self, name: str, value: bytes) -> str | None:
        """Return what the struct in a column does not have, as JSON; None if nothing."""
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
        return written(part[name], _json_of)

    def anything(self, value: Any) -> bool:
        """Return whether a parsed record has anything that the schema does not have."""
        return self._known.unknown_part(value) is not None

    def _is_new(self, name: str) -> bool:
        # A column of the path may be in records as well, and is not new there.
        return name in self._kinds or name not in self._columns

    def _longer(self, record: Mapping[str, Any]) -> Iterator[tuple[str, Number]]:
        for name, value in record.items():
            kind = self._kinds.get(name)
            if type(value) is Number and kind is not None:
                wider = wider_in_text(kind, type_of_json([value], exact=True))
                if wider not in (None, kind) and not _fits(value, kind):
                    yield name, value


def _fits(value: Number, kind: pa.DataType) -> bool:
    try:
        return pa.types.is_integer(kind) and integer(value, kind) is not None
    except ValueError:
        return False


def tree_of_record(record: bytes, options: ReaderOptions) -> Any:
    """Return a record as objects, lists and leaves, numbers as written; None if it is no JSON.

    All values of a name that comes twice are there, as if it had come once.
    """
    try:
        return plain_records.parsed(record, options)
    except plain_records.REFUSALS:
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


def _json_of(value: Any) -> str:
    return str(value) if type(value) is Number else json.dumps(value, ensure_ascii=False)
