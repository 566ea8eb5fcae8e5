"""XML without Spark: cuts, malformed records, bombs, encodings, validation, new columns."""

from __future__ import annotations

import json
import random
import re
import sys
import time
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.files.file_split import FileVersion
from pyspark_sluice.errors import MalformedDataError, OptionError
from pyspark_sluice.reader.files.evolution.new_columns import NewColumnsSeen
from pyspark_sluice.reader.files.formats.api import Splittability
from pyspark_sluice.reader.files.formats.registry import make_format
from pyspark_sluice.reader.files.formats.xml.record_scanner import RecordFinder
from pyspark_sluice.reader.files.io.memory_bounds import RecordLimit
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.schemas.inference import inferred_schema
from pyspark_sluice.reader.files.testing import cut, read, read_rows, version
from pyspark_sluice.tests.reader.files.formats.xml import documents

A = pa.schema([("a", pa.int32())])
XML = {"file_format": "xml", "row_tag": "r"}


LIMIT = RecordLimit(FileVersion("file.xml", 1, 1), ReaderOptions())


def _rows(folder: Path, content: bytes, schema: pa.Schema = A, **options):
    path = folder / "file.xml"
    path.write_bytes(content)
    return read_rows([path], schema, **XML, **options)


def _found(content: bytes, step: int, **options) -> list[tuple[int, bytes]]:
    given = {"ignore_namespace": False} | options
    finder = RecordFinder("r", LIMIT, **given)
    pieces = (content[at : at + step] for at in range(0, len(content), step))
    return [*chain.from_iterable(finder.records(pieces))]


def test_records_are_found_in_pieces_of_any_size():
    chance = random.Random(1)
    for number in range(60):
        made = documents.document if number % 2 else documents.spoiled_document
        content = made(chance)
        expected = _found(content, len(content))
        assert all(content[at : at + len(record)] == record for at, record in expected)
        for step in (1, 2, 7, 61):
            assert _found(content, step) == expected, content
            # The other way, which takes prefixes, finds the same without them.
            assert _found(content, step, ignore_namespace=True) == expected, content


ODD = b"<r x=\"it's>\" y='\"/>'/>"
SECTIONS = b"<r><!-- </r> --><![CDATA[</r>]]><?x </r>?>1</r>"
DOCTYPE = b"<!DOCTYPE r [<!ENTITY e '<r>1</r>'><!-- ]> <r/> --><?p ]> <r/>?>]>"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"<r/><r /><r\n></r >", [b"<r/>", b"<r />", b"<r\n></r >"]),
        (b"<r x='/>'>1</r>" + ODD, [b"<r x='/>'>1</r>", ODD]),
        (b"<r x='>'/>1</r><r>2</r>", [b"<r x='>'/>", b"<r>2</r>"]),
        (b"<r><r><r/></r></r><r>2</r>", [b"<r><r><r/></r></r>", b"<r>2</r>"]),
        (b"<rr/><r:r/><r>1</r></r><r>2</r>", [b"<r>1</r>", b"<r>2</r>"]),
        (SECTIONS, [SECTIONS]),
        (DOCTYPE + b"<r>2</r>", [b"<r>2</r>"]),
        (b"<r a='1>2</r><r>3</r>", [b"<r a='1>2</r>", b"<r>3</r>"]),
        (b"<r>1</r><r>2<r>3</r>", [b"<r>1</r>", b"<r>2<r>3</r>"]),
        (b"<!-- <r>1</r>", []),
    ],
)  # fmt: skip
def test_a_record_is_an_outermost_element_of_the_name(content, expected):
    for step in (1, 3, 1000):
        assert [record for _, record in _found(content, step)] == expected
    # Prefixes are left out only where the option says so.
    prefixed = b"<x:r>1</x:r><r>2</r>"
    assert _found(prefixed, 5) == [(12, b"<r>2</r>")]
    assert _found(prefixed, 5, ignore_namespace=True) == [(0, b"<x:r>1</x:r>"), (12, b"<r>2</r>")]


def test_a_large_file_is_cut_where_records_begin_and_no_record_is_lost_or_doubled(tmp_path):
    path = tmp_path / "file.xml"
    odd = "<!-- <r><a>0</a></r> --><![CDATA[<r>]]>"
    rows = (f"<r><a>{n}</a><r><a>0</a></r>{'x' * (n % 900)}</r>{odd}" for n in range(5_000))
    path.write_text(f"<rs>{''.join(rows)}</rs>")
    made, file = make_format(ReaderOptions(**XML), A), version(path)
    assert made.splittability(file) is Splittability.BLOCKS
    blocks = made.blocks(file)
    assert len(blocks) >= file.size // (1024 * 1024) > 1
    splits = cut(path, [block.start for block in blocks])
    found = [read([split], A, file_format="xml", row_tag="r")[0] for split in splits]
    assert all(part.num_rows for part in found)
    assert pa.concat_tables(found)["a"].to_pylist() == list(range(5_000))


def test_a_file_is_read_in_the_encoding_that_it_declares_unless_one_is_given(tmp_path):
    schema = pa.schema([("a", pa.string())])
    text = "<rs><r><a>ä</a></r></rs>"
    declared = "<?xml version='1.0' encoding='ISO-8859-1'?>" + text
    assert _rows(tmp_path, declared.encode("latin-1"), schema) == [{"a": "ä"}]
    given = {"encoding": "cp1251"}
    assert _rows(tmp_path, declared.encode("latin-1"), schema, **given) == [{"a": "д"}]
    assert _rows(tmp_path, text.encode("utf-16"), schema) == [{"a": "ä"}]
    assert _rows(tmp_path, text.encode("utf-16-le"), schema, encoding="utf-16-le") == [{"a": "ä"}]
    odd = b"<?xml version='1.0' encoding='klingon'?><r/>"
    with pytest.raises(MalformedDataError, match="byte 0; found klingon"):
        _rows(tmp_path, odd, schema)


