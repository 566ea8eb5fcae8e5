"""Every option of reading changes what a format reads, is refused by name, or says why it does not."""
# ruff: noqa: E501 - one case, one line

from __future__ import annotations

import gzip
import io
import re
from contextlib import chdir
from datetime import date
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.orc as pa_orc
import pyarrow.parquet as pa_parquet
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.connector.options.model import SluiceOptions, parse_options
from pyspark_sluice.errors import MalformedDataError, OptionError, SluiceError
from pyspark_sluice.reader.api import SplitFinished
from pyspark_sluice.reader.files.formats.binary.format import SPARK_SCHEMA
from pyspark_sluice.reader.files.formats.registry import formats_of
from pyspark_sluice.reader.files.options import FileFormatName, ReaderOptions
from pyspark_sluice.reader.files.options.schema_options import SchemaOptions
from pyspark_sluice.reader.files.testing import read, read_rows, whole
from pyspark_sluice.tests.reader.files.formats.table_files import avro_file, write_table
from pyspark_sluice.tests.reader.readings.kinds import VARIANT

pytestmark = pytest.mark.slow

FORMATS = {name.value: name for name in FileFormatName}
FIELDS = list(ReaderOptions.model_fields)
VALUES: dict[str, Any] = {
    "file_format": "csv",
    "compression": "gzip",
    "mode": "PERMISSIVE",
    "ignore_missing_files": "true",
    "batch_bytes": "1m",
    "format_options": '{"a": 1}',
    "infer_sample_files": "5",
    "recursive_file_lookup": "true",
    "infer_sample_bytes": "1m",
    "max_new_columns": "5",
    "schema_evolution_mode": "rescue",
    "datetime_rebase_mode": "LEGACY",
    "int96_rebase_mode": "LEGACY",
    "storage_options": '{"a": 1}',
    "encoding": "latin-1",
    "locale": "en-us",
    "skip_rows": "3",
    "max_record_bytes": "1m",
    "time_zone": "CET",
    "max_bad_record_share": 0.5,
    "filter": "a = 1",
}
"""Values other than the default, for options whose type does not show one."""


def _other_value(name: str) -> str:
    default = ReaderOptions.model_fields[name].get_default(call_default_factory=True)
    if name in VALUES:
        return str(VALUES[name])
    if isinstance(default, bool):
        return str(not default)
    return "yyyy" if name.endswith("_format") else "~"


@pytest.mark.parametrize("file_format", FORMATS)
def test_an_option_that_a_format_does_not_know_is_refused_by_name(file_format):
    for name in {*FIELDS} - {"file_format", "unescaped_quote_handling"}:
        alias = str(ReaderOptions.model_fields[name].alias)
        given = {"path": "/in", "fileFormat": file_format, alias: _other_value(name)}
        if name == "record_path" and file_format in ("json", "csv"):
            given["multiLine"] = "true"
        if FORMATS[file_format] in formats_of(name):
            parse_options(given, streaming=False)
            continue
        with pytest.raises(
            OptionError, match=rf"{alias}: found .* fileFormat={file_format}, which"
        ):
            parse_options(given, streaming=False)
        default = SluiceOptions.model_fields[name].get_default(call_default_factory=True)
        parse_options(given | {alias: default}, streaming=False)


INERT = {"primitives_as_string", "locale", "unescaped_quote_handling"}
"""Options that are accepted for Spark's sake and change nothing."""


class Keyed(MemoryFileSystem):  # type: ignore[misc]
    """A file system that nobody enters without the key."""

    protocol = "keyed"
    cachable = False
    store: dict[str, Any] = {}
    pseudo_dirs = [""]

    def __init__(self, key: str = "", **rest: Any) -> None:
        super().__init__(**rest)
        if key != "right":
            raise PermissionError("no key")


fsspec.register_implementation("keyed", Keyed, clobber=True)
ROWS = range(10_000)
TABLE = pa.table({"a": pa.array(ROWS, pa.int64()), "b": [f"row {i}" for i in ROWS]})


def _schema(file_format, *more):
    if file_format == "text":
        return pa.schema([("value", pa.string()), *more])
    if file_format == "binaryFile":
        return pa.schema([*SPARK_SCHEMA, *more])
    return pa.schema([*TABLE.schema, *more])


def _outcome(splits, schema, options):
    """What a reading gives: rows and what is said of each split, or the error's class."""
    try:
        table, reports = read(splits, schema, **options)
    except (SluiceError, PermissionError) as err:
        return type(err).__name__
    finished = [report for report in reports if isinstance(report, SplitFinished)]
    said = [(report.rows, report.dropped_records, bool(report.skipped)) for report in finished]
    return [*map(len, table.column(0).chunks)], said, table.columns


ZONE = pa.field("at", pa.timestamp("us", "UTC"))


