"""Plain records of XML, taken apart together, give the rows and refusals of reading each alone."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyspark_sluice.errors import SluiceError
from pyspark_sluice.reader.files.formats.xml import format as under_test
from pyspark_sluice.reader.files.formats.xml.plain_records import PlainRecords
from pyspark_sluice.reader.files.testing import read_rows
from pyspark_sluice.tests.reader.files.formats.xml import documents
from pyspark_sluice.tests.reader.readings.kinds import arrow_schema

SCHEMA = (
    "_id long, _k string, i int, b boolean, d double, s string, dec decimal(9,2), day date, "
    "at timestamp, n struct<_u:int,x:int,y:string,_VALUE:string,m:struct<z:array<int>>>, "
    "a array<int>, t array<string>, p array<struct<_u:string,q:int>>, w int, "
    "_corrupt_record string"
)
OPTIONS: list[dict[str, str]] = [
    {},
    {"nullValue": "x"},
    {"nullValue": ""},
    {"ignoreSurroundingSpaces": "false"},
    {"ignoreNamespace": "true"},
    {"excludeAttribute": "true"},
    {"attributePrefix": "", "valueTag": "x"},
    {"rescuedDataColumn": "_rescued"},
    {"mode": "DROPMALFORMED"},
    {"mode": "FAILFAST"},
]


def _text(*usual: str) -> st.SearchStrategy[str]:
    """One of some texts, mostly; else any, with its entities."""
    other = st.text("abx 1.\t\n\r'\">é", max_size=5) | st.sampled_from(
        ["&lt;&amp;amp;", "&#49;", "<!---->"]
    )
    return st.one_of(st.sampled_from(usual), st.sampled_from(usual), other)


_FIELDS: dict[str, st.SearchStrategy[str]] = {
    "i": _text("1", "-5", " 7 ", "", "2147483647", "+3"),
    "b": _text("true", "FALSE", "0", "1"),
    "d": _text("1.5", "-2", "1e3", "NaN", "1,000"),
    "s": _text("x", "", " y ", "two words"),
    "dec": _text("1.25", "3", "-1.005"),
    "day": _text("2020-02-29", "0001-01-01"),
    "at": _text("2020-01-01T10:00:00Z", "2020-01-01 10:00:00"),
    "a": _text("1", "2"),
    "t": _text("x", "", "y"),
    "ns:w": _text("1"),
    "unknown": _text("", "x", "<q>1</q>"),
    "I": _text("4"),
}


@st.composite
def _element(draw: Any, name: str, inner: str, attributes: str = "") -> str:
    if not inner and draw(st.booleans()):
        return f"<{name}{attributes}/>"
    blank = draw(st.sampled_from(["", "", "", " "]))
    return f"<{name}{attributes}{blank}>{inner}</{name}{blank}>"


@st.composite
def _attributes(draw: Any, *names: str) -> str:
    some = draw(st.lists(st.sampled_from(names), max_size=2, unique=draw(st.integers(0, 9)) > 0))
    values = st.sampled_from(["1", "7", "x", "", " 2 ", "a>b", "&lt;", "a\nb", "it's"])
    parts = []
    for name in some:
        value, quote = draw(values), draw(st.sampled_from(["'", '"']))
        parts.append(f" {name}={quote}{value}{quote}")
    return "".join(parts)


@st.composite
def _nested(draw: Any) -> str:
    own = draw(st.lists(st.sampled_from(["x", "y", "m", "z"]), max_size=2))
    made = {
        "x": _text("1", "2"),
        "y": _text("v", ""),
        "m": _text("<z>1</z><z>2</z>", ""),
        "z": _text("q"),
    }
    inner = "".join(draw(_element(name, draw(made[name]))) for name in own)
    return draw(_element("n", inner or draw(_text("", "text")), draw(_attributes("u", "v"))))


@st.composite
def _record(draw: Any) -> str:
    names = draw(
        st.lists(st.sampled_from([*_FIELDS]), max_size=6, unique=draw(st.integers(0, 3)) > 0)
    )
    parts = [draw(_element(name, draw(_FIELDS[name]))) for name in names]
    if draw(st.booleans()):
        parts.append(draw(_nested()))
    more = _element("p", draw(_text("<q>1</q>", "")), draw(_attributes("u")))
    parts += [draw(more) for _ in range(draw(st.integers(0, 2)))]
    gap = draw(st.sampled_from(["", "", "\n  ", "\r\n"]))
    return draw(
        _element(
            "r",
            gap.join(["", *draw(st.permutations(parts)), ""]),
            draw(_attributes("id", "k", "o")),
        )
    )


class _Readers:
    """Reads a document together and record by record."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path, self._patch = directory / "one.xml", monkeypatch
        # Also next to a record that is not plain.
        monkeypatch.setattr(under_test, "_FEW", 1)
        self.plain = self.refused = 0
        columns = PlainRecords.columns

        def counted(plain: PlainRecords, records: Any) -> Any:
            found = columns(plain, records)
            self.plain += len(records) if found is not None else 0
            self.refused += found is None
            return found

        monkeypatch.setattr(PlainRecords, "columns", counted)

    def both(self, content: bytes, options: dict[str, str]) -> tuple[str, str]:
        """Return what comes out of both ways."""
        self._path.write_bytes(content)
        together = self._read(options)
        with self._patch.context() as patch:
            patch.setattr(PlainRecords, "columns", lambda *_: None)
            return together, self._read(options)

    def _read(self, options: dict[str, str]) -> str:
        given = {
            "fileFormat": "xml",
            "rowTag": "r",
            "timeZone": "UTC",
            "mode": "PERMISSIVE",
        } | options
        ddl = SCHEMA + (", _rescued string" if "rescuedDataColumn" in options else "")
        try:
            return repr(read_rows([self._path], arrow_schema(ddl), **given))
        except SluiceError as error:
            return str(error)


