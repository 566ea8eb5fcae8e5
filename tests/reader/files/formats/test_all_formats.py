"""Every format that is built in passes the suite that a new one inherits."""

import bz2
import csv
import gzip
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from xml.sax.saxutils import escape

import pyarrow as pa
import pytest

from pyspark_sluice.reader.files.formats.archives import ArchiveFormat
from pyspark_sluice.reader.files.formats.xml import format as xml_format
from pyspark_sluice.tests.reader.files.formats.packers import PACKERS
from pyspark_sluice.tests.reader.files.formats.table_files import write_table
from pyspark_sluice.tests.reader.files.parts import PartsSuite
from pyspark_sluice.tests.reader.readings.kinds import arrow_schema

pytestmark = pytest.mark.slow

SCHEMA = arrow_schema(
    "id long, text string, real double, day date, at timestamp, price decimal(9,2), is boolean"
)
CONDITION = ("id >= 7 AND text IS NOT NULL", lambda row: row["id"] >= 7 and row["text"] is not None)


def _row(n):
    return {
        "id": n,
        "text": f"text {n % 97} \"'ä{'x' * (n % 11)}" if n % 3 else None,
        "real": n / 7,
        "day": date(1970 + n % 60, 1 + n % 12, 1 + n % 28),
        "at": datetime(2020, 1 + n % 12, 1, n % 24, n % 60, 5, n, UTC) if n % 4 else None,
        "price": Decimal(n % 9999) / 4 if n % 5 else None,
        "is": n % 2 == 0,
    }


class Columns(PartsSuite):
    schema = SCHEMA
    condition = CONDITION

    def rows(self, count):
        return [_row(n) for n in range(count)]

    def extremes(self):
        last = datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)
        first, most = datetime(1, 1, 1, tzinfo=UTC), Decimal("9999999.99")
        values = [
            (2**63 - 1, "\u0001 \U0001f600\\", 5e-324, date(1, 1, 1), last, most, True),
            (-(2**63), "", -1.7976931348623157e308, date(9999, 12, 31), first, -most, False),
            (None,) * 7,
        ]
        return [dict(zip(SCHEMA.names, row, strict=True)) for row in values]


def _text(value):
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
    return str(value)


class TestJson(Columns):
    options = {"file_format": "json"}
    suffix = ".json"

    def write(self, path, rows):
        with path.open("w", encoding="utf-8") as out:
            for row in rows:
                kept = {k: v for k, v in row.items() if v is not None or row["id"] == 3}
                out.write(json.dumps(kept, ensure_ascii=False, default=_text) + "\n")


class TestJsonDocuments(Columns):
    options = {"file_format": "json", "multi_line": True}
    suffix = ".json"
    notices_its_end = True

    def write(self, path, rows):
        path.write_text(json.dumps(rows, indent=1, ensure_ascii=False, default=_text))


class TestJsonAtPath(Columns):
    options = {"file_format": "json", "multi_line": True, "record_path": "of.Records"}
    suffix = ".json"
    notices_its_end = True

    def write(self, path, rows):
        with path.open("w", encoding="utf-8") as out:
            for at in range(0, len(rows), 1500):
                records = {"n": [1], "Records": rows[at : at + 1500]}
                document = {"Records": [{"id": 0}], "of": records, "x": []}
                json.dump(document, out, ensure_ascii=False, default=_text)


class MeasuredLater(Columns):
    """Formats that Python reads, whose memory takes long to trace."""

    @pytest.mark.thorough("traces each line of Python; the memory of JSON is measured here")
    def test_memory_does_not_follow_the_size_of_the_file(self, tmp_path):
        super().test_memory_does_not_follow_the_size_of_the_file(tmp_path)


class TestCsv(MeasuredLater):
    # By the header's names; the text that means null is not the empty one.
    options = {"file_format": "csv", "header": True, "enforce_schema": False, "escape": '"',
               "null_value": "NULL", "schema_evolution_mode": "none"}  # fmt: skip
    suffix = ".csv"

    def write(self, path, rows):
        with path.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(self.schema.names)
            for row in rows:
                values = ("NULL" if v is None else _text(v) for v in row.values())
                writer.writerow(['""' if v == "" else v for v in values])

    def extremes(self):
        return [
            row | {"text": "\u0001x\\"} if row["text"] == "" else row for row in super().extremes()
        ]