@pytest.mark.parametrize("file_format", FORMATS)
def test_what_every_format_knows_has_an_effect_in_each(tmp_path, file_format):
    path = tmp_path / "k=1" / "at=2024-01-02 03%3A00%3A00" / "a.data"
    path.parent.mkdir(parents=True)
    write_table({"text": "json", "binaryFile": "json"}.get(file_format, file_format), path, TABLE)
    base = {"file_format": file_format, "base_path": str(tmp_path), "header": True}
    k = pa.field("k", pa.int32())
    whole_file = [whole(path)]

    def differ(option, *values, splits=whole_file, schema=None):
        assert FORMATS[file_format] in formats_of(option)
        outcomes = [
            _outcome(splits, schema or _schema(file_format, k), base | {option: v}) for v in values
        ]
        assert outcomes[0] != outcomes[1], option

    differ("filter", "", "k = 2")
    differ("base_path", str(tmp_path), str(tmp_path / "k=1"))
    differ("time_zone", "UTC", "Europe/Berlin", schema=_schema(file_format, ZONE))
    if file_format != "binaryFile":
        # Files as rows come one by one at any size.
        differ("batch_bytes", "64k", "64m")
        # All bytes are a good file there.
        bad = path.with_name("bad.gz")
        bad.write_bytes(b"\x1f\x8b no data at all" * 3)
        wrong = {"csv": pa.schema([("a", pa.int64())]), "json": pa.schema([("a", pa.int64())])}
        differ(
            "ignore_corrupt_files", False, True, splits=[whole(bad)], schema=wrong.get(file_format)
        )
    gone = FileVersion(str(path.with_name("gone")), 5, 0)
    differ("ignore_missing_files", False, True, splits=[FileSplit(gone, 0, 5)])
    Keyed.store.clear()
    with fsspec.open("keyed://in/k=1/a", "wb", key="right") as out:
        out.write(path.read_bytes())
    remote = FileVersion("keyed://in/k=1/a", path.stat().st_size, -1)
    base["base_path"] = "keyed://in"
    differ("storage_options", {}, {"key": "right"}, splits=[FileSplit(remote, 0, remote.size)])


A, B = pa.field("a", pa.int64()), pa.field("b", pa.string())
AB = pa.schema([A, B])
S = pa.schema([("a", pa.string()), ("b", pa.string())])
CORRUPT = pa.schema([A, ("_corrupt_record", pa.string()), ("bad", pa.string())])
TIMES = {
    "date_format": pa.date32(),
    "timestamp_format": pa.timestamp("us", "UTC"),
    "timestamp_ntz_format": pa.timestamp("us"),
}

Case = tuple[str, str, Any, bytes, pa.Schema, dict[str, Any]]
DATE = pa.schema([("t", pa.date32())])
INSTANT = pa.schema([("t", pa.timestamp("us", "UTC"))])
_OLD = date(1500, 3, 1)


def _old_parquet(kind):
    out = io.BytesIO()
    int96 = pa.types.is_timestamp(kind)
    values = pa.array([_OLD], pa.date32())
    values = values.cast(pa.timestamp("us")) if int96 else values
    pa_parquet.write_table(pa.table({"t": values}), out, use_deprecated_int96_timestamps=int96)
    return out.getvalue()


def _long_row(file_format):
    out, table = io.BytesIO(), pa.table({"b": ["x" * (1 << 20)]})
    if file_format == "avro":
        return avro_file(table)
    if file_format == "arrow":
        with pa.ipc.new_file(out, table.schema) as writer:
            writer.write(table)
    else:
        {"parquet": pa_parquet, "orc": pa_orc}[file_format].write_table(table, out)
    return out.getvalue()


_XSD = (
    "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='ROW'>"
    "<xs:complexType><xs:sequence><xs:element name='a' type='xs:int'/></xs:sequence>"
    "</xs:complexType></xs:element></xs:schema>"
)

