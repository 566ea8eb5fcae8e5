"""The `filter` option: `column op literal` joined by AND, as rows to keep and blocks to skip.

Skipping a block by its statistics is only a faster way to the same rows: which rows are kept never
depends on how a file was cut into blocks. A condition that is null for a row does not hold, as in
SQL, and NaN is greater than every number, as in Spark.

Tried for the text: sqlglot 30 takes 0.1 s to import in every task, reads `a = 1 b` as an alias and
`a = 1; drop table x` as two statements without a word, and its tree no longer knows where a literal
was, which the errors here say.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import OptionError
from .evolution.column_names import ColumnNames
from .evolution.file_types import collations
from .options import ReaderOptions
from .values.numbers import decimals
from .values.times.temporal import cast_text

COMPARE = {
    "=": pc.equal,
    "in": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


@dataclass(frozen=True, slots=True)
class Range:
    """A column's range in a block's metadata; values already in the column's target type."""

    low: pa.Scalar | None
    high: pa.Scalar | None
    nulls: int | None
    rows: int


@dataclass(frozen=True, slots=True)
class Condition:
    """One conjunct. `values` has one literal, several for IN, none for the two null tests.

    A literal has the type in which Spark compares it with the column, which is not always the
    column's: a literal is never rounded to a narrower type.
    """

    column: str
    op: str
    values: tuple[pa.Scalar, ...]

    def holds(self, array: pa.Array) -> pa.Array:
        """True, false or null for each value of the column."""
        if self.op == "is null":
            return array.is_null()
        if self.op == "is not null":
            return array.is_valid()
        # Arrow's sets tell -0.0 from 0.0.
        may_be_set = self.op == "in" and not pa.types.is_floating(array.type)
        if may_be_set and all(value.type == array.type for value in self.values):
            return pc.is_in(array, value_set=pa.array(self.values, array.type))
        compare = COMPARE[self.op]
        comparisons = (compare(_comparable(array, value.type), value) for value in self.values)
        mask = reduce(pc.or_, comparisons)
        if self.op in (">", ">=") and pa.types.is_floating(array.type):
            mask = pc.or_(mask, pc.is_nan(array))
        return mask

    def may_hold(self, bounds: Range) -> bool:
        """False only if no row of the block can fulfil the condition."""
        if bounds.nulls is not None:
            if self.op == "is null":
                return bounds.nulls > 0
            # Nothing but nulls: neither a comparison nor IS NOT NULL holds for any of them.
            if bounds.nulls == bounds.rows:
                return False
        if self.op in ("is null", "is not null") or bounds.low is None or bounds.high is None:
            return True
        return any(self._may_equal(value, bounds.low, bounds.high) for value in self.values)

    def _may_equal(self, value: pa.Scalar, low: pa.Scalar, high: pa.Scalar) -> bool:
        # NaN does not count for minimum and maximum but for > and != it does.
        floating = pa.types.is_floating(value.type)
        low, high = _comparable(low, value.type), _comparable(high, value.type)
        if self.op in ("=", "in"):
            return _true(pc.less_equal(low, value)) and _true(pc.less_equal(value, high))
        if self.op == "!=":
            return floating or not (_true(pc.equal(low, value)) and _true(pc.equal(high, value)))
        if self.op in ("<", "<="):
            return _true(COMPARE[self.op](low, value))
        return floating or _true(COMPARE[self.op](high, value))


def _true(scalar: pa.Scalar) -> bool:
    return bool(scalar.as_py())


def _comparable(values: Any, kind: pa.DataType) -> Any:
    """An array or a scalar of a column in the type of a literal, which takes all its values."""
    if values.type == kind:
        return values
    if pa.types.is_integer(values.type) and pa.types.is_decimal(kind):
        values = values.cast(pa.decimal128(38, 0))
    return values.cast(kind, safe=False)


