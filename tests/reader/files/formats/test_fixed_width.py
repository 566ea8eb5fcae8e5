"""The example of a format of one's own passes the suite, and is found by class and entry point."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.errors import MalformedDataError, OptionError
from pyspark_sluice.reader.files.testing import FileFormatSuite, read_rows

NAME = "pyspark_sluice.examples.fixed_width.fixed_width:FixedWidthFormat"
COLUMNS = "id 20, name 12, price 9, day 10, real 24"
WIDTHS = [20, 12, 9, 10, 24]


class TestFixedWidth(FileFormatSuite):
    options = {"file_format": NAME, "format_options": {"columns": COLUMNS}}
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("name", pa.string()),
            ("price", pa.decimal128(7, 2)),
            ("day", pa.date32()),
            ("real", pa.float64()),
        ]
    )
    suffix = ".txt"
    condition = ("id >= 7 AND name IS NOT NULL", lambda row: row["id"] >= 7 and row["name"])

    def rows(self, count):
        return [
            {
                "id": n,
                "name": f"näme {n % 97}" if n % 3 else None,
                "price": Decimal(n) / 4 if n % 5 else None,
                "day": date(1970 + n % 60, 1 + n % 12, 1 + n % 28),
                "real": n / 7,
            }
            for n in range(count)
        ]

    def extremes(self):
        return [
            dict(zip(self.schema.names, values, strict=True))
            for values in (
                (2**63 - 1, "x" * 12, Decimal("99999.99"), date(1, 1, 1), 5e-324),
                (-(2**63), "a  b", Decimal("-99999.99"), date(9999, 12, 31), -1.797e308),
                (None, None, None, None, None),
            )
        ]

    def write(self, path, rows):
        with path.open("wb") as out:
            for row in rows:
                for value, width in zip(row.values(), WIDTHS, strict=True):
                    text = "" if value is None else str(value)
                    if isinstance(value, float):
                        text = repr(value)
                    out.write(text.encode() + b" " * (width - len(text.encode())))
                out.write(b"\n")


def test_the_line_that_does_not_fit_is_named_by_its_byte(tmp_path):
    path = tmp_path / "a.txt"
    schema = pa.schema([("id", pa.int64())])
    options = {"file_format": NAME, "format_options": {"columns": "id 3"}}
    for bad, found in ((b"  x\n", "'x'"), (b"12\n", "a line of 2 bytes")):
        path.write_bytes(b"  1\n  2\n" + bad + b"  3\n")
        with pytest.raises(MalformedDataError, match=re.escape(f"{path}, byte 8")) as caught:
            read_rows([path], schema, **options)
        assert found in caught.value.found


def test_options_of_ones_own_go_under_their_names_and_others_are_refused():
    def parsed(**options):
        return parse_options({"path": "/in", **options}, streaming=False).format_options

    assert parsed(fileformat=NAME, columns="id 3") == {"columns": "id 3"}
    assert parsed(fileFormat=NAME, formatOptions='{"columns": "id 3"}') == {"columns": "id 3"}
    with pytest.raises(OptionError, match=r"column: unknown option; did you mean columns"):
        parsed(fileFormat=NAME, column="id 3")
    with pytest.raises(OptionError, match=r"sep: found ';' with fileFormat=.*does not support it"):
        parsed(fileFormat=NAME, columns="id 3", sep=";")
    with pytest.raises(OptionError, match=r"formatOptions: found .* does not support it"):
        parsed(fileFormat="csv", formatOptions='{"a": 1}')
    with pytest.raises(OptionError, match=r"columns: unknown option"):
        parsed(fileFormat="csv", columns="id 3")


def test_a_format_is_found_by_the_name_of_its_entry_point(tmp_path, monkeypatch):
    metadata = tmp_path / "packages" / "fixed_width-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: fixed-width\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[pyspark_sluice.formats]\nfixedWidth = {NAME}\n")
    with pytest.raises(OptionError, match=r"an entry point in the group pyspark_sluice\.formats"):
        parse_options({"path": "/in", "fileFormat": "fixedWidth"}, streaming=False)
    monkeypatch.syspath_prepend(metadata.parent)
    given = {"path": "/in", "fileFormat": "fixedWidth", "COLUMNS": "id 3"}
    assert parse_options(given, streaming=False).format_options == {"columns": "id 3"}
    path = tmp_path / "a.txt"
    path.write_bytes(b" 12\n")
    options = {"file_format": "fixedWidth", "format_options": {"columns": "id 3"}}
    assert read_rows([path], pa.schema([("id", pa.int64())]), **options) == [{"id": 12}]


@pytest.mark.parametrize("name", ["no.such.module:Class", "json:loads", "builtins:dict"])
def test_a_class_that_is_no_format_is_refused_with_the_other_options(name):
    with pytest.raises(OptionError, match=r"fileFormat: cannot load it"):
        parse_options({"path": "/in", "fileFormat": name, "header": "true"}, streaming=False)