AX = pa.schema([A, ("_x", pa.string())])
XML: list[tuple[str, Any, bytes, pa.Schema, dict[str, Any]]] = [
    ("compression", "gzip", gzip.compress(b"<ROW><a>1</a></ROW>"), AB, {}),
    ("encoding", "latin-1", b"<ROW><b>\xe4</b></ROW>", pa.schema([B]), {}),
    ("max_record_bytes", "1m", b"<ROW><b>x</b>" + b" " * (1 << 20) + b"</ROW>", pa.schema([B]), {}),
    ("mode", "PERMISSIVE", b"<ROW><a>x</a></ROW>", AB, {}),
    ("column_name_of_corrupt_record", "bad", b"<ROW><a>x</a></ROW>", CORRUPT, {"mode": "PERMISSIVE"}),
    ("rescued_data_column", "b", b"<ROW><a>1</a><c>2</c></ROW>", AB, {}),
    *((option, "dd.MM.yyyy", b"<ROW><t>02.01.2024</t></ROW>", pa.schema([("t", kind)]), {}) for option, kind in TIMES.items()),
    ("null_value", "1", b"<ROW><a>1</a></ROW>", AB, {}),
    ("row_tag", "r", b"<ROW><r><a>1</a></r></ROW>", AB, {}),
    ("attribute_prefix", "", b"<ROW a='1'/>", AB, {}),
    ("value_tag", "b", b"<ROW>x</ROW>", AB, {}),
    ("exclude_attribute", True, b"<ROW x='1'/>", AX, {}),
    ("ignore_namespace", True, b"<ROW><n:a>1</n:a></ROW>", AB, {}),
    ("ignore_surrounding_spaces", False, b"<ROW><b> x </b></ROW>", AB, {}),
    ("wildcard_col_name", "b", b"<ROW><c>1</c></ROW>", AB, {}),
    ("row_validation_xsd_path", "r.xsd", b"<ROW><b>x</b></ROW>", AB, {}),
]  # fmt: skip