# Bombs ----------------------------------------------------------------------------------------

LAUGHS = (
    b"<!DOCTYPE rs [<!ENTITY a0 'lol'>"
    + b"".join(b"<!ENTITY a%d '%s'>" % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 30))
    + b"]>"
)
EXTERNAL = "<!DOCTYPE rs [<!ENTITY x SYSTEM '%s'>]>"


def test_entities_are_never_expanded_and_nothing_is_fetched(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("42")
    schema = pa.schema([("a", pa.string())])
    external = (EXTERNAL % secret.as_uri()).encode()
    for head, name in ((LAUGHS, b"a29"), (external, b"x")):
        content = head + b"<rs><r><a>&%s;</a></r><r><a>1</a></r></rs>" % name
        began = time.process_time()
        with pytest.raises(MalformedDataError, match="undefined entity"):
            _rows(tmp_path, content, schema)
        rows = _rows(tmp_path, content, schema, mode="DROPMALFORMED")
        assert rows == [{"a": "1"}]
        assert time.process_time() - began < 5


def test_a_doctype_without_an_end_is_refused(tmp_path):
    content = b"<!DOCTYPE rs [" + b"<!ENTITY a 'x'>" * 100_000
    with pytest.raises(MalformedDataError, match="byte 0"):
        _rows(tmp_path, content)


@pytest.mark.parametrize("closed", [True, False])
def test_a_hundred_thousand_levels_are_refused_by_name(tmp_path, closed):
    inner = b"<x>" * 100_000 + b"</x>" * 100_000 * closed
    with pytest.raises(MalformedDataError, match="more than 1000 levels of elements"):
        _rows(tmp_path, b"<rs><r><a>1</a>" + inner + b"</r></rs>")
    assert _rows(tmp_path, b"<r><a>1</a>" + b"<x>" * 999 + b"</x>" * 999 + b"</r>") == [{"a": 1}]
    levels = b"<r><a>1</a>" + b"<x>" * 900 + b"t" + b"</x>" * 900 + b"</r>"
    (tmp_path / "file.xml").write_bytes(levels)
    schema = inferred_schema([version(tmp_path / "file.xml")], ReaderOptions(**XML))
    assert schema.names[:2] == ["a", "x"]


# XML schemas, new columns ---------------------------------------------------------------------

XSD = (
    "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='r'><xs:complexType>"
    "<xs:sequence><xs:element name='a' type='xs:int'/></xs:sequence></xs:complexType></xs:element>"
    "</xs:schema>"
)


def test_a_record_that_is_not_valid_is_malformed(tmp_path):
    xsd = tmp_path / "r.xsd"
    xsd.write_text(XSD)
    content = b"<rs><r><a>1</a></r><r><a>2</a><b/></r></rs>"
    options = {"row_validation_xsd_path": str(xsd)}
    assert _rows(tmp_path, content, mode="DROPMALFORMED", **options) == [{"a": 1}]
    with pytest.raises(
        MalformedDataError, match="byte 19; found not valid by rowValidationXSDPath"
    ):
        _rows(tmp_path, content, **options)
    for text in ("<not-a-schema/>", "no XML"):
        xsd.write_text(text)
        with pytest.raises(OptionError, match="the XML schema cannot be read"):
            _rows(tmp_path, content, **options)


def test_validation_without_lxml_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lxml", None)
    with pytest.raises(OptionError, match=re.escape("pip install '.[xml]'")):
        _rows(tmp_path, b"<r/>", row_validation_xsd_path="r.xsd")


NESTED = pa.schema([("a", pa.int32()), ("n", pa.struct([("x", pa.int32())]))])
NEWS = b"<rs><r k='1'><a>1</a><n u='2'><x>y</x><z>t</z></n><b><c/>5</b><b>6</b><e/></r></rs>"


def test_what_has_no_column_or_does_not_fit_is_rescued(tmp_path):
    schema = NESTED.append(pa.field("_rescued_data", pa.string()))
    [row] = _rows(tmp_path, NEWS, schema, rescued_data_column="_rescued_data")
    rescued = {
        "_k": "1",
        "n": {"_u": "2", "x": "y", "z": "t"},
        "b": [{"c": None, "_VALUE": "5"}, "6"],
    }
    assert (row["a"], row["n"]) == (1, {"x": None})
    assert json.loads(row["_rescued_data"]) == rescued
    [row] = _rows(tmp_path, b"<r><a>1</a></r>", schema, rescued_data_column="_rescued_data")
    assert row["_rescued_data"] is None


def test_a_new_column_stops_the_query_and_has_a_type(tmp_path):
    with pytest.raises(NewColumnsSeen) as seen:
        _rows(tmp_path, NEWS, NESTED, schema_evolution_mode="addNewColumns", mode="PERMISSIVE",
              infer_column_types=True)  # fmt: skip
    found = {field.name: field.type for field in seen.value.found}
    inner = pa.struct([("_u", pa.int64()), ("z", pa.string())])
    listed = pa.list_(pa.field("element", pa.struct([("c", pa.null()), ("_VALUE", pa.int64())])))
    assert found == {"_k": pa.int64(), "n": inner, "b": listed}
    assert _rows(tmp_path, b"<r><a>1</a><b/></r>", A, schema_evolution_mode="failOnNewColumns")