class TestCsvWithBreaks(TestCsv):
    options = TestCsv.options | {"multi_line": True}

    def rows(self, count):
        return [row | {"text": row["text"] and row["text"] + "\n"} for row in super().rows(count)]


class TestXml(MeasuredLater):
    options = {"file_format": "xml", "row_tag": "r"}
    suffix = ".xml"
    notices_its_end = False  # A file may end between two records.

    @pytest.fixture(autouse=True)
    def _cut_at_every_record(self, monkeypatch):
        monkeypatch.setattr(xml_format, "BLOCK_STEP", 1)

    def write(self, path, rows):
        with path.open("w", encoding="utf-8", newline="") as out:
            out.write("<?xml version='1.0'?><!-- <r><id>1</id></r> --><rs>\n")
            for row in rows:
                odd = "<![CDATA[</r><r>]]><!-- </r> --><r><id>0</id></r>" * (row["id"] % 3 == 1)
                fields = (
                    f"<{name}>{escape(_text(value))}</{name}>"
                    for name, value in row.items()
                    if value is not None
                )
                out.write(f"<r>{odd}{''.join(fields)}</r>\n<!-- <r> -->")
            out.write("</rs>")

    def extremes(self):
        # There is no way to write a control character in XML.
        kept = (row | {"text": "\U0001f600\\"} for row in super().extremes() if row["text"])
        return [*kept, super().extremes()[1]]


class TestText(PartsSuite):
    options = {"file_format": "text"}
    schema = pa.schema([("value", pa.string())])
    suffix = ".txt"
    selects_by_name = False
    condition = ("value >= 'line 3'", lambda row: row["value"] >= "line 3")

    def rows(self, count):
        return [{"value": f"line {n} {'ä' * (n % 9)}"} for n in range(count)]

    def write(self, path, rows):
        path.write_text("".join(row["value"] + "\n" for row in rows), encoding="utf-8")

    def spoiled(self, data):
        del data  # Every text is a text.


class TestFixedWidth(Columns):
    """The example of a format of one's own."""

    widths = {"id": 20, "text": 24, "real": 24, "day": 10, "at": 27, "price": 11, "is": 5}
    options = {
        "file_format": "pyspark_sluice.examples.fixed_width.fixed_width:FixedWidthFormat",
        "format_options": {"columns": ", ".join(f"{name} {n}" for name, n in widths.items())},
    }
    suffix = ".txt"

    def write(self, path, rows):
        with path.open("wb") as out:
            for row in rows:
                for name, width in self.widths.items():
                    text = "" if row[name] is None else _text(row[name])
                    out.write(text.encode().ljust(width))
                out.write(b"\n")

    def extremes(self):
        return [row | {"text": row["text"] or None} for row in super().extremes()]


class TestJsonInGzip(TestJson):
    suffix = ".json.gz"
    notices_its_end = True

    def write(self, path, rows):
        super().write(path, rows)
        path.write_bytes(gzip.compress(path.read_bytes(), 1))


class TestJsonInBzip2(TestJson):
    suffix = ".json.bz2"
    notices_its_end = True
    # A block holds 900 kB of content in files of any size.
    memory_is_flat = False

    def write(self, path, rows):
        super().write(path, rows)
        path.write_bytes(bz2.compress(path.read_bytes(), 1))


class TestJsonInZstd(TestJson):
    suffix = ".json.zst"
    notices_its_end = True

    def write(self, path, rows):
        super().write(path, rows)
        lines = path.read_bytes().splitlines(keepends=True)
        parts = [b"".join(lines[at : at + 1000]) for at in range(0, len(lines), 1000)] or [b""]
        codec = pa.Codec("zstd")
        path.write_bytes(b"".join(bytes(codec.compress(part)) for part in parts))


