"""A line format of one's own is cut, packed, compressed and limited like the built-in ones."""

import pyarrow as pa
import pytest
from typing_extensions import override

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.errors import OptionError
from pyspark_sluice.reader.files.formats.registry import format_class
from pyspark_sluice.reader.files.options import FileFormatName
from pyspark_sluice.reader.files.options.values import LINE_FORMATS
from pyspark_sluice.testing import FileFormatSuite

NAME = "pyspark_sluice.tests.reader.files.formats.own_lines:TabbedLines"


class TestTabbedLines(FileFormatSuite):
    options = {"file_format": NAME}
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    condition = "id > 5", lambda row: row["id"] > 5

    @override
    def rows(self, count):
        return [{"id": number, "text": f"text {number:060}"} for number in range(count)]

    @override
    def write(self, path, rows):
        path.write_text("".join(f"{row['id']}\t{row['text']}\n" for row in rows))

    @override
    def spoiled(self, data):
        return data.replace(b"\t", b" ", 1)


def test_the_classes_of_formats_say_which_are_lines():
    assert {name for name in FileFormatName if format_class(name).is_lines} == {*LINE_FORMATS}


def test_files_of_lines_may_grow_in_any_format():
    given = {"path": "/in", "onOverwrite": "appendTail"}
    for name in (NAME, "json"):
        parse_options({**given, "fileFormat": name}, streaming=False)
    with pytest.raises(OptionError, match="onOverwrite"):
        parse_options({**given, "fileFormat": "xml", "rowTag": "r"}, streaming=False)
