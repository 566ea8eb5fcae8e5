"""Decimals in every format: the value that was written, or an error."""

from __future__ import annotations

import random
import re
from decimal import Context, Decimal, localcontext
from itertools import product

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from pyspark_sluice.errors import SchemaMismatchError
from pyspark_sluice.reader.files.testing import read_rows
from pyspark_sluice.reader.files.values.numbers import decimals

pytestmark = pytest.mark.slow

KINDS = [(5, 2), (10, 0), (18, 18), (38, 0), (38, 18), (38, 38), (20, 10), (1, 1), (1, 0)]
CORRUPT = "_corrupt_record"
EXACT = Context(prec=5000, Emax=10**9, Emin=-(10**9))
BEYOND = "123456789012345678901234567890"
"""Into decimal(38,18) it goes beyond 128 bits, and came back as another number."""


def _random_decimals(count: int, seed: int) -> list[Decimal]:
    """Of 1 to 38 digits and any scale, a third of them at the edge of their digits."""
    dice = random.Random(seed)
    values = []
    for _ in range(count):
        digits = dice.randint(1, 38)
        unscaled = dice.choice(
            [dice.randrange(10**digits), 10**digits - 1, 10 ** (digits - 1), 5 * 10 ** (digits - 1)]
        )
        sign = dice.choice([1, -1])
        values.append(Decimal(sign * unscaled).scaleb(-dice.randint(0, 38), EXACT))
    return values


def _texts(count: int, seed: int) -> list[str]:
    """Numbers as files hold them: plain, with exponents, zeros, signs and commas."""
    dice = random.Random(seed)
    texts = []
    for value in _random_decimals(count, seed):
        form = dice.randrange(6)
        text = format(value, "f") if form < 3 else format(value, "E")
        if form == 1:
            text = text.replace("-", "-000") if "-" in text else f"+00{text}"
        elif form == 2 and len(text) > 3:
            text = f"{text[:2]},{text[2:]}"
        elif form == 4:
            text = text.replace("E", "e")
        elif form == 5:
            text = text.replace("E+", "E").replace("E", f"E{dice.choice(['+0', '-0', ''])}")
        texts.append(text)
    return texts


def _fits(value: Decimal, precision: int, scale: int) -> bool:
    with localcontext(EXACT):
        is_whole = value == value.quantize(Decimal(1).scaleb(-scale))
        return is_whole and abs(value) < Decimal(10) ** (precision - scale)


def _name(precision: int, scale: int) -> str:
    return f"d{precision}_{scale}"


SCHEMA = pa.schema([(_name(*kind), pa.decimal128(*kind)) for kind in KINDS])


@pytest.mark.parametrize("width", [128, 256])
def test_a_decimal_becomes_another_one_without_change_or_is_refused(width):
    make = pa.decimal128 if width == 128 else pa.decimal256
    for value in _random_decimals(150, 3):
        digits = max(len(value.as_tuple().digits), -int(value.as_tuple().exponent))
        source = pa.array([value, None], make(digits, -int(value.as_tuple().exponent)))
        for kind in KINDS:
            target = pa.decimal128(*kind)
            try:
                made = decimals(source, target).to_pylist()
            except pa.ArrowInvalid:
                made = None
            assert made == ([value, None] if _fits(value, *kind) else None), (value, kind)


@pytest.mark.parametrize(
    ("value", "kind", "target", "fits"),
    [
        (Decimal("1E+3"), pa.decimal128(5, -3), pa.decimal128(38, 18), True),
        (Decimal("1E+35"), pa.decimal128(5, -35), pa.decimal128(38, 0), True),
        (Decimal("1E+35"), pa.decimal128(5, -35), pa.decimal128(38, 3), False),
        (2**64 - 1, pa.uint64(), pa.decimal128(20, 0), True),
        (2**64 - 1, pa.uint64(), pa.decimal128(38, 19), False),
        (100, pa.int8(), pa.decimal128(3, 1), False),
    ],
)
def test_negative_scales_and_integers_keep_their_value_or_are_refused(value, kind, target, fits):
    source = pa.array([value], kind)
    if fits:
        assert decimals(source, target).to_pylist() == [value]
    else:
        with pytest.raises(pa.ArrowInvalid):
            decimals(source, target)