@pytest.fixture
def readers(tmp_path, monkeypatch):
    return _Readers(tmp_path, monkeypatch)


_EXAMPLES = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@_EXAMPLES
@given(records=st.lists(_record(), min_size=1, max_size=4), options=st.sampled_from(OPTIONS))
def test_records_of_any_shape_give_the_same_rows_or_refusal(readers, records, options):
    content = "<rs xmlns:ns='u'>" + "\n".join(records) + "</rs>"
    together, single = readers.both(content.encode(), options)
    assert together == single


@_EXAMPLES
@given(
    records=st.lists(_record(), min_size=1, max_size=3),
    options=st.sampled_from(OPTIONS),
    data=st.data(),
)
def test_damaged_records_give_the_same_rows_or_refusal(readers, records, options, data):
    content = bytearray(("<rs>" + "\n".join(records) + "</rs>").encode())
    at = data.draw(st.integers(4, len(content) - 6))
    new = data.draw(st.sampled_from([*map(bytes, zip(b"<>/&'\"= \x01\xffrn]", strict=True))]))
    content[at : at + data.draw(st.integers(0, 2))] = new
    together, single = readers.both(bytes(content), options)
    assert together == single


@pytest.mark.parametrize(
    "options", OPTIONS, ids=["-".join([*each, *each.values()]) for each in OPTIONS]
)
def test_generated_documents_give_the_same_rows(readers, options):
    chance = random.Random(repr(options))
    for number in range(40):
        made = documents.document if number % 2 else documents.spoiled_document
        content = made(chance)
        together, single = readers.both(content, options)
        assert together == single, content.decode()


_PLAIN = [
    "<r><i>1</i><s>x</s></r>",
    "<r id='1' k='x'>\n <i>-5</i>\r\n <n u='1'>text</n></r>",
    "<r><n><x>1</x><m><z>1</z><z>2</z></m></n><a>1</a><s> a&lt;b </s><a>2</a></r>",
    "<r><p u='1'><q>1</q></p><s/><p/><dec>1.25</dec><b>true</b><unknown>1</unknown></r>",
    "<r><s>a > b</s><day>2020-01-01</day><at>2020-01-01T10:00:00</at></r>",
]


@pytest.mark.parametrize("record", _PLAIN)
def test_plain_records_are_taken_apart_together(readers, record):
    together, single = readers.both(f"<rs>{record * 3}</rs>".encode(), {})
    assert together == single
    assert (readers.plain, readers.refused) == (3, 0)


@pytest.mark.parametrize(
    "text", ["a]]>b", "\x1f", "\ufffe", "&#0;", "&e;", "&amp", "<![CDATA[x]]>"]
)
def test_texts_that_are_no_plain_characters_are_read_alone(readers, text):
    content = f"<rs><r><s>{text}</s></r><r><unknown>{text}</unknown></r></rs>".encode()
    together, single = readers.both(content, {})
    assert together == single
    assert readers.plain == 0


def test_only_the_records_next_to_one_that_is_not_plain_are_read_by_themselves(readers):
    content = "<rs>" + "<r><i>1</i></r>" * 20 + "<r><i>1<!-- --></i></r>" + "<r><i>2</i></r>" * 20
    together, single = readers.both(f"{content}</rs>".encode(), {})
    assert together == single
    assert readers.plain >= 35
