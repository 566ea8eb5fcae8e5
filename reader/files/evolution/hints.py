"""`schemaHints` and `writeSchema`: types of columns in Spark's DDL, read without Spark.

Spark's own parser is in the JVM, which the process that asks for a schema cannot reach.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

import pyarrow as pa

from ....errors import OptionError
from .column_names import ColumnNames
from .type_growth import SPARK_TYPES, children, is_variant, merged, wider_in_text

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|[A-Za-z_][\w]*|\d+|[<>(),:.])")
_SIMPLE = {
    **{name: kind for name, kind in SPARK_TYPES.items() if name != "void"},
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "timestamp_ltz": SPARK_TYPES["timestamp"],
}


def parse_hints(text: str) -> list[tuple[tuple[str, ...], pa.DataType]]:
    """Path of names and type of each hint.

    Raises:
        OptionError: it does not parse; says where.
    """
    # A hint cannot promise that no file has a null there.
    parser = _Parser(text, "schemaHints", may_promise=False)
    hints = [(path, field.type) for path, field in parser.columns()] if text.strip() else []
    for _, kind in hints:
        _refuse_twice([child for _, child in children(kind)], "schemaHints")
    return hints


def parse_columns(text: str, option: str) -> list[pa.Field]:
    """Return the columns that an option describes, some of them `NOT NULL`.

    Raises:
        OptionError: it does not parse, or names a field of a struct; says where.
    """
    columns = _Parser(text, option, may_promise=True).columns() if text.strip() else []
    for path, _ in columns:
        if len(path) > 1:
            raise OptionError(
                f"{option}: a name with dots", "", ".".join(path), "names of columns, or `a.b`"
            )
    fields = [field for _, field in columns]
    _refuse_twice(fields, option)
    return fields


def _refuse_twice(fields: Sequence[pa.Field], option: str) -> None:
    """Refuse columns, and fields of one struct, that have the same name."""
    counts = Counter(field.name for field in fields)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise OptionError(f"{option}: a name twice", "", ", ".join(twice), "names that differ")
    for field in fields:
        _refuse_twice([child for _, child in children(field.type)], option)


class _Parser:
    def __init__(self, text: str, option: str, *, may_promise: bool) -> None:
        """`may_promise`: a column may be `NOT NULL`."""
        self._text, self._at, self._option = text, 0, option
        self._may_promise = may_promise

    def columns(self) -> list[tuple[tuple[str, ...], pa.Field]]:
        columns = []
        while True:
            path = [self._name()]
            while self._skip("."):
                path.append(self._name())
            columns.append((tuple(path), self._field(path[-1])))
            if not self._skip(","):
                break
        if self._text[self._at :].strip():
            raise self._wrong("a comma or the end")
        return columns

    def _peek(self) -> str:
        match = _TOKEN.match(self._text, self._at)
        return match[1] if match else ""

    def _skip(self, *tokens: str) -> bool:
        """Go past the next token if it is one of these, in any case; False if it is not."""
        match = _TOKEN.match(self._text, self._at)
        if match is None or match[1].lower() not in tokens:
            return False
        self._at = match.end()
        return True

    def _expect(self, token: str) -> None:
        if not self._skip(token):
            raise self._wrong(repr(token))

    def _name(self) -> str:
        token = self._peek()
        if not (token.startswith("`") or token[:1].isidentifier()):
            raise self._wrong("a name of a column")
        self._skip(token.lower())
        return token[1:-1].replace("``", "`") if token.startswith("`") else token

    def _field(self, name: str) -> pa.Field:
        kind = self._type()
        promises = self._may_promise and self._skip("not")
        if promises and not self._skip("null"):
            raise self._wrong("NOT NULL")
        return pa.field(name, kind, nullable=not promises)

    def _type(self) -> pa.DataType:
        word = self._peek().lower()
        if self._skip(*_SIMPLE):
            return _SIMPLE[word]
        if self._skip("interval"):
            for unit in ("day", "to", "second"):
                self._expect(unit)
            return pa.duration("us")
        if self._skip("decimal", "dec", "numeric"):
            return self._decimal()
        if self._skip("array"):
            self._expect("<")
            value = self._type()
            self._expect(">")
            # Spark's name for it; Arrow's own would be `item`, and batches have to equal Spark's
            # schema.
            return pa.list_(pa.field("element", value))
        if self._skip("map"):
            self._expect("<")
            key = self._type()
            self._expect(",")
            item = self._type()
            self._expect(">")
            return pa.map_(key, item)
        if self._skip("struct"):
            return self._struct()
        raise self._wrong("a type of Spark's such as long, decimal(10,2) or array<string>")

    def _decimal(self) -> pa.DataType:
        if not self._skip("("):
            # What `decimal` without digits means in Spark (`DecimalType.USER_DEFAULT`).
            return pa.decimal128(10, 0)
        precision = self._number()
        scale = self._number() if self._skip(",") else 0
        self._expect(")")
        if not 0 < precision <= 38 or scale > precision:
            raise self._wrong("a precision of at most 38 and a scale of at most the precision")
        return pa.decimal128(precision, scale)

    def _number(self) -> int:
        token = self._peek()
        if not token.isdigit():
            raise self._wrong("a number")
        self._skip(token)
        return int(token)

    def _struct(self) -> pa.DataType:
        self._expect("<")
        fields = []
        while not self._skip(">"):
            name = self._name()
            # Spark's DDL permits `struct<a: int>` and `struct<a int>`.
            self._skip(":")
            fields.append(self._field(name))
            if self._peek() != ">":
                self._expect(",")
        return pa.struct(fields)

    def _wrong(self, expected: str) -> OptionError:
        rest = self._text[self._at : self._at + 30].strip()
        return OptionError(
            f"{self._option}: it does not parse",
            f"after {self._text[: self._at]!r}" if self._at else "",
            repr(rest) if rest else "its end",
            expected,
            "Write names and types as in .schema(...): id long, address.zip string.",
        )


def with_hinted_types(schema: pa.Schema, hints: str) -> pa.Schema:
    """Return the columns of one file with the hinted types of those that it has."""
    kind: pa.DataType = pa.struct(list(schema))
    for path, hinted in parse_hints(hints):
        if _has(kind, path):
            kind = _hinted(kind, path, _just, hinted, ".".join(path))
    return pa.schema(list(kind))


def _has(kind: pa.DataType, path: tuple[str, ...]) -> bool:
    if not path or not pa.types.is_struct(kind):
        return not path
    types = [field.type for field in kind if field.name.lower() == path[0].lower()]
    return any(_has(inner, path[1:]) for inner in types)


def with_hints(schema: pa.Schema, hints: str, *, has_grown: bool = False) -> pa.Schema:
    """`schema` with the hinted types; a hinted column that was not found is added.

    With `has_grown` a hint takes nothing back: `schema` may have become what it is since the same
    hint was laid over it, by fields that came later and by types that grew.

    Raises:
        OptionError: a hint is not understood, or reaches into a column that is no struct.
    """
    kind: pa.DataType = pa.struct(list(schema))
    for path, hinted in parse_hints(hints):
        kind = _hinted(kind, path, _not_less if has_grown else _just, hinted, ".".join(path))
    return pa.schema(list(kind))


def _just(hinted: pa.DataType, _: pa.DataType) -> pa.DataType:
    return hinted


def _not_less(hinted: pa.DataType, before: pa.DataType) -> pa.DataType:
    # A variant takes every value already.
    if is_variant(hinted):
        return hinted

    def leaf(one: pa.DataType, other: pa.DataType) -> pa.DataType:
        return other if wider_in_text(one, other) == other else one

    return merged(hinted, before, leaf)


def _hinted(
    kind: pa.DataType,
    path: tuple[str, ...],
    lay: Callable[[pa.DataType, pa.DataType], pa.DataType],
    hinted: pa.DataType,
    whole: str,
) -> pa.DataType:
    if not path:
        return lay(hinted, kind)
    if not pa.types.is_struct(kind):
        raise OptionError(
            "schemaHints: names a field of a column that is not a struct",
            whole,
            str(kind),
            "a struct on the way to the hinted field",
        )
    fields = {field.name: field for field in kind}
    # The spelling that the files have stays; Spark ignores case.
    name = ColumnNames(fields).find(path[0]) or path[0]
    inside = fields[name].type if name in fields else pa.struct([])
    # A hint says all of the type, its collation, too.
    fields[name] = pa.field(name, _hinted(inside, path[1:], lay, hinted, whole))
    return pa.struct(list(fields.values()))