def test_scales_too_far_apart_to_be_rescaled_are_refused():
    one = pa.array([1], pa.decimal128(5, 0))
    for scale in (-70, 70):
        source = pa.Array.from_buffers(pa.decimal128(5, scale), 1, one.buffers())
        with pytest.raises(pa.ArrowInvalid):
            decimals(source, pa.decimal128(38, 18))


@pytest.mark.parametrize(
    ("form", "write"), [("parquet", parquet.write_table), ("orc", orc.write_table)]
)
@pytest.mark.parametrize("nested", [False, True])
def test_a_decimal_of_more_digits_than_its_own_type_is_refused_and_the_file_named(
    tmp_path, form, write, nested
):
    kind = pa.decimal128(12, 2)
    beyond = pa.Array.from_buffers(kind, 1, pa.array([10**14], pa.decimal128(20, 0)).buffers())
    column = pa.ListArray.from_arrays([0, 1], beyond) if nested else beyond
    path = tmp_path / "a"
    write(pa.table({"d": column}), path)
    schema = pa.schema([("d", pa.list_(pa.field("element", kind)) if nested else kind)])
    with pytest.raises(SchemaMismatchError, match=str(path)):
        read_rows([path], schema, file_format=form)


NUMBER = r"-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?"
RECORDS = {"csv": [('"{}"', ".*")], "json": [('{{"d":"{}"}}', ".*"), ('{{"d":{}}}', NUMBER)]}
"""One record of a column, and the texts that it can have."""


@pytest.mark.parametrize("form", RECORDS)
def test_texts_are_the_decimals_that_spark_reads(spark_answers, tmp_path, form):
    odd = "1.|.5|.|+.5e1|1d|0x10|\u0661\u0662|\U0001d7ce|1e\u0661|\uff11|1_0|NaN|--1|-0| 5|5 "
    odd += f"|,5|+,5|1,2,3.4|1e-400|0e400|0e-400|1e400|1e00000000000001|{'1' * 60}|0.{'1' * 60}"
    texts = [*_texts(250, 6), *odd.split("|"), BEYOND]
    names = SCHEMA.names
    if form == "csv":
        records = [";".join([text] * len(names)) for text in texts]
    else:
        pairs = [",".join(f'"{name}":"{text}"' for name in names) for text in texts]
        records = [f"{{{fields}}}" for fields in pairs]
    path = tmp_path / "a"
    path.write_text("".join(f"{record}\n" for record in records))
    columns = ", ".join(f"{_name(*kind)} decimal{kind}" for kind in KINDS)
    ddl = f"{columns}, {CORRUPT} string"

    def by_spark(spark):
        reader = spark.read.format(form).schema(ddl).option("sep", ";")
        return [_shown(row) for row in reader.load(str(path)).collect()]

    expected = spark_answers(by_spark, path, ddl)
    schema = SCHEMA.append(pa.field(CORRUPT, pa.string()))
    rows = read_rows([path], schema, file_format=form, sep=";", mode="PERMISSIVE")
    for text, row, of_spark in zip(texts, rows, expected, strict=True):
        assert _shown(row.values()) == of_spark, text
    # With values that do not fit, records are read exactly; without, by the fast parsers.
    for number, kind in enumerate(SCHEMA.types):
        values = {t: answer.split(" ")[number] for t, answer in zip(texts, expected, strict=True)}
        schema = pa.schema([("d", kind), (CORRUPT, pa.string())])
        for (record, pattern), fitting in product(RECORDS[form], (False, True)):
            chosen = [t for t in texts if re.fullmatch(pattern, t) and (values[t] or not fitting)]
            path.write_text("".join(f"{record.format(text)}\n" for text in chosen))
            rows = read_rows([path], schema, file_format=form, mode="PERMISSIVE")
            assert [_shown([row["d"]]) for row in rows] == [values[text] for text in chosen]
            assert [row[CORRUPT] is None for row in rows] == [bool(values[text]) for text in chosen]


def _shown(values):
    """One text for a record, with nothing for null."""
    return " ".join(
        f"{value.normalize(EXACT):f}" if isinstance(value, Decimal) else value or ""
        for value in values
    )