CASES: list[Case] = [
    *((name, "compression", "gzip", gzip.compress(b"1,x\n" if name == "csv" else b'{"a":1}\n'), pa.schema([B]) if name == "text" else AB, {}) for name in ("json", "csv", "text")),
    *((name, "line_sep", "|", b'{"a":1}|{"a":2}', pa.schema([B if name == "text" else A]), {}) for name in ("json", "text")),
    ("csv", "line_sep", "|", b"1|2", pa.schema([A]), {}),
    *((name, "encoding", "latin-1", b'{"b":"\xe4"}\n', pa.schema([B]), {}) for name in ("json", "csv", "text")),
    *((name, "max_record_bytes", "1m", b" " * (1 << 20) + b'{"b":"x"}\n', pa.schema([B]), {}) for name in ("json", "csv", "text")),
    *(("xml", option, value, data, schema, others) for option, value, data, schema, others in XML),
    *((name, "max_record_bytes", "1m", _long_row(name), pa.schema([B]), {}) for name in ("parquet", "orc", "arrow", "avro")),
    ("json", "mode", "PERMISSIVE", b'{"a":"x"}\n', AB, {}),
    ("csv", "mode", "PERMISSIVE", b"x,y\n", AB, {}),
    ("json", "column_name_of_corrupt_record", "bad", b'{"a":"x"}\n', CORRUPT, {"mode": "PERMISSIVE"}),
    ("csv", "column_name_of_corrupt_record", "bad", b"x\n", CORRUPT, {"mode": "PERMISSIVE"}),
    ("json", "rescued_data_column", "b", b'{"a":1,"c":2}\n', AB, {}),
    ("csv", "rescued_data_column", "b", b"1,2\n", AB, {}),
    ("json", "multi_line", True, b'{"a":\n1}\n', AB, {}),
    ("json", "record_path", "r", b'{"r":[{"a":1}]}', AB, {"multi_line": True}),
    ("csv", "multi_line", True, b'1,"x\ny"\n', AB, {"mode": "PERMISSIVE"}),
    *(("json", option, "dd.MM.yyyy", b'{"t":"02.01.2024"}\n', pa.schema([("t", kind)]), {}) for option, kind in TIMES.items()),
    *(("csv", option, "dd.MM.yyyy", b"02.01.2024\n", pa.schema([("t", kind)]), {}) for option, kind in TIMES.items()),
    ("json", "single_variant_column", "v", b'{"a":1}\n', pa.schema([("v", VARIANT)]), {"mode": "PERMISSIVE"}),
    ("json", "allow_comments", True, b'{"a":/*x*/1}\n', AB, {}),
    ("json", "allow_unquoted_field_names", True, b"{a:1}\n", AB, {}),
    ("json", "allow_single_quotes", False, b"{'a':1}\n", AB, {}),
    ("json", "allow_non_numeric_numbers", False, b'{"d":NaN}\n', pa.schema([("d", pa.float64())]), {}),
    ("csv", "sep", ";", b"1;x\n", AB, {}),
    ("csv", "quote", "'", b"1,'x'\n", AB, {}),
    ("csv", "escape", "!", b'1,"x!"y"\n', AB, {}),
    ("csv", "char_to_escape_quote_escaping", "!", b'1,"x!\\"\n', AB, {}),
    ("csv", "comment", "#", b"#x,y\na,b\n", S, {}),
    ("csv", "skip_rows", 1, b"a,b\nx,y\n", S, {}),
    ("csv", "header", True, b"a,b\nx,y\n", S, {}),
    ("csv", "enforce_schema", False, b"b,a\nx,1\n", AB, {"header": True}),
    ("csv", "null_value", "x", b"x,y\n", S, {}),
    ("csv", "empty_value", "x", b'"",y\n', S, {}),
    *(("csv", option, "odd", b"odd\n", pa.schema([("d", pa.float64())]), {}) for option in ("nan_value", "positive_inf", "negative_inf")),
    ("csv", "ignore_leading_white_space", True, b" x, y\n", S, {}),
    ("csv", "ignore_trailing_white_space", True, b"x ,y \n", S, {}),
    ("text", "wholetext", True, b"x\ny\n", pa.schema([B]), {}),
    ("parquet", "datetime_rebase_mode", "LEGACY", _old_parquet(pa.date32()), DATE, {}),
    ("parquet", "int96_rebase_mode", "LEGACY", _old_parquet(pa.timestamp("ns")), INSTANT, {}),
    ("avro", "datetime_rebase_mode", "LEGACY", avro_file(pa.table({"t": [_OLD]})), DATE, {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("file_format", "option", "value", "data", "schema", "others"),
    CASES,
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_some_formats_know_has_an_effect_in_each_of_them(
    tmp_path, file_format, option, value, data, schema, others
):
    path = tmp_path / "a.data"
    path.write_bytes(data)
    usual = {"file_format": file_format, **others}
    with chdir(tmp_path):
        Path("r.xsd").write_text(_XSD)
        without = _outcome([whole(path)], schema, usual)
        assert without != _outcome([whole(path)], schema, usual | {option: value})


def test_every_option_of_some_formats_is_shown_to_have_an_effect_or_says_why_not():
    assert {name for name in FIELDS if not formats_of(name)} == {"format_options"}
    assert {*FIELDS} >= INERT
    shown = {(case[0], case[1]) for case in CASES}
    known = {
        (file_format.value, name)
        for name in FIELDS
        # That members are selected is shown in `test_archives.py`.
        if len(formats_of(name)) < len(FORMATS) and name not in {*INERT, "archive_path_filter"}
        for file_format in formats_of(name)
        # What the options of the schema do is shown where they are at home.
        if name not in SchemaOptions.model_fields
        and (name != "rescued_data_column" or file_format.value in ("json", "csv", "xml"))
    }
    assert shown == known


def test_a_zone_and_a_pattern_are_judged_with_the_other_options():
    with pytest.raises(OptionError, match=r"timeZone is not known; found Mars"):
        parse_options({"path": "/in", "fileFormat": "parquet", "timeZone": "Mars"}, streaming=False)
    given = {"path": "/in", "fileFormat": "csv", "dateFormat": "u-M-d"}
    with pytest.raises(OptionError, match=r"dateFormat is not understood; found pattern 'u-M-d'"):
        parse_options(given, streaming=False)


FIXED_WIDTH = "pyspark_sluice.examples.fixed_width.fixed_width:FixedWidthFormat"


def test_the_line_that_does_not_fit_is_named_by_its_byte(tmp_path):
    path = tmp_path / "a.txt"
    schema = pa.schema([("id", pa.int64())])
    options = {"file_format": FIXED_WIDTH, "format_options": {"columns": "id 3"}}
    for bad, found in ((b"  x\n", "'x'"), (b"12\n", "a line of 2 bytes")):
        path.write_bytes(b"  1\n  2\n" + bad + b"  3\n")
        with pytest.raises(MalformedDataError, match=re.escape(f"{path}, byte 8")) as caught:
            read_rows([path], schema, **options)
        assert found in caught.value.found


def test_options_of_ones_own_go_under_their_names_and_others_are_refused():
    def parsed(**options):
        return parse_options({"path": "/in", **options}, streaming=False).format_options

    assert parsed(fileformat=FIXED_WIDTH, columns="id 3") == {"columns": "id 3"}
    assert parsed(fileFormat=FIXED_WIDTH, formatOptions='{"columns": "id 3"}') == {
        "columns": "id 3"
    }
    with pytest.raises(OptionError, match=r"column: unknown option; did you mean columns"):
        parsed(fileFormat=FIXED_WIDTH, column="id 3")
    with pytest.raises(OptionError, match=r"sep: found ';' with fileFormat=.*does not support it"):
        parsed(fileFormat=FIXED_WIDTH, columns="id 3", sep=";")
    with pytest.raises(OptionError, match=r"formatOptions: found .* does not support it"):
        parsed(fileFormat="csv", formatOptions='{"a": 1}')
    with pytest.raises(OptionError, match=r"columns: unknown option"):
        parsed(fileFormat="csv", columns="id 3")


def test_a_format_is_found_by_the_name_of_its_entry_point(tmp_path, monkeypatch):
    metadata = tmp_path / "packages" / "fixed_width-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: fixed-width\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        f"[pyspark_sluice.formats]\nfixedWidth = {FIXED_WIDTH}\n"
    )
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