class Predicate:
    """The conjuncts of a filter that speak of a given schema's columns."""

    def __init__(self, conditions: tuple[Condition, ...]) -> None:
        self.conditions = conditions

    def __bool__(self) -> bool:
        return bool(self.conditions)

    @classmethod
    def parse(
        cls, text: str, schema: pa.Schema, others: Collection[str] | None = (), zone: str = "UTC"
    ) -> Predicate:
        """The conditions of `text` on columns of `schema`; those on `others` are left out.

        `others` is None where the caller cannot know them: then every other name is left out.

        Timestamps that name no zone are in `zone`.

        Raises:
            OptionError: not a condition, a column that is in neither, or a literal that is no
                value of its column.
        """
        if not text.strip():
            return cls(())
        return cls(tuple(FilterParser(text, schema, others, zone).conditions()))

    @classmethod
    def of_options(cls, options: ReaderOptions, schema: pa.Schema) -> Predicate:
        """The conditions of the `filter` option on columns of `schema`, names checked elsewhere."""
        return cls.parse(options.filter, schema, None, options.time_zone or "UTC")

    def columns(self) -> set[str]:
        """Names of the columns the conditions speak of."""
        return {condition.column for condition in self.conditions}

    def keep(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of `batch`, in order, that fulfil every condition."""
        mask = None
        for condition in self.conditions:
            holds = condition.holds(batch.column(condition.column))
            mask = holds if mask is None else pc.and_(mask, holds)
        # `filter` drops rows of which the mask is null, as SQL does.
        return batch if mask is None else batch.filter(mask)

    def may_hold(self, ranges: dict[str, Range]) -> bool:
        """False only if no row of a block with these column ranges fulfils every condition."""
        return all(
            condition.may_hold(ranges[condition.column])
            for condition in self.conditions
            if condition.column in ranges
        )


_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^']|'')*')
      | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
      | (?P<quoted>`(?:[^`]|``)+`)
      | (?P<word>[^\W\d]\w*(?:\.[^\W\d]\w*)*)
      | (?P<op><=>|<=|>=|<>|!=|==|=|<|>)
      | (?P<mark>[(),])
    )""",
    re.VERBOSE,
)
_DIGITS = 38
"""Digits of Spark's decimals; so many before and after the point fit into the 76 of Arrow's."""

_SAME = {"==": "=", "<>": "!="}
_REMEDY = (
    "Write comparisons such as day >= '2026-01-01' AND region IN ('eu', 'us') AND id IS NOT NULL."
)