class Blocks(Columns):
    notices_its_end = True
    takes_empty_files = False

    def write(self, path, rows):
        table = pa.Table.from_pylist(list(rows), self.schema)
        write_table(self.kind, path, table, max(7, len(rows) // 50))


class TestParquet(Blocks):
    kind = "parquet"
    options = {"file_format": "parquet"}
    suffix = ".parquet"


OF_A_CHILD = "a new process for each damage to ORC; the error of one that dies has its own test"


class TestOrc(Blocks):
    kind = "orc"
    options = {"file_format": "orc", "time_zone": "UTC"}
    suffix = ".orc"

    def extremes(self):
        # Arrow's ORC ends with the year 2262, and dates are of the hybrid calendar before 1582.
        return [
            row | {"at": None, "day": None if row["day"] == date(1, 1, 1) else row["day"]}
            for row in super().extremes()
        ]

    @pytest.mark.thorough(OF_A_CHILD)
    def test_changed_bytes_give_an_error_that_names_the_file_or_rows(self, tmp_path):
        super().test_changed_bytes_give_an_error_that_names_the_file_or_rows(tmp_path)

    @pytest.mark.thorough(OF_A_CHILD)
    def test_a_file_cut_short_gives_an_error_or_its_first_rows(self, tmp_path):
        super().test_a_file_cut_short_gives_an_error_or_its_first_rows(tmp_path)


class TestArrowFile(Blocks):
    kind = "arrow"
    options = {"file_format": "arrow"}
    suffix = ".arrow"


class TestArrowStream(TestArrowFile):
    kind = "stream"
    suffix = ".arrows"
    # A stream may end between two messages without an end mark.
    notices_its_end = False


class TestAvro(Blocks):
    kind = "avro"
    options = {"file_format": "avro"}
    suffix = ".avro"
    # There is no footer: a file may end between two blocks.
    notices_its_end = False


class TestBinary(PartsSuite):
    options = {"file_format": "binaryFile"}
    schema = pa.schema([("length", pa.int64()), ("content", pa.binary())])
    memory_is_flat = False  # A row is a file.

    def rows(self, count):
        return [{"length": count, "content": bytes(count)}] if count else []

    def write(self, path, rows):
        path.write_bytes(b"".join(row["content"] for row in rows))

    def spoiled(self, data):
        del data  # All bytes are a good file.

    def test_a_file_cut_short_gives_an_error_or_its_first_rows(self, tmp_path):
        pytest.skip("all bytes are a good file")


OTHER_MEMBERS = pytest.mark.thorough("one format in each container is enough for make test")


class Archived(PartsSuite):
    """Rows in three members, next to some that are left out."""

    notices_its_end = True
    takes_empty_files = False

    def pack(self, contents):
        return PACKERS[self.suffix](contents)

    def _format(self):
        return ArchiveFormat(super()._format())

    def write(self, path, rows):
        inner, contents = path.with_name("member"), {"__MACOSX/._a": b"\0", "dir/.hidden": b"{"}
        step = -(-len(rows) // 3) or 1
        for n, at in enumerate(range(0, len(rows), step)):
            super().write(inner, rows[at : at + step])  # type: ignore[safe-super]  # of a format
            contents[f"dir/{n}{self.member}"] = inner.read_bytes()
            inner.unlink()
        path.write_bytes(self.pack(contents | {"_SUCCESS": b"x"}))

    def spoiled(self, data):
        # Of a small tar archive, more than two thirds are zeros behind its end.
        return data[: min(600, 2 * len(data) // 3)]


class TestJsonInZip(Archived, TestJson):
    suffix, member = ".zip", ".json"


@OTHER_MEMBERS
class TestCsvInZip(Archived, TestCsv):
    suffix, member = ".zip", ".csv"
    memory_is_flat = False  # Traced for JSON in zip.


@OTHER_MEMBERS
class TestDocumentsInZip(Archived, TestJsonDocuments):
    suffix, member = ".zip", ".json"


class TestXmlInTar(Archived, TestXml):
    suffix, member = ".tar", ".xml"
    notices_its_end = False  # The zeros behind its end may be cut.
    memory_is_flat = False  # Traced for JSON in tar.


class TestJsonInTarGz(Archived, TestJson):
    suffix, member = ".tar.gz", ".json"
    notices_its_end = False  # Behind the end mark of the archive.


class TestParquetIn7z(Archived, TestParquet):
    suffix, member = ".7z", ".parquet"
