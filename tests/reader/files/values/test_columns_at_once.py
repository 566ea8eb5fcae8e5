"""What is done for a whole block or column at once, against the same for one value at a time."""

from __future__ import annotations

import base64
import re
from decimal import Decimal, localcontext

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_sluice.reader.files.formats.avro.schema import decimals
from pyspark_sluice.reader.files.formats.csv.quote_check import DelimiterBitmap
from pyspark_sluice.reader.files.formats.json.json_values import base64_of
from pyspark_sluice.reader.files.values.strings import is_utf8

pytestmark = pytest.mark.slow

PIECES = ('"', '"a"', '"b,c"', '"x""y"', '"l\nm"', ",", "\n", "\r\n", " ", "1", "0x1", "b c", "\t")
BYTES = (
    b"\xed\xa0\x80", b"\xc3\xa9", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xf0\x9f\x98\x80", b"a",
    b"\xe2\x82", b"\xff",
)  # fmt: skip
LONG = st.lists(st.sampled_from(PIECES), min_size=1, max_size=120).map("".join)


def _state_of_quotes(text: str) -> list[bool]:
    """For each character whether an odd number of quotes is at or before it."""
    odd, states = False, []
    for character in text:
        odd ^= character == '"'
        states.append(odd)
    return states


def _is_regular(text: str, *, lines: bool) -> bool:
    edges = ",\r\n"
    within = _state_of_quotes(text)
    for place, character in enumerate(text):
        before, after = text[place - 1 : place], text[place + 1 : place + 2]
        if character == '"' and within[place]:
            pair = before == '"'
            if not (place == 0 or before in ",\n\r" or pair):
                return False
        elif character == '"':
            if after not in edges and after != '"':
                return False
        elif character == "\n" and within[place] and lines:
            return False
    return not within[-1]


@given(LONG, st.booleans())
def test_quotes_are_judged_as_by_a_look_at_each(text, lines):
    marks = DelimiterBitmap(text.encode(), ",", '"')
    assert marks.is_regular(double=True, lines=lines) == _is_regular(text, lines=lines)


@given(LONG)
def test_the_last_line_feed_outside_of_quotes_is_found(text):
    within = _state_of_quotes(text)
    ends = [n + 1 for n, c in enumerate(text) if c == "\n" and not within[n]]
    assert DelimiterBitmap(text.encode(), ",", '"').end_of_last("\n") == max(ends, default=0)


@given(LONG)
def test_marks_that_are_cut_are_those_of_the_text_before(text):
    marks = DelimiterBitmap(text.encode(), ",", '"')
    end = marks.end_of_last("\n")
    marks.cut(end)
    alone = DelimiterBitmap(text.encode()[:end], ",", '"')
    assert marks.has_quotes == alone.has_quotes
    assert marks.has_doubtful_numbers() == alone.has_doubtful_numbers()
    for double in (False, True):
        for lines in (False, True):
            expected = alone.is_regular(double=double, lines=lines)
            assert marks.is_regular(double=double, lines=lines) == expected


@given(LONG)
def test_no_number_with_a_blank_next_to_it_is_trusted(text):
    marks = DelimiterBitmap(text.encode(), ",", "")
    fields = text.replace("\r", "\n").replace("\n", ",").split(",")
    blanks = any(field != field.strip(" \t") for field in fields)
    assert marks.has_doubtful_numbers() == (blanks or "0x" in text)


@given(st.lists(st.sampled_from(BYTES)).map(b"".join))
def test_utf8_is_what_python_takes_for_it(data):
    try:
        data.decode()
    except UnicodeDecodeError:
        assert not is_utf8(data)
    else:
        assert is_utf8(data)


TEXTS = st.binary(max_size=7).map(lambda data: base64.b64encode(data).decode())
BROKEN = st.text("AQ=+ é", max_size=9)
GROUP = "[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}="
GROUPS = re.compile(rf"(?:\s*(?:{GROUP}))*\s*")


@given(TEXTS | BROKEN)
@example("AAAA====")
@example("QQQ/=")
@example("QQ== QUE=")
def test_base64_is_in_groups_of_four_with_all_of_its_padding(text):
    if GROUPS.fullmatch(text):
        groups = map(base64.b64decode, re.findall(GROUP, text))
        assert base64_of(text) == b"".join(groups)
        return
    with pytest.raises(ValueError, match="base64"):
        base64_of(text)


def _stored(number: int, filler: int) -> bytes:
    return number.to_bytes((number.bit_length() + 8) // 8 + filler, "big", signed=True)


@given(
    st.lists(st.none() | st.tuples(st.integers(-(10**38), 10**38), st.integers(0, 20)), max_size=6)
)
def test_a_column_of_decimals_is_read_like_each_of_its_values(values):
    raw = pa.array([b"", *(None if v is None else _stored(*v) for v in values)], pa.binary())[1:]
    kind = pa.decimal128(38, 4)
    if any(v is not None and abs(v[0]) >= 10**38 for v in values):
        with pytest.raises(ValueError, match="a decimal of more than 38 digits"):
            decimals(raw, kind)
        return
    with localcontext(prec=50):
        expected = [None if v is None else Decimal(v[0]).scaleb(-4) for v in values]
    assert decimals(raw, kind).to_pylist() == expected