class FilterParser:
    """Recursive descent, one method a grammar rule; keeps the position for its errors."""

    def __init__(
        self, text: str, schema: pa.Schema, others: Collection[str] | None, zone: str
    ) -> None:
        self._text = text
        self._zone = zone
        self._schema = schema
        self._names = ColumnNames(schema.names)
        self._others = None if others is None else ColumnNames(others)
        self._at = 0
        self._kind = ""
        self._token = ""
        self._next = 0
        self._advance()

    def conditions(self) -> Iterator[Condition]:
        """The conjuncts, in order; those on columns of others are left out."""
        while True:
            condition = self._condition()
            if condition is not None:
                yield condition
            if not self._kind:
                return
            self._expect("word", "and")

    def _condition(self) -> Condition | None:
        field = self._column()
        if self._kind == "op":
            op = _SAME.get(self._token, self._token)
            # `<=>` is a token only so that this error can name it.
            if op not in COMPARE:
                self._fail("one of = != < <= > >=")
            self._advance()
            values: tuple[Any, ...] = (self._literal(field),)
        elif self._skip("word", "in"):
            op, values = "in", tuple(self._list(field))
        else:
            op, values = self._null_test(), ()
        return None if field is None else Condition(field.name, op, values)

    def _column(self) -> pa.Field | None:
        if self._kind not in ("word", "quoted"):
            self._fail("the name of a column")
        name = self._token
        if self._kind == "quoted":
            name = name[1:-1].replace("``", "`")
        elif "." in name:
            self._fail(f"the name of a whole column; one that has a dot in it is written `{name}`")
        column = self._names.find(name)
        if column is None and self._others is not None and name not in self._others:
            self._fail(f"a column of the schema: {', '.join(self._schema.names)}")
        self._advance()
        if column is None:
            return None
        field = self._schema.field(column)
        if names := collations(field):
            raise OptionError(
                "filter: a column has a collation, by which this option does not compare",
                column,
                ", ".join(names.values()),
                "text without a collation",
                "Filter it with .where(...) after .load(), or give it the type string.",
            )
        return field

    def _null_test(self) -> str:
        if not self._skip("word", "is"):
            self._fail("an operator, IN or IS")
        negated = self._skip("word", "not")
        self._expect("word", "null")
        return "is not null" if negated else "is null"

    def _list(self, field: pa.Field | None) -> Iterator[Any]:
        self._expect("mark", "(")
        yield self._literal(field)
        while self._skip("mark", ","):
            yield self._literal(field)
        self._expect("mark", ")")

    def _literal(self, field: pa.Field | None) -> Any:
        prefix = next((word for word in ("date", "timestamp") if self._skip("word", word)), "")
        if prefix and self._kind != "text":
            self._fail("a text in single quotes")
        if self._kind == "text":
            value: str = self._token[1:-1].replace("''", "'")
        elif self._kind == "number" or self._token.lower() in ("true", "false"):
            value = self._token
        else:
            self._fail("a number, a text in single quotes, true or false")
        # A literal for a column of others is only passed over: its type is known where that column
        # is.
        scalar = None if field is None else self._typed(value, field, prefix)
        self._advance()
        return scalar

    def _typed(self, value: str, field: pa.Field, prefix: str) -> pa.Scalar:
        types, kind = pa.types, field.type
        expected = f"a value of type {kind} for column {field.name!r}"
        wanted = "number" if _is_number(kind) else "word" if types.is_boolean(kind) else "text"
        if self._kind != wanted or (prefix == "timestamp" and types.is_date(kind)):
            self._fail(expected)
        try:
            if wanted == "number":
                return _number(value, kind)
            if types.is_timestamp(kind) or types.is_date(kind):
                # Spark leaves out a time of day in a literal that is called a date.
                value = re.split("[ T]", value.strip())[0] if prefix == "date" else value
                return cast_text(value, kind, self._zone)
            return pa.scalar(value).cast(kind)
        except (ValueError, pa.ArrowException):
            self._fail(expected)

    def _skip(self, kind: str, token: str) -> bool:
        """Go past the next token if it is this one; False if it is not."""
        is_next = self._kind == kind and self._token.lower() == token
        if is_next:
            self._advance()
        return is_next

    def _expect(self, kind: str, token: str) -> None:
        if not self._skip(kind, token):
            self._fail(token.upper())

    def _advance(self) -> None:
        self._at = self._next
        rest = self._text[self._at :]
        match = _TOKEN.match(rest)
        if match is None:
            self._kind = self._token = ""
            if rest.strip():
                self._token = rest.strip()[:20]
                self._fail("a comparison")
            return
        self._kind = str(match.lastgroup)
        self._token = match.group(self._kind)
        self._next = self._at + match.end()

    def _fail(self, expected: str) -> NoReturn:
        place = repr(self._token) if self._token else "its end"
        where = f"character {self._at + 1} of {self._text!r}"
        message = "option filter does not parse"
        raise OptionError(message, where, place, expected, _REMEDY) from None


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _number(text: str, kind: pa.DataType) -> pa.Scalar:
    """A number in the type in which Spark compares it with a column of type `kind`.

    Raises:
        ValueError: it has more digits than Spark's decimals.
    """
    # A literal with an exponent is a double in Spark (`legacy.exponentLiteralAsDecimal.enabled` is
    # off).
    if pa.types.is_floating(kind) or "e" in text.lower():
        return pa.scalar(float(text), pa.float64())
    value = Decimal(text)
    scale = max(0, -int(value.as_tuple().exponent))
    if scale > _DIGITS or value.adjusted() >= _DIGITS:
        raise ValueError(text)
    scale = max(scale, kind.scale if pa.types.is_decimal(kind) else 0)
    literal = pa.array([value], pa.decimal256(2 * _DIGITS, scale))
    # In the column's own type where that is exact: then no value of the column has to be cast.
    with suppress(pa.ArrowInvalid):
        return (decimals(literal, kind) if pa.types.is_decimal(kind) else literal.cast(kind))[0]
    return literal[0]
